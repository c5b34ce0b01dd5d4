"""The cases of a plan: what the denied might have done.

What an audit costs depends on outcomes that the lender does not know. So a plan shows its cost at
cases that a reader can judge: the denied succeed some times as often as the approved of their
group, or the gap lies just beside the grey zone, where audits are most expensive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from equipoise._arrays import Array
from equipoise._json import JsonValue
from equipoise.cells import Cells
from equipoise.errors import UnknownName, require_in_unit, require_kind
from equipoise.metrics import METRICS, gap_given_r
from equipoise.question import Question, Verdict
from equipoise.rates import Curve

SUCCESS_RATIOS = (0.1, 0.2, 0.4, 0.6, 0.8)  # how often the denied succeed, over the approved
USUAL_RATIO = 0.4  # of the usual case: single numbers are for it, and searches start there
PRIOR_OUTCOMES = 10  # outcomes that the usual case counts as, where some were seen
GREY_ZONE_STEP = 0.02  # epsilons between the grey zone and a gap just beside it
SWEEPS = 4  # times that every group's r is moved in search of a gap
SEARCH_GRID = np.linspace(0.005, 0.995, 67)  # values of r that are tried
EITHER_VERDICT = f"{Verdict.FAIR} or {Verdict.UNFAIR}"  # expected where both are right


class ScenarioKind(StrEnum):
    """Why a case is in a plan."""

    RANDOM_ACCEPTS = "random_accepts"
    RATIO = "ratio"
    BELOW_GREY_ZONE = "below_grey_zone"
    ABOVE_GREY_ZONE = "above_grey_zone"
    AS_GIVEN = "as_given"


class _CaseName(NamedTuple):
    """The full name of a case, to follow "if", and shorter ones.

    ``cell`` is for a column whose heading says "as often" already. Where it is empty, the short
    name fits there too.
    """

    full: str
    short: str
    cell: str = ""


_NAMES = {
    ScenarioKind.RANDOM_ACCEPTS: _CaseName(
        "the denied succeed as often as those accepted at random",
        "as often as those accepted at random",
    ),
    ScenarioKind.RATIO: _CaseName(
        "the denied succeed {ratio:.0%} as often as the approved",
        "{ratio:.0%} as often",
        "{ratio:.0%}",
    ),
    ScenarioKind.BELOW_GREY_ZONE: _CaseName(
        "the gap is just below the grey zone",
        "gap just below the grey zone",
    ),
    ScenarioKind.ABOVE_GREY_ZONE: _CaseName(
        "the gap is just above the grey zone",
        "gap just above the grey zone",
    ),
    ScenarioKind.AS_GIVEN: _CaseName("the denied succeed as you say", "as you say"),
}


@dataclass(frozen=True)
class Scenario(JsonValue):
    """One case: each group's r, and what is then true.

    Attributes
    ----------
    kind
        Why the case is in the plan.
    r
        Per group, the share of the denied who would have succeeded.
    gap
        The gap in this case.
    expect
        The verdict to expect; both, where both are right.
    ratio
        For the kind "ratio": how often the denied succeed, over the approved of their group.
    name
        The case in words; it follows from kind and ratio.

    Examples
    --------
    >>> case = Scenario(ScenarioKind.ABOVE_GREY_ZONE, {"A": 0.1, "B": 0.4}, 0.21, "UNFAIR")
    >>> case.name, case.short
    ('the gap is just above the grey zone', 'gap just above the grey zone')
    """

    kind: ScenarioKind
    r: Mapping[str, float]
    gap: float
    expect: str
    ratio: float | None = None
    name: str = ""

    def __post_init__(self) -> None:
        full_name = _NAMES[self.kind].full
        object.__setattr__(self, "name", full_name.format(ratio=self.ratio))

    @property
    def short(self) -> str:
        """The case in a few words, for a table."""
        return _NAMES[self.kind].short.format(ratio=self.ratio)

    @property
    def cell(self) -> str:
        """The case for a column headed "if denied people do well ... as often"."""
        cell_name = _NAMES[self.kind].cell
        return cell_name.format(ratio=self.ratio) if cell_name else self.short

    @property
    def is_either_right(self) -> bool:
        """Whether the gap is in the grey zone, where both verdicts are right."""
        return self.expect == EITHER_VERDICT


def denied_rates_by_ratio(cells: Cells, ratio: float = USUAL_RATIO) -> dict[str, float]:
    """Return each group's r if the denied succeed ``ratio`` times as often as the approved.

    In a group without approved people, half of the approved are taken to succeed.

    Examples
    --------
    >>> from equipoise.cells import GroupCells
    >>> denied_rates_by_ratio(Cells({"A": GroupCells(30, 10, 60), "B": GroupCells(0, 0, 5)}), 0.5)
    {'A': 0.375, 'B': 0.25}
    """
    rates = {}
    for group, counts in cells.like_known.items():
        approved_rate = counts.approved_positive / counts.approved if counts.approved > 0 else 0.5
        rates[group] = ratio * approved_rate
    return rates


def denied_rates_by_outcomes(
    cells: Cells, outcomes: Mapping[str, Sequence[float]]
) -> dict[str, float]:
    """Return each group's r by the good and bad outcomes that were seen of its denied.

    The usual case counts as ten more outcomes, since a few outcomes say little.

    Parameters
    ----------
    outcomes
        Per group, how many denied people had a good and how many a bad outcome.

    Examples
    --------
    >>> from equipoise.cells import GroupCells
    >>> cells = Cells({"A": GroupCells(30, 10, 60), "B": GroupCells(30, 10, 60)})
    >>> denied_rates_by_outcomes(cells, {"A": (1, 0), "B": (500, 490)})
    {'A': 0.36363636363636365, 'B': 0.503}
    """
    rates = {}
    for group, usual_rate in denied_rates_by_ratio(cells).items():
        good, bad = outcomes.get(group, (0.0, 0.0))
        rates[group] = (good + PRIOR_OUTCOMES * usual_rate) / (good + bad + PRIOR_OUTCOMES)
    return rates


def pick_usual_case(cases: Sequence[Scenario]) -> Scenario:
    """Return the case that single numbers are quoted for."""
    for case in cases:
        if case.kind is ScenarioKind.RANDOM_ACCEPTS or case.ratio == USUAL_RATIO:
            return case
    return cases[0]


def scenarios(
    cells: Cells, question: Question, denied_rate: Mapping[str, float] | None = None
) -> tuple[Scenario, ...]:
    """Return the cases of a plan; a gap that no r gives is left out.

    Parameters
    ----------
    cells
        The counts of past decisions by group.
    question
        What is asked.
    denied_rate
        What is known of some groups' r; it holds in every case.

    Raises
    ------
    UnknownName
        If ``denied_rate`` names a group that the past data lack.
    InvalidInput
        If a share is not in [0, 1].

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
    known_rates = {} if denied_rate is None else denied_rate
    require_denied_rates(cells, known_rates)
    maker = _ScenarioMaker(cells, question, known_rates)
    if known_rates.keys() == cells.keys():  # then nothing is left to guess
        return (maker.make(ScenarioKind.AS_GIVEN, maker.rates_at(USUAL_RATIO)),)
    cases = []
    accepts = {
        group: counts.random_accepts[:2] for group, counts in cells.items() if counts.random_accepts
    }
    # What the user knows goes before what the programme's labels suggest.
    if not known_rates and any(good + bad > 0 for good, bad in accepts.values()):
        rates = denied_rates_by_outcomes(cells, accepts)
        cases.append(maker.make(ScenarioKind.RANDOM_ACCEPTS, np.array(list(rates.values()))))
    cases += [
        maker.make(ScenarioKind.RATIO, maker.rates_at(ratio), ratio) for ratio in SUCCESS_RATIOS
    ]
    step = GREY_ZONE_STEP * question.epsilon
    below = maker.rates_with_gap(max(question.gamma - step, 0.0))
    above = maker.rates_with_gap(question.threshold + step)
    if below is not None:
        cases.append(maker.make(ScenarioKind.BELOW_GREY_ZONE, below))
    if above is not None:
        cases.append(maker.make(ScenarioKind.ABOVE_GREY_ZONE, above))
    return tuple(cases)


def require_denied_rates(cells: Cells, known_rates: Mapping[str, float]) -> None:
    """Raise unless rates are shares of groups that the historical data have."""
    require_kind("denied_rate", known_rates, Mapping, "a mapping of groups to shares")
    for group, rate in known_rates.items():
        if group not in cells:
            raise UnknownName("group in 'denied_rate'", group, cells.groups)
        require_in_unit(f"denied_rate[{group!r}]", rate)


class _ScenarioMaker:
    """Makes the cases of one past and question; rates r are arrays in the order of the groups."""

    def __init__(self, cells: Cells, question: Question, known_rates: Mapping[str, float]) -> None:
        self._cells = cells
        self._question = question
        self._known_rates = known_rates
        completed = cells.like_known
        # This call raises if a rate of the metric is about people whom a group lacks.
        gap_given_r(completed, dict.fromkeys(cells, 0.0), question.metric, question.comparison)
        self._comparison = question.resolve(completed)
        self._curves = []
        for rate in METRICS[question.metric].rates:
            curves = [rate.curve(*counts.shares) or Curve(np.nan) for counts in completed.values()]
            self._curves.append(Curve.stack(curves))

    def make(self, kind: ScenarioKind, r: Array, ratio: float | None = None) -> Scenario:
        """Return the case in which the groups' unknowns are r."""
        gap = float(self.gaps_at(r))
        expect = " or ".join(sorted(self._question.truth(gap)))
        r_by_group = dict(zip(self._cells, r.tolist(), strict=True))
        return Scenario(kind, r_by_group, gap, expect, ratio)

    def rates_at(self, ratio: float) -> Array:
        """Return r if the denied succeed ``ratio`` times as often, where r is not known."""
        rates = denied_rates_by_ratio(self._cells, ratio)
        return np.array([self._known_rates.get(group, rate) for group, rate in rates.items()])

    def gaps_at(self, r: Array) -> Array:
        """Return the gap at every r of shape (..., groups)."""
        rates = np.stack([curves.value(r) for curves in self._curves], axis=-2)
        return np.asarray(self._comparison.gap(rates).max(axis=-1))  # over the metric's rates

    def rates_with_gap(self, target: float) -> Array | None:
        """Return an r near the usual case whose gap is ``target``; None if there is none."""
        unknown = [
            index for index, group in enumerate(self._cells) if group not in self._known_rates
        ]
        return _reach_gap(self.gaps_at, self.rates_at(USUAL_RATIO), unknown, target)


def _reach_gap(
    gaps_at: Callable[[Array], Array], start: Array, unknown: Sequence[int], target: float
) -> Array | None:
    """Return an r near ``start`` whose gap is ``target``; None if there is none.

    Move one group's r after the other to where the gap is least (or largest), then walk straight
    from the start to there and stop at the target.
    """
    from scipy.optimize import bisect

    # The gap must fall to the target, or grow to it.
    sign = 1.0 if gaps_at(start) > target else -1.0
    end = start
    for group in [*unknown] * SWEEPS:
        candidates = np.tile(end, (1 + len(SEARCH_GRID), 1))  # the first one stays where it is
        candidates[1:, group] = SEARCH_GRID
        end = candidates[(sign * gaps_at(candidates)).argmin()]
    if sign * (gaps_at(end) - target) > 0.0:  # not even the furthest point gets there
        return None

    def walk(share: float) -> Array:
        return np.asarray((1.0 - share) * start + share * end)

    def excess(share: float) -> float:
        return float(gaps_at(walk(share))) - target

    return walk(bisect(excess, 0.0, 1.0, xtol=1e-12))
