"""The cases of a plan as rows of texts, the same for the command line and the browser."""

from __future__ import annotations

import math

from equipoise.display import Row, format_figures
from equipoise.planning.make_plan import Plan

CASE_COLUMN = "If denied people do well ... as often as approved ones"


def case_rows(plan: Plan) -> list[Row]:
    """Return what the adaptive audit costs in each case."""
    rows: list[Row] = []
    for case in plan.cases:
        low, median, high = case.cost.values()
        expected = "either" if case.scenario.is_either_right else case.scenario.expect
        cost_range = None
        if low is not None:
            highest = "no limit" if high is None else format_figures(high)
            cost_range = f"{format_figures(low)} to {highest}"
        row: dict[str, object] = {
            CASE_COLUMN: case.scenario.cell,
            "Expected verdict": expected,
            "Typical cost": None if median is None else format_figures(median),
            "80% range": cost_range,
        }
        if case.trial_runs > 0:
            row["Runs with a verdict"] = None if case.decides is None else f"{case.decides:.0%}"
        else:
            row["Overrides"] = math.ceil(sum(case.labels.values())) if case.is_decidable else None
        row["Applicants needed"] = round(case.people) if case.is_decidable else None
        rows.append(row)
    return rows


def time_and_money_rows(plan: Plan) -> list[Row]:
    """Return when audits of each case end, and the chance of a verdict within the budget."""
    rows: list[Row] = []
    for index, case in enumerate(plan.cases):
        row: dict[str, object] = {CASE_COLUMN: case.scenario.cell}
        if plan.times:
            time = plan.times[index]
            row["first outcomes (day)"] = round(time.first_outcomes)
            row["typical end (day)"] = None if time.typical_end is None else round(time.typical_end)
            row["80% range"] = None
            if time.earliest_end is not None:
                latest = "no limit"
                if time.latest_end is not None:
                    latest = f"{round(time.latest_end):,}"
                row["80% range"] = f"{round(time.earliest_end):,} to {latest}"
        if plan.budget is not None:
            row["verdict within budget"] = plan.budget.describe(case.scenario.name)
        rows.append(row)
    return rows


def explain_cases(plan: Plan) -> str:
    """Return what the columns of the cases mean."""
    n_trial_runs = plan.cases[0].trial_runs
    method = f"{n_trial_runs} trial runs a case" if n_trial_runs > 0 else "forecast"
    sentences = [f"Adaptive audit, {method}. Typical numbers are medians."]
    by_ratio = [case.scenario.r for case in plan.cases if case.scenario.ratio is not None]
    if by_ratio:
        # What was known of a group beforehand is the same in every case.
        is_any_known = len(by_ratio) > 1 and any(
            all(rates[group] == rate for rates in by_ratio) for group, rate in by_ratio[0].items()
        )
        scope = "every other group" if is_any_known else "every group"
        sentences.append(
            f"A row with a percentage assumes it for {scope}. The cost can be higher if the groups "
            "differ."
        )
    if len(plan.cases) > 1:
        sentences.append("Audits are most expensive where the gap is beside the grey zone.")
    if any(case.scenario.is_either_right for case in plan.cases):
        sentences.append("Either: the gap is in the grey zone, where both answers are right.")
    return " ".join(sentences)
