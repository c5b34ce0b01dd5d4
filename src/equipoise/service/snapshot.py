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
from typing import NamedTuple

from equipoise.ledger import LiveAudit, Status
from equipoise.ledger.verify import PersonRecord
from equipoise.report import Report

log = logging.getLogger("equipoise.service")


MAX_LISTED = 10  # people in a list of what is to be done
TRACING_TIME_SHARE = 0.1  # of the time, at most, the evidence over time is traced anew
REPORT_POOL = ThreadPoolExecutor(4, "report")  # makes the reports of all audits
AGE_CLASSES = (
    (1, "since yesterday"),
    (7, "a week"),
    (30, "a month"),
    (90, "three months"),
    (365, "a year"),
    (inf, "longer"),
)
"""Most days that a request of a class has been open, and what the page calls the class."""


class FunnelStep(NamedTuple):
    """How many people came as far as a step; ``state`` filters the list of people, "" for none."""

    label: str
    people: int
    state: str = ""


@dataclass(frozen=True)
class Snapshot:
    """What the page of an audit shows, each list from one small query of the database.

    Attributes
    ----------
    status, report
        People and money as of ``status.events``; the evidence as of ``report.status.events``, which
        may be earlier. The report is None while the first one is being made.
    funnel
        How many people arrived, and how far they came.
    ages
        How long requests have been open -> state -> how many requests.
    overdue, unconfirmed, conflicts
        The first people, at most ten each, whose outcome is overdue, whose override was not
        confirmed yet, and whose outcome was contradicted.
    """

    status: Status
    report: Report | None
    funnel: Sequence[FunnelStep]
    ages: Mapping[str, Mapping[str, int]]
    overdue: Sequence[PersonRecord]
    unconfirmed: Sequence[PersonRecord]
    conflicts: Sequence[PersonRecord]

    @classmethod
    def take(cls, live: LiveAudit, status: Status, report: Report | None = None) -> Snapshot:
        """Gather what is shown beside the report."""
        return cls(
            status=status,
            report=report,
            funnel=_funnel(status, uses_scores=live.settings.assist is not None),
            ages=_open_requests_by_age(live),
            overdue=live.people(states=("OVERDUE",), limit=MAX_LISTED),
            unconfirmed=live.people(states=("RESERVED",), limit=MAX_LISTED),
            conflicts=live.people(conflicted=True, limit=MAX_LISTED) if status.conflicts else (),
        )


def _funnel(status: Status, *, uses_scores: bool) -> list[FunnelStep]:
    """Return the steps from arrival to outcome, with how many people came as far."""
    states = Counter(status.states)
    considered = status.people - states["SKIPPED"]
    answered = states["REVEALED"] + states["CORRECTED"]
    steps = [FunnelStep("arrived", status.people)]
    if uses_scores:
        steps.append(FunnelStep("looked at", considered))
    return [
        *steps,
        FunnelStep("outcome requested", considered - states["SCORE_ONLY"]),
        FunnelStep("carried out or answered", answered + states["EXECUTED"]),
        FunnelStep("outcome known", answered, "REVEALED"),
        FunnelStep("declined", states["WITHDRAWN"], "WITHDRAWN"),
        FunnelStep("given up", states["WRITTEN_OFF"], "WRITTEN_OFF"),
    ]


def _open_requests_by_age(live: LiveAudit) -> dict[str, Counter[str]]:
    """Return for each class of age how many open requests are in each state."""
    today = datetime.now(UTC).date()
    ages = {label: Counter[str]() for _, label in AGE_CLASSES}
    for state, day, requests in live.pending_by_day():
        days_open = (today - date.fromisoformat(day)).days
        ages[_age_class(days_open)][state] += requests
    return ages


def _age_class(days_open: int) -> str:
    """Return what the page calls requests that have been open for so many days."""
    return next(label for max_days, label in AGE_CLASSES if days_open <= max_days)


class ReportCache:
    """The latest snapshot of an audit, brought up to date in the background.

    A fresh process builds the evidence from the whole log, which takes seconds if there are many
    outcomes. So a page waits for it as long as it wants and otherwise shows the last report. How
    the evidence grew over time takes as long every time, so it is traced anew only now and then.
    """

    def __init__(self, live: LiveAudit) -> None:
        self._live = live
        self._lock = threading.Lock()
        self._work: Future[None] | None = None
        self._latest: Snapshot | None = None
        self._traced_head = ""  # the last event whose evidence over time was traced
        self._next_trace_time = 0.0  # by the monotonic clock, in seconds

    def current(self, wait_seconds: float) -> Snapshot:
        """Return the latest snapshot, after at most so many seconds."""
        with self._lock:  # one update at a time, however many pages ask
            snapshot = self._latest
            if snapshot is None or self._work is None or self._work.done():
                snapshot = self._start_update(snapshot)
            work = self._work
        if work is not None:
            wait([work], timeout=wait_seconds)
        return self._latest or snapshot  # the update may have put a newer one in its place

    def _start_update(self, snapshot: Snapshot | None) -> Snapshot:
        """Take people and money anew at once, and start a report in the background if needed."""
        status = self._live.status()
        report = None if snapshot is None else snapshot.report
        if snapshot is None or snapshot.status.head != status.head:
            snapshot = Snapshot.take(self._live, status, report)
            self._latest = snapshot
        is_report_old = report is None or report.status.head != status.head
        is_trace_old = self._traced_head != status.head
        if is_report_old or (is_trace_old and time.monotonic() > self._next_trace_time):
            self._work = REPORT_POOL.submit(self._make_report, report)
        return snapshot

    def _make_report(self, last_report: Report | None) -> None:
        """Make a report and keep it; reuse the trace of the last one if it is not time yet."""
        start = time.monotonic()
        last_evidence = None
        # A trace that is older than its report still shows how the evidence grew until then.
        if last_report is not None and start <= self._next_trace_time:
            last_evidence = last_report.evidence
        try:
            report = Report.of(self._live, evidence=last_evidence)
            self._latest = Snapshot.take(self._live, report.status, report)
        except Exception as error:  # the page keeps the last report
            log.warning("no report", extra={"fields": {"error": str(error)}})
            return
        if last_evidence is None:  # it was traced anew
            seconds_taken = time.monotonic() - start
            self._traced_head = report.status.head
            self._next_trace_time = start + seconds_taken / TRACING_TIME_SHARE
