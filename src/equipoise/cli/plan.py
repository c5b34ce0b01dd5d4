"""``equipoise plan``: what an audit would cost on these past decisions."""

from __future__ import annotations

from collections.abc import Sequence
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

    from equipoise.planning import Affordable, Plan, ScoreSavings

__all__ = ["app", "cases_table", "show_plan"]

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
    trial_runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Run the audit itself so many times in every case, for sharper figures; how long "
            "that takes is said first.",
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
    json: Json = False,
) -> None:
    """Say what an audit would cost, in seconds, and which one to run.

    Example: equipoise plan loans.csv --group race --decision approved --outcome repaid
    """
    history = read(score=score)
    from equipoise.assist import Assist
    from equipoise.planning import plan as make_plan
    from equipoise.planning.trials import say_how_long

    rates = _rates(denied_rate)
    if trial_runs is not None:
        typer.echo(say_how_long(history, question, costs, trial_runs, rates), err=True)
    with bar("trial runs") as progress:
        made = make_plan(
            history,
            question,
            costs,
            denied_rate=rates,
            budget=budget,
            arrivals_per_day=arrivals,
            delay_days=delay,
            trial_runs=trial_runs,
            assist=None if score is None else Assist(people_per_label=people_per_label),
            n_jobs=-1,
            progress=progress,
        )
    if json:
        print_json(made)
    else:
        show_plan(console(), made)


def show_plan(to: Console, made: Plan) -> None:
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
            f", the gap is between {free.lower:.3f} and {free.upper:.3f}",
        )
    )
    if made.cases:
        to.print(cases_table(made))
    for seen in made.cases:
        if not seen.is_decidable:
            to.print(Text(f"{seen.scenario.short}: {seen.missing}", style="yellow"))
    if made.affordable is not None:
        to.print(_budget_table(made.affordable))
    if made.score_savings is not None:
        _show_score_savings(to, made.score_savings)
    for other in made.others:
        why = f"cannot run: {other.missing[0].partition(':')[0]}" if other.missing else "can run"
        to.print(Text(f"{other.audit}: about {_cost(other.price.cost)} on average; {why}"))
    for note in made.notes:
        to.print(Text(f"note: {note}", style="yellow"))


def cases_table(made: Plan) -> Table:
    """Show what the adaptive audit costs in each case."""
    from equipoise.cli.tables import new_table, number

    timed, tried = made.arrivals_per_day is not None, made.cases[0].trial_runs > 0
    last = "days" if timed else "people"
    table = new_table(
        *("the denied succeed", "expect", "cost: 10%", "50%", "90%"),
        *(("verdict", last) if tried else ("labels", last)),
    )
    for column in table.columns[1:]:
        column.no_wrap = True
    for seen in made.cases:
        days = made.days(seen)
        people = number(seen.people) if days is None else f"{days:,.0f}"
        counts = (
            number(sum(seen.labels.values())) if seen.decides is None else f"{seen.decides:.0%}"
        )
        table.add_row(
            seen.scenario.short,
            "either" if " or " in seen.scenario.expect else seen.scenario.expect,
            *(_cost(cost) for cost in seen.cost.values()),
            counts if tried or seen.is_decidable else "–",
            people if seen.is_decidable else "–",
        )
    how = f"{made.cases[0].trial_runs} trial runs a case" if tried else "forecast"
    table.caption = (
        f"adaptive audit, {how}, with your past as it is. as often: as the approved of their "
        "group; below, above: the gap beside the grey zone, where audits are most expensive. 10%, "
        f"50%, 90%: so many audits cost at most that. {'' if tried else 'labels and '}"
        f"{'days' if timed else 'people who must arrive'}: the median's."
        + (" verdict: so many runs ended with one." if tried else "")
    )
    table.caption_justify = "left"
    return table


def _cost(value: float | None) -> str:
    from equipoise.cli.tables import number

    return "–" if value is None else number(value)


def _show_score_savings(to: Console, seen: ScoreSavings) -> None:
    from rich.text import Text

    to.print(Text(f"if {seen.scenario}: {seen}; about {seen.people:,.0f} people must arrive"))
    for group, words in seen.rests_on.items():
        to.print(Text(f"  what the score says in {group}: from {words}"))


def _budget_table(bought: Affordable) -> Table:
    from equipoise.cli.tables import new_table, number

    first = f"budget {number(bought.budget)}; the denied succeed"
    table = new_table(first, "verdict", "else the gap is in")
    for case in bought.cases:
        known = "" if case.lower is None else f"[{case.lower:.3f}, {case.upper:.3f}]"
        table.add_row(case.scenario.short, f"{case.decides:.0%}", known)
    buys = (
        "no epsilon that was tried"
        if bought.epsilon is None
        else f"epsilon (the width of the grey zone) = {bought.epsilon:.3g} or wider"
    )
    table.caption = (
        f"verdict: so many audits end with one within the budget; in the 40% case half do at {buys}"
    )
    table.caption_justify = "left"
    return table


def _rates(given: Sequence[str] | None) -> dict[str, float]:
    try:
        return {group: float(rate) for group, rate in pairs("--denied-rate", given)}
    except ValueError:
        raise InvalidInput(f"'--denied-rate' must be GROUP=R, as in B=0.3; got {given}") from None
