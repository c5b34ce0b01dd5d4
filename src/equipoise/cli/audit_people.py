"""``equipoise audit ask, tell, …``: what happens to people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli.audit_options import (
    LEDGER,
    Column,
    File,
    Ledger,
    Name,
    Person,
    Results,
    needed,
    open_audit,
    pairs,
    show_reply,
)
from equipoise.cli.console import print_json
from equipoise.cli.options import Json
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.cli.coded import CodedRows
    from equipoise.ledger import LiveAudit, Reply
    from equipoise.ledger.commands import Command

__all__ = ["ask", "correct", "executed", "overdue", "tell", "withdraw", "write_off"]


def ask(
    name: Name,
    person: Person = None,
    group: Annotated[str | None, typer.Argument(help="Group.", show_default=False)] = None,
    decision: Annotated[
        int | None, typer.Argument(help="1 for approved, 0 for denied.", show_default=False)
    ] = None,
    file: File = None,
    column: Column = None,
    results: Results = None,
    ledger: Ledger = LEDGER,
    json: Json = False,
) -> None:
    """Say what is wanted of somebody who arrived, or of everybody in a file."""
    from equipoise.ledger.commands import Ask

    def one(live: LiveAudit, who: str) -> Reply:
        if group is None or decision is None:
            raise InvalidInput("'GROUP' and 'DECISION' are needed after 'PERSON'")
        return live.ask(who, group, decision)

    def make(row: Any, coded: CodedRows) -> Command:
        return Ask(row["person"], coded.group(row), coded.bit("decision", row))

    names = ("person", "group", "decision")
    _do(ledger, name, person, one, file, column, names, make, results, json)


def tell(
    name: Name,
    person: Person = None,
    outcome: Annotated[
        int | None, typer.Argument(help="1 for good, 0 for bad.", show_default=False)
    ] = None,
    file: File = None,
    column: Column = None,
    results: Results = None,
    ledger: Ledger = LEDGER,
    json: Json = False,
) -> None:
    """Bring an outcome, or all outcomes in a file, in any order and as often as you like."""
    from equipoise.ledger.commands import Tell

    def one(live: LiveAudit, who: str) -> Reply:
        if outcome is None:
            raise InvalidInput("'OUTCOME' is needed after 'PERSON'")
        return live.tell(who, outcome)

    def make(row: Any, coded: CodedRows) -> Command:
        return Tell(row["person"], coded.bit("outcome", row))

    _do(ledger, name, person, one, file, column, ("person", "outcome"), make, results, json)


def executed(
    name: Name,
    person: Person = None,
    file: File = None,
    column: Column = None,
    results: Results = None,
    ledger: Ledger = LEDGER,
    json: Json = False,
) -> None:
    """Say that an override was carried out."""
    from equipoise.ledger.commands import Execute

    def make(row: Any, coded: CodedRows) -> Command:
        return Execute(row["person"])

    def one(live: LiveAudit, who: str) -> Reply:
        return live.executed(who)

    _do(ledger, name, person, one, file, column, ("person",), make, results, json)


def withdraw(
    name: Name,
    person: Person = None,
    file: File = None,
    column: Column = None,
    results: Results = None,
    ledger: Ledger = LEDGER,
    json: Json = False,
) -> None:
    """Say that a person refused: the money is free again, the outcome stays unknown."""
    from equipoise.ledger.commands import Withdraw

    def make(row: Any, coded: CodedRows) -> Command:
        return Withdraw(row["person"])

    def one(live: LiveAudit, who: str) -> Reply:
        return live.withdraw(who)

    _do(ledger, name, person, one, file, column, ("person",), make, results, json)


def overdue(
    name: Name,
    days: Annotated[
        float | None, typer.Option(help="Older than this; the audit's own limit if left out.")
    ] = None,
    ledger: Ledger = LEDGER,
    json: Json = False,
) -> None:
    """Mark the outcomes that should have come by now; their money stays held."""
    replies = open_audit(ledger, name).overdue(days=days)
    if json:
        print_json([reply.to_dict() for reply in replies])
    else:
        typer.echo(f"{len(replies):,} newly overdue")
        for reply in replies:
            typer.echo(f"  {reply.person}")


def write_off(name: Name, person: Person, ledger: Ledger = LEDGER, json: Json = False) -> None:
    """Give up an overdue outcome: the worst cost is posted, the outcome stays unknown."""
    show_reply(open_audit(ledger, name).write_off(needed(person)), json)


def correct(
    name: Name,
    person: Person,
    outcome: Annotated[int, typer.Argument(help="The right outcome.", show_default=False)],
    why: Annotated[str, typer.Option(help="Reason, kept in the ledger.", show_default=False)],
    ledger: Ledger = LEDGER,
    json: Json = False,
) -> None:
    """Replace an outcome that was wrong; the old one stays in the ledger."""
    show_reply(open_audit(ledger, name).correct(needed(person), outcome, why), json)


def _do(
    ledger: str,
    name: str,
    person: str | None,
    one: Callable[[LiveAudit, str], Reply],
    file: Path | None,
    column: Sequence[str] | None,
    names: Sequence[str],
    make: Callable[[Any, CodedRows], Command],
    results: Path | None,
    json: bool,
) -> None:
    """Carry out one command, or a file of them."""
    if (person is None) == (file is None):
        raise InvalidInput("either 'PERSON' or '--file' is needed, not both")
    live = open_audit(ledger, name)
    if person is not None:
        show_reply(one(live, person), json)
        return
    assert file is not None
    from equipoise.cli.coded import CodedRows
    from equipoise.cli.read_rows import header_of
    from equipoise.cli.run_file import carry_out

    given = dict(pairs("--column", column))
    coded = CodedRows(live.settings.coding, names, given, header_of(file))
    done = carry_out(live, file, coded.columns, lambda row: make(row, coded), results=results)
    if json:
        print_json(done.to_dict())
    else:
        typer.echo(str(done))
    done.exit_if_refused()
