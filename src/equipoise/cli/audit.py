"""``equipoise audit``: run an audit over months, in a ledger that survives everything."""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.audits.catalogue import AUDITS
from equipoise.cli import audit_people as people
from equipoise.cli import audit_proof as proof
from equipoise.cli.audit_people import Known, Why, show_reply
from equipoise.cli.console import exit_on, show, somebody_answers
from equipoise.cli.options import (
    LEDGER,
    Actor,
    Json,
    Ledger,
    Name,
    acting_audit,
    failing,
    option,
    pairs,
    question_asked,
    with_options,
)
from equipoise.cli.past_options import Read, past_decisions
from equipoise.errors import InvalidInput
from equipoise.question import Costs, Question, Verdict

if TYPE_CHECKING:
    from equipoise.history import History
    from equipoise.ledger import LiveAudit

__all__ = ["app"]

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Run an audit over months, in a ledger."
)


LIVE = [name for name in AUDITS if name != "exp"]  # Exp-Audit needs features, which are not kept
MONEY, LIMITS = "Money, in whole minor units", "Limits"
Proposal = Annotated[int, typer.Argument(help="Its number, as status shows it.")]


@app.command()
@with_options(read=past_decisions, question=question_asked)
def new(
    name: Name,
    read: Read,
    question: Question,
    audit: Annotated[str, option("--audit", what=f"{', '.join(LIVE)}.", default=True)] = "adaptive",
    feature_cost: Annotated[
        int, option(what="Price of each request.", panel=MONEY, default=True)
    ] = 0,
    label_cost: Annotated[
        int, option(what="Price of an override that ends badly.", panel=MONEY, default=True)
    ] = 1,
    budget: Annotated[
        int | None, option(what="Never spend more than this.", panel=MONEY, default=True)
    ] = None,
    currency: Annotated[str, option(what="As in EUR.", panel=MONEY, default=True)] = "",
    decimals: Annotated[
        int, option(what="2 if the minor unit is a cent.", panel=MONEY, default=True)
    ] = 0,
    max_in_flight: Annotated[
        int | None, option(what="Overrides without outcome at once.", panel=LIMITS, default=True)
    ] = None,
    max_in_flight_of: Annotated[
        list[str] | None,
        typer.Option(metavar="GROUP=N", help="The same in one group.", rich_help_panel=LIMITS),
    ] = None,
    lottery: Annotated[
        float, option(what="Chance that a person is considered.", panel=LIMITS, default=True)
    ] = 1.0,
    overdue_after: Annotated[
        float | None, option(what="Days until an outcome is overdue.", panel=LIMITS, default=True)
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
            "random_accepts, resumed, upgraded; give it again.",
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
        max_in_flight_groups=counts_of("--max-in-flight-of", max_in_flight_of),
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


app.command()(people.ask)
app.command()(people.tell)
app.command()(people.executed)
app.command()(people.withdraw)
app.command()(people.overdue)
app.command("write-off")(people.write_off)
app.command()(people.correct)


@app.command()
@with_options(live=acting_audit, fail_on=failing)
def conclude(
    live: LiveAudit,
    fail_on: frozenset[Verdict],
    why: Annotated[str, typer.Option(help="Reason.")] = "nobody else is to come",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    json: Json = False,
) -> None:
    """Say that nobody else will come, and give the verdict that the evidence supports."""
    if live.finding is None and not yes:
        _confirm(live)
    live.conclude(why)
    status = live.status()
    show(status, json)
    if status.finding is not None:
        exit_on(fail_on, status.finding.verdict)


def _confirm(live: LiveAudit) -> None:
    """Ask whether to end an audit that has no verdict yet; refuse where nobody can answer."""
    if not somebody_answers():
        raise InvalidInput(
            "'conclude' ends the audit for good: nobody will be asked any more. Add --yes to say "
            "that this is meant"
        )
    pending = live.status().pending
    typer.echo(f"{live.so_far().verdict} is what the evidence supports so far.")
    if pending:
        typer.echo(f"{pending:,} outcomes are still to come; the verdict will not wait for them.")
    typer.echo("To conclude ends the audit for good: nobody will be asked any more.")
    if not typer.confirm("Conclude?"):
        typer.echo("nothing was done")
        raise typer.Exit(1)


@app.command()
@with_options(live=acting_audit)
def budget(
    live: LiveAudit,
    why: Why,
    amount: Annotated[
        int | None, typer.Argument(help="The new cap in minor units; none if left out.")
    ] = None,
    json: Json = False,
) -> None:
    """Change the cap: up freely, down to what is spent or held."""
    show_reply(live.set_budget(amount, why), json)


@app.command()
@with_options(live=acting_audit)
def limits(
    live: LiveAudit,
    why: Why,
    max_in_flight: Annotated[
        int | None, typer.Option(help="Overrides without outcome at once; any if left out.")
    ] = None,
    max_in_flight_of: Annotated[
        list[str] | None, typer.Option(metavar="GROUP=N", help="The same in one group.")
    ] = None,
    json: Json = False,
) -> None:
    """Change how many requests may be without an outcome at once."""
    groups = counts_of("--max-in-flight-of", max_in_flight_of)
    show_reply(live.set_limits(max_in_flight, groups, why=why), json)


@app.command("random-accepts")
@with_options(live=acting_audit)
def random_accepts(
    live: LiveAudit,
    why: Why,
    counts: Annotated[
        list[str],
        typer.Option(
            "--of",
            metavar="GROUP=GOOD,BAD,UNKNOWN",
            help="Everybody of a group whom the programme accepted since its first day.",
        ),
    ],
    corrected: Annotated[
        list[str] | None,
        typer.Option(metavar="GROUP=N", help="Outcomes changed since the last file."),
    ] = None,
    json: Json = False,
) -> None:
    """Take in a later file of the test programme that the past data told of."""
    given = {group: _numbers("--of", own) for group, own in pairs("--of", counts)}
    changed = counts_of("--corrected", corrected)
    show_reply(live.set_random_accepts(given, changed, why=why), json)


def counts_of(flag: str, texts: list[str] | None) -> dict[str, int]:
    """Return the counts that options like GROUP=N give."""
    return {group: _numbers(flag, own, 1)[0] for group, own in pairs(flag, texts)}


def _numbers(flag: str, text: str, count: int = 3) -> list[int]:
    try:
        found = [int(n) for n in text.split(",")]
    except ValueError:
        found = []
    if len(found) != count:
        form = "GROUP=N" if count == 1 else "GROUP=GOOD,BAD,UNKNOWN"
        raise InvalidInput(f"{flag!r} must look like {form}, in whole numbers; got {text!r}")
    return found


@app.command()
@with_options(live=acting_audit)
def pause(live: LiveAudit, why: Why, json: Json = False) -> None:
    """Ask nobody for now; outcomes are taken all the same."""
    show_reply(live.pause(why), json)


@app.command()
@with_options(live=acting_audit)
def resume(live: LiveAudit, why: Why, json: Json = False) -> None:
    """Ask again."""
    show_reply(live.resume(why), json)


@app.command()
@with_options(live=acting_audit)
def approve(live: LiveAudit, proposal: Proposal, json: Json = False) -> None:
    """Carry out what somebody else proposed."""
    show_reply(live.approve(proposal), json)


@app.command()
@with_options(live=acting_audit)
def reject(live: LiveAudit, proposal: Proposal, why: Why, json: Json = False) -> None:
    """Drop a proposal."""
    show_reply(live.reject(proposal, why), json)


@app.command()
@with_options(live=acting_audit)
def erase(live: LiveAudit, person: Known, json: Json = False) -> None:
    """Forget a person: pseudonym and key leave the tables, chain and money stay provable."""
    show_reply(live.erase(person), json)


@app.command()
@with_options(live=acting_audit)
def scrub(live: LiveAudit, json: Json = False) -> None:
    """Rewrite the ledger's files without those who were erased; do it once after many."""
    show_reply(live.scrub(), json)


@app.command()
@with_options(live=acting_audit)
def upgrade(live: LiveAudit, why: Why, json: Json = False) -> None:
    """Go on under this program's edition of the statistics; what is recorded stands."""
    show_reply(live.upgrade(why), json)


app.command()(proof.status)
app.command("list")(proof.list_all)
app.command()(proof.report)
app.command()(proof.log)
app.command()(proof.checkpoint)
app.command()(proof.export)
app.command()(proof.verify)
