"""Whether an audit can end: a compared group with too few people may keep it open for ever.

A verdict needs outcomes of denied people from every compared group. A group with a few dozen past
rows may leave both answers possible however many outcomes are told, and may arrive so seldom that
its outcomes are never collected. The forecast shows both before the audit begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from equipoise._json import JsonValue
from equipoise.cells import Cells, GroupCells
from equipoise.display import format_number
from equipoise.errors import InvalidInput
from equipoise.free_check import compared_groups
from equipoise.history import History
from equipoise.history.past import Past
from equipoise.messages import Fix, Problem
from equipoise.metrics import METRICS
from equipoise.planning.forecasts import Forecast, Forecaster
from equipoise.planning.scenarios import ScenarioKind, pick_usual_case, scenarios
from equipoise.question import Costs, Question

MAX_GROUPS = 20  # compared; the forecast of more groups takes too long for a test at the start
MAX_GROUPS_TO_SPARE = 6  # named groups, of which each is tried whether it may stay
MUCH_SMALLER = 3  # times as few rows, or denied people, as the largest group
LONGEST_WAIT = 0.5  # of the people of the past: an audit that takes more waits for a rare group
MUCH_LONGER = 2  # times as many people must arrive: leaving a group out is worth saying


@dataclass(frozen=True)
class Merge(JsonValue):
    """Groups that are compared as one: its name, what the audit costs then, and who must arrive."""

    name: str
    groups: tuple[str, ...]
    cost: float
    people: int


@dataclass(frozen=True)
class Obstacle(JsonValue):
    """Groups that keep an audit from ending, and what the audit is like without them.

    Attributes
    ----------
    groups
        The groups; leaving them out helps.
    rows, denied
        Past rows of these groups, and how many of them are of denied people.
    people_with
        How many people must arrive in the usual case; None if no number of them is enough.
    cost_without, people_without
        The typical cost and the people who must arrive without these groups, in the first case
        that can be decided then.
    merge
        Groups that could be compared as one instead; None if that would not help, or if the groups
        are not values of one column.
    """

    groups: tuple[str, ...]
    rows: int
    denied: int
    people_with: int | None
    cost_without: float
    people_without: int
    merge: Merge | None = None

    @property
    def problem(self) -> Problem:
        """The obstacle as a message, with the fix."""
        fields = {
            "groups": list(self.groups),
            "number": len(self.groups),
            "rows": self.rows,
            "denied": self.denied,
            "people_with": self.people_with,
            "cost": _three_figures(self.cost_without),
            "people_without": self.people_without,
            "merged": None,
            "merge": None,
            "merge_people": None,
            "merge_cost": None,
        }
        if self.merge is not None:
            fields |= {
                "merged": list(self.merge.groups),
                "merge": {self.merge.name: list(self.merge.groups)},
                "merge_people": self.merge.people,
                "merge_cost": _three_figures(self.merge.cost),
            }
        fixes = (Fix("leave_out", self.groups),)
        return Problem("groups-keep-audit-open", fields, fixes)


class NotFeasible(InvalidInput):
    """An audit that would not end because of a group that it compares.

    Attributes
    ----------
    obstacle
        The groups, and what changes without them.
    problems
        The same as messages. ``str(error)`` is the text for Python.
    """

    def __init__(self, obstacle: Obstacle) -> None:
        self.obstacle = obstacle
        self.problems = (obstacle.problem,)
        super().__init__(str(obstacle.problem))


def require_feasible(history: Past, question: Question, costs: Costs) -> None:
    """Raise :class:`NotFeasible` if a compared group keeps an adaptive audit from ending."""
    obstacle = find_obstacle(history, question, costs)
    if obstacle is not None:
        raise NotFeasible(obstacle)


def find_obstacle(history: Past, question: Question, costs: Costs) -> Obstacle | None:
    """Return the groups that keep an audit from ending; None if leaving out no group helps.

    Groups are named if most cases of the forecast can be decided without them, and with them cannot
    or need more than half as many people as the past has, and twice as many as without. A group
    that only makes an audit longer is not named: it may be the one that is treated unfairly. The
    smallest groups are tried first, and at least two groups stay. Pasts that are exact, and more
    than 20 groups, are not tested.

    Examples
    --------
    >>> from equipoise import Costs, History, Question
    >>> large = {"approved_positive": 6000, "approved_negative": 700, "denied": 3300}
    >>> small = {"approved_positive": 20, "approved_negative": 3, "denied": 12}
    >>> past = History.from_cells({"A": large, "B": large, "not stated": small})
    >>> question = Question("equal_opportunity", gamma=0.05, epsilon=0.1)
    >>> find_obstacle(past, question, Costs()).groups
    ('not stated',)
    """
    compared = compared_groups(history, question)
    is_testable = 3 <= len(compared) <= MAX_GROUPS and not history.exact
    if not is_testable or METRICS[question.metric].is_free:
        return None
    with_all = _forecast_cases(history, question, costs)
    ending = [case for case in with_all if _ends(case, history)]
    if 2 * len(ending) > len(with_all):  # the usual audit: no group needs to be tried
        return None
    small_groups = _small_groups(history, question, compared)
    obstacle = _fewest_left_out(small_groups, with_all, history, question, costs)
    if obstacle is None:
        return None
    if len(obstacle.groups) <= MAX_GROUPS_TO_SPARE:
        obstacle = _smallest(obstacle, with_all, history, question, costs)
    merge = _find_merge(obstacle.groups, with_all, history, question, costs)
    return replace(obstacle, merge=merge)


def _small_groups(history: Past, question: Question, compared: Sequence[str]) -> list[str]:
    """Return groups that may be left out, the smallest first; at least two others stay.

    Groups that are about as large as the largest one are no obstacle: to name some of them would
    be arbitrary.
    """
    most_rows = max(history.cells[group].total for group in compared)
    most_denied = max(history.cells[group].denied for group in compared)
    small_groups = []
    for group in compared:
        counts = history.cells[group]
        has_few_rows = MUCH_SMALLER * counts.total <= most_rows
        has_few_denied = MUCH_SMALLER * counts.denied <= most_denied
        if group != question.comparison.against and (has_few_rows or has_few_denied):
            small_groups.append(group)
    small_groups.sort(key=lambda group: history.cells[group].total)
    return small_groups[: len(compared) - 2]


def _fewest_left_out(
    small_groups: Sequence[str],
    with_all: Sequence[Forecast],
    history: Past,
    question: Question,
    costs: Costs,
) -> Obstacle | None:
    """Return the obstacle with the fewest of the smallest groups; None if even all do not help."""
    fewest = None
    low = 1
    high = len(small_groups)
    # The more groups are left out the sooner an audit ends, so that halving finds the number.
    # A single group is by far the most frequent answer, so it is tried first.
    number = 1
    while low <= high:
        left_out = tuple(small_groups[:number])
        obstacle = _obstacle(left_out, with_all, history, question, costs)
        if obstacle is None:
            low = number + 1
        else:
            fewest = obstacle
            high = number - 1
        number = (low + high) // 2
    return fewest


def _smallest(
    obstacle: Obstacle,
    with_all: Sequence[Forecast],
    history: Past,
    question: Question,
    costs: Costs,
) -> Obstacle:
    """Return the obstacle without those groups that it does not need."""
    for group in obstacle.groups[:-1]:  # the last one made the difference
        remaining = tuple(name for name in obstacle.groups if name != group)
        smaller = _obstacle(remaining, with_all, history, question, costs)
        if smaller is not None:
            obstacle = smaller
    return obstacle


def _obstacle(
    left_out: tuple[str, ...],
    with_all: Sequence[Forecast],
    history: Past,
    question: Question,
    costs: Costs,
) -> Obstacle | None:
    """Return the obstacle that these groups are; None if most cases are no better without them."""
    comparison = question.comparison
    smaller = replace(comparison, leave_out=(*comparison.leave_out, *left_out))
    try:
        without = _forecast_cases(history, replace(question, compare=smaller), costs)
    except InvalidInput:  # nobody is left to be compared, as in a stratum of two groups
        return None
    usual = _usual_freed(with_all, without, history)
    if usual is None:
        return None
    usual_with, usual_without = usual
    cells = [history.cells[group] for group in left_out]
    return Obstacle(
        groups=left_out,
        rows=round(sum(counts.total for counts in cells)),
        denied=round(sum(counts.denied for counts in cells)),
        people_with=round(usual_with.people) if usual_with.is_decidable else None,
        cost_without=usual_without.median or 0.0,
        people_without=round(usual_without.people),
    )


def _usual_freed(
    with_all: Sequence[Forecast], without: Sequence[Forecast], history: Past
) -> tuple[Forecast, Forecast] | None:
    """Return the usual case before and after, if most cases can be decided after; None if not."""
    pairs = [*zip(with_all, without, strict=True)]
    freed = [(before, after) for before, after in pairs if _is_freed(before, after, history)]
    if 2 * len(freed) <= len(pairs):
        return None
    usual_name = pick_usual_case([before.scenario for before, _ in freed]).name
    return next(pair for pair in freed if pair[0].scenario.name == usual_name)


def _find_merge(
    groups: tuple[str, ...],
    with_all: Sequence[Forecast],
    history: Past,
    question: Question,
    costs: Costs,
) -> Merge | None:
    """Return which groups could be compared as one, so that the audit ends; None if none.

    Several groups are merged with each other, and a single one with the smallest other one.
    """
    coding = history.coding if isinstance(history, History) else None
    if coding is None or len(coding.grouping.labels) != 1:  # no values of one column
        return None
    compared = compared_groups(history, question)
    name = "other"
    if len(groups) == 1:
        candidates = [g for g in compared if g not in groups and g != question.comparison.against]
        if not candidates:
            return None
        partner = min(candidates, key=lambda group: history.cells[group].total)
        groups = (partner, *groups)
        name = " or ".join(groups)
    if name in history.cells or len(compared) - len(groups) + 1 < 2:
        return None
    cells = {g: counts for g, counts in history.cells.items() if g not in groups}
    cells[name] = _add_up([history.cells[group] for group in groups])
    merged_past = History(Cells(cells), seed=history.seed)
    merged = _forecast_cases(merged_past, question, costs)
    usual = _usual_freed(with_all, merged, history)
    if usual is None:
        return None
    return Merge(name, groups, usual[1].median or 0.0, round(usual[1].people))


def _add_up(parts: Sequence[GroupCells]) -> GroupCells:
    """Return the counts of several groups as one."""
    accepts = [part.random_accepts for part in parts if part.random_accepts]
    cohorts = [part.cohorts for part in parts]
    return GroupCells(
        sum(part.approved_positive for part in parts),
        sum(part.approved_negative for part in parts),
        sum(part.denied for part in parts),
        sum(part.approved_unknown for part in parts),
        cohorts=tuple(chain(*cohorts)) if all(cohorts) else (),
        random_accepts=tuple(map(sum, zip(*accepts, strict=True))),
    )


def _three_figures(cost: float) -> str:
    return format_number(cost, 3)


def _forecast_cases(history: Past, question: Question, costs: Costs) -> tuple[Forecast, ...]:
    """Return the forecast of the case that random accepts show, or of those that are guessed."""
    forecaster = Forecaster(history, question, costs)
    cases = scenarios(history.cells, question)
    known_cases = [case for case in cases if case.kind is ScenarioKind.RANDOM_ACCEPTS]
    guessed_cases = [case for case in cases if case.kind is ScenarioKind.RATIO]
    return tuple(forecaster.forecast_case(case) for case in known_cases or guessed_cases)


def _ends(case: Forecast, history: Past) -> bool:
    """Say whether an audit of a case ends before half as many people arrive as the past has."""
    return case.is_decidable and case.people <= LONGEST_WAIT * history.cells.total


def _is_freed(before: Forecast, without: Forecast, history: Past) -> bool:
    """Say whether an audit of a case ends without some groups, and not, or far later, with them."""
    if not without.is_decidable or _ends(before, history):
        return False
    return not before.is_decidable or before.people > MUCH_LONGER * max(without.people, 1.0)
