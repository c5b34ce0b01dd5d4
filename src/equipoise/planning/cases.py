"""What the denied might have done: a few named cases in place of a guess.

Nobody knows what the denied would have done, and what an audit costs depends on it. So a plan shows
its cost at cases that a reader can judge: the denied succeed so many times as often as the approved
of their group, or the gap lies just beside the grey zone, where audits are most expensive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from equipoise._json import JsonValue
from equipoise.cells import Cells
from equipoise.errors import UnknownName, require_in_unit, require_kind
from equipoise.question import Question
from equipoise.rates import METRICS
from equipoise.worlds.world import CellWorld

__all__ = ["USUAL", "Scenario", "as_often", "scenarios", "usual_case"]

RATIOS = (0.1, 0.2, 0.4, 0.6, 0.8)
USUAL = 0.4  # the ratio that single numbers are quoted for, and from which others are searched
BESIDE = 0.02  # so many epsilons beside the grey zone
MANY = 8  # groups beyond which the search for such a case is coarser


@dataclass(frozen=True)
class Scenario(JsonValue):
    """One case: each group's r, and what is then true.

    Attributes
    ----------
    name
        The case in words.
    r
        Per group, the share of the denied who would have succeeded.
    gap
        The gap in this case.
    expect
        The verdict to expect; both, where both are right.

    Examples
    --------
    >>> Scenario("the gap is just above the grey zone", {"A": 0.1, "B": 0.4}, 0.21, "UNFAIR").short
    'gap just above the grey zone'
    """

    name: str
    r: Mapping[str, float]
    gap: float
    expect: str

    @property
    def short(self) -> str:
        """The case in a few words, for a table."""
        words = self.name.removeprefix("the denied succeed ").removesuffix(" as the approved")
        return words.replace("the gap is", "gap")


def as_often(cells: Cells, ratio: float = USUAL) -> dict[str, float]:
    """Return each group's r if the denied succeed ``ratio`` times as often as the approved.

    Where nobody is approved, as if half of them succeeded.

    Examples
    --------
    >>> from equipoise.cells import GroupCells
    >>> as_often(Cells({"A": GroupCells(30, 10, 60), "B": GroupCells(0, 0, 5)}), 0.5)
    {'A': 0.375, 'B': 0.25}
    """
    return {
        group: ratio * (c.approved_positive / c.approved if c.approved > 0 else 0.5)
        for group, c in cells.like_known.items()
    }


def usual_case(cases: tuple[Scenario, ...]) -> Scenario:
    """Return the case that single numbers are quoted for."""
    return next((case for case in cases if f"{USUAL:.0%}" in case.name), cases[0])


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
    ...     print(f"{case.name}: {case.gap:.3f}, {case.expect}")
    the denied succeed 10% as often as the approved: 0.059, FAIR
    the denied succeed 20% as often as the approved: 0.087, FAIR
    the denied succeed 40% as often as the approved: 0.108, FAIR or UNFAIR
    the denied succeed 60% as often as the approved: 0.110, FAIR or UNFAIR
    the denied succeed 80% as often as the approved: 0.106, FAIR or UNFAIR
    the gap is just below the grey zone: 0.098, FAIR
    the gap is just above the grey zone: 0.202, UNFAIR
    """
    if denied_rate is not None:
        require_kind("denied_rate", denied_rate, Mapping, "a mapping of groups to shares")
    known = dict(denied_rate or {})
    for group, rate in known.items():
        if group not in cells:
            raise UnknownName("group in 'denied_rate'", group, cells.groups)
        require_in_unit(f"denied_rate[{group!r}]", rate)
    space = _Unknowns(cells.like_known, question, frozenset(known))
    if known.keys() == cells.keys():
        return (space.scenario("the denied succeed as you say", known),)
    found = [
        space.scenario(
            f"the denied succeed {ratio:.0%} as often as the approved",
            as_often(cells, ratio) | known,
        )
        for ratio in RATIOS
    ]
    start, step = as_often(cells) | known, BESIDE * question.epsilon
    for name, target in (
        ("the gap is just below the grey zone", max(question.gamma - step, 0.0)),
        ("the gap is just above the grey zone", question.threshold + step),
    ):
        beside = space.reach(start, target)
        if beside is not None:
            found.append(space.scenario(name, beside))
    return tuple(found)


class _Unknowns:
    """All that the denied could be, and the gap as a function of it."""

    def __init__(self, cells: Cells, question: Question, fixed: frozenset[str]) -> None:
        self._question = question
        self._compared = question.compared(cells)
        names = [cells.groups[at] for at in self._compared.groups]
        self._free = [g for g in names if g not in fixed and cells[g].denied > 0]
        nobody = dict.fromkeys(cells, 0.0)
        CellWorld(cells, nobody).gap(question.metric, question.compare)  # or says what is wrong
        self._curves = [
            [(g, rate.curve(*c.shares)) for g, c in cells.items()]
            for rate in METRICS[question.metric].rates
        ]

    def gap(self, r: Mapping[str, float]) -> float:
        values = [
            [np.nan if curve is None else curve.at(r[group]) for group, curve in rate]
            for rate in self._curves
        ]
        return float(self._compared.gap(np.array(values)).max())

    def scenario(self, name: str, r: Mapping[str, float]) -> Scenario:
        gap = self.gap(r)
        right = sorted(v.value for v in self._question.truth(gap))
        return Scenario(name, dict(r), gap, " or ".join(right))

    def reach(self, start: Mapping[str, float], target: float) -> dict[str, float] | None:
        """Return a case near ``start`` whose gap is ``target``, None if there is none.

        Walk straight from the start to a case with the least (or largest) gap; stop at the target.
        """
        sign = 1.0 if self.gap(start) > target else -1.0
        end = self._extreme(dict(start), sign)
        if sign * (self.gap(end) - target) > 0.0:
            return None
        near, far = 0.0, 1.0
        for _ in range(40):
            middle = (near + far) / 2.0
            beyond = sign * (self.gap(_between(start, end, middle)) - target) <= 0.0
            near, far = (near, middle) if beyond else (middle, far)
        return _between(start, end, far)

    def _extreme(self, r: dict[str, float], sign: float) -> dict[str, float]:
        """Move one group's r after the other to where the gap is least (sign 1) or largest."""
        best = sign * self.gap(r)
        grid = 67 if len(self._free) <= MANY else 12
        for _ in range(4):
            before = best
            for group in self._free:
                for value in np.linspace(0.005, 0.995, grid).tolist():
                    there = {**r, group: value}
                    if (now := sign * self.gap(there)) < best:
                        r, best = there, now
            if best == before:
                break
        return r


def _between(
    start: Mapping[str, float], end: Mapping[str, float], share: float
) -> dict[str, float]:
    return {group: (1.0 - share) * start[group] + share * end[group] for group in start}
