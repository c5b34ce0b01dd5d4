"""``equipoise audit budget, pause, approve, …``: what is decided about an audit, and by whom.

Every event names who did it: here, the system's user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli.audit_options import pairs, show, show_reply
from equipoise.cli.audit_people import Known
from equipoise.cli.console import print_json
from equipoise.cli.option_groups import acting_audit, live_audit, with_options
from equipoise.cli.options import Json

if TYPE_CHECKING:
    from equipoise.ledger import LiveAudit

__all__ = [
    *("approve", "budget", "conclude", "erase", "limits", "log", "pause", "reject", "resume"),
    *("scrub", "upgrade"),
]

Why = Annotated[str, typer.Option(help="Reason, kept in the ledger.", show_default=False)]
Proposal = Annotated[int, typer.Argument(help="Its number, as status shows it.")]


@with_options(live=acting_audit)
def conclude(
    live: LiveAudit,
    why: Annotated[str, typer.Option(help="Reason.")] = "nobody else is to come",
    json: Json = False,
) -> None:
    """Say that nobody else will come, and give the verdict that the evidence supports."""
    live.conclude(why)
    show(live.status(), json)


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
    groups = {g: int(n) for g, n in pairs("--max-in-flight-of", max_in_flight_of)}
    show_reply(live.set_limits(max_in_flight, groups, why=why), json)


@with_options(live=acting_audit)
def pause(live: LiveAudit, why: Why, json: Json = False) -> None:
    """Ask nobody for now; outcomes are taken all the same."""
    show_reply(live.pause(why), json)


@with_options(live=acting_audit)
def resume(live: LiveAudit, why: Why, json: Json = False) -> None:
    """Ask again."""
    show_reply(live.resume(why), json)


@with_options(live=acting_audit)
def approve(live: LiveAudit, proposal: Proposal, json: Json = False) -> None:
    """Carry out what somebody else proposed."""
    show_reply(live.approve(proposal), json)


@with_options(live=acting_audit)
def reject(live: LiveAudit, proposal: Proposal, why: Why, json: Json = False) -> None:
    """Drop a proposal."""
    show_reply(live.reject(proposal, why), json)


@with_options(live=acting_audit)
def erase(live: LiveAudit, person: Known, json: Json = False) -> None:
    """Forget a person: pseudonym and key leave the tables, chain and money stay provable."""
    show_reply(live.erase(person), json)


@with_options(live=acting_audit)
def scrub(live: LiveAudit, json: Json = False) -> None:
    """Rewrite the ledger's files without those who were erased; do it once after many."""
    show_reply(live.scrub(), json)


@with_options(live=acting_audit)
def upgrade(live: LiveAudit, why: Why, json: Json = False) -> None:
    """Go on under this program's edition of the statistics; what is recorded stands."""
    show_reply(live.upgrade(why), json)


@with_options(live=live_audit)
def log(
    live: LiveAudit,
    last: Annotated[int, typer.Option(help="How many events.")] = 20,
    json: Json = False,
) -> None:
    """Show what happened, and who did it."""
    for event in live.events(after=max(0, live.checkpoint().seq - last)):
        if json:
            print_json(event)
            continue
        data = event["data"]
        who = f" person {data['person']}" if "person" in data else ""
        why = data.get("why")
        words = f"{event['type']}{who}" + (f": {why}" if why else "")
        typer.echo(f"{event['seq']:>8,}  {event['time'][:19]}  {event['actor']}  {words}")
