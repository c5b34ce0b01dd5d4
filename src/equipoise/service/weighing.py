"""What the evidence says, kept at hand: weighed in the background, shown with its event number.

Weighing needs the audit object, which a fresh process builds from the whole log; with many
outcomes that takes seconds. So a page never waits for it: it shows what was weighed last, and a
later look brings the next.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

from equipoise.finding import Finding
from equipoise.ledger import LiveAudit, Status
from equipoise.ledger.memory import EvidencePoint
from equipoise.report import Report
from equipoise.service.forecast import forecast_of

__all__ = ["Weighed", "Weighing"]

POINTS = 60
SETTLED = ("REVEALED", "CORRECTED", "DESCRIBED", "WITHDRAWN", "WRITTEN_OFF")


@dataclass(frozen=True)
class Weighed:
    """The report as of one event, and what the audit will cost in all if it goes on."""

    seq: int
    report: Report
    forecast: dict[str, Any] | None


class Weighing:
    """The evidence of one audit, through a handle of its own."""

    def __init__(self, ledger: str, uid: str) -> None:
        self.latest: Weighed | None = None
        self._ledger, self._uid = ledger, uid
        self._live: LiveAudit | None = None
        self._lock = threading.Lock()
        self._trail: list[EvidencePoint] = []
        self._revised = -1
        self._took = 0.0
        self._ended = 0.0

    @property
    def rested(self) -> bool:
        """Whether weighing again would take little of the processor: at most a quarter."""
        return time.monotonic() - self._ended >= 3.0 * self._took

    def weigh(self) -> Weighed:
        """Weigh everything up to now."""
        with self._lock:
            start, live = time.thread_time(), self._opened()
            status = live.status()
            if self.latest is None or self.latest.seq != status.events:
                report = Report.of(live, evidence=self._evidence(live, status))
                priced = None if report.decided else forecast_of(live)
                self.latest = Weighed(report.status.events, report, priced)
            self._took, self._ended = time.thread_time() - start, time.monotonic()
            return self.latest

    def finding(self) -> tuple[Finding | None, Finding]:
        """Return the verdict, if there is one, and what is established by now."""
        with self._lock:
            live = self._opened()
            return live.finding, live.so_far()

    def close(self) -> None:
        """Let go of the database."""
        if self._live is not None:
            self._live.close_ledger()

    def _opened(self) -> LiveAudit:
        if self._live is None:
            self._live = LiveAudit.open(self._ledger, self._uid)
        return self._live

    def _evidence(self, live: LiveAudit, status: Status) -> tuple[EvidencePoint, ...]:
        """Return the evidence over time: replayed once, then one point more at each look."""
        revised = status.late + sum(n.get("corrected", 0) for n in status.actors.values())
        answers = sum(status.states.get(state, 0) for state in SETTLED)
        if not self._trail or revised != self._revised:
            self._trail, self._revised = list(live.trace()), revised
        elif answers > self._trail[-1].answers:
            now = live.so_far()
            self._trail.append(EvidencePoint(answers, now.lower, now.upper, now.estimate))
        if len(self._trail) > 2 * POINTS:
            self._trail = [*self._trail[:-1:2], self._trail[-1]]
        return tuple(self._trail)
