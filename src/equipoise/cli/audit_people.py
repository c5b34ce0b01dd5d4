"""``equipoise audit ask, tell, …``: what happens to people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli import options as shared
from equipoise.cli.console import Answer, show
from equipoise.cli.option_values import parse_pairs
from equipoise.cli.replies import describe_reply, with_verdict
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.ledger import LiveAudit

FILES_PANEL = "Many people at once"

Person = Annotated[
    str | None, typer.Argument(metavar="PERSON", help="Pseudonym.", show_default=False)
]
KnownPerson = Annotated[
    str, typer.Argument(metavar="PERSON", help="Pseudonym.", show_default=False)
]
Group = Annotated[str | None, typer.Argument(help="Group.", show_default=False)]
Decision = Annotated[
    str | None,
    typer.Argument(
        help="1 for approved, 0 for denied, or the past's own words.", show_default=False
    ),
]
Outcome = Annotated[
    str | None,
    typer.Argument(help="1 (good) or 0 (bad), or the past's own words.", show_default=False),
]
RightOutcome = Annotated[str, typer.Argument(help="The right outcome.", show_default=False)]
Score = Annotated[
    str | None,
    typer.Option(
        "--score",
        help="What a model says, for an audit made with --assist; with --file its column.",
        metavar="NUMBER|COLUMN",
    ),
]
Price = Annotated[
    str | None,
    typer.Option(
        "--price",
        help="What this label costs if it is 0, in minor units; with --file its column.",
        metavar="AMOUNT|COLUMN",
    ),
]
ScoreVersion = Annotated[
    str,
    typer.Option(
        "--score-version",
        help="Which model the scores are of, for the record.",
        metavar="NAME",
        show_default=False,
    ),
]
Days = Annotated[
    float | None,
    typer.Option("--days", help="Older than this; the audit's own limit if left out."),
]
PeopleFile = Annotated[
    Path | None,
    typer.Option(
        "--file",
        "-f",
        help="CSV, Parquet or JSON lines; repeating a file is safe.",
        rich_help_panel=FILES_PANEL,
    ),
]
ColumnNames = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="Name of a column in the file, as in person=applicant_id.",
        metavar="WHAT=COLUMN",
        rich_help_panel=FILES_PANEL,
    ),
]
ResultsFile = Annotated[
    Path | None,
    typer.Option("--results", help="Write a CSV with a row per row.", rich_help_panel=FILES_PANEL),
]


def ask(
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    file: PeopleFile = None,
    column: ColumnNames = None,
    results: ResultsFile = None,
    person: Person = None,
    group: Group = None,
    decision: Decision = None,
    score: Score = None,
    price: Price = None,
    score_version: ScoreVersion = "",
    json: shared.Json = False,
) -> None:
    """Say what is wanted of somebody who arrived, or of everybody in a file."""
    live = shared.open_audit(ledger, name, actor)
    needed = {"person": person, "group": group, "decision": decision}
    optional = {"score": score, "price": price}
    answer = _carry_out(
        live,
        "ask",
        needed,
        {role: text for role, text in optional.items() if text is not None},
        {"version": score_version},
        file=file,
        columns=column,
        results=results,
    )
    show(answer, json)


def tell(
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    file: PeopleFile = None,
    column: ColumnNames = None,
    results: ResultsFile = None,
    person: Person = None,
    outcome: Outcome = None,
    json: shared.Json = False,
) -> None:
    """Bring an outcome, or all outcomes in a file, in any order and as often as you like."""
    live = shared.open_audit(ledger, name, actor)
    needed = {"person": person, "outcome": outcome}
    answer = _carry_out(live, "tell", needed, file=file, columns=column, results=results)
    show(with_verdict(live, answer), json)


def executed(
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    file: PeopleFile = None,
    column: ColumnNames = None,
    results: ResultsFile = None,
    person: Person = None,
    json: shared.Json = False,
) -> None:
    """Say that an override was carried out."""
    live = shared.open_audit(ledger, name, actor)
    needed = {"person": person}
    show(_carry_out(live, "execute", needed, file=file, columns=column, results=results), json)


def withdraw(
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    file: PeopleFile = None,
    column: ColumnNames = None,
    results: ResultsFile = None,
    person: Person = None,
    json: shared.Json = False,
) -> None:
    """Say that a person refused: the money is free again, the outcome stays unknown."""
    live = shared.open_audit(ledger, name, actor)
    needed = {"person": person}
    show(_carry_out(live, "withdraw", needed, file=file, columns=column, results=results), json)


def _carry_out(
    live: LiveAudit,
    verb: str,
    needed: Mapping[str, str | None],
    optional: Mapping[str, str] | None = None,
    constants: Mapping[str, str] | None = None,
    *,
    file: Path | None,
    columns: list[str] | None,
    results: Path | None,
) -> Answer:
    """Carry out a command of the ledger for one person, or for every row of a file.

    Parameters
    ----------
    verb
        The command's name in :data:`equipoise.ledger.commands.COMMANDS`.
    needed
        What must be said of everybody, by role: the typed arguments, all None with a file.
    optional
        What is said besides, by role: values, or with a file the names of columns.
    constants
        Fields of the command that are the same for everybody.
    """
    from equipoise.cli.people_files import PeopleColumns, read_rows, store
    from equipoise.ledger.commands import COMMANDS, Command

    optional = optional or {}
    if (needed["person"] is None) == (file is None):
        arguments = " ".join(role.upper() for role in needed)
        raise InvalidInput(f"say whom it is about, {arguments} or --file FILE: one of the two")
    column_names = parse_pairs("--column", columns, "WHAT=COLUMN, as in person=id")
    header: list[str] = []
    if file is not None:
        column_names |= optional
        header = next((list(r) for _, r in read_rows(file) if isinstance(r, Mapping)), [])
    else:
        lacking = [repr(role.upper()) for role, text in needed.items() if text is None]
        if lacking:
            raise InvalidInput(f"{' and '.join(lacking)} must stand after 'PERSON'")
    roles = (*needed, *optional)
    people_columns = PeopleColumns(live.settings.values, roles, column_names, header)
    command_class: Callable[..., Command] = COMMANDS[verb]

    def make(row: Mapping[str, Any]) -> Command:
        values = {role: people_columns.value(role, row) for role in roles}
        return command_class(**values, **(constants or {}))

    if file is None:
        command = make({**needed, **optional})
        return describe_reply(live.do(command), command)
    total = store(live, file, people_columns, make, results=results)
    return Answer(total, str(total), total.problem())


def overdue(
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    days: Days = None,
    json: shared.Json = False,
) -> None:
    """Mark the outcomes that should have come by now; their money stays held."""
    live = shared.open_audit(ledger, name, actor)
    replies = live.overdue(days=days)
    lines = [f"{len(replies):,} newly overdue", *(f"  {reply.person}" for reply in replies)]
    show(Answer(replies, "\n".join(lines)), json)


def write_off(
    *,
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    person: KnownPerson,
    json: shared.Json = False,
) -> None:
    """Give up an overdue outcome: the worst cost is posted, the outcome stays unknown."""
    live = shared.open_audit(ledger, name, actor)
    show(describe_reply(live.write_off(person)), json)


def correct(
    *,
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    person: KnownPerson,
    outcome: RightOutcome,
    why: shared.Reason,
    json: shared.Json = False,
) -> None:
    """Replace an outcome that was wrong; the old one stays in the ledger."""
    live = shared.open_audit(ledger, name, actor)
    right_outcome = live.settings.values.read_bit("outcome", outcome)
    finding_before = live.finding
    answer = describe_reply(live.correct(person, right_outcome, why))
    show(with_verdict(live, answer, finding_before), json)
