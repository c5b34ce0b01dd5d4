"""``equipoise audit``: run an audit over months, in a ledger that survives everything."""

from __future__ import annotations

import json as json_module
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from equipoise.audits.catalogue import AUDITS
from equipoise.cli import audit_people as people
from equipoise.cli.audit_people import KNOWN, WHY, replied, with_verdict
from equipoise.cli.console import Answer, Table, somebody_answers, stop_on, working
from equipoise.cli.options import (
    ACTOR,
    JSON,
    LEDGER,
    NAME,
    acting_audit,
    cents,
    command,
    counts,
    failing,
    live_audit,
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
    from equipoise.ledger.commands import Command
    from equipoise.ledger.proof import Checkpoint
    from equipoise.ledger.verify import Proof

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
    feature_cost: int = option(0, "Price of each request.", MONEY, "<int>", parser=cents),
    label_cost: int = option(
        1, "Price of an override that ends badly.", MONEY, "<int>", parser=cents
    ),
    budget: Whole = option(None, "Never spend more than this.", MONEY, "<int>", parser=cents),
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
    max_price: Whole = option(
        None, "With --assist: the most that one label may cost.", MONEY, "<int>", parser=cents
    ),
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
    from equipoise.audits.scores import Assist

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
    yes: bool = option(
        False, "Do not ask, as is done while there is no verdict.", flags="--yes -y"
    ),
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
            typer.echo(f"{pending:,} outcomes are to come; the verdict will not wait for them.")
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
    amount: int | None = typer.Argument(
        None, help="The new cap in minor units; none if left out.", parser=cents
    ),
) -> Answer:
    """Change the cap: up freely, down to what is spent or held."""
    return _changed(live, "budget", why, budget=amount)


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
    return _changed(live, "limits", why, max_in_flight=max_in_flight, max_in_flight_groups=groups)


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
    changed = counts("--corrected", corrected)
    return _changed(live, "random_accepts", why, random_accepts=given, corrected=changed)


def _changed(live: LiveAudit, kind: str, why: str, **own: Any) -> Answer:
    """Change the audit; say what was taken in, and what became of the verdict."""
    from equipoise.ledger.commands import COMMANDS
    from equipoise.report.event_log import describe_event

    make: Callable[..., Command] = COMMANDS[f"set_{kind}"]
    before, reply = live.finding, live.do(make(**own, why=why))
    answer = replied(reply)
    if reply.state == kind.upper() and not reply.repeated:
        taken = "; ".join(describe_event(kind, own, live.settings))
        answer = Answer(reply, f"{kind.replace('_', ' ')}: {taken}")
    return with_verdict(live, answer, before)


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
    before = live.finding
    return with_verdict(live, replied(live.approve(proposal)), before)


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


# -- where it stands, and the proof of it ----------------------------------------------------------


@command(live=live_audit, fail_on=failing)
def status(live: LiveAudit, fail_on: frozenset[Verdict]) -> Answer:
    """Show people, money, evidence, drift and the expected cost as of now."""
    from equipoise.report.content import forecast_similar_audit
    from equipoise.report.sentences import describe_expected_cost

    now = live.status()
    forecast = forecast_similar_audit(live, now)
    return Answer(
        {**now.to_dict(), "forecast": forecast},
        str(now) + (f"\n  forecast    {describe_expected_cost(forecast, now)}" if forecast else ""),
        stop_on(fail_on, *([now.finding.verdict] if now.finding else [])),
    )


@command(live=live_audit)
def log(live: LiveAudit, last: int = option(20, "How many events.")) -> Answer:
    """Show what happened, and who did it."""
    from equipoise.report.event_log import log_rows

    events = list(live.events(after=max(0, live.checkpoint().seq - last)))
    return Answer(events, [Table(log_rows(events, live.settings))])


@command()
def list_all(ledger: str = LEDGER) -> Answer:
    """Show every audit of the ledger."""
    from equipoise.ledger import list_audits

    rows = [
        {"name": row.name, "events": row.seq, "time": row.time, "id": row.uid}
        for row in list_audits(ledger)
    ]
    return Answer(rows, [Table(rows)])


@command(live=live_audit)
def report(
    live: LiveAudit,
    to: list[Path] | None = option(None, "A file that ends in .html or .json; give it again."),
    json: bool = JSON,
) -> Answer:
    """Write the report: one HTML page for people, JSON for programs."""
    from equipoise.ledger.inputs import file_name
    from equipoise.report import Report, write_report

    paths = to or ([] if json else [Path(file_name(live.row.name, ".html"))])
    for path in paths:
        live.refuse_overwriting(path)
    with working("Replaying the audit …"):
        made = Report.of(live)
    return Answer(made, "\n".join([f"wrote {write_report(made, path)}" for path in paths]))


@command(live=live_audit)
def export(
    live: LiveAudit,
    to: Path | None = option(None, "The file; NAME.jsonl if left out."),
    people: Path | None = option(
        None, "Also write the key table: pseudonyms, for those who may see them."
    ),
    verifier: bool = option(False, "Put verify.py, which needs nothing but Python, beside it."),
) -> Answer:
    """Write every event to a file that anybody can check; keep the hash that is shown."""
    from equipoise.ledger.inputs import file_name
    from equipoise.ledger.proof import require_no_other_verifier, write_verifier

    path = to or Path(file_name(live.row.name, ".jsonl"))
    if verifier:  # before anything is written
        require_no_other_verifier(path.parent)
    made = live.export(path, people=people)
    if verifier:
        write_verifier(path.parent)
    words = f"wrote {path}: {made.seq:,} events\nhead {made.hash}"
    return Answer({"file": str(path), **made.to_dict()}, words)


@command(live=live_audit)
def checkpoint(
    live: LiveAudit,
    to: Path | None = option(None, "A file, kept elsewhere, to add it to."),
) -> Checkpoint:
    """Show the end of the chain, to keep outside: in a file, a mail, a time-stamp."""
    made = live.checkpoint()
    if to is not None:
        live.refuse_overwriting(to)
        made.append_to(to)
    return made


@command()
def verify(
    name: str | None = typer.Argument(None, metavar="NAME", help="The audit.", show_default=False),
    file: Path | None = option(None, "Check an export instead of the ledger.", flags="--file -f"),
    head: str | None = option(None, "The export's last hash, as handed out."),
    checkpoint: list[str] | None = option(
        None, "An earlier end of the chain, or a file of them.", metavar="SEQ:HASH|FILE"
    ),
    people: Path | None = option(None, "With --file: the key table, so that nobody counts twice."),
    seed: str | None = option(None, "From the report, to check the lottery."),
    ledger: str = LEDGER,
) -> Proof:
    """Check chain, money and people, and repeat the statistics from the first event on."""
    with working("Replaying the audit …"):
        if file is not None:
            from equipoise.ledger.proof import read_keys, verify_export

            keys = None if people is None else read_keys(people)
            points = _checkpoints(checkpoint, None)
            return verify_export(file, head=head, checkpoints=points, people=keys, seed=seed)
        if name is None:
            raise InvalidInput("'NAME' or '--file' is needed")
        live = live_audit(name, ledger)
        return live.verify(_checkpoints(checkpoint, live.row.uid))


def _checkpoints(texts: list[str] | None, audit: str | None) -> list[tuple[int, str]]:
    found = []
    for text in texts or []:
        number, mark, digest = text.partition(":")
        if number.isdigit() and mark and digest:
            found.append((int(number), digest))
        elif Path(text).is_file():
            from equipoise.ledger.proof import read_checkpoints

            found += read_checkpoints(text, audit)
        else:
            raise InvalidInput(f"'--checkpoint' must be 120:HASH or name a file; got {text!r}")
    return found


app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Run an audit over months, in a ledger."
)
for one in (
    *(new, people.ask, people.tell, people.executed, people.withdraw, people.overdue),
    *(people.write_off, people.correct, conclude, budget, limits, random_accepts, pause, resume),
    *(approve, reject, erase, scrub, upgrade, status, list_all, report),
    *(log, checkpoint, export, verify),
):
    app.command("list" if one is list_all else None)(one)
