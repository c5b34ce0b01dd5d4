"""``equipoise plan``: what each audit would cost on these past decisions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import typer

from equipoise.cli.console import console, print_json, working
from equipoise.cli.options import (
    Decision,
    Delta,
    DeniedOutcomes,
    Epsilon,
    FeatureCost,
    Gamma,
    Group,
    Json,
    LabelCost,
    Metric,
    Outcome,
    Positive,
    Source,
    read_history,
)
from equipoise.question import Costs, Question

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from equipoise.planning import Plan

__all__ = ["app", "forecasts_table", "show_plan"]

app = typer.Typer(add_completion=False)


@app.command()
def plan(
    source: Source,
    group: Group,
    decision: Decision,
    outcome: Outcome,
    positive: Positive = None,
    denied_outcomes: DeniedOutcomes = "error",
    metric: Metric = "equalized_odds",
    gamma: Gamma = 0.05,
    epsilon: Epsilon = 0.05,
    delta: Delta = 0.05,
    feature_cost: FeatureCost = 0.0,
    label_cost: LabelCost = 1.0,
    json: Json = False,
) -> None:
    """Say what each audit would cost, and which one to run.

    Example: equipoise plan loans.csv --group race --decision approved --outcome repaid
    """
    question, costs = Question(metric, gamma, epsilon, delta), Costs(feature_cost, label_cost)
    history = read_history(source, group, decision, outcome, positive, denied_outcomes)
    from equipoise.planning import plan as make_plan

    with working("Planning …"):
        made = make_plan(history, question, costs)
    if json:
        print_json(made.to_dict())
    else:
        show_plan(console(), made)


def show_plan(to: Console, made: Plan) -> None:
    """Print the free answer, a row per audit, and the advice."""
    from rich.text import Text

    from equipoise.cli.tables import colour_of

    to.print(Text(f"{made.question}", style="bold"))
    to.print(f"costs: {made.costs}\n", markup=False)
    free = made.free
    to.print(
        Text.assemble(
            "for free: ",
            (free.verdict.value, f"bold {colour_of(free.verdict)}"),
            f", Delta between {free.lower:.3f} and {free.upper:.3f}",
        )
    )
    to.print(forecasts_table(made))
    for row in made.rows:
        to.print(Text.assemble((row.audit, "bold"), f": {row.guarantees}"))
        for line in row.assumes:
            to.print(f"  assumes: {line}", markup=False)
        for line in row.missing:
            to.print(Text(f"  missing: {line}", style="yellow"))
    for note in made.notes:
        to.print(Text(f"note: {note}", style="yellow"))
    to.print(Text(f"\nrecommended: {made.advice}", style="bold"))


def forecasts_table(made: Plan) -> Table:
    """Show what each audit would ask for and cost."""
    from equipoise.cli.tables import new_table

    table = new_table("audit", "labels, guessed", "cost, guessed", "cost, whatever r", "can run")
    for row in made.rows:
        table.add_row(
            row.audit,
            _number(row.guess.labels),
            _number(row.guess.cost),
            f"{_number(row.least.cost)} to {_number(row.most.cost)}",
            "yes" if row.possible else "no",
        )
    table.caption = "guess: the denied are like the approved of their group"
    table.caption_justify = "left"
    return table


def _number(value: float) -> str:
    if math.isinf(value):
        return "no limit"
    return f"{value:,.0f}" if value < 1e6 else f"{value:.2e}"
