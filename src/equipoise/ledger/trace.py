"""How the evidence grew: an audit replayed, with a look at it every so often."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from equipoise._json import JsonValue
from equipoise.finding import Finding
from equipoise.ledger.projection import Projection, replay

__all__ = ["EvidencePoint", "trace"]

ANSWERS = ("revealed", "described", "withdrawn", "written_off")


@dataclass(frozen=True)
class EvidencePoint(JsonValue):
    """What was established about Delta when so many requests had been answered."""

    answers: int
    people: int
    spent: int
    time: str
    lower: float
    upper: float
    estimate: float | None


def trace(
    bodies: Iterable[tuple[str, str]],
    start: Projection,
    every: int,
    features_of: Callable[[str], Sequence[float] | None],
) -> tuple[EvidencePoint, ...]:
    """Return a point at the beginning, after every so many answers, and at the end."""
    points: list[EvidencePoint] = []
    answers = people = 0
    for digest, body in bodies:
        kind = body[body.rindex('"type":"') + 8 : -2]
        replay([(digest, body)], start=start, features_of=features_of)
        people += kind == "asked"
        answers += kind in ANSWERS
        if kind == "created" or (kind in ANSWERS and answers % every == 0):
            points.append(_look(start, answers, people))
    if answers % every or not points:
        points.append(_look(start, answers, people))
    return tuple(points)


def _look(projection: Projection, answers: int, people: int) -> EvidencePoint:
    finding: Finding | None = projection.audit.finding
    if finding is None:  # a copy concludes, the audit goes on
        finding = copy.deepcopy(projection.audit).conclude()
    return EvidencePoint(
        answers=answers,
        people=people,
        spent=projection.spent,
        time=projection.time,
        lower=finding.lower,
        upper=finding.upper,
        estimate=finding.estimate,
    )
