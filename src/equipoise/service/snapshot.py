"""What the page of an audit shows, brought up to date in the background."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import inf

from equipoise.ledger import LiveAudit, Status
from equipoise.ledger.verify import PersonRecord
from equipoise.report import Report

log = logging.getLogger("equipoise.service")


MAX_LISTED = 10  # people in a list of what is to be done
TRACING_TIME_SHARE = 0.1  # share of the time in which the evidence over time may be traced anew
REPORT_POOL = ThreadPoolExecutor(4, "report")  # made in the background, of all audits
AGE_CLASSES = ((1, "since yesterday"), (7, "a week"), (30, "a month"), (90, "three months"),
        (365, "a year"), (inf, "longer"))  # fmt: skip


@dataclass(frozen=True)
class Snapshot:
    """What the page of an audit shows, each list from one small question to the database.

    Attributes
    ----------
    status, report
        People and money as of ``status.events``; the evidence as of ``report.status.events``, which
        may be earlier. No report: it is being made.
    funnel
        What became of everybody: words, number of people, and the states they stand for.
    ages
        How long requests have been open -> how many of them are in each state.
    late, unconfirmed, conflicts
        The oldest that should have an outcome by now, or whose override nobody has confirmed, and
        people whose outcome was contradicted.
    """

    status: Status
    report: Report | None
    funnel: Sequence[tuple[str, int, str]]
    ages: Mapping[str, Mapping[str, int]]
    late: Sequence[PersonRecord]
    unconfirmed: Sequence[PersonRecord]
    conflicts: Sequence[PersonRecord]

    @classmethod
    def take(cls, live: LiveAudit, status: Status, report: Report | None = None) -> Snapshot:
        """Gather what is shown beside the report."""
        states = Counter(status.states)
        considered = status.people - states["SKIPPED"]
        scored_step = () if live.settings.assist is None else (("looked at", considered, ""),)
        answered = states["REVEALED"] + states["CORRECTED"]
        today, ages = (
            datetime.now(UTC).date(),
            {age_class: Counter[str]() for _, age_class in AGE_CLASSES},
        )
        for state, day, people in live.pending_by_day():
            age = (today - date.fromisoformat(day)).days
            ages[next(age_class for max_days, age_class in AGE_CLASSES if age <= max_days)][
                state
            ] += people
        return cls(
            status=status,
            report=report,
            funnel=(
                ("arrived", status.people, ""),
                *scored_step,
                ("asked for", considered - states["SCORE_ONLY"], ""),
                ("carried out or answered", answered + states["EXECUTED"], ""),
                ("outcome known", answered, "REVEALED"),
                ("refused", states["WITHDRAWN"], "WITHDRAWN"),
                ("given up", states["WRITTEN_OFF"], "WRITTEN_OFF"),
            ),
            ages=ages,
            late=live.people(states=("OVERDUE",), limit=MAX_LISTED),
            unconfirmed=live.people(states=("RESERVED",), limit=MAX_LISTED),
            conflicts=live.people(conflicted=True, limit=MAX_LISTED) if status.conflicts else (),
        )

    @property
    def apart(self) -> list[tuple[str, str, str]]:
        """``(rate, higher group, lower group)`` for every pair whose intervals do not meet."""
        rates = self.report.finding.rates if self.report else {}
        return [
            (rate.replace("_", " "), high, low)
            for rate, groups in rates.items()
            for high, of_high in groups.items()
            for low, of_low in groups.items()
            if of_high.lower > of_low.upper
        ]


class ReportCache:
    """What an audit's evidence says, brought up to date in the background.

    A fresh process builds the evidence from the whole log, and with many outcomes that takes
    seconds. So nobody waits for it longer than they want: they see what was reported last. How the
    evidence grew over time takes as long each time, so it is traced anew now and then.
    """

    def __init__(self, live: LiveAudit) -> None:
        self._live = live
        self._lock = threading.Lock()
        self._work: Future[None] | None = None
        self._latest: Snapshot | None = None
        self._traced_head, self._next_trace_time = "", 0.0

    def current(self, wait_seconds: float) -> Snapshot:
        """Return the latest, after at most so many seconds."""
        with self._lock:
            snapshot = self._latest
            if snapshot is None or self._work is None or self._work.done():
                status, report = self._live.status(), snapshot.report if snapshot else None
                if snapshot is None or snapshot.status.head != status.head:
                    snapshot = self._latest = Snapshot.take(self._live, status, report)
                is_new = report is None or report.status.head != status.head
                if is_new or (
                    self._traced_head != status.head and time.monotonic() > self._next_trace_time
                ):
                    self._work = REPORT_POOL.submit(self._bring_up_to_date, report)
            work = self._work
        if work is not None:
            wait([work], timeout=wait_seconds)
        return self._latest or snapshot

    def _bring_up_to_date(self, last_report: Report | None) -> None:
        start = time.monotonic()
        last_evidence = (
            None if last_report is None or start > self._next_trace_time else last_report.evidence
        )
        try:
            report = Report.of(self._live, evidence=last_evidence)
            self._latest = Snapshot.take(self._live, report.status, report)
            if last_evidence is None:
                self._traced_head = report.status.head
                self._next_trace_time = start + (time.monotonic() - start) / TRACING_TIME_SHARE
        except Exception as error:
            log.warning("no report", extra={"fields": {"error": str(error)}})
