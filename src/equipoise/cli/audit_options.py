"""Options of ``equipoise audit``, and how its answers look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import typer

from equipoise.cli.console import fail, print_json

if TYPE_CHECKING:
    from equipoise.ledger import Reply

__all__ = ["LIMITS", "MONEY", "pairs", "show", "show_reply"]

MONEY, LIMITS = "Money, in whole minor units", "Limits"


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
        typer.echo(f"{reply.state.lower()}{again}")
        return
    why = f" ({reply.why})" if reply.why else ""
    typer.echo(f"{reply.person}: {reply.state}, wanted: {reply.want.lower()}{why}{again}")


def pairs(option: str, texts: Sequence[str] | None) -> list[tuple[str, str]]:
    """Split options that look like NAME=VALUE."""
    pairs = []
    for text in texts or ():
        name, mark, value = text.rpartition("=") if option != "--option" else text.partition("=")
        if not mark or not name or not value:
            fail(f"{option!r} must look like NAME=VALUE; got {text!r}")
        pairs.append((name, value))
    return pairs
