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


LISTED = 10  # people in a list of what is to be done
TRACING = 0.1  # share of the time in which the evidence over time may be traced anew
REPORTS = ThreadPoolExecutor(4, "report")  # made in the background, of all audits
AGES = ((1, "since yesterday"), (7, "a week"), (30, "a month"), (90, "three months"),
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
    def of(cls, live: LiveAudit, status: Status, report: Report | None = None) -> Snapshot:
        """Gather what is shown beside the report."""
        states = Counter(status.states)
        wanted = status.people - states["SKIPPED"]
        looked = () if live.settings.assist is None else (("looked at", wanted, ""),)
        known = states["REVEALED"] + states["CORRECTED"]
        today, ages = datetime.now(UTC).date(), {words: Counter[str]() for _, words in AGES}
        for state, day, number in live.pending_by_day():
            age = (today - date.fromisoformat(day)).days
            ages[next(words for most, words in AGES if age <= most)][state] += number
        return cls(
            status=status,
            report=report,
            funnel=(
                ("arrived", status.people, ""),
                *looked,
                ("asked for", wanted - states["SCORE_ONLY"], ""),
                ("carried out or answered", known + states["EXECUTED"], ""),
                ("outcome known", known, "REVEALED"),
                ("refused", states["WITHDRAWN"], "WITHDRAWN"),
                ("given up", states["WRITTEN_OFF"], "WRITTEN_OFF"),
            ),
            ages=ages,
            late=live.people(states=("OVERDUE",), limit=LISTED),
            unconfirmed=live.people(states=("RESERVED",), limit=LISTED),
            conflicts=live.people(conflicted=True, limit=LISTED) if status.conflicts else (),
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
        self._traced, self._trace_at = "", 0.0

    def look(self, patience: float) -> Snapshot:
        """Return the latest, after at most so many seconds."""
        with self._lock:
            seen = self._latest
            if seen is None or self._work is None or self._work.done():
                status, report = self._live.status(), seen.report if seen else None
                if seen is None or seen.status.head != status.head:
                    seen = self._latest = Snapshot.of(self._live, status, report)
                is_new = report is None or report.status.head != status.head
                if is_new or (self._traced != status.head and time.monotonic() > self._trace_at):
                    self._work = REPORTS.submit(self._bring_up_to_date, report)
            work = self._work
        if work is not None:
            wait([work], timeout=patience)
        return self._latest or seen

    def _bring_up_to_date(self, last: Report | None) -> None:
        start = time.monotonic()
        known = None if last is None or start > self._trace_at else last.evidence
        try:
            report = Report.of(self._live, evidence=known)
            self._latest = Snapshot.of(self._live, report.status, report)
            if known is None:
                self._traced = report.status.head
                self._trace_at = start + (time.monotonic() - start) / TRACING
        except Exception as error:
            log.warning("no report", extra={"fields": {"error": str(error)}})
