"""``equipoise audit``: run an audit over months, in a ledger that survives everything."""

from __future__ import annotations

import json as json_module
from typing import TYPE_CHECKING, Any

import typer

from equipoise.audits.catalogue import AUDITS
from equipoise.cli import audit_people as people
from equipoise.cli import audit_proof as proof
from equipoise.cli.audit_people import KNOWN, WHY, replied
from equipoise.cli.console import Answer, somebody_answers, stop_on
from equipoise.cli.options import (
    ACTOR,
    LEDGER,
    NAME,
    acting_audit,
    command,
    counts,
    failing,
    numbers,
    option,
    pairs,
    question_asked,
)
from equipoise.cli.past_options import Read, past_decisions
from equipoise.errors import InvalidInput
from equipoise.question import Costs, Question, Verdict

if TYPE_CHECKING:
    from equipoise.history import History
    from equipoise.ledger import LiveAudit

LIVE = [name for name in AUDITS if name != "exp"]  # Exp-Audit needs features, which are not kept
MONEY, LIMITS = "Money, in whole minor units", "Limits"
Whole = int | None
Texts = list[str] | None
PROPOSAL = typer.Argument(..., help="Its number, as status shows it.")
GROUPS = option(None, "The same in one group.", LIMITS, "GROUP=N")


@command(read=past_decisions, question=question_asked)
def new(
    *,
    name: str = NAME,
    read: Read,
    question: Question,
    audit: str = option("adaptive", f"{', '.join(LIVE)}."),
    feature_cost: int = option(0, "Price of each request.", MONEY),
    label_cost: int = option(1, "Price of an override that ends badly.", MONEY),
    budget: Whole = option(None, "Never spend more than this.", MONEY),
    currency: str = option("", "As in EUR.", MONEY, shown=False),
    decimals: int = option(0, "2 if the minor unit is a cent.", MONEY),
    max_in_flight: Whole = option(None, "Overrides without outcome at once.", LIMITS),
    max_in_flight_of: Texts = GROUPS,
    lottery: float = option(1.0, "Chance that a person is considered.", LIMITS),
    overdue_after: float | None = option(None, "Days until an outcome is overdue.", LIMITS),
    denied_only: bool = option(False, "Approved people will not be reported: no drift test."),
    approval: Texts = option(
        None,
        "A second person must approve it: budget, concluded, corrected, erased, limits, "
        "random_accepts, resumed, upgraded; give it again.",
        metavar="KIND",
    ),
    option: Texts = option(
        None, "Option of the audit, as in --audit rs --option tau=500.", metavar="NAME=JSON"
    ),
    assist: bool = option(False, "Look at scores before asking: 'ask' takes --score and --price."),
    max_price: Whole = option(None, "With --assist: the most that one label may cost.", MONEY),
    people_per_label: float | None = option(
        None, "With --assist: at most so many people are looked at per label [8]."
    ),
    ledger: str = LEDGER,
    actor: str | None = ACTOR,
) -> Answer:
    """Begin an audit on past decisions.

    Example: equipoise audit new loans past.csv -g race -d approved -o repaid --budget 500000
    """
    from equipoise.ledger import LiveAudit

    history = read()
    options = {n: _json_value(v) for n, v in pairs("--option", option).items()}
    looking = {"max_price": max_price, "people_per_label": people_per_label}
    live = LiveAudit.create(
        ledger,
        name,
        history,
        question,
        Costs(feature_cost, label_cost),
        audit=audit,
        budget=budget,
        max_in_flight=max_in_flight,
        max_in_flight_groups=counts("--max-in-flight-of", max_in_flight_of),
        lottery=lottery,
        overdue_after=overdue_after,
        stream="denied" if denied_only else "everybody",
        currency=currency,
        decimals=decimals,
        approvals=approval or (),
        options=_with_assist(options, assist, looking),
        actor=actor,
    )
    note = _say_if_free(history, question) if live.finding is None else ""
    return Answer(live.status(), f"{live.status()}{note}")


def _say_if_free(history: History, question: Question) -> str:
    """Say so where the past data decide at the whole error probability, of which audits keep most.

    Whoever would take this answer, and else the audit's, errs with up to twice the probability.
    """
    from equipoise.free_check import check

    verdict = check(history, question).verdict
    if verdict is Verdict.INCONCLUSIVE:
        return ""
    return (
        f"\nnote: equipoise check says {verdict} of these past decisions, for free. This audit "
        "keeps its error probability for labels to come and goes on. Choose one of the two "
        "now: to take whichever answers first may err twice as often"
    )


def _with_assist(options: dict[str, Any], assist: bool, looking: dict[str, Any]) -> dict[str, Any]:
    from equipoise.assist import Assist

    said = {name: value for name, value in looking.items() if value is not None}
    if said and not assist:
        raise InvalidInput(
            "'--max-price' and '--people-per-label' are for audits that look before they ask: add "
            "--assist"
        )
    if assist and "assist" in options:
        raise InvalidInput("'--option assist=...' says all about it: leave out --assist")
    return options | ({"assist": Assist(**said)} if assist else {})


def _json_value(text: str) -> Any:
    try:
        return json_module.loads(text)
    except ValueError:
        return text


@command(live=acting_audit, fail_on=failing)
def conclude(
    live: LiveAudit,
    fail_on: frozenset[Verdict],
    why: str = option("nobody else is to come", "Reason."),
    yes: bool = option(False, "Do not ask for confirmation.", flags="--yes -y"),
) -> Answer:
    """Say that nobody else will come, and give the verdict that the evidence supports."""
    if live.finding is None and not yes:
        if not somebody_answers():
            raise InvalidInput(
                "'conclude' ends the audit for good: nobody will be asked any more. Add --yes to "
                "say that this is meant"
            )
        typer.echo(f"{live.so_far().verdict} is what the evidence supports so far.")
        if pending := live.status().pending:
            later = "outcomes are still to come; the verdict will not wait for them."
            typer.echo(f"{pending:,} {later}")
        typer.echo("To conclude ends the audit for good: nobody will be asked any more.")
        if not typer.confirm("Conclude?"):
            typer.echo("nothing was done")
            raise typer.Exit(1)
    found = live.conclude(why)
    return Answer(live.status(), end=stop_on(fail_on, *([found.verdict] if found else [])))


@command(live=acting_audit)
def budget(
    live: LiveAudit,
    why: str = WHY,
    amount: int | None = typer.Argument(None, help="The new cap in minor units; none if left out."),
) -> Answer:
    """Change the cap: up freely, down to what is spent or held."""
    return replied(live.set_budget(amount, why))


@command(live=acting_audit)
def limits(
    live: LiveAudit,
    why: str = WHY,
    max_in_flight: Whole = option(
        None, "Overrides without outcome at once; any if left out.", LIMITS
    ),
    max_in_flight_of: Texts = GROUPS,
) -> Answer:
    """Change how many requests may be without an outcome at once."""
    groups = counts("--max-in-flight-of", max_in_flight_of)
    return replied(live.set_limits(max_in_flight, groups, why=why))


OF = "GROUP=GOOD,BAD,UNKNOWN"


@command(live=acting_audit)
def random_accepts(
    live: LiveAudit,
    why: str = WHY,
    of: list[str] = option(
        ..., "Everybody of a group whom the programme accepted since its first day.", metavar=OF
    ),
    corrected: Texts = option(None, "Outcomes changed since the last file.", metavar="GROUP=N"),
) -> Answer:
    """Take in a later file of the test programme that the past data told of."""
    given = {group: numbers("--of", own, OF) for group, own in pairs("--of", of).items()}
    return replied(live.set_random_accepts(given, counts("--corrected", corrected), why=why))


@command(live=acting_audit)
def pause(live: LiveAudit, why: str = WHY) -> Answer:
    """Ask nobody for now; outcomes are taken all the same."""
    return replied(live.pause(why))


@command(live=acting_audit)
def resume(live: LiveAudit, why: str = WHY) -> Answer:
    """Ask again."""
    return replied(live.resume(why))


@command(live=acting_audit)
def approve(live: LiveAudit, proposal: int = PROPOSAL) -> Answer:
    """Carry out what somebody else proposed."""
    return replied(live.approve(proposal))


@command(live=acting_audit)
def reject(live: LiveAudit, proposal: int = PROPOSAL, why: str = WHY) -> Answer:
    """Drop a proposal."""
    return replied(live.reject(proposal, why))


@command(live=acting_audit)
def erase(live: LiveAudit, person: str = KNOWN) -> Answer:
    """Forget a person: pseudonym and key leave the tables, chain and money stay provable."""
    return replied(live.erase(person))


@command(live=acting_audit)
def scrub(live: LiveAudit) -> Answer:
    """Rewrite the ledger's files without those who were erased; do it once after many."""
    return replied(live.scrub())


@command(live=acting_audit)
def upgrade(live: LiveAudit, why: str = WHY) -> Answer:
    """Go on under this program's edition of the statistics; what is recorded stands."""
    return replied(live.upgrade(why))


app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Run an audit over months, in a ledger."
)
for one in (
    *(new, people.ask, people.tell, people.executed, people.withdraw, people.overdue),
    *(people.write_off, people.correct, conclude, budget, limits, random_accepts, pause, resume),
    *(approve, reject, erase, scrub, upgrade, proof.status, proof.list_all, proof.report),
    *(proof.log, proof.checkpoint, proof.export, proof.verify),
):
    app.command("list" if one is proof.list_all else None)(one)
