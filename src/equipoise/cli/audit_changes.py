"""``equipoise audit conclude, budget, pause, …``: what changes an audit as a whole."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli import options as shared
from equipoise.cli.audit_people import KnownPerson
from equipoise.cli.console import Output, can_ask, failure_after, show
from equipoise.cli.option_values import (
    parse_cents,
    parse_group_counts,
    parse_pairs,
    parse_verdicts,
    parse_whole_numbers,
)
from equipoise.cli.replies import describe_reply, with_scrub_command, with_verdict
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.ledger import LiveAudit
    from equipoise.ledger.commands import Command

LIMITS_PANEL = "Limits"
RANDOM_ACCEPTS_FORM = "GROUP=GOOD,BAD,UNKNOWN"

ConclusionReason = Annotated[str, typer.Option("--why", help="Reason.")]
Confirmed = Annotated[
    bool,
    typer.Option("--yes", "-y", help="Do not ask for confirmation if there is no verdict yet."),
]
Proposal = Annotated[int, typer.Argument(help="Number of the proposal, as status shows it.")]
GroupLimits = Annotated[
    list[str] | None,
    typer.Option(
        "--max-in-flight-of",
        help="The same limit for one group.",
        metavar="GROUP=N",
        rich_help_panel=LIMITS_PANEL,
    ),
]
NewLimit = Annotated[
    int | None,
    typer.Option(
        "--max-in-flight",
        help="Overrides that may be without an outcome at once. Default: no limit.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
NewCap = Annotated[
    int | None,
    typer.Argument(help="The new budget in minor units (cents).", parser=parse_cents),
]
NoLimit = Annotated[
    bool,
    typer.Option("--no-limit", help="Remove the limit.", rich_help_panel=LIMITS_PANEL),
]
AcceptedCounts = Annotated[
    list[str],
    typer.Option(
        "--of",
        help="Counts of all people of a group whom the programme accepted since its first day.",
        metavar=RANDOM_ACCEPTS_FORM,
    ),
]
CorrectedCounts = Annotated[
    list[str] | None,
    typer.Option("--corrected", help="Outcomes changed since the last file.", metavar="GROUP=N"),
]


def conclude(
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    fail_on: shared.FailOn = "",
    why: ConclusionReason = "nobody else is to come",
    yes: Confirmed = False,
    json: shared.Json = False,
) -> None:
    """End the audit permanently, with the verdict that the evidence supports."""
    live = shared.open_audit(ledger, name, actor)
    failing = parse_verdicts(fail_on)
    # After a verdict nobody is asked anyway, so there is nothing to confirm.
    if live.finding is None and not yes:
        _confirm_conclusion(live)
    finding = live.conclude(why)
    verdicts = [] if finding is None else [finding.verdict]
    text = f"{live.status()}\nNext: equipoise audit report {shlex.quote(name)}"
    show(Output(live.status(), text, failure_after(failing, verdicts)), json)


def _confirm_conclusion(live: LiveAudit) -> None:
    """Ask whether an audit without a verdict shall end; leave the program if not."""
    if not can_ask():  # a script would wait for ever for an answer
        raise InvalidInput(
            "'conclude' ends the audit for good: nobody will be asked any more. Add --yes to "
            "say that this is meant"
        )
    typer.echo(f"{live.so_far().verdict} is what the evidence supports so far.")
    # They may still change what the evidence supports, and the person should know before.
    n_pending = live.status().pending
    if n_pending:
        typer.echo(f"{n_pending:,} outcomes are to come; the verdict will not wait for them.")
    typer.echo("To conclude ends the audit for good: nobody will be asked any more.")
    if not typer.confirm("Conclude?"):
        typer.echo("nothing was done")
        raise typer.Exit(1)


def budget(
    *,
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    why: shared.Reason,
    amount: NewCap = None,
    no_limit: NoLimit = False,
    json: shared.Json = False,
) -> None:
    """Change the budget. It cannot be less than what is spent or held."""
    _require_limit_or_none("AMOUNT", is_given=amount is not None, no_limit=no_limit)
    live = shared.open_audit(ledger, name, actor)
    show(_change(live, "budget", why, {"budget": amount}), json)


def _require_limit_or_none(argument: str, *, is_given: bool, no_limit: bool) -> None:
    """Refuse a command that would remove a limit by mistake, or that says two things."""
    if is_given == no_limit:
        problem = "Both are given" if is_given else "No limit is given"
        raise InvalidInput(f"{problem}. Give {argument}, or --no-limit to remove the limit")


def limits(
    *,
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    why: shared.Reason,
    max_in_flight: NewLimit = None,
    max_in_flight_of: GroupLimits = None,
    no_limit: NoLimit = False,
    json: shared.Json = False,
) -> None:
    """Change how many requests may be without an outcome at once."""
    is_given = max_in_flight is not None or bool(max_in_flight_of)
    _require_limit_or_none("--max-in-flight", is_given=is_given, no_limit=no_limit)
    live = shared.open_audit(ledger, name, actor)
    group_limits = parse_group_counts("--max-in-flight-of", max_in_flight_of)
    values = {"max_in_flight": max_in_flight, "max_in_flight_groups": group_limits}
    show(_change(live, "limits", why, values), json)


def random_accepts(
    *,
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    why: shared.Reason,
    accepted_counts: AcceptedCounts,
    corrected: CorrectedCounts = None,
    json: shared.Json = False,
) -> None:
    """Count a later file of the test programme that is part of the historical data."""
    live = shared.open_audit(ledger, name, actor)
    accepted = {
        group: parse_whole_numbers("--of", text, RANDOM_ACCEPTS_FORM)
        for group, text in parse_pairs("--of", accepted_counts).items()
    }
    values = {
        "random_accepts": accepted,
        "corrected": parse_group_counts("--corrected", corrected),
    }
    show(_change(live, "random_accepts", why, values), json)


def _change(live: LiveAudit, kind: str, why: str, values: dict[str, Any]) -> Output:
    """Change the audit; return what was taken in, and what became of the verdict.

    Parameters
    ----------
    kind
        What is changed: ``budget``, ``limits`` or ``random_accepts``. For ``budget`` the command
        is ``set_budget``, its event ``budget``, and the state of its reply ``BUDGET``.
    values
        The fields of the command, without the reason.
    """
    from equipoise.ledger.commands import COMMANDS
    from equipoise.report.event_log import describe_event

    command_class: Callable[..., Command] = COMMANDS[f"set_{kind}"]
    # A new budget, or new counts, may take the verdict back, and the answer says so.
    finding_before = live.finding
    reply = live.do(command_class(**values, why=why))
    answer = describe_reply(reply)
    # Otherwise nothing has changed yet: it is a proposal, or it was so before.
    if reply.state == kind.upper() and not reply.repeated:
        taken_in = "; ".join(describe_event(kind, values, live.settings))
        answer = Output(reply, f"{kind.replace('_', ' ')}: {taken_in}")
    return with_verdict(live, answer, finding_before)


def pause(
    *,
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    why: shared.Reason,
    json: shared.Json = False,
) -> None:
    """Stop requests for now. Outcomes are still recorded."""
    live = shared.open_audit(ledger, name, actor)
    show(describe_reply(live.pause(why)), json)


def resume(
    *,
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    why: shared.Reason,
    json: shared.Json = False,
) -> None:
    """Continue after a pause."""
    live = shared.open_audit(ledger, name, actor)
    show(describe_reply(live.resume(why)), json)


def approve(
    *,
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    proposal: Proposal,
    json: shared.Json = False,
) -> None:
    """Approve a proposal of another person and carry it out."""
    live = shared.open_audit(ledger, name, actor)
    finding_before = live.finding
    reply = live.approve(proposal)
    answer = with_scrub_command(live, reply, describe_reply(reply))
    show(with_verdict(live, answer, finding_before), json)


def reject(
    *,
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    proposal: Proposal,
    why: shared.Reason,
    json: shared.Json = False,
) -> None:
    """Reject a proposal."""
    live = shared.open_audit(ledger, name, actor)
    show(describe_reply(live.reject(proposal, why)), json)


def erase(
    *,
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    person: KnownPerson,
    json: shared.Json = False,
) -> None:
    """Erase a person. Pseudonym and key leave the tables. The chain can still be verified."""
    live = shared.open_audit(ledger, name, actor)
    reply = live.erase(person)
    show(with_scrub_command(live, reply, describe_reply(reply)), json)


def scrub(
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    json: shared.Json = False,
) -> None:
    """Rewrite the ledger's files without erased people. Run it once after several erasures."""
    live = shared.open_audit(ledger, name, actor)
    show(describe_reply(live.scrub()), json)


def upgrade(
    *,
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    why: shared.Reason,
    json: shared.Json = False,
) -> None:
    """Continue with this program's edition of the statistics. Recorded events stay."""
    live = shared.open_audit(ledger, name, actor)
    show(describe_reply(live.upgrade(why)), json)


COMMANDS: Mapping[str, Callable[..., None]] = {
    "conclude": conclude,
    "budget": budget,
    "limits": limits,
    "random-accepts": random_accepts,
    "pause": pause,
    "resume": resume,
    "approve": approve,
    "reject": reject,
    "erase": erase,
    "scrub": scrub,
    "upgrade": upgrade,
}
"""Name of a command -> its function, in the order of the help."""
