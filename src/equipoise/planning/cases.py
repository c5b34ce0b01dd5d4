"""What the denied might have done: a few named cases in place of a guess.

Nobody knows what the denied would have done, and what an audit costs depends on it. So a plan shows
its cost at cases that a reader can judge: the denied succeed so many times as often as the approved
of their group, or the gap lies just beside the grey zone, where audits are most expensive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise._json import JsonValue
from equipoise.cells import Cells
from equipoise.errors import UnknownName, require_in_unit, require_kind
from equipoise.question import Question
from equipoise.rates import METRICS, Curve, gap

__all__ = ["USUAL", "Scenario", "as_often", "scenarios", "usual_case"]

RATIOS = (0.1, 0.2, 0.4, 0.6, 0.8)
USUAL = 0.4  # the ratio that single numbers are quoted for, and from which others are searched
BESIDE = 0.02  # so many epsilons beside the grey zone

Array = NDArray[np.float64]
Gaps = Callable[[Array], Array]
"""The gap as a function of every group's r, which is the last axis."""


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
    known = {} if denied_rate is None else denied_rate
    require_kind("denied_rate", known, Mapping, "a mapping of groups to shares")
    for group, rate in known.items():
        if group not in cells:
            raise UnknownName("group in 'denied_rate'", group, cells.groups)
        require_in_unit(f"denied_rate[{group!r}]", rate)
    likely = cells.like_known
    gap(likely, dict.fromkeys(cells, 0.0), question.metric, question.compare)  # refuses empty rates
    gaps = _gaps(likely, question)

    def succeed(ratio: float) -> Array:
        return np.array([known.get(group, r) for group, r in as_often(cells, ratio).items()])

    if known.keys() == cells.keys():
        found = {"the denied succeed as you say": succeed(USUAL)}
    else:
        found = {
            f"the denied succeed {ratio:.0%} as often as the approved": succeed(ratio)
            for ratio in RATIOS
        }
        free = [at for at, group in enumerate(cells) if group not in known]
        step = BESIDE * question.epsilon
        for name, target in (
            ("the gap is just below the grey zone", max(question.gamma - step, 0.0)),
            ("the gap is just above the grey zone", question.threshold + step),
        ):
            beside = _reach(gaps, succeed(USUAL), free, target)
            if beside is not None:
                found[name] = beside
    return tuple(
        Scenario(
            name,
            dict(zip(cells, r.tolist(), strict=True)),
            float(gaps(r)),
            " or ".join(sorted(question.truth(float(gaps(r))))),
        )
        for name, r in found.items()
    )


def _gaps(cells: Cells, question: Question) -> Gaps:
    compare = question.compared(cells)
    curves = [
        Curve.stack([rate.curve(*c.shares) or Curve(np.nan) for c in cells.values()])
        for rate in METRICS[question.metric].rates
    ]
    return lambda r: compare.gap(np.stack([rate.value(r) for rate in curves], -2)).max(-1)


def _reach(gaps: Gaps, start: Array, free: Sequence[int], target: float) -> Array | None:
    """Return a case near ``start`` whose gap is ``target``, None if there is none.

    Walk straight from the start to a case with the least (or largest) gap; stop at the target.
    """
    from scipy.optimize import bisect

    sign = 1.0 if gaps(start) > target else -1.0
    end = _extreme(lambda r: sign * gaps(r), start, free)
    if sign * (gaps(end) - target) > 0.0:
        return None

    def beyond(share: float) -> float:
        return float(gaps((1.0 - share) * start + share * end)) - target

    share = bisect(beyond, 0.0, 1.0, xtol=1e-12)
    return np.asarray((1.0 - share) * start + share * end)


def _extreme(gaps: Gaps, r: Array, free: Sequence[int]) -> Array:
    """Move one group's r after the other to where a function is least."""
    grid = np.linspace(0.005, 0.995, 67)
    for _ in range(4):
        before = gaps(r)
        for at in free:
            tried = np.vstack([r, np.tile(r, (len(grid), 1))])
            tried[1:, at] = grid
            r = tried[gaps(tried).argmin()]
        if gaps(r) == before:
            break
    return r
