"""The cases of a plan: what the denied might have done.

What an audit costs depends on outcomes that the lender does not know. So a plan shows its cost at
cases that a reader can judge: the denied succeed some times as often as the approved of their
group, or the gap lies just beside the grey zone, where audits are most expensive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from equipoise._arrays import Array
from equipoise._json import JsonValue
from equipoise.cells import Cells
from equipoise.errors import UnknownName, require_in_unit, require_kind
from equipoise.metrics import METRICS, gap_given_r
from equipoise.question import Question
from equipoise.rates import Curve

RATIOS = (0.1, 0.2, 0.4, 0.6, 0.8)
USUAL_RATIO = (
    0.4  # the ratio of the usual case: single numbers are for it, and searches start there
)
ACCEPTED = "the denied succeed as often as those accepted at random"
PRIOR = 10  # labels that the usual case counts as, where some were seen
BESIDE = 0.02  # epsilons between the grey zone and a gap just beside it


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


def denied_rates_by_ratio(cells: Cells, ratio: float = USUAL_RATIO) -> dict[str, float]:
    """Return each group's r if the denied succeed ``ratio`` times as often as the approved.

    Where nobody is approved, half of the approved are taken to succeed.

    Examples
    --------
    >>> from equipoise.cells import GroupCells
    >>> denied_rates_by_ratio(Cells({"A": GroupCells(30, 10, 60), "B": GroupCells(0, 0, 5)}), 0.5)
    {'A': 0.375, 'B': 0.25}
    """
    return {
        group: ratio * (c.approved_positive / c.approved if c.approved > 0 else 0.5)
        for group, c in cells.like_known.items()
    }


def denied_rates_by_outcomes(cells: Cells, seen: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return each group's r by the good and bad outcomes that were seen of its denied.

    The usual case counts as ten more outcomes, since a few say little.

    Examples
    --------
    >>> from equipoise.cells import GroupCells
    >>> cells = Cells({"A": GroupCells(30, 10, 60), "B": GroupCells(30, 10, 60)})
    >>> denied_rates_by_outcomes(cells, {"A": (1, 0), "B": (500, 490)})
    {'A': 0.36363636363636365, 'B': 0.503}
    """
    found = {}
    for group, usual in denied_rates_by_ratio(cells).items():
        good, bad = seen.get(group, (0.0, 0.0))
        found[group] = (good + PRIOR * usual) / (good + bad + PRIOR)
    return found


def pick_usual_case(cases: tuple[Scenario, ...]) -> Scenario:
    """Return the case that single numbers are quoted for."""
    likely = (case for case in cases if case.name == ACCEPTED or f"{USUAL_RATIO:.0%}" in case.name)
    return next(likely, cases[0])


def scenarios(
    cells: Cells, question: Question, denied_rate: Mapping[str, float] | None = None
) -> tuple[Scenario, ...]:
    """Return the cases of a plan; a gap that no r gives is left out.

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
    gap_given_r(
        likely, dict.fromkeys(cells, 0.0), question.metric, question.comparison
    )  # refuses empty rates
    compare = question.resolve(likely)
    curves = [
        Curve.stack([rate.curve(*c.shares) or Curve(np.nan) for c in likely.values()])
        for rate in METRICS[question.metric].rates
    ]

    def gaps(r: Array) -> Array:  # every group's r is the last axis
        return np.asarray(compare.gap(np.stack([rate.value(r) for rate in curves], -2)).max(-1))

    def succeed(ratio: float) -> Array:
        return np.array(
            [known.get(group, r) for group, r in denied_rates_by_ratio(cells, ratio).items()]
        )

    if known.keys() == cells.keys():
        found = {"the denied succeed as you say": succeed(USUAL_RATIO)}
    else:
        accepts = {group: c.random_accepts[:2] for group, c in cells.items() if c.random_accepts}
        found = {}
        if not known and any(map(sum, accepts.values())):
            found[ACCEPTED] = np.array([*denied_rates_by_outcomes(cells, accepts).values()])
        found |= {
            f"the denied succeed {ratio:.0%} as often as the approved": succeed(ratio)
            for ratio in RATIOS
        }
        free = [at for at, group in enumerate(cells) if group not in known]
        step = BESIDE * question.epsilon
        beside = {"below": max(question.gamma - step, 0.0), "above": question.threshold + step}
        for side, target in beside.items():
            if (r := _reach(gaps, succeed(USUAL_RATIO), free, target)) is not None:
                found[f"the gap is just {side} the grey zone"] = r
    cases = []
    for name, r in found.items():
        true_gap, rates = float(gaps(r)), dict(zip(cells, r.tolist(), strict=True))
        expect = " or ".join(sorted(question.truth(true_gap)))
        cases.append(Scenario(name, rates, true_gap, expect))
    return tuple(cases)


def _reach(
    gaps: Callable[[Array], Array], start: Array, free: Sequence[int], target: float
) -> Array | None:
    """Return a case near ``start`` whose gap is ``target``, None if there is none.

    Move one group's r after the other to where the gap is least (or largest), then walk straight
    from the start to there and stop at the target.
    """
    from scipy.optimize import bisect

    sign = 1.0 if gaps(start) > target else -1.0
    end, grid = start, np.linspace(0.005, 0.995, 67)
    for at in [*free] * 4:
        tried = np.vstack([end, np.tile(end, (len(grid), 1))])
        tried[1:, at] = grid
        end = tried[(sign * gaps(tried)).argmin()]
    if sign * (gaps(end) - target) > 0.0:
        return None

    def walked(share: float) -> Array:
        return np.asarray((1.0 - share) * start + share * end)

    return walked(bisect(lambda share: float(gaps(walked(share))) - target, 0.0, 1.0, xtol=1e-12))
