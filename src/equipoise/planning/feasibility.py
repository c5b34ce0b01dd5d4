"""Whether an audit can end, tried by its forecast before it begins.

A verdict needs outcomes of denied people from every compared group. Past rows may be too few for
either verdict, however many outcomes are told, and people of a rare group may hardly ever arrive.
The forecast of the usual case shows both, and which groups it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
from equipoise.planning.forecasts import (
    Forecast,
    Forecaster,
    describe_rows_needed,
    multiply_rows,
)
from equipoise.planning.scenarios import Scenario, ScenarioKind, pick_usual_case, scenarios
from equipoise.planning.time_and_money import MARGINS
from equipoise.question import Costs, Question

MAX_GROUPS = 20  # compared; a search for what helps takes too long for a test of more groups
MAX_GROUPS_TO_SPARE = 6  # named groups, of which each is tried whether it may stay
MUCH_SMALLER = 3  # times as few rows, or denied people, as the largest group
FAR_LONGER = 10  # times as many people must arrive: the group is far too rare to wait for


@dataclass(frozen=True)
class Merge(JsonValue):
    """Groups that are compared as one: its name, what the audit costs then, and who must arrive."""

    name: str
    groups: tuple[str, ...]
    cost: float
    people: int


@dataclass(frozen=True)
class Obstacle(JsonValue):
    """Why an audit probably does not end in its usual case, and what would help.

    Attributes
    ----------
    groups
        The groups that cause it; empty if no group stands out.
    rows, denied
        Past rows of these groups, and how many of them are of denied people.
    people_with
        How many people must arrive in the usual case; None if no number of them is enough.
    cost_without, people_without
        The typical cost and the people who must arrive without these groups; None if leaving them
        out does not help.
    merge
        Groups that could be compared as one instead; None if that would not help, or if the groups
        are not values of one column.
    case
        The name of the case that these numbers are of, to follow "if": the usual case, or one that
        leaving out helps where it does not help the usual case.
    leave_out
        All groups that the question leaves out then, those that it leaves out already included;
        empty if leaving out does not help.
    past_rows
        The rows of the whole past.
    rows_needed
        About how many past rows like these would do, in words; empty unless nothing else helps.
    margin
        A margin (epsilon) that is enough; None unless nothing else helps.
    remaining_case
        The name of the usual case if it cannot be decided without these groups either; else empty.
    """

    groups: tuple[str, ...]
    rows: int
    denied: int
    people_with: int | None
    cost_without: float | None
    people_without: int | None
    merge: Merge | None = None
    case: str = ""
    leave_out: tuple[str, ...] = ()
    past_rows: int = 0
    rows_needed: str = ""
    margin: float | None = None
    remaining_case: str = ""

    @property
    def problem(self) -> Problem:
        """The obstacle as a message, with the fix."""
        fields: dict[str, object] = {
            "groups": list(self.groups) or None,
            "number": len(self.groups),
            "rows": self.rows,
            "denied": self.denied,
            "case": self.case,
            "undecidable_case": self.case if self.people_with is None else None,
            "people_with": self.people_with,
            "past_rows": self.past_rows,
            "rows_needed": self.rows_needed[:1].upper() + self.rows_needed[1:],
            "margin": None if self.margin is None else format_number(self.margin * 100),
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
        if self.cost_without is None:
            return Problem("audit-cannot-be-decided", fields)
        fields |= {
            "cost": _three_figures(self.cost_without),
            "people_without": self.people_without,
            "remaining_case": self.remaining_case,
        }
        return Problem("groups-keep-audit-open", fields, (Fix("leave_out", self.leave_out),))


class NotFeasible(InvalidInput):
    """An audit that would not end with these historical data.

    Attributes
    ----------
    obstacle
        Why, and what would help.
    problems
        The same as messages. ``str(error)`` is the text for Python.
    """

    def __init__(self, obstacle: Obstacle) -> None:
        self.obstacle = obstacle
        self.problems = (obstacle.problem,)
        super().__init__(str(obstacle.problem))


def require_feasible(history: Past, question: Question, costs: Costs) -> None:
    """Raise :class:`NotFeasible` if an adaptive audit probably does not end."""
    obstacle = find_obstacle(history, question, costs)
    if obstacle is not None:
        raise NotFeasible(obstacle)


def find_obstacle(history: Past, question: Question, costs: Costs) -> Obstacle | None:
    """Return why an audit probably does not end in its usual case; None if it does.

    It does not end if these historical data cannot decide the usual case, or if more people must
    arrive than the past has and ten times as many as without some small groups. A group that only
    makes an audit longer is not named, because it may be the one that is treated unfairly.

    The smallest groups are tried first, and at least two groups stay. Where leaving out does not
    help, the groups are named that would not be in the way if they were as large as the largest.
    With more than 20 groups nothing is tried, and none is named. Pasts that are exact are those of
    simulated worlds, and are not tested.

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
    if history.exact or METRICS[question.metric].is_free:
        return None
    cases = _CaseForecasts(history, question, costs)
    if cases.usual.is_decidable and cases.usual.people <= history.cells.total:
        return None
    return _ObstacleSearch(history, question, costs, cases).find_obstacle()


class _CaseForecasts:
    """Forecasts of the cases that matter: what random accepts show, else what is guessed."""

    def __init__(self, history: Past, question: Question, costs: Costs) -> None:
        self._forecaster = Forecaster(history, question, costs)
        cases = scenarios(history.cells, question)
        self._usual_case = pick_usual_case(cases)
        self._other_cases: list[Scenario] = []
        if self._usual_case.kind is ScenarioKind.RATIO:
            guessed = [case for case in cases if case.kind is ScenarioKind.RATIO]
            self._other_cases = [case for case in guessed if case != self._usual_case]

    @cached_property
    def usual(self) -> Forecast:
        """The forecast of the usual case."""
        return self._forecaster.forecast_case(self._usual_case)

    @cached_property
    def others(self) -> list[Forecast]:
        """The forecasts of the other cases."""
        return [self._forecaster.forecast_case(case) for case in self._other_cases]

    def describe_rows_needed(self) -> str:
        """Return about how many past rows like these would decide the usual case."""
        return describe_rows_needed(self._forecaster.forecast_cases([self._usual_case]))


class _ObstacleSearch:
    """Searches for what would let an audit end that does not, or hardly, end in its usual case."""

    def __init__(
        self, history: Past, question: Question, costs: Costs, cases: _CaseForecasts
    ) -> None:
        self._history = history
        self._question = question
        self._costs = costs
        self._cases = cases
        self._compared = compared_groups(history, question)

    def find_obstacle(self) -> Obstacle | None:
        """Return the obstacle with what helps; None if the audit ends, though it takes long."""
        left_out: tuple[str, ...] = ()
        causes: tuple[str, ...] = ()
        if len(self._compared) <= MAX_GROUPS:
            small_groups = self._small_groups()
            reference = self._question.comparison.against
            dispensable = [group for group in small_groups if group != reference]
            left_out = _fewest(dispensable[: len(self._compared) - 2], self._helps_to_leave_out)
            causes = left_out
            if not left_out and not self._cases.usual.is_decidable:
                causes = _fewest(small_groups, self._helps_to_enlarge)
        if left_out:
            return self._left_out_obstacle(left_out)
        if self._cases.usual.is_decidable:
            return None
        obstacle = self._obstacle_of(causes, self._cases.usual)
        merge = self._find_merge(causes) if causes else None
        if merge is not None:
            return replace(obstacle, merge=merge)
        return replace(
            obstacle, rows_needed=self._cases.describe_rows_needed(), margin=self._find_margin()
        )

    def _left_out_obstacle(self, groups: tuple[str, ...]) -> Obstacle:
        """Return the obstacle that these groups are, with what the audit is like without them."""
        question_without = self._question_without(groups)
        cases_without = _CaseForecasts(self._history, question_without, self._costs)
        freed_case = self._freed_case(cases_without)
        assert freed_case is not None  # because leaving them out helps
        before, without = freed_case
        remaining = cases_without.usual
        return replace(
            self._obstacle_of(groups, before),
            cost_without=without.median or 0.0,
            people_without=round(without.people),
            merge=self._find_merge(groups),
            leave_out=tuple(question_without.comparison.leave_out),
            remaining_case="" if remaining.is_decidable else remaining.scenario.name,
        )

    def _obstacle_of(self, groups: tuple[str, ...], case: Forecast) -> Obstacle:
        """Return groups as the obstacle in a case, without what helps."""
        cells = [self._history.cells[group] for group in groups]
        return Obstacle(
            groups=groups,
            rows=round(sum(counts.total for counts in cells)),
            denied=round(sum(counts.denied for counts in cells)),
            people_with=round(case.people) if case.is_decidable else None,
            cost_without=None,
            people_without=None,
            case=case.scenario.name,
            past_rows=round(self._history.cells.total),
        )

    def _small_groups(self) -> list[str]:
        """Return groups that are much smaller than the largest one, the smallest first.

        Groups that are about as large as the largest one are no obstacle: to name some of them
        would be arbitrary.
        """
        cells = self._history.cells
        most_rows = max(cells[group].total for group in self._compared)
        most_denied = max(cells[group].denied for group in self._compared)
        small_groups = []
        for group in self._compared:
            has_few_rows = MUCH_SMALLER * cells[group].total <= most_rows
            has_few_denied = MUCH_SMALLER * cells[group].denied <= most_denied
            if has_few_rows or has_few_denied:
                small_groups.append(group)
        return sorted(small_groups, key=lambda group: cells[group].total)

    def _question_without(self, groups: tuple[str, ...]) -> Question:
        comparison = self._question.comparison
        smaller = replace(comparison, leave_out=(*comparison.leave_out, *groups))
        return replace(self._question, compare=smaller)

    def _helps_to_leave_out(self, groups: tuple[str, ...]) -> bool:
        """Say whether the audit ends without these groups."""
        try:
            smaller = self._question_without(groups)
            without = _CaseForecasts(self._history, smaller, self._costs)
        except InvalidInput:  # nobody is left to be compared, as in a stratum of two groups
            return False
        return self._freed_case(without) is not None

    def _helps_to_enlarge(self, groups: tuple[str, ...]) -> bool:
        """Say whether the audit would end if these groups were as large as the largest one."""
        cells = dict(self._history.cells.items())
        most_rows = max(cells[group].total for group in self._compared)
        for group in groups:
            alone = Cells({group: cells[group]})
            cells |= multiply_rows(alone, most_rows / max(alone.total, 1.0))
        enlarged = Past(Cells(cells), self._history.exact)
        freed_case = self._freed_case(_CaseForecasts(enlarged, self._question, self._costs))
        return freed_case is not None

    def _freed_case(self, after: _CaseForecasts) -> tuple[Forecast, Forecast] | None:
        """Return a case, before and after a change, in which the audit ends since; None if none.

        It is the usual case. If that cannot be decided either way, it is the first of the others,
        provided that the change helps most of them.
        """
        usual_pair = (self._cases.usual, after.usual)
        if _is_freed(*usual_pair):
            return usual_pair
        if self._cases.usual.is_decidable or not self._cases.others:
            return None
        pairs = [*zip(self._cases.others, after.others, strict=True)]
        freed_pairs = [pair for pair in pairs if _is_freed(*pair)]
        return freed_pairs[0] if 2 * len(freed_pairs) > len(pairs) else None

    def _find_margin(self) -> float | None:
        """Return a margin with which the usual case can be decided; None if none is found."""
        if len(self._compared) > MAX_GROUPS:
            return None
        within_scale = [margin for margin in MARGINS if self._question.gamma + margin < 1.0]
        wider_margins = [margin for margin in within_scale if margin > self._question.epsilon]
        # Where not even the widest is enough, the others hardly are, and each takes its time.
        if not wider_margins or not self._is_decidable_with(wider_margins[-1]):
            return None
        return next(margin for margin in wider_margins if self._is_decidable_with(margin))

    def _is_decidable_with(self, margin: float) -> bool:
        wider = replace(self._question, epsilon=margin)
        return _CaseForecasts(self._history, wider, self._costs).usual.is_decidable

    def _find_merge(self, groups: tuple[str, ...]) -> Merge | None:
        """Return which groups could be compared as one, so that the audit ends; None if none.

        Several groups are merged with each other, and a single one with the smallest other one.
        """
        history = self._history
        coding = history.coding if isinstance(history, History) else None
        if coding is None or len(coding.grouping.labels) != 1:  # no values of one column
            return None
        reference = self._question.comparison.against
        name = "other"
        if len(groups) == 1:
            candidates = [g for g in self._compared if g not in groups and g != reference]
            if not candidates:
                return None
            partner = min(candidates, key=lambda group: history.cells[group].total)
            groups = (partner, *groups)
            name = " or ".join(groups)
        is_name_taken = name in history.cells
        if is_name_taken or reference in groups or len(self._compared) - len(groups) + 1 < 2:
            return None
        cells = {g: counts for g, counts in history.cells.items() if g not in groups}
        cells[name] = _add_up([history.cells[group] for group in groups])
        merged_past = History(Cells(cells), seed=history.seed)
        merged = self._freed_case(_CaseForecasts(merged_past, self._question, self._costs))
        if merged is None:
            return None
        after = merged[1]
        return Merge(name, groups, after.median or 0.0, round(after.people))


def _is_freed(before: Forecast, after: Forecast) -> bool:
    """Say whether an audit of a case ends after a change, and before did not or took far longer."""
    if not after.is_decidable or not before.is_decidable:
        return after.is_decidable and not before.is_decidable
    return before.people >= FAR_LONGER * max(after.people, 1.0)


def _fewest(
    small_groups: Sequence[str], helps: Callable[[tuple[str, ...]], bool]
) -> tuple[str, ...]:
    """Return the fewest of the smallest groups that help; none if even all of them do not."""
    fewest: tuple[str, ...] = ()
    low = 1
    high = len(small_groups)
    # The more groups there are the more they help, so that halving finds the number. A single
    # group is by far the most frequent answer, so it is tried first.
    number = 1
    while low <= high:
        groups = tuple(small_groups[:number])
        if helps(groups):
            fewest = groups
            high = number - 1
        else:
            low = number + 1
        number = (low + high) // 2
    if len(fewest) > MAX_GROUPS_TO_SPARE:
        return fewest
    for group in fewest[:-1]:  # the last one made the difference
        fewer = tuple(name for name in fewest if name != group)
        if helps(fewer):
            fewest = fewer
    return fewest


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
