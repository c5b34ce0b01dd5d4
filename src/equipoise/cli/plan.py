"""``equipoise plan``: what an audit would cost on these historical data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli import options as shared
from equipoise.cli import past_options as reading
from equipoise.cli.console import Line, Output, Part, Table, failure_after, show, show_progress
from equipoise.cli.option_values import parse_denied_rates, parse_verdicts
from equipoise.display import format_count, format_figures
from equipoise.question import Costs

if TYPE_CHECKING:
    from equipoise.planning import Plan

app = typer.Typer(add_completion=False)

TrialRuns = Annotated[
    int,
    typer.Option(
        "--trial-runs",
        help="Simulate the audit this many times in every case, for sharper figures. The command "
        "first shows how long that takes.",
    ),
]
TIME_PANEL = "Time and money"
ArrivalsPerDay = Annotated[
    float | None,
    typer.Option(
        "--arrivals-per-day",
        help="People who arrive on a day, approved ones included. The plan then shows when audits "
        "end. Default: counted from the dates of --date.",
        rich_help_panel=TIME_PANEL,
    ),
]
OutcomeAfter = Annotated[
    float | None,
    typer.Option(
        "--outcome-after",
        help="With --arrivals-per-day: days from an override to its outcome.",
        rich_help_panel=TIME_PANEL,
    ),
]
PlanBudget = Annotated[
    float | None,
    typer.Option(
        "--budget",
        help="Show the chance of a verdict within this cost, and the smallest margin (epsilon) "
        "for which it is 80%.",
        rich_help_panel=TIME_PANEL,
    ),
]


@app.command()
def plan(
    context: typer.Context,
    source: reading.Source,
    group: reading.GroupColumns = None,
    within: shared.StratumColumns = None,
    decision: reading.DecisionColumn = None,
    outcome: reading.OutcomeColumn = None,
    positive: reading.PositiveValues = None,
    negative: reading.NegativeValues = None,
    denied_outcomes: reading.DeniedOutcomes = "error",
    missing_values: reading.MissingValues = None,
    missing_group: reading.MissingGroup = "refuse",
    merge_groups: reading.MergeGroups = None,
    max_groups: reading.MaxGroups = 50,
    unknown: reading.UnknownOutcomes = "refuse",
    undecided: reading.Undecided = "refuse",
    cohort: reading.CohortColumn = None,
    random_accepts: reading.RandomAcceptsColumn = None,
    random_accepts_against: reading.RandomAcceptsAgainst = None,
    decider: reading.DeciderColumn = None,
    min_cases: reading.MinCases = 0,
    id_column: reading.IdColumn = None,
    repeated: reading.RepeatedPeople = "refuse",
    table: reading.TableName = None,
    query: reading.Query = None,
    encoding: reading.Encoding = None,
    outcomes: reading.Outcomes = None,
    on: reading.JoinOn = None,
    latest: reading.LatestColumn = None,
    preset: reading.Preset = None,
    date: reading.DateColumn = None,
    since: reading.Since = None,
    until: reading.Until = None,
    save: reading.Save = None,
    metric: shared.Metrics = shared.DEFAULT_METRICS,
    gamma: shared.Gamma = 0.05,
    epsilon: shared.Epsilon = 0.05,
    delta: shared.Delta = 0.05,
    compare: shared.CompareBy = "difference",
    against: shared.Against = None,
    direction: shared.Direction = "both",
    leave_out: shared.LeaveOut = None,
    feature_cost: shared.FeatureCost = 0.0,
    label_cost: shared.LabelCost = 1.0,
    fail_on: shared.FailOn = "",
    denied_rate: shared.DeniedRates = None,
    arrivals_per_day: ArrivalsPerDay = None,
    outcome_after: OutcomeAfter = None,
    budget: PlanBudget = None,
    trial_runs: TrialRuns = 0,
    json: shared.Json = False,
) -> None:
    """Estimate what an audit would cost, and recommend one.

    Example: equipoise plan loans.csv --group race --decision approved --outcome repaid --metric
    equal_opportunity
    """
    past = reading.PastDecisions(
        context,
        source,
        {
            "group": group,
            "within": within,
            "decision": decision,
            "outcome": outcome,
            "positive": positive,
            "negative": negative,
            "denied_outcomes": denied_outcomes,
            "missing_values": missing_values,
            "missing_group": missing_group,
            "merge_groups": merge_groups,
            "max_groups": max_groups,
            "unknown": unknown,
            "undecided": undecided,
            "cohort": cohort,
            "random_accepts": random_accepts,
            "random_accepts_against": random_accepts_against,
            "decider": decider,
            "min_cases": min_cases,
            "id": id_column,
            "repeated": repeated,
            "table": table,
            "query": query,
            "encoding": encoding,
            "outcomes": outcomes,
            "on": on,
            "latest": latest,
            "preset": preset,
            "date": date,
            "since": since,
            "until": until,
        },
        save,
    )
    question_options = past.complete_question(
        shared.QuestionOptions(
            metrics=metric,
            gamma=gamma,
            epsilon=epsilon,
            delta=delta,
            compare_by=compare,
            against=against,
            direction=direction,
            stratum_columns=within,
            leave_out=leave_out,
        )
    )
    question = question_options.single_question()
    prices = past.complete_costs(feature_cost, label_cost)
    costs = Costs(*prices)
    failing = parse_verdicts(fail_on)
    history = past.read(question_options, prices)

    # Imported after the table was read: a mistake in it is shown at once.
    from equipoise.planning import plan as make_plan
    from equipoise.planning.trial_runs import estimate_trial_time

    denied_rates = parse_denied_rates(denied_rate)
    if trial_runs > 0:
        duration = estimate_trial_time(history, question, costs, trial_runs, denied_rates)
        typer.echo(duration, err=True)  # apart from the output, which may be JSON
    with show_progress("trial runs") as progress:
        cost_plan = make_plan(
            history,
            question,
            costs,
            denied_rate=denied_rates,
            arrivals_per_day=arrivals_per_day,
            outcome_after=outcome_after,
            budget=budget,
            trial_runs=trial_runs,
            n_jobs=-1,
            progress=progress,
        )
    failure = failure_after(failing, [cost_plan.free.verdict])
    parts = plan_parts(cost_plan)
    next_options = _options_to_begin(cost_plan)
    if next_options is not None:
        words = past.words_to_repeat(question_options, next_options)
        parts.append(f"Next: equipoise audit new NAME {words}")
    show(Output(cost_plan, parts, failure), json)


def _options_to_begin(plan: Plan) -> Mapping[str, Sequence[str]] | None:
    """Return what ``audit new`` needs so that it begins; None if no audit is recommended."""
    obstacle = plan.obstacle
    if obstacle is None:
        return {} if plan.cases else None
    options: dict[str, Sequence[str]] = {}
    if obstacle.leave_out:
        options["--leave-out"] = obstacle.leave_out
    elif plan.recommended != "adaptive":
        return None
    if obstacle.remaining_case or not obstacle.leave_out:
        options["--yes"] = ()
    return options


def plan_parts(plan: Plan) -> list[Part]:
    """Return advice, question, free answer, costs by case, time and money, other audits, notes."""
    from equipoise.messages import shell
    from equipoise.messages.answer import build_answer

    free = plan.free
    warnings = []
    if plan.obstacle is not None:
        warnings.append(Line("warning", f"{shell.describe(plan.obstacle.problem)}\n"))
    parts: list[Part] = [
        Line("recommended", f"{plan.advice}\n"),
        *warnings,
        f"{plan.question}\ncosts: {plan.costs}",
        f"for free: {build_answer(free).summary}",
    ]
    if plan.cases:
        parts.append(cases_table(plan))
    if plan.times or plan.budget is not None:
        parts.append(time_and_money_table(plan))
    undecidable = [case for case in plan.cases if not case.is_decidable]
    parts += [f"{case.scenario.short}: {case.missing}" for case in undecidable]
    for alternative in plan.others:
        ability = "can run"
        if alternative.missing:
            ability = f"cannot run: {alternative.missing[0]}"
        cost = format_figures(alternative.price.cost)
        parts.append(f"{alternative.audit}: about {cost} on average; {ability}")
    parts += [Line("note", note) for note in plan.notes]
    return parts


def cases_table(plan: Plan) -> Table:
    """Return what the adaptive audit costs in each case."""
    from equipoise.planning.case_rows import case_rows, explain_cases

    return Table(case_rows(plan), explain_cases(plan), wrap=False)


def time_and_money_table(plan: Plan) -> Table:
    """Return when audits of each case end, and the chance of a verdict within the budget."""
    from equipoise.planning.case_rows import time_and_money_rows

    caption = " ".join(_time_and_money_sentences(plan))
    return Table(time_and_money_rows(plan), caption)


def _time_and_money_sentences(plan: Plan) -> list[str]:
    """Return where arrivals are known from, what waiting costs and what a budget allows."""
    sentences = []
    if plan.times:
        sentences.append(f"{plan.arrivals}.")
    requests = plan.requests_before_outcomes
    if requests is not None:
        needed = f"{requests.needed:,}"
        sentences.append(
            f"These days are without a limit: about {requests.requested:,} overrides are then "
            f"requested before the first outcome, and {needed} are typically enough. "
            f"'audit new' with --max-in-flight {requests.needed} keeps to them, and each further "
            f"{needed} then take {round(requests.days):,} days more."
        )
    if plan.budget is not None:
        budget = format_count(plan.budget.budget)
        sentences.append(f"Budget {budget}: {plan.budget.margin_clause}.")
        if plan.budget.open_cases:
            sentences.append("Where a cost has no limit, the chance may be higher than shown.")
    return sentences
