"""``equipoise audit ask, tell, …``: what happens to people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli import options as shared
from equipoise.cli.console import Output, show
from equipoise.cli.option_values import parse_pairs
from equipoise.cli.replies import describe_reply, with_verdict, with_waiting
from equipoise.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from equipoise.ledger import LiveAudit

FILES_PANEL = "Many people at once"

Person = Annotated[
    str | None,
    typer.Argument(metavar="PERSON", help="Pseudonym of the person.", show_default=False),
]
KnownPerson = Annotated[
    str, typer.Argument(metavar="PERSON", help="Pseudonym of the person.", show_default=False)
]
Group = Annotated[
    str | None,
    typer.Argument(metavar="GROUP", help="The person's group.", show_default=False),
]
Decision = Annotated[
    str | None,
    typer.Argument(
        metavar="DECISION",
        help="1 for approved, 0 for denied, or a value that your historical table has.",
        show_default=False,
    ),
]
Outcome = Annotated[
    str | None,
    typer.Argument(
        metavar="OUTCOME",
        help="1 (good) or 0 (bad), or a value that your historical table has.",
        show_default=False,
    ),
]
RightOutcome = Annotated[str, typer.Argument(help="The right outcome.", show_default=False)]
Score = Annotated[
    str | None,
    typer.Option(
        "--score",
        help="Score of a model, for an audit that uses scores. With --file: its column.",
        metavar="NUMBER|COLUMN",
    ),
]
Price = Annotated[
    str | None,
    typer.Option(
        "--price",
        help="Cost of a bad outcome of this person, in cents. With --file: its column.",
        metavar="AMOUNT|COLUMN",
    ),
]
ScoreVersion = Annotated[
    str,
    typer.Option(
        "--score-version",
        help="Version of the model that made the scores, for the record.",
        metavar="NAME",
        show_default=False,
    ),
]
Days = Annotated[
    float | None,
    typer.Option("--days", help="Days since the request. Default: the audit's own limit."),
]
PeopleFile = Annotated[
    Path | None,
    typer.Option(
        "--file",
        "-f",
        help="CSV, Parquet or JSON lines. Sending a file again is safe.",
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
    typer.Option(
        "--results",
        help="Write the reply to each row to this CSV file.",
        rich_help_panel=FILES_PANEL,
    ),
]


def ask(
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    file: PeopleFile = None,
    column: ColumnNames = None,
    results_path: ResultsFile = None,
    person: Person = None,
    group: Group = None,
    decision: Decision = None,
    score: Score = None,
    price: Price = None,
    score_version: ScoreVersion = "",
    json: shared.Json = False,
) -> None:
    """Ask whether to override a denial, for one person or for each row of a file.

    The reply shows whether to override the denial. The audit never chooses a skipped person later.

    Example: equipoise audit ask loans applicant-4711 Black 0
    """
    live = shared.open_audit(ledger, name, actor)
    person_values = {"person": person, "group": group, "decision": decision}
    score_values = {"score": score, "price": price}
    # With a file these are names of columns, which are refused for the same reason.
    _require_use_of_scores(live, score, price)
    answer = _carry_out(
        live,
        "ask",
        person_values,
        {role: text for role, text in score_values.items() if text is not None},
        {"version": score_version} if score_version else None,
        file=file,
        columns=column,
        results_path=results_path,
    )
    show(with_waiting(live, answer), json)


def _require_use_of_scores(live: LiveAudit, score: str | None, price: str | None) -> None:
    """Refuse a score or a price that the audit, as it was made, cannot use."""
    assist = live.settings.assist
    if assist is None and (score is not None or price is not None):
        flag = "--score" if score is not None else "--price"
        raise InvalidInput(
            f"{flag!r} is for audits that look before they ask: audit new --assist makes one"
        )
    if assist is not None and assist.max_price is None and price is not None:
        raise InvalidInput(
            "'--price' needs a largest price, declared before any is read: audit new --assist "
            "--max-price AMOUNT"
        )


def tell(
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    file: PeopleFile = None,
    column: ColumnNames = None,
    results_path: ResultsFile = None,
    person: Person = None,
    outcome: Outcome = None,
    json: shared.Json = False,
) -> None:
    """Record an outcome, or all outcomes in a file. Order and repetition do not matter."""
    live = shared.open_audit(ledger, name, actor)
    person_values = {"person": person, "outcome": outcome}
    answer = _carry_out(
        live, "tell", person_values, file=file, columns=column, results_path=results_path
    )
    show(with_verdict(live, answer), json)


def executed(
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    file: PeopleFile = None,
    column: ColumnNames = None,
    results_path: ResultsFile = None,
    person: Person = None,
    json: shared.Json = False,
) -> None:
    """Record that an override was carried out."""
    live = shared.open_audit(ledger, name, actor)
    answer = _carry_out(
        live, "execute", {"person": person}, file=file, columns=column, results_path=results_path
    )
    show(answer, json)


def withdraw(
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    file: PeopleFile = None,
    column: ColumnNames = None,
    results_path: ResultsFile = None,
    person: Person = None,
    json: shared.Json = False,
) -> None:
    """Record that a person declined. The money is free again, and the outcome stays unknown."""
    live = shared.open_audit(ledger, name, actor)
    answer = _carry_out(
        live, "withdraw", {"person": person}, file=file, columns=column, results_path=results_path
    )
    show(answer, json)


def _carry_out(
    live: LiveAudit,
    verb: str,
    person_values: Mapping[str, str | None],
    score_values: Mapping[str, str] | None = None,
    constants: Mapping[str, str] | None = None,
    *,
    file: Path | None,
    columns: list[str] | None,
    results_path: Path | None,
) -> Output:
    """Carry out a command of the ledger for one person, or for every row of a file.

    Parameters
    ----------
    verb
        The command's name in :data:`equipoise.ledger.commands.COMMANDS`.
    person_values
        What must be known of a person, by role: the typed arguments, all None with a file.
    score_values
        Score and price, if they were given: values, or with a file the names of columns.
    constants
        Fields of the command that are the same for everybody.
    """
    from equipoise.people import RowReader

    score_values = score_values or {}
    roles = (*person_values, *score_values)
    # Exactly one of the two: both None, or both given, is a mistake.
    if (person_values["person"] is None) == (file is None):
        arguments = " ".join(role.upper() for role in person_values)
        raise InvalidInput(f"say whom it is about, {arguments} or --file FILE: one of the two")
    column_names = parse_pairs("--column", columns, "WHAT=COLUMN, as in person=id")
    for role in column_names:
        if role not in roles:
            raise UnknownName("column in '--column'", role, roles)
    if file is not None:
        from equipoise.cli.people_files import carry_out_file

        columns_by_role = {**column_names, **score_values}
        return carry_out_file(live, verb, file, columns_by_role, constants, results_path)
    lacking = [repr(role.upper()) for role, text in person_values.items() if text is None]
    if lacking:
        raise InvalidInput(f"{' and '.join(lacking)} must stand after 'PERSON'")
    # A typed person is read like a row of a file whose columns have the names of the roles.
    reader = RowReader(live.settings, verb, None, {role: role for role in roles}, constants)
    command = reader.build_command({**person_values, **score_values})
    return describe_reply(live.do(command), command)


def overdue(
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    days: Days = None,
    json: shared.Json = False,
) -> None:
    """Mark the outcomes that should have arrived by now. Their money stays held."""
    live = shared.open_audit(ledger, name, actor)
    if days is None and live.settings.overdue_after is None:
        raise InvalidInput("'--days' is needed: the audit was made without '--overdue-after'")
    replies = live.overdue(days=days)
    lines = [f"{len(replies):,} newly overdue", *(f"  {reply.person}" for reply in replies)]
    show(Output(replies, "\n".join(lines)), json)


def write_off(
    *,
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    person: KnownPerson,
    json: shared.Json = False,
) -> None:
    """Give up an overdue outcome. Its largest possible cost is booked."""
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
    """Replace a wrong outcome. The old one stays in the ledger."""
    live = shared.open_audit(ledger, name, actor)
    right_outcome = live.settings.values.read_bit("outcome", outcome)
    finding_before = live.finding  # a correction may take the verdict back, and the answer says so
    answer = describe_reply(live.correct(person, right_outcome, why))
    show(with_verdict(live, answer, finding_before), json)


COMMANDS: Mapping[str, Callable[..., None]] = {
    "ask": ask,
    "tell": tell,
    "executed": executed,
    "withdraw": withdraw,
    "overdue": overdue,
    "write-off": write_off,
    "correct": correct,
}
"""Name of a command -> its function, in the order of the help."""
