"""``equipoise simulate``: run audits many times where the truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli.console import console, print_json, working
from equipoise.cli.options import (
    Delta,
    Epsilon,
    FeatureCost,
    Gamma,
    Json,
    LabelCost,
    Metric,
    Positive,
    read_positive,
)
from equipoise.errors import InvalidInput
from equipoise.question import Costs, Question

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from equipoise.simulation import Summary
    from equipoise.worlds import World

__all__ = ["app", "find_world", "runs_table"]

app = typer.Typer(add_completion=False)

WORLDS = ("fico", "adult", "lower-bound-fair", "lower-bound-unfair")
WORLD, RUNS = "World", "Runs"

Audits = Annotated[
    list[str] | None,
    typer.Argument(metavar="[AUDIT]...", help="rs, baseline, adaptive or exp; several compare."),
]
Where = Annotated[
    list[str],
    typer.Option(
        "--world",
        "-w",
        metavar="NAME|FILE",
        help=f"{', '.join(WORLDS)}, or a CSV or Parquet file with everybody's outcome.",
        rich_help_panel=WORLD,
    ),
]
Column = Annotated[str | None, typer.Option(metavar="COLUMN", rich_help_panel=WORLD)]


@app.command()
def simulate(
    audits: Audits = None,
    world: Where = ["fico"],  # noqa: B006 - typer copies it
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group", "-g", metavar="COLUMN", help="Column of groups.", rich_help_panel=WORLD
        ),
    ] = None,
    decision: Column = None,
    outcome: Column = None,
    positive: Positive = None,
    metric: Metric = "equalized_odds",
    gamma: Gamma = 0.05,
    epsilon: Epsilon = 0.05,
    delta: Delta = 0.05,
    feature_cost: FeatureCost = 0.0,
    label_cost: LabelCost = 1.0,
    repeats: Annotated[int, typer.Option(help="Independent runs.", rich_help_panel=RUNS)] = 200,
    seed: Annotated[int, typer.Option(help="Where randomness starts.", rich_help_panel=RUNS)] = 0,
    history_size: Annotated[
        int | None,
        typer.Option(
            help="Past people, drawn anew in every run; else no end.", rich_help_panel=RUNS
        ),
    ] = None,
    tau: Annotated[
        int | None,
        typer.Option(help="Threshold of rs and baseline; else the paper's.", rich_help_panel=RUNS),
    ] = None,
    reuse_labels: Annotated[
        bool,
        typer.Option(
            "--reuse-labels",
            help="rs and baseline: one stream for all phases.",
            rich_help_panel=RUNS,
        ),
    ] = False,
    jobs: Annotated[int, typer.Option(help="Processes.", rich_help_panel=RUNS)] = 1,
    json: Json = False,
) -> None:
    """Run audits many times in a world whose every outcome is known.

    Example: equipoise simulate rs baseline --world fico --gamma 0.15
    """
    question, costs = Question(metric, gamma, epsilon, delta), Costs(feature_cost, label_cost)
    with working("Making the world …"):
        place = find_world(world, group, decision, outcome, positive, epsilon)
    from equipoise.simulation import simulate as run_simulation

    summaries = [
        run_simulation(
            name,
            place,
            question,
            costs,
            repeats=repeats,
            seed=seed,
            history_size=history_size,
            jobs=jobs,
            progress=True,
            **_options(name, tau, reuse_labels),  # type: ignore[arg-type]
        ).summary()
        for name in audits or ["rs", "baseline"]
    ]
    if json:
        print_json({"world": world, "runs": [s.to_dict() for s in summaries]})
    else:
        _show(console(), world, summaries)


def find_world(
    world: Sequence[str],
    group: Sequence[str] | None,
    decision: str | None,
    outcome: str | None,
    positive: Sequence[str] | None,
    epsilon: float,
) -> World:
    """Return a world by its name, or read it from files."""
    if len(world) == 1 and world[0] in WORLDS:
        return _built_in(world[0], epsilon)
    if not group or not decision or not outcome:
        raise InvalidInput(
            f"'--world' must be one of {', '.join(WORLDS)}, or a file together with --group, "
            f"--decision and --outcome; got {', '.join(world)}"
        )
    from equipoise.worlds import read_world

    return read_world(
        list(world),
        group=list(group),
        decision=decision,
        outcome=outcome,
        positive=read_positive(positive or []),
    )


def _built_in(name: str, epsilon: float) -> World:
    if name == "fico":
        from equipoise.data import fico_lender

        return fico_lender().world
    if name == "adult":
        from equipoise.data import adult_world

        return adult_world()
    from equipoise.worlds import lower_bound_pair

    fair, unfair = lower_bound_pair(epsilon)
    return fair if name.endswith("-fair") else unfair


def _options(audit: str, tau: int | None, reuse_labels: bool) -> dict[str, object]:
    if audit not in ("rs", "baseline"):
        return {}
    return {"tau": tau, "reuse_labels": reuse_labels}


def _show(to: Console, world: Sequence[str], summaries: list[Summary]) -> None:
    from rich.text import Text

    first = summaries[0]
    truth = " or ".join(sorted(first.question.truth(first.difference)))
    to.print(Text(f"{first.question}", style="bold"))
    to.print(f"costs: {first.costs}", markup=False)
    to.print(f"world: {', '.join(world)}", markup=False)
    to.print(f"truth: Delta = {first.difference:.4f}, {truth} is right", markup=False)
    to.print(runs_table(summaries))


def runs_table(summaries: Sequence[Summary]) -> Table:
    """Show a row per simulated audit."""
    from equipoise.cli.tables import new_table

    runs = summaries[0].repeats
    table = new_table("audit", "verdicts", "wrong", "mean cost", "mean labels")
    for one in summaries:
        verdicts = ", ".join(f"{v} {share:.1%}" for v, share in one.verdicts.items() if share)
        table.add_row(
            one.audit,
            verdicts,
            f"{one.errors:,} of {one.repeats:,}",
            f"{_number(one.mean_cost)} ± {_number(one.standard_error)}",
            _number(one.mean_labels),
        )
    table.caption = f"{runs:,} runs; ± is the standard error of the mean"
    table.caption_justify = "left"
    return table


def _number(value: float) -> str:
    return f"{value:,.4g}" if value < 1e6 else f"{value:.3e}"
