"""``equipoise audit``: run an audit over months, in a ledger that survives everything."""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.audits.catalogue import AUDITS
from equipoise.cli import audit_manage as manage
from equipoise.cli import audit_people as people
from equipoise.cli import audit_proof as proof
from equipoise.cli.audit_options import LIMITS, MONEY, pairs, show
from equipoise.cli.option_groups import (
    LEDGER,
    Actor,
    Ledger,
    Name,
    question_asked,
    with_options,
)
from equipoise.cli.options import Json
from equipoise.cli.past_options import Read, past_decisions
from equipoise.errors import InvalidInput
from equipoise.question import Costs, Question, Verdict

if TYPE_CHECKING:
    from equipoise.history import History

__all__ = ["app"]

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Run an audit over months, in a ledger."
)


@app.command()
@with_options(read=past_decisions, question=question_asked)
def new(
    name: Name,
    read: Read,
    question: Question,
    audit: Annotated[str, typer.Option("--audit", help=f"{', '.join(AUDITS)}.")] = "adaptive",
    feature_cost: Annotated[
        int, typer.Option(help="Price of each request.", rich_help_panel=MONEY)
    ] = 0,
    label_cost: Annotated[
        int, typer.Option(help="Price of an override that ends badly.", rich_help_panel=MONEY)
    ] = 1,
    budget: Annotated[
        int | None, typer.Option(help="Never spend more than this.", rich_help_panel=MONEY)
    ] = None,
    currency: Annotated[str, typer.Option(help="As in EUR.", rich_help_panel=MONEY)] = "",
    decimals: Annotated[
        int, typer.Option(help="2 if the minor unit is a cent.", rich_help_panel=MONEY)
    ] = 0,
    max_in_flight: Annotated[
        int | None, typer.Option(help="Overrides without outcome at once.", rich_help_panel=LIMITS)
    ] = None,
    max_in_flight_of: Annotated[
        list[str] | None,
        typer.Option(metavar="GROUP=N", help="The same in one group.", rich_help_panel=LIMITS),
    ] = None,
    lottery: Annotated[
        float, typer.Option(help="Chance that a person is considered.", rich_help_panel=LIMITS)
    ] = 1.0,
    overdue_after: Annotated[
        float | None, typer.Option(help="Days until an outcome is overdue.", rich_help_panel=LIMITS)
    ] = None,
    denied_only: Annotated[
        bool,
        typer.Option(help="Approved people will not be reported: no drift test."),
    ] = False,
    approval: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="A second person must approve it: budget, concluded, corrected, erased, limits, "
            "resumed; give it again.",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=JSON", help="Option of the audit, as in --audit rs --option tau=500."
        ),
    ] = None,
    assist: Annotated[
        bool, typer.Option(help="Look at scores before asking: 'ask' takes --score and --price.")
    ] = False,
    max_price: Annotated[
        int | None,
        typer.Option(
            help="With --assist: the most that one label may cost.", rich_help_panel=MONEY
        ),
    ] = None,
    people_per_label: Annotated[
        float | None,
        typer.Option(help="With --assist: at most so many people are looked at per label [8]."),
    ] = None,
    ledger: Ledger = LEDGER,
    actor: Actor = None,
    json: Json = False,
) -> None:
    """Begin an audit on past decisions.

    Example: equipoise audit new loans past.csv -g race -d approved -o repaid --budget 500000
    """
    from equipoise.ledger import LiveAudit

    history = read()
    live = LiveAudit.create(
        ledger,
        name,
        history,
        question,
        Costs(feature_cost, label_cost),
        audit=audit,
        budget=budget,
        max_in_flight=max_in_flight,
        max_in_flight_groups={g: int(n) for g, n in pairs("--max-in-flight-of", max_in_flight_of)},
        lottery=lottery,
        overdue_after=overdue_after,
        stream="denied" if denied_only else "everybody",
        currency=currency,
        decimals=decimals,
        approvals=approval or (),
        options=_with_assist(
            {n: _json_value(v) for n, v in pairs("--option", option)},
            assist,
            {"--max-price": max_price, "--people-per-label": people_per_label},
        ),
        actor=actor,
    )
    show(live.status(), json)
    if live.finding is None and not json:
        _say_if_free(history, question)


app.command()(people.ask)
app.command()(people.tell)
app.command()(people.executed)
app.command()(people.withdraw)
app.command()(people.overdue)
app.command("write-off")(people.write_off)
app.command()(people.correct)


app.command()(manage.conclude)
app.command()(manage.pause)
app.command()(manage.resume)
app.command()(manage.budget)
app.command()(manage.limits)
app.command()(manage.approve)
app.command()(manage.reject)
app.command()(manage.erase)
app.command()(manage.scrub)
app.command()(manage.upgrade)
app.command()(proof.status)
app.command("list")(proof.list_all)
app.command()(proof.report)
app.command()(manage.log)
app.command()(proof.checkpoint)
app.command()(proof.export)
app.command()(proof.verify)


def _say_if_free(history: History, question: Question) -> None:
    """Say so where the past data decide at the whole error probability, of which audits keep most.

    Whoever would take this answer, and else the audit's, errs with up to twice the probability.
    """
    from equipoise.free_check import check

    if (verdict := check(history, question).verdict) is not Verdict.INCONCLUSIVE:
        typer.echo(
            f"note: equipoise check says {verdict} of these past decisions, for free. This audit "
            "keeps its error probability for labels to come and goes on. Choose one of the two "
            "now: to take whichever answers first may err twice as often"
        )


def _with_assist(
    options: dict[str, Any], assist: bool, given: Mapping[str, float | None]
) -> dict[str, Any]:
    from equipoise.assist import Assist

    said = {flag: value for flag, value in given.items() if value is not None}
    if "assist" in options and (assist or said):
        flag = next(iter(said), "--assist")
        raise InvalidInput(
            f"'--option assist=...' says all about looking before asking: leave out {flag}, or "
            "say it with --assist, --max-price and --people-per-label"
        )
    if said and not assist:
        raise InvalidInput(
            f"{next(iter(said))!r} is for audits that look before they ask: add --assist"
        )
    if not assist:
        return options
    looks = said.get("--people-per-label", Assist.people_per_label)
    return options | {"assist": Assist(looks, max_price=given["--max-price"])}


def _json_value(text: str) -> Any:
    try:
        return json_module.loads(text)
    except ValueError:
        return text
