"""Options of ``equipoise audit``, and how its answers look."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from equipoise.cli.console import fail, print_json
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.ledger import LiveAudit, Reply

__all__ = [
    "LEDGER",
    "LIMITS",
    "MONEY",
    "Column",
    "File",
    "Ledger",
    "Name",
    "Person",
    "Results",
    "needed",
    "open_audit",
    "pairs",
    "show",
    "show_reply",
]

MONEY, LIMITS, FILES = "Money, in whole minor units", "Limits", "Many people at once"

Name = Annotated[str, typer.Argument(metavar="NAME", help="The audit.", show_default=False)]
Person = Annotated[
    str | None, typer.Argument(metavar="[PERSON]", help="Pseudonym.", show_default=False)
]
Ledger = Annotated[
    str,
    typer.Option(
        "--ledger",
        "-l",
        envvar="EQUIPOISE_LEDGER",
        metavar="FILE|URL",
        help="A file (SQLite) or postgresql://…",
    ),
]
File = Annotated[
    Path | None,
    typer.Option(
        "--file",
        "-f",
        help="CSV, Parquet or JSON lines; repeating a file is safe.",
        rich_help_panel=FILES,
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="WHAT=COLUMN",
        help="Name of a column in the file, as in person=applicant_id.",
        rich_help_panel=FILES,
    ),
]
Results = Annotated[
    Path | None,
    typer.Option("--results", help="Write a CSV with a row per row.", rich_help_panel=FILES),
]
LEDGER = "equipoise-ledger.db"


class Answer(Protocol):
    """What can be shown."""

    def to_dict(self) -> dict[str, object]: ...


def open_audit(ledger: str, name: str) -> LiveAudit:
    """Return the audit of a ledger."""
    from equipoise.ledger import LiveAudit

    return LiveAudit.open(ledger, name)


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
    why = f" ({reply.why})" if reply.why else ""
    typer.echo(f"{reply.person}: {reply.state}, wanted: {reply.want.lower()}{why}{again}")


def needed(person: str | None) -> str:
    """Return the person, who must be given here."""
    if person is None:
        raise InvalidInput("'PERSON' is needed")
    return person


def pairs(option: str, texts: Sequence[str] | None) -> list[tuple[str, str]]:
    """Split options that look like NAME=VALUE."""
    pairs = []
    for text in texts or ():
        name, mark, value = text.rpartition("=") if option != "--option" else text.partition("=")
        if not mark or not name or not value:
            fail(f"{option!r} must look like NAME=VALUE; got {text!r}")
        pairs.append((name, value))
    return pairs
