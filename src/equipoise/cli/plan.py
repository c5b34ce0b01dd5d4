"""``equipoise plan``: what each audit would cost on these past decisions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli.console import bar, console, print_json
from equipoise.cli.option_groups import prices, question_asked, with_options
from equipoise.cli.options import Json
from equipoise.cli.past_options import Read, past_decisions
from equipoise.question import Costs, Question

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from equipoise.planning import Outlook, Plan, Variation

__all__ = ["app", "forecasts_table", "outlook_table", "show_plan"]

app = typer.Typer(add_completion=False)


@app.command()
@with_options(read=past_decisions, question=question_asked, costs=prices)
def plan(
    read: Read,
    question: Question,
    costs: Costs,
    what_if: Annotated[
        bool,
        typer.Option(
            "--what-if", help="Also show how the cost moves with gamma, epsilon and delta."
        ),
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw --what-if: a file that ends in .svg or .png."),
    ] = None,
    json: Json = False,
) -> None:
    """Say what each audit would cost, and which one to run.

    Example: equipoise plan loans.csv --group race --decision approved --outcome repaid
    """
    history = read()
    from equipoise.cli.plan_picture import draw_plan, require_drawable
    from equipoise.planning import plan as make_plan
    from equipoise.planning import what_if as vary

    if picture is not None:
        require_drawable(picture)
    with bar("rehearsing audits") as progress:
        made = make_plan(history, question, costs, progress=progress)
    variations: tuple[Variation, ...] = ()
    if what_if or picture is not None:
        with bar("varying the question") as progress:
            variations = vary(history, question, costs, progress=progress)
    if picture is not None:
        draw_plan(made, variations, picture)
    if json:
        extra = {"what_if": [one.to_dict() for one in variations]} if variations else {}
        print_json({**made.to_dict(), **extra})
    else:
        show_plan(console(), made, variations)


def show_plan(to: Console, made: Plan, variations: Sequence[Variation] = ()) -> None:
    """Print the free answer, a row per audit, and the advice."""
    from rich.padding import Padding
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
        if row.outlook is not None:
            to.print(outlook_table(row.outlook))
    if variations:
        to.print(_variations_table(variations))
    for row in made.rows:
        to.print(Text.assemble((row.audit, "bold"), f": {row.guarantees}"))
        for line in row.assumes:
            to.print(Padding(Text(f"assumes: {line}"), (0, 0, 0, 4)))
        for line in row.missing:
            to.print(Padding(Text(f"missing: {line}", style="yellow"), (0, 0, 0, 4)))
    for note in made.notes:
        to.print(Text(f"note: {note}", style="yellow"))
    to.print(Text(f"\nrecommended: {made.advice}", style="bold"))
    if not variations and any(row.outlook for row in made.rows):
        to.print("how the cost moves with the question: add --what-if, or --picture FILE.svg")


def forecasts_table(made: Plan) -> Table:
    """Show what each audit would ask for and cost."""
    from equipoise.cli.tables import new_table, number

    table = new_table("audit", "labels, guessed", "cost, guessed", "range of cost", "can run")
    for row in made.rows:
        table.add_row(
            row.audit,
            number(row.guess.labels),
            number(row.guess.cost),
            f"{number(row.least.cost)} to {number(row.most.cost)}",
            "yes" if row.possible else "no",
        )
    table.caption = (
        "guess: the denied are like the approved of their group; range: whatever they are "
        "(adaptive: eight in ten rehearsals)"
    )
    table.caption_justify = "left"
    return table


def outlook_table(seen: Outlook) -> Table:
    """Show how the adaptive audit's cost is spread, and whom it labels."""
    from equipoise.cli.tables import new_table, number

    table = new_table("adaptive audit, rehearsed", *(f"{float(q):.0%}" for q in seen.quantiles))
    table.add_row("cost at most", *(number(price.cost) for price in seen.quantiles.values()))
    table.add_row("labels at most", *(number(price.labels) for price in seen.quantiles.values()))
    labels = ", ".join(f"{group} {count:,.0f}" for group, count in seen.labels.items())
    verdicts = ", ".join(f"{name} {share:.0%}" for name, share in seen.verdicts.items())
    table.caption = (
        f"{seen.audits} rehearsals with r drawn at random; {seen.free:.0%} cost nothing; "
        f"mean labels: {labels}; ended with {verdicts or 'no verdict'}"
    )
    if seen.extrapolated:
        table.caption += (
            f"; {seen.extrapolated:.0%} were broken off after {seen.cap:,} labels and count with "
            "their own estimate of the rest"
        )
    table.caption_justify = "left"
    return table


def _variations_table(variations: Sequence[Variation]) -> Table:
    from equipoise.cli.tables import new_table, number

    table = new_table("adaptive audit, if", "cost: 10%", "50%", "90%", "costs nothing")
    for one in variations:
        prices = (one.outlook.quantiles[level].cost for level in ("0.1", "0.5", "0.9"))
        table.add_row(
            f"{one.name} = {one.value:g}", *map(number, prices), f"{one.outlook.free:.0%}"
        )
    table.caption = f"{variations[0].outlook.audits} rehearsals each, all with the same unknowns"
    table.caption_justify = "left"
    return table
