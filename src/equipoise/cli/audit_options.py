"""Options of ``equipoise audit``, and how its answers look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import typer

from equipoise.cli.console import print_json
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.ledger import Reply

__all__ = ["LIMITS", "MONEY", "pairs", "show", "show_reply"]

MONEY, LIMITS = "Money, in whole minor units", "Limits"

STATES = {
    "SCORE_ONLY": "nothing to do (looked at, and not drawn to be asked)",
    "RESERVED": "override this denial, and tell how it goes",
    "EXECUTED": "overridden, the outcome is awaited",
    "REVEALED": "the outcome is noted",
    "CORRECTED": "the outcome is corrected, the old one stays on record",
    "OVERDUE": "the outcome is overdue",
    "WITHDRAWN": "withdrawn, the outcome stays unknown",
    "WRITTEN_OFF": "written off, the outcome stays unknown",
}
WHY_NOTHING = {
    "approved": "approved, and this audit needs no more of them",
    "budget": "the budget is spent or held",
    "concluded": "the audit is concluded",
    "decided": "the audit has its verdict",
    "in_flight": "as many overrides as allowed are out",
    "lottery": "not drawn in the lottery",
    "not_wanted": "another group is wanted now",
    "paused": "the audit is paused",
}


class Answer(Protocol):
    """What can be shown."""

    def to_dict(self) -> dict[str, object]: ...


def show(value: Answer, json: bool) -> None:
    """Print a value, or its JSON."""
    if json:
        print_json(value.to_dict())
    else:
        typer.echo(str(value))


def show_reply(reply: Reply, json: bool) -> None:
    """Print what came of one command."""
    if json:
        print_json(reply.to_dict())
        return
    again = ", as before" if reply.repeated else ""
    if reply.state == "PROPOSED":
        typer.echo(f"proposed as {reply.number}{again}; somebody else must approve it")
        return
    if not reply.person:
        why = f": {reply.why}" if reply.state == "UNLINKED" else ""
        typer.echo(f"{reply.state.lower()}{again}{why}")
        return
    typer.echo(f"{reply.person}: {_said(reply)}{again}")


def _said(reply: Reply) -> str:
    """Say what to do now, or what is known."""
    if reply.state == "SKIPPED":
        return f"nothing to do ({WHY_NOTHING.get(reply.why, reply.why)})"
    if reply.state == "RESERVED" and reply.hold == 0:  # approved, or denied where nothing is paid
        return "tell how it goes; override the denial, if there was one"
    return STATES.get(reply.state, reply.state.lower())


def pairs(option: str, texts: Sequence[str] | None) -> list[tuple[str, str]]:
    """Split options that look like NAME=VALUE."""
    pairs = []
    for text in texts or ():
        name, mark, value = text.rpartition("=") if option != "--option" else text.partition("=")
        if not mark or not name or not value:
            form = "WHAT=COLUMN, as in person=id" if option == "--column" else "NAME=VALUE"
            raise InvalidInput(f"{option!r} must look like {form}; got {text!r}")
        pairs.append((name, value))
    return pairs
