"""The log of an audit's requests and answers, and the audit rebuilt from it.

The log is the whole truth about the audit object: a fresh one that replays it, with the cap as it
is now, is where the living one is. So nothing of an audit's inside is ever stored, and how
evidence is weighed may change without a change of the format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from equipoise._json import JsonValue
from equipoise.audits.base import Audit, Step, as_corrected
from equipoise.finding import Finding
from equipoise.ledger.settings import Settings, build
from equipoise.question import ScoreRecord, Ticket, Want

__all__ = [
    "EvidencePoint",
    "RequestLog",
    "from_score_event",
    "to_score_event",
]

KINDS: tuple[Literal["asked", "told", "withdrawn", "corrected"], ...] = (
    "asked",
    "told",
    "withdrawn",
    "corrected",
)
WANTS = (Want.NOTHING, Want.LABEL, Want.SCORE_ONLY)


@dataclass(frozen=True)
class EvidencePoint(JsonValue):
    """What was established about the gap when so many requests had been answered."""

    answers: int
    lower: float
    upper: float
    estimate: float | None


class RequestLog:
    """The log of one audit as rows of small numbers, and the audit that it leads to.

    ``ready`` says whether the audit object is at hand. It is not after a new cap, nor after a
    corrected answer that the audit cannot take in place; then :attr:`audit` restores it from the
    log, which takes as long as the log is long.
    """

    def __init__(self, settings: Settings, log: list[list[Any]] | None = None) -> None:
        self.settings = settings
        self.log: list[list[Any]] = [] if log is None else log
        self.cap = settings.budget
        self._audit: Audit | None = None
        self._groups = {group: i for i, group in enumerate(settings.groups)}
        self._score_records = {row[1]: from_score_event(row[6]) for row in self.log if row[6:]}

    @property
    def ready(self) -> bool:
        """Whether the audit need not be rebuilt."""
        return self._audit is not None

    @property
    def audit(self) -> Audit:
        """The audit as of the last entry."""
        if self._audit is None:
            audit = build(self.settings, self.cap)
            audit.restore(list(self._steps()))
            self._audit = audit
        return self._audit

    @property
    def finding(self) -> Finding | None:
        """What the audit has found, None while it goes on."""
        return self.audit.finding

    def concluded(self, why: str) -> Finding:
        """Return what the evidence supports if nobody else comes; the audit itself goes on."""
        return self.audit.so_far(why)

    def trace(self, points: int) -> tuple[EvidencePoint, ...]:
        """Return how the evidence grew, at about so many moments."""
        steps, audit = list(self._steps()), build(self.settings, self.cap)
        if not self._score_records:  # where scores decided, corrections come in order
            steps = as_corrected(steps)
        answered = sum(step.kind != "asked" for step in steps)
        every, answers, start, found = max(1, answered // max(1, points)), 0, 0, [_look(audit, 0)]
        for end, step in enumerate(steps, start=1):
            answers += step.kind != "asked"
            if step.kind != "asked" and (answers % every == 0 or answers == answered):
                audit.restore(steps[start:end])
                start = end
                found.append(_look(audit, answers))
        return tuple(found)

    def score_record_of(self, request: int) -> ScoreRecord | None:
        """Return what was seen of a person before anything was asked."""
        return self._score_records.get(request)

    # -- what happens -----------------------------------------------------------------------------

    def enter(self, step: Step, *, done: bool = False) -> None:
        """Enter what happened to a request; ``done`` if the audit object knows it already."""
        ticket, value = step.ticket, step.outcome if step.cost is None else int(step.cost)
        row: list[Any] = [KINDS.index(step.kind), ticket.number, value]
        if step.kind == "asked":
            group, want = self._groups[ticket.group], WANTS.index(ticket.want)
            row[2:] = [group, ticket.decision, want, int(ticket.hold)]
            if ticket.score_record is not None:
                self._score_records[ticket.number] = ticket.score_record
                row.append(to_score_event(ticket.score_record))
        self.log.append(row)
        if self._audit is None or done:
            return
        if step.kind == "corrected" and not self._audit.correctable:
            self.forget()
        else:
            self._audit.restore([step])

    def set_cap(self, cap: int | None) -> None:
        """Go on as if the cap had been this one from the beginning."""
        self.cap = cap
        self.forget()

    def forget(self) -> None:
        """Let the audit object go; it is rebuilt when it is needed."""
        self._audit = None

    # -- helpers ----------------------------------------------------------------------------------

    def _steps(self) -> Iterator[Step]:
        tickets: dict[int, Ticket] = {}
        for kind, number, value, *more in self.log:
            if KINDS[kind] == "asked":
                decision, want, hold = more[0], WANTS[more[1]], float(more[2])
                record = self._score_records.get(number)
                group = self.settings.groups[value]
                tickets[number] = Ticket(number, group, decision, want, hold, record)
                yield Step("asked", tickets[number])
            elif KINDS[kind] == "withdrawn":
                yield Step("withdrawn", tickets[number], cost=float(value))
            else:
                yield Step(KINDS[kind], tickets[number], value)


def to_score_event(record: ScoreRecord) -> dict[str, Any]:
    """Return a score record as an event holds it: money whole, the draw as a number of 53 bits."""
    return {
        "score": record.score,
        "version": record.version,
        "price": int(record.price),
        "m": record.m,
        "pi": record.pi,
        "range": [record.low, record.high],
        "draw": int(record.draw * 2**53),
    }


def from_score_event(data: Mapping[str, Any]) -> ScoreRecord:
    """Return the score record that an event holds."""
    low, high = data["range"]
    return ScoreRecord(
        *(data["score"], data["version"], float(data["price"]), data["m"], data["pi"], low, high),
        draw=data["draw"] / 2**53,
    )


def _look(audit: Audit, answers: int) -> EvidencePoint:
    finding = audit.so_far()
    return EvidencePoint(answers, finding.lower, finding.upper, finding.estimate)
