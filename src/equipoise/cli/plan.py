"""``equipoise plan``: what an audit would cost on these past decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from equipoise.cli.console import Answer, Part, Table, bar, stop_on
from equipoise.cli.options import command, failing, option, pairs, prices, question_asked
from equipoise.cli.past_options import Read, past_decisions
from equipoise.display import Row, format_value
from equipoise.errors import InvalidInput
from equipoise.question import Costs, Question, Verdict

if TYPE_CHECKING:
    from equipoise.planning import Plan

app = typer.Typer(add_completion=False)

DENIED_RATE = option(
    None,
    "What you know: the share of this group's denied who would have succeeded.",
    metavar="GROUP=R",
)


@app.command()
@command(read=past_decisions, question=question_asked, costs=prices, fail_on=failing)
def plan(
    read: Read,
    question: Question,
    costs: Costs,
    fail_on: frozenset[Verdict],
    denied_rate: list[str] | None = DENIED_RATE,
    trial_runs: int = option(
        0,
        "Run the audit itself so many times in every case, for sharper figures; how long that "
        "takes is said first.",
    ),
) -> Answer:
    """Say what an audit would cost, in seconds, and which one to run.

    Example: equipoise plan loans.csv --group race --decision approved --outcome repaid
    """
    history = read()
    from equipoise.planning import plan as make_plan
    from equipoise.planning.trial_runs import estimate_trial_time

    rates = denied_rates(denied_rate)
    if trial_runs > 0:
        typer.echo(estimate_trial_time(history, question, costs, trial_runs, rates), err=True)
    with bar("trial runs") as progress:
        made = make_plan(
            history,
            question,
            costs,
            denied_rate=rates,
            trial_runs=trial_runs,
            n_jobs=-1,
            progress=progress,
        )
    return Answer(made, told(made), stop_on(fail_on, made.free.verdict))


def told(made: Plan) -> list[Part]:
    """Return the advice, what the past data say, what the audit costs case by case, the rest."""
    free = made.free
    parts: list[Part] = [
        f"recommended: {made.advice}\n",
        f"{made.question}\ncosts: {made.costs}",
        f"for free: {free.verdict}, the gap is between {free.lower:.3f} and {free.upper:.3f}",
    ]
    if made.cases:
        parts.append(cases_told(made))
    parts += [f"{c.scenario.short}: {c.missing}" for c in made.cases if not c.is_decidable]
    for other in made.others:
        why = f"cannot run: {other.missing[0].partition(':')[0]}" if other.missing else "can run"
        parts.append(f"{other.audit}: about {format_value(other.price.cost)} on average; {why}")
    return parts + [f"note: {note}" for note in made.notes]


EITHER = " either: the gap is in the grey zone, where both answers are right."


def cases_told(made: Plan) -> Table:
    """Return what the adaptive audit costs in each case."""
    tried = made.cases[0].trial_runs > 0
    rows: list[Row] = []
    for seen in made.cases:
        low, middle, high = seen.cost.values()
        row: dict[str, object] = {
            "the denied succeed": seen.scenario.short,
            "expect": "either" if " or " in seen.scenario.expect else seen.scenario.expect,
            "cost: 10%": low,
            "50%": middle,
            "90%": high,
        }
        if tried:
            row["verdict"] = None if seen.decides is None else f"{seen.decides:.0%}"
        else:
            row["labels"] = sum(seen.labels.values()) if seen.is_decidable else None
        row["people"] = seen.people if seen.is_decidable else None
        rows.append(row)
    how = f"{made.cases[0].trial_runs} trial runs a case" if tried else "forecast"
    key = (
        "as often: as the approved of their group; below, above: the gap beside the grey zone, "
        "where audits are most expensive. "
    )
    caption = (
        f"adaptive audit, {how}, with your past as it is. {key if len(rows) > 1 else ''}"
        f"10%, 50%, 90%: so many audits cost at most that. {'' if tried else 'labels and '}"
        "people who must arrive: the median's."
        + (" verdict: so many runs ended with one." if tried else "")
        + (EITHER if any(row["expect"] == "either" for row in rows) else "")
    )
    return Table(rows, caption, wrap=False)


def denied_rates(given: Sequence[str] | None) -> dict[str, float]:
    """Return what ``--denied-rate`` says, by group."""
    try:
        return {group: float(rate) for group, rate in pairs("--denied-rate", given).items()}
    except ValueError:
        raise InvalidInput(f"'--denied-rate' must be GROUP=R, as in B=0.3; got {given}") from None
