"""What the denied might have done: a few named cases in place of a guess.

Nobody knows what the denied would have done, and what an audit costs depends on it. So a plan shows
its cost at cases that a reader can judge: the denied succeed so many times as often as the approved
of their group, or the difference lies just beside the grey zone, where audits are dearest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise._json import JsonValue
from equipoise.cells import Cells
from equipoise.errors import UnknownName, require_in_unit, require_kind
from equipoise.planning.guessing import MANY, guess_r
from equipoise.question import Question
from equipoise.rates import METRICS
from equipoise.worlds import CellWorld

__all__ = ["RATIOS", "Scenario", "scenarios"]

Array = NDArray[np.float64]

RATIOS = (0.1, 0.2, 0.4, 0.6, 0.8)
USUAL = 0.4  # the ratio from which cases beside the grey zone are looked for
BESIDE = 0.02  # … so many epsilons beside it


@dataclass(frozen=True)
class Scenario(JsonValue):
    """One case: each group's r, and what is then true.

    Attributes
    ----------
    name
        The case in words.
    r
        Per group, the share of the denied who would have succeeded.
    difference
        The gap in this case.
    expect
        The verdict to expect; both, where both are right.

    Examples
    --------
    >>> Scenario("the gap just above the grey zone", {"A": 0.1, "B": 0.4}, 0.21, "UNFAIR").short
    'just above the grey zone'
    """

    name: str
    r: Mapping[str, float]
    difference: float
    expect: str

    @property
    def short(self) -> str:
        """The case in a few words, for a table."""
        words = self.name.removeprefix("the denied succeed ").removesuffix(" as the approved")
        return words.removeprefix("the gap ")


def scenarios(
    cells: Cells, question: Question, denied_rate: Mapping[str, float] | None = None
) -> tuple[Scenario, ...]:
    """Return the cases of a plan, those that past data allow.

    Parameters
    ----------
    denied_rate
        What is known of some groups' r; it holds in every case.

    Examples
    --------
    >>> from equipoise.cells import GroupCells
    >>> cells = Cells({"A": GroupCells(30, 10, 60), "B": GroupCells(20, 10, 70)})
    >>> for case in scenarios(cells, Question("equal_opportunity", gamma=0.1, epsilon=0.1)):
    ...     print(f"{case.name}: gap {case.difference:.3f}, {case.expect}")
    the denied succeed 10% as often as the approved: gap 0.059, FAIR
    the denied succeed 20% as often as the approved: gap 0.087, FAIR
    the denied succeed 40% as often as the approved: gap 0.108, FAIR or UNFAIR
    the denied succeed 60% as often as the approved: gap 0.110, FAIR or UNFAIR
    the denied succeed 80% as often as the approved: gap 0.106, FAIR or UNFAIR
    the gap just below the grey zone: gap 0.098, FAIR
    the gap just above the grey zone: gap 0.202, UNFAIR
    """
    if denied_rate is not None:
        require_kind("denied_rate", denied_rate, Mapping, "a mapping of groups to shares")
    known = dict(denied_rate or {})
    for group, rate in known.items():
        if group not in cells:
            raise UnknownName("group in 'denied_rate'", group, cells.groups)
        require_in_unit(f"denied_rate[{group!r}]", rate)
    approved = guess_r(cells)

    def at(ratio: float) -> dict[str, float]:
        return {group: known.get(group, ratio * rate) for group, rate in approved.items()}

    space = _Unknowns(cells.like_known, question, frozenset(known))
    found = [
        space.scenario(f"the denied succeed {ratio:.0%} as often as the approved", at(ratio))
        for ratio in RATIOS
        if known.keys() != cells.keys()
    ]
    if known.keys() == cells.keys():
        found.append(space.scenario("the denied succeed as you say", known))
    start, step = at(USUAL), BESIDE * question.epsilon
    for name, target in (
        ("the gap just below the grey zone", max(question.gamma - step, 0.0)),
        ("the gap just above the grey zone", question.threshold + step),
    ):
        beside = space.reach(start, target)
        if beside is not None:
            found.append(space.scenario(name, beside))
    return tuple(found)


class _Unknowns:
    """All that the denied could be, and the gap as a function of it."""

    def __init__(self, cells: Cells, question: Question, fixed: frozenset[str]) -> None:
        self._question = question
        self._free = [g for g, c in cells.items() if g not in fixed and c.denied > 0]
        CellWorld(cells, dict.fromkeys(cells, 0.0)).rates(question.metric)  # or says what is wrong
        self._curves = [
            [(g, curve) for g, c in cells.items() if (curve := rate.curve(*c.shares)) is not None]
            for rate in METRICS[question.metric].rates
        ]

    def difference(self, r: Mapping[str, float]) -> float:
        values = [[curve.at(r[group]) for group, curve in rate] for rate in self._curves]
        gap = self._question.comparison.gap
        return max(float(gap(min(rate), max(rate))) for rate in values)

    def scenario(self, name: str, r: Mapping[str, float]) -> Scenario:
        delta = self.difference(r)
        right = sorted(v.value for v in self._question.truth(delta))
        return Scenario(name, dict(r), delta, " or ".join(right))

    def reach(self, start: Mapping[str, float], target: float) -> dict[str, float] | None:
        """Return a case near ``start`` whose gap is ``target``, None if there is none.

        Walk straight from the start to a case with the least (or largest) gap; stop at the
        target.
        """
        sign = 1.0 if self.difference(start) > target else -1.0
        end = self._extreme(dict(start), sign)
        if sign * (self.difference(end) - target) > 0.0:
            return None
        near, far = 0.0, 1.0
        for _ in range(40):
            middle = (near + far) / 2.0
            beyond = sign * (self.difference(_between(start, end, middle)) - target) <= 0.0
            near, far = (near, middle) if beyond else (middle, far)
        return _between(start, end, far)

    def _extreme(self, r: dict[str, float], sign: float) -> dict[str, float]:
        """Move one group's r after the other to where the gap is least (sign 1) or largest."""
        best = sign * self.difference(r)
        grid = 67 if len(self._free) <= MANY else 12
        for _ in range(4):
            before = best
            for group in self._free:
                for value in np.linspace(0.005, 0.995, grid):
                    there = {**r, group: float(value)}
                    if (now := sign * self.difference(there)) < best:
                        r, best = there, now
            if best == before:
                break
        return r


def _between(
    start: Mapping[str, float], end: Mapping[str, float], share: float
) -> dict[str, float]:
    return {group: (1.0 - share) * start[group] + share * end[group] for group in start}
