"""``equipoise plan``: what each audit would cost on these past decisions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli.audit_options import pairs
from equipoise.cli.console import bar, console, print_json
from equipoise.cli.option_groups import prices, question_asked, with_options
from equipoise.cli.options import Json
from equipoise.cli.past_options import Read, past_decisions
from equipoise.errors import InvalidInput
from equipoise.question import Costs, Question

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from equipoise.planning import Affordable, Plan, Rehearsal, ScoreSavings, Variation

__all__ = ["app", "cases_table", "forecasts_table", "show_plan"]

app = typer.Typer(add_completion=False)


@app.command()
@with_options(read=past_decisions, question=question_asked, costs=prices)
def plan(
    read: Read,
    question: Question,
    costs: Costs,
    denied_rate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP=R",
            help="What you know: the share of this group's denied who would have succeeded.",
        ),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="Also say what this much money buys.")
    ] = None,
    arrivals: Annotated[
        float | None, typer.Option(help="People who arrive per day, to give calendar times.")
    ] = None,
    delay: Annotated[float, typer.Option(help="Days until an outcome is known.")] = 0.0,
    audits: Annotated[
        int | None,
        typer.Option(
            min=1, help="Audits to rehearse per case: more for sharper figures, fewer for speed."
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Also say whether this score helps an audit that looks before it asks.",
        ),
    ] = None,
    people_per_label: Annotated[
        float, typer.Option(help="With --score: at most so many people are looked at per label.")
    ] = 8.0,
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

    Audits are rehearsed on all processors: for four groups about 100 seconds of computing.

    Example: equipoise plan loans.csv --group race --decision approved --outcome repaid
    """
    history = read(score=score)
    from equipoise.assist import Assist
    from equipoise.cli.plan_picture import draw_plan, require_drawable
    from equipoise.planning import plan as make_plan
    from equipoise.planning import what_if as vary

    if picture is not None:
        require_drawable(picture)
    with bar("rehearsing audits") as progress:
        made = make_plan(
            history,
            question,
            costs,
            denied_rate=_rates(denied_rate),
            budget=budget,
            arrivals_per_day=arrivals,
            delay_days=delay,
            audits=audits,
            assist=None if score is None else Assist(people_per_label=people_per_label),
            n_jobs=-1,
            progress=progress,
        )
    variations: tuple[Variation, ...] = ()
    if what_if or picture is not None:
        with bar("varying the question") as progress:
            variations = vary(history, question, costs, n_jobs=-1, progress=progress)
    if picture is not None:
        draw_plan(made, variations, picture)
    if json:
        extra = {"what_if": [one.to_dict() for one in variations]} if variations else {}
        print_json({**made.to_dict(), **extra})
    else:
        show_plan(console(), made, variations)


def show_plan(to: Console, made: Plan, variations: Sequence[Variation] = ()) -> None:
    """Print the advice, what the past data say, what the audit costs case by case, the rest."""
    from rich.text import Text

    from equipoise.cli.tables import colour_of

    to.print(Text(f"recommended: {made.advice}\n", style="bold"))
    to.print(Text(f"{made.question}"))
    to.print(f"costs: {made.costs}", markup=False)
    free = made.free
    to.print(
        Text.assemble(
            "for free: ",
            (free.verdict.value, f"bold {colour_of(free.verdict)}"),
            f", a gap between {free.lower:.3f} and {free.upper:.3f}",
        )
    )
    if made.cases:
        to.print(cases_table(made))
    if made.affordable is not None:
        to.print(_budget_table(made.affordable))
    if made.score_savings is not None:
        _show_score_savings(to, made.score_savings)
    if variations:
        to.print(_variations_table(variations))
    to.print(forecasts_table(made))
    for row in made.rows:
        for line in row.missing:
            to.print(Text(f"{row.audit} cannot run: {line}", style="yellow"))
    for note in made.notes:
        to.print(Text(f"note: {note}", style="yellow"))
    if made.cases and not variations:
        to.print("how the cost moves with the question: add --what-if, or --picture FILE.svg")


def cases_table(made: Plan) -> Table:
    """Show what the adaptive audit costs in each case."""
    from equipoise.cli.tables import new_table, number
    from equipoise.planning.rehearsal import CAP

    timed = made.arrivals_per_day is not None
    table = new_table(
        "the denied succeed",
        "expect",
        "cost: 10%",
        "50%",
        "90%",
        "labels",
        "days" if timed else "people",
    )
    for column in table.columns[1:]:
        column.no_wrap = True
    for seen in made.cases:
        days = made.days(seen)
        table.add_row(
            seen.scenario.short,
            "either" if " or " in seen.scenario.expect else seen.scenario.expect,
            *(_cost(cost.value) for cost in seen.cost.values()),
            number(sum(seen.labels.values())),
            number(seen.people) if days is None else f"{days:,.0f}",
        )
    dear = max((seen.cost["0.9"] for seen in made.cases), key=lambda q: q.value or math.inf)
    ends = f"{_cost(dear.low)} and {_cost(dear.high)}"
    if not made.cases[0].audits:
        table.caption = "adaptive audit, estimated: see the note below"
        table.caption_justify = "left"
        return table
    table.caption = (
        f"adaptive audit, {made.cases[0].audits} rehearsals a case on your past data. as often: as "
        "the approved of their group; below, above: the gap beside the grey zone, where audits are "
        "dearest. 10%, 50%, 90%: so many audits cost at most that. labels and "
        f"{'days' if timed else 'people who must arrive'}: the median's. Luck of so few: the "
        f"largest 90% figure lies between {ends}. no end: not within {CAP:,} labels."
    )
    table.caption_justify = "left"
    return table


def forecasts_table(made: Plan) -> Table:
    """Show what each audit would ask for and cost, in a line."""
    from equipoise.cli.tables import new_table, number

    table = new_table("audit", "labels", "cost", "range of cost", "can run")
    for row in made.rows:
        table.add_row(
            row.audit,
            number(row.guess.labels),
            number(row.guess.cost),
            f"{number(row.least.cost)} to {number(row.most.cost)}",
            "yes" if row.possible else "no",
        )
    others = "others: the denied are like the approved, and whatever they are"
    table.caption = (
        f"adaptive: the 40% case, and from the cheapest to the dearest; {others}"
        if made.cases
        else "nothing was rehearsed: the past data decide, or no audit can run. cost: if the "
        "denied are like the approved; range: whatever they are"
    )
    table.caption_justify = "left"
    return table


def _show_score_savings(to: Console, seen: ScoreSavings) -> None:
    from rich.text import Text

    to.print(Text(f"if {seen.scenario}: {seen}; about {seen.people:,.0f} people must arrive"))
    for group, words in seen.rests_on.items():
        to.print(Text(f"  what the score says in {group}: from {words}"))


def _budget_table(bought: Affordable) -> Table:
    from equipoise.cli.tables import new_table, number

    first = f"budget {number(bought.budget)}; the denied succeed"
    table = new_table(first, "verdict", "else gap in")
    for case in bought.cases:
        table.add_row(
            case.scenario.short, f"{case.decides:.0%}", f"[{case.lower:.3f}, {case.upper:.3f}]"
        )
    buys = (
        "no epsilon that was tried"
        if bought.epsilon is None
        else f"epsilon (the width of the grey zone) = {bought.epsilon:.3g} or wider"
    )
    table.caption = f"{bought.audits} audits a case; in the 40% case half end within it at {buys}"
    table.caption_justify = "left"
    return table


def _variations_table(variations: Sequence[Variation]) -> Table:
    from equipoise.cli.tables import new_table

    table = new_table("adaptive audit, 40% case, if", "cost: 10%", "50%", "90%")
    for one in variations:
        costs = ("past data decide", "", "") if one.seen is None else _costs(one.seen)
        table.add_row(f"{one.name} = {one.value:g}", *costs)
    table.caption = (
        "gamma: the gap that is tolerated; epsilon: the width of the grey zone above it; delta: "
        "the probability of a wrong answer"
    )
    table.caption_justify = "left"
    return table


def _costs(seen: Rehearsal) -> tuple[str, ...]:
    return tuple(_cost(cost.value) for cost in seen.cost.values())


def _cost(value: float | None) -> str:
    from equipoise.cli.tables import number

    return "no end" if value is None else number(value)


def _rates(given: Sequence[str] | None) -> dict[str, float]:
    try:
        return {group: float(rate) for group, rate in pairs("--denied-rate", given)}
    except ValueError:
        raise InvalidInput(f"'--denied-rate' must be GROUP=R, as in B=0.3; got {given}") from None
