"""Which audit to run: the free answer first, then what an adaptive audit costs, case by case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

from equipoise._json import JsonValue
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.estimated_rates import (
    can_answer,
    describe_missing_rows,
    outcomes_to_estimate,
    paper_tau,
)
from equipoise.bounds import Price, expectation
from equipoise.cells import Cells
from equipoise.display import Displayable, Progress, Row, format_count, format_figures, silent
from equipoise.errors import require_n_jobs, require_whole
from equipoise.free_check import Check, check
from equipoise.history.history import History, as_past
from equipoise.history.past import Past
from equipoise.metrics import METRICS
from equipoise.planning.feasibility import Obstacle, find_obstacle
from equipoise.planning.forecasts import Forecast, describe_rows_needed, forecast
from equipoise.planning.scenarios import (
    ScenarioKind,
    denied_rates_by_ratio,
    pick_usual_case,
    require_denied_rates,
    scenarios,
)
from equipoise.planning.time_and_money import (
    Arrivals,
    BudgetChance,
    CaseTime,
    OpenRequests,
    estimate_budget,
    estimate_times,
    requests_before_outcomes,
)
from equipoise.planning.trial_runs import run_trials
from equipoise.question import Costs, Question, Verdict, as_question, require_question_and_costs
from equipoise.worlds.world import CellWorld

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SMALLEST_WHOLE_COST = 10.0  # a typical cost from here on is given without decimals
TITLE_WIDTH = 40  # characters of a line above the picture of a plan


@dataclass(frozen=True)
class OtherAudit(JsonValue):
    """One of the paper's audits in a line.

    Attributes
    ----------
    audit
        "rs", "baseline" or "exp".
    price
        What it costs on average in the usual case, by its formula in :mod:`equipoise.bounds`.
    missing
        Why it cannot run on this history, one line each; empty if it can.

    Examples
    --------
    >>> OtherAudit("rs", Price(labels=80.0, cost=60.0)).possible
    True
    """

    audit: str
    price: Price
    missing: tuple[str, ...] = ()

    @property
    def possible(self) -> bool:
        """Whether the audit can run on this history."""
        return not self.missing


@dataclass(frozen=True)
class Plan(JsonValue, Displayable):
    """What is known for free, and what an audit would cost.

    Attributes
    ----------
    free
        What the past data alone establish.
    cases
        What the adaptive audit costs, case by case; none if the past data decide, or no label can.
    others
        The paper's audits, a line each, cheapest first.
    recommended
        "check" if the past data decide, "adaptive" if that audit can, else None.
    advice
        The recommendation in a sentence.
    notes
        What to know about the question.
    times
        When audits of each case end; empty unless the plan was told how many people arrive a day.
    budget
        How likely a budget is enough; None unless the plan was told one.
    arrivals
        How many people arrive on a day, and where that is known from; None without times.
    requests_before_outcomes
        How many overrides an audit without a limit requests before the first outcome, if these are
        more than it needs; None otherwise.
    obstacle
        Why an audit is begun only once this is confirmed, and what would help; None if it begins
        at once. It is the same whatever ``denied_rate`` says, because an audit knows no such rates.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    >>> made = plan(world.past(), Question("demographic_parity"), Costs())
    >>> made.recommended, made.free.verdict.value
    ('check', 'UNFAIR')
    """

    question: Question
    costs: Costs
    free: Check
    cases: tuple[Forecast, ...]
    others: tuple[OtherAudit, ...]
    recommended: str | None
    advice: str
    notes: tuple[str, ...] = ()
    times: tuple[CaseTime, ...] = ()
    budget: BudgetChance | None = None
    arrivals: Arrivals | None = None
    requests_before_outcomes: OpenRequests | None = None
    obstacle: Obstacle | None = None

    def _lines(self) -> Sequence[str]:
        warnings = [] if self.obstacle is None else [f"warning: {self.obstacle.problem}"]
        return [
            f"recommended: {self.advice}",
            *warnings,
            f"{self.question}",
            f"costs: {self.costs}",
            f"for free: {self.free.verdict}, the gap is between {self.free.lower:.3f} and "
            f"{self.free.upper:.3f}",
        ]

    def __str__(self) -> str:
        lines = [*self._lines(), *map(str, self.cases)]
        for paper_audit in self.others:
            obstacle = (
                "" if paper_audit.possible else f"; cannot run: {'; '.join(paper_audit.missing)}"
            )
            lines.append(f"{paper_audit.audit}: {paper_audit.price}{obstacle}")
        if self.times:
            lines.append(str(self.arrivals))
        lines += map(str, self.times)
        if self.requests_before_outcomes is not None:
            lines.append(str(self.requests_before_outcomes))
        if self.budget is not None:
            lines.append(str(self.budget))
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)

    def _rows(self) -> Sequence[Row]:
        """Return a row per case, or per audit where the past decides."""
        if self.cases:
            return [_case_row(case) for case in self.cases]
        return [_audit_row(paper_audit) for paper_audit in self.others]

    def _draw(self, ax: Axes) -> None:
        from equipoise.display import draw_ranges

        costs_reached: list[float] = []
        for case in self.cases:
            costs_reached += [cost for cost in case.cost.values() if cost]
        # The bar of a case in which more than one audit in ten has no end reaches the right edge.
        no_limit = 3.0 * max(costs_reached, default=1.0)
        rows: list[tuple[str, float, float | None, float]] = []
        for case in self.cases:
            # At least 0.5, because the axis is logarithmic and a cost may be 0.
            low, middle, high = (
                None if cost is None else max(cost, 0.5) for cost in case.cost.values()
            )
            # A bar of no length is invisible: a case without any cost has words instead.
            low = no_limit if low is None else low
            name = f"{case.scenario.short}\n{case.scenario.expect}"
            rows.append((name, low, middle, no_limit if high is None else high))
        draw_ranges(ax, rows)
        if rows:
            _make_logarithmic(ax)
        for position, case in enumerate(self.cases):
            if all(cost is None for cost in case.cost.values()):
                _write_at_left(ax, position, "no verdict possible")
        ax.set_xlabel("dot: typical cost, bar: 80% range")
        # The names of the cases take about half of the picture, so lines are shorter.
        ax.set_title(fill(self.advice, TITLE_WIDTH), loc="left")


def _make_logarithmic(ax: Axes) -> None:
    """Give a picture a logarithmic axis with a few plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(numticks=6))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda cost, _: format_figures(cost)))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _write_at_left(ax: Axes, position: int, text: str) -> None:
    """Write text into a row of a picture, at the left end of its axis."""
    ax.text(0.02, position, text, va="center", transform=ax.get_yaxis_transform())


def _case_row(case: Forecast) -> Row:
    row: dict[str, object] = {"case": case.scenario.name, "expect": case.scenario.expect}
    for quantile, cost in case.cost.items():
        row[f"cost_{float(quantile):.0%}"] = cost
    row["decides"] = case.decides
    row["labels"] = sum(case.labels.values())
    row["people"] = case.people
    row["rows"] = case.rows
    return row


def _audit_row(paper_audit: OtherAudit) -> Row:
    return {
        "audit": paper_audit.audit,
        "cost": paper_audit.price.cost,
        "labels": paper_audit.price.labels,
        "can_run": paper_audit.possible,
    }


def plan(
    history: object,
    question: Question | str,
    costs: Costs | None = None,
    *,
    denied_rate: Mapping[str, float] | None = None,
    arrivals_per_day: float | None = None,
    outcome_after: float | None = None,
    budget: float | None = None,
    trial_runs: int = 0,
    n_jobs: int | None = None,
    progress: Progress = silent,
    **reading: object,
) -> Plan:
    """Estimate what an audit would cost on this history, and recommend one.

    The cost of the adaptive audit is forecast at once (:mod:`equipoise.planning.forecasts`), in a
    few named cases of what the denied might have done, with the given historical data.

    Parameters
    ----------
    history
        Past decisions, or any table that :meth:`equipoise.History.read` takes.
    question
        What is asked, or the name of a metric.
    costs
        What answers cost; 1 for every override that ends badly if left out.
    denied_rate
        What you know of some groups: the share of their denied who would have succeeded.
    arrivals_per_day
        How many people arrive on a day, approved ones included: the plan then says when audits end.
        Without it, the dates of the table say so, if it was read with a column of dates.
    outcome_after
        Days from an override until its outcome is known.
    budget
        What may be spent: the plan then has the chance of a verdict within it in each case, and the
        smallest margin for which that chance is 80%.
    trial_runs
        Run the audit itself so many times in every case, for sharper figures than the forecast's;
        it takes seconds to minutes.
    n_jobs
        Processes to spread trial runs over, as joblib counts them.
    progress
        Is called with the share of the trial runs that are done.
    reading
        How a table is read: ``group``, ``decision``, ``outcome`` and all that
        :meth:`equipoise.History.read` takes.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    >>> made = plan(world.past(), Question(epsilon=0.4), Costs())
    >>> made.recommended, made.cases[0].is_decidable
    ('adaptive', True)
    >>> plan(world.past(), Question("demographic_parity"), Costs()).advice
    'nothing to pay: the past data decide (UNFAIR)'
    """
    past = as_past(history, reading)
    question = as_question(question)
    costs = Costs() if costs is None else costs
    require_question_and_costs(question, costs)
    require_n_jobs(n_jobs)
    require_whole("trial_runs", trial_runs, least=0)
    require_denied_rates(past.cells, {} if denied_rate is None else denied_rate)
    free = check(past, question)
    cases: tuple[Forecast, ...] = ()
    usual_rates: Mapping[str, float] = denied_rates_by_ratio(past.cells)
    if free.verdict is Verdict.INCONCLUSIVE and not METRICS[question.metric].is_free:
        plan_scenarios = scenarios(past.cells, question, denied_rate)
        usual_rates = pick_usual_case(plan_scenarios).r
        cases = forecast(past, question, costs, plan_scenarios)
        if trial_runs:
            audit = AdaptiveAudit(Past(past.cells, past.exact), question, costs)
            cases = run_trials(audit, cases, trial_runs, n_jobs, progress)
    arrivals = _arrivals_of(past, arrivals_per_day)
    times = estimate_times(cases, arrivals.per_day, outcome_after)
    chance = _chance_of_budget(past, question, costs, cases, budget)
    recommended, advice = _advise(free, _cases_for_advice(cases))
    others: tuple[OtherAudit, ...] = ()
    # RS-Audit and Baseline count approved people by outcome; the notes say that they are left out.
    if not past.cells.unknown:
        others = _price_other_audits(past, question, costs, usual_rates)
    return Plan(
        question=question,
        costs=costs,
        free=free,
        cases=cases,
        others=others,
        recommended=recommended,
        advice=advice,
        notes=_notes(past, question),
        times=times,
        budget=chance,
        arrivals=arrivals if times else None,
        requests_before_outcomes=requests_before_outcomes(cases, arrivals.per_day, outcome_after),
        obstacle=find_obstacle(past, question, costs) if cases else None,
    )


def _arrivals_of(past: Past, per_day: float | None) -> Arrivals:
    """Return how many people arrive on a day, as a person says or as the dates of a table show."""
    summary = past.summary if isinstance(past, History) else None
    if per_day is not None or summary is None or summary.arrivals_per_day is None:
        return Arrivals(per_day)
    return Arrivals(summary.arrivals_per_day, summary.first_day, summary.last_day)


def _chance_of_budget(
    past: Past, question: Question, costs: Costs, cases: Sequence[Forecast], budget: float | None
) -> BudgetChance | None:
    """Return how likely a budget is enough; None without a budget or without anything to pay."""
    if not cases:
        return None
    usual_scenario = pick_usual_case([case.scenario for case in cases])
    usual_case = next(case for case in cases if case.scenario == usual_scenario)

    def forecast_usual(other_question: Question) -> Forecast:
        (usual_forecast,) = forecast(past, other_question, costs, [usual_scenario])
        return usual_forecast

    return estimate_budget(cases, usual_case, question, budget, forecast_usual)


def _notes(past: Past, question: Question) -> tuple[str, ...]:
    notes = []
    if past.cells.unknown > 0.0:
        notes.append(
            f"the outcomes of {format_count(past.cells.unknown)} approved people are not known: "
            "RS-Audit and Baseline need them all, and are left out"
        )
    if question.gamma == 0.0:
        notes.append(
            "gamma = 0 calls fair only what is exactly equal; a small tolerance is usually meant, "
            "and cheaper to decide"
        )
    return tuple(notes)


def _cases_for_advice(cases: Sequence[Forecast]) -> Sequence[Forecast]:
    """Return the case that random accepts support, if it can be decided; else all cases."""
    # The other cases are guesses. This one rests on labels of denied people.
    for case in cases:
        if case.scenario.kind is ScenarioKind.RANDOM_ACCEPTS and case.is_decidable:
            return [case]
    return cases


def _advise(free: Check, cases: Sequence[Forecast]) -> tuple[str | None, str]:
    """Return what is recommended, "check", "adaptive" or None, and the advice in a sentence."""
    if free.verdict is not Verdict.INCONCLUSIVE:
        return "check", f"nothing to pay: the past data decide ({free.verdict})"
    if not cases:
        return None, "more past rows: no label can say anything about this metric"
    medians = [case.median for case in cases if case.median is not None]
    undecided = [case for case in cases if not case.is_decidable]
    if not medians:
        rows_needed = describe_rows_needed(undecided)
        return None, f"no number of overrides decides with these historical data; {rows_needed}"
    advice = f"run the adaptive audit. Typical cost {_describe_typical_costs(cases)}"
    dearest_case = "" if len(cases) == 1 else " in the most expensive case"
    if undecided:  # a largest cost would be misleading, because of these cases there is none
        advice += (
            f"; {len(undecided)} of {len(cases)} cases cannot be decided with these historical "
            f"data: {describe_rows_needed(undecided)}"
        )
        return AdaptiveAudit.name, advice
    largest_cost = max(math.inf if case.cost["0.9"] is None else case.cost["0.9"] for case in cases)
    if largest_cost == math.inf and any(case.trial_runs for case in cases):
        advice += f"; more than one audit in ten{dearest_case} ends without a verdict"
    elif largest_cost == math.inf:
        advice += (
            f"; some audits{dearest_case} cost many times as much or end without a verdict, "
            "because luck decides which answer comes"
        )
    else:
        advice += f"; at most {format_figures(largest_cost)} nine times in ten{dearest_case}"
    return AdaptiveAudit.name, advice


def _describe_typical_costs(cases: Sequence[Forecast]) -> str:
    """Return the range of typical costs, and what it depends on."""
    if len(cases) == 1:
        return f"{format_figures(cases[0].median or 0.0)} if {cases[0].scenario.name}"
    # Gaps beside the grey zone are the worst cases, not the typical ones.
    usual = [case for case in cases if case.scenario.kind is ScenarioKind.RATIO]
    medians = [case.median for case in usual or cases if case.median is not None]
    if not medians:
        medians = [case.median for case in cases if case.median is not None]
    lowest = _format_typical_cost(min(medians))
    highest = _format_typical_cost(max(medians))
    costs = lowest if lowest == highest else f"{lowest} to {highest}"
    return f"{costs}, depending on how often denied people would do well"


def _format_typical_cost(cost: float) -> str:
    return format_figures(round(cost) if cost >= SMALLEST_WHOLE_COST else cost)


def price_paper_audits(
    cells: Cells, question: Question, costs: Costs, r: Mapping[str, float]
) -> dict[str, Price]:
    """Return what those of the paper's audits that answer a question cost on average, given r.

    Approved people of unknown outcome count like the known.
    """
    left_out = question.resolve(cells).left_out  # their theorems are about all groups
    if left_out or METRICS[question.metric].is_free or not can_answer(question):
        return {}
    names = ["rs", "baseline"]
    if can_answer(question, by_features=True):
        names.append("exp")
    world = CellWorld(cells.like_known, r)
    return {name: expectation(name, world, question, costs) for name in names}


def _price_other_audits(
    history: Past, question: Question, costs: Costs, r: Mapping[str, float]
) -> tuple[OtherAudit, ...]:
    """Return the paper's audits: those that can run first, the cheapest first among them."""
    groups = history.cells.groups
    audits = []
    for name, price in price_paper_audits(history.cells, question, costs, r).items():
        missing: tuple[str, ...] = ()
        if name != "exp":
            goals = [(y, group) for y in outcomes_to_estimate(question) for group in groups]
            tau = paper_tau(question, len(groups))
            missing = describe_missing_rows(history, goals, tau, name == "rs")
        elif history.model is None:
            missing = ("features of past people: give the history a model (mixture.PastFeatures)",)
        audits.append(OtherAudit(name, price, missing))
    return tuple(sorted(audits, key=lambda audit: (not audit.possible, audit.price.cost)))
