"""``equipoise plan``: what an audit would cost on these past decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from equipoise.cli.console import Answer, Part, Table, bar, stop_on
from equipoise.cli.options import command, failing, option, pairs, prices, question_asked
from equipoise.cli.past_options import Read, past_decisions
from equipoise.display import Row, written
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
    budget: float | None = option(None, "Also say what this much money buys."),
    arrivals: float | None = option(None, "People who arrive per day, to give calendar times."),
    delay: float = option(0.0, "Days until an outcome is known."),
    trial_runs: int | None = option(
        None,
        "Run the audit itself so many times in every case, for sharper figures; how long that "
        "takes is said first.",
    ),
    score: str | None = option(
        None,
        "Also say whether this score helps an audit that looks before it asks.",
        metavar="COLUMN",
    ),
    people_per_label: float = option(
        8.0, "With --score: at most so many people are looked at per label."
    ),
) -> Answer:
    """Say what an audit would cost, in seconds, and which one to run.

    Example: equipoise plan loans.csv --group race --decision approved --outcome repaid
    """
    history = read(score=score)
    from equipoise.assist import Assist
    from equipoise.planning import plan as make_plan
    from equipoise.planning.trials import say_how_long

    rates = denied_rates(denied_rate)
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
    return Answer(made, told(made), stop_on(fail_on, made.free.verdict))


def told(made: Plan) -> list[Part]:
    """Return the advice, what the past data say, what the audit costs case by case, the rest."""
    free, savings = made.free, made.score_savings
    parts: list[Part] = [
        f"recommended: {made.advice}\n",
        f"{made.question}\ncosts: {made.costs}",
        f"for free: {free.verdict}, the gap is between {free.lower:.3f} and {free.upper:.3f}",
    ]
    if made.cases:
        parts.append(cases_told(made))
    parts += [f"{c.scenario.short}: {c.missing}" for c in made.cases if not c.is_decidable]
    if made.budget is not None and made.cases:
        parts.append(_budget_told(made))
    if savings is not None:
        people = f"about {savings.people:,.0f} people must arrive"
        parts.append(f"if {savings.scenario}: {savings}; {people}")
        parts += [f"  what the score says in {g}: from {w}" for g, w in savings.rests_on.items()]
    for other in made.others:
        why = f"cannot run: {other.missing[0].partition(':')[0]}" if other.missing else "can run"
        parts.append(f"{other.audit}: about {written(other.price.cost)} on average; {why}")
    return parts + [f"note: {note}" for note in made.notes]


EITHER = " either: the gap is in the grey zone, where both answers are right."


def cases_told(made: Plan) -> Table:
    """Return what the adaptive audit costs in each case."""
    timed, tried = made.arrivals_per_day is not None, made.cases[0].trial_runs > 0
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
        waits = made.days(seen) if timed else seen.people
        row["days" if timed else "people"] = waits if seen.is_decidable else None
        rows.append(row)
    how = f"{made.cases[0].trial_runs} trial runs a case" if tried else "forecast"
    caption = (
        f"adaptive audit, {how}, with your past as it is. as often: as the approved of their "
        "group; below, above: the gap beside the grey zone, where audits are most expensive. 10%, "
        f"50%, 90%: so many audits cost at most that. {'' if tried else 'labels and '}"
        f"{'days' if timed else 'people who must arrive'}: the median's."
        + (" verdict: so many runs ended with one." if tried else "")
        + (EITHER if any(row["expect"] == "either" for row in rows) else "")
    )
    return Table(rows, caption, wrap=False)


def _budget_told(made: Plan) -> Table:
    rows = [
        {
            f"budget {written(made.budget)}; the denied succeed": seen.scenario.short,
            "verdict": f"{seen.within_budget:.0%}",
        }
        for seen in made.cases
    ]
    buys = "no epsilon that was tried"
    if made.affordable_epsilon is not None:
        buys = f"epsilon (the width of the grey zone) = {made.affordable_epsilon:.3g} or wider"
    caption = (
        f"verdict: so many audits end with one within the budget; in the 40% case half do at {buys}"
    )
    return Table(rows, caption)


def denied_rates(given: Sequence[str] | None) -> dict[str, float]:
    """Return what ``--denied-rate`` says, by group."""
    try:
        return {group: float(rate) for group, rate in pairs("--denied-rate", given).items()}
    except ValueError:
        raise InvalidInput(f"'--denied-rate' must be GROUP=R, as in B=0.3; got {given}") from None
