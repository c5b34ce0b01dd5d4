"""Files of people who come to a live audit, as the shell takes and reports them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise._output_files import refuse_overwriting, replace_file
from equipoise.cli.console import Output, show_activity
from equipoise.errors import BadData, InvalidInput
from equipoise.ledger.commands import Reply
from equipoise.messages.audit_words import REPLY_TEXT
from equipoise.messages.shell import describe_error
from equipoise.people import (
    BatchResult,
    MissingColumn,
    RowReader,
    RowResult,
    carry_out,
    read_people,
)

if TYPE_CHECKING:
    from equipoise.ledger import LiveAudit

FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet runs what begins so
MAX_ROWS_SHOWN = 5  # refused rows that are named on the screen
RESULT_COLUMNS = ("person", "want", "hold", "state", "why", "repeated", "problem")


def carry_out_file(
    live: LiveAudit,
    verb: str,
    path: Path,
    columns: Mapping[str, str],
    constants: Mapping[str, str] | None = None,
    results_path: Path | None = None,
) -> Output:
    """Carry out a command for every row of a file; running it again changes nothing.

    Parameters
    ----------
    verb
        The command's name in :data:`equipoise.ledger.commands.COMMANDS`.
    path
        The file of people.
    columns
        Role -> column of the file, as ``--column``, ``--score`` and ``--price`` say.
    constants
        Fields of the command that are the same for everybody.
    results_path
        A CSV file to write, with a row for each row that was carried out or refused. It must not be
        the file of people, nor the ledger.
    """
    if results_path is not None:
        refuse_overwriting(results_path, [path], "the file of people")
        live.refuse_overwriting(results_path)
    table = read_people(path)
    try:
        reader = RowReader(live.settings, verb, table.header, columns, constants)
    except MissingColumn as error:
        advice = f"Say which one it is: --column {error.role}=NAME"
        raise BadData(f"{error}. {advice}") from None
    batch = BatchResult()
    # Rows pass one by one, are stored and written on the way, and are counted at the end.
    with show_activity(f"Storing {path.name} …"):
        row_results = carry_out(table.rows, reader, live.attempt)
        if results_path is not None:
            row_results = _write_results(results_path, row_results)
        for row_result in row_results:
            batch.add(row_result, describe_error)
    return Output(batch, describe_batch(batch), refusal_of(batch))


def _write_results(path: Path, row_results: Iterable[RowResult]) -> Iterator[RowResult]:
    """Write what came of each row to a CSV file, and pass the rows on."""
    with replace_file(path) as file:
        writer = csv.writer(file)
        writer.writerow(("line", *RESULT_COLUMNS))
        for row_result in row_results:
            reply = row_result.result
            if reply is not None:
                if not isinstance(reply, Reply):
                    reply = Reply(row_result.person, problem=describe_error(reply))
                cells = [quote_formula(getattr(reply, column)) for column in RESULT_COLUMNS]
                writer.writerow([row_result.line, *cells])
            yield row_result


def quote_formula(cell: object) -> object:
    """Return a cell of a CSV file that a spreadsheet shows as text, never runs as a formula.

    Examples
    --------
    >>> quote_formula("=1+1"), quote_formula("B"), quote_formula(-3)
    ("'=1+1", 'B', -3)
    """
    if isinstance(cell, str) and cell.startswith(FORMULA_SIGNS):
        return f"'{cell}"
    return cell


def describe_batch(batch: BatchResult) -> str:
    """Return how many rows came to what, and the first of those that were refused."""
    summary = f"{batch.rows:,} rows: {batch.new:,} new, {batch.repeated:,} known before"
    summary += f", {len(batch.refused):,} refused"
    if batch.silent:
        # Only people who were asked about have answers; their rows lack the decision.
        missing = "a decision" if batch.answers else "an outcome"
        summary += f", {batch.silent:,} without {missing} yet"
    lines = [summary]
    for key, n_people in sorted(batch.answers.items()):
        lines.append(f"  {n_people:,} x {REPLY_TEXT[key]}")
    first_refused = batch.refused[:MAX_ROWS_SHOWN]
    lines += [f"  line {refused['line']:,}: {refused['problem']}" for refused in first_refused]
    n_hidden = len(batch.refused) - MAX_ROWS_SHOWN
    if n_hidden > 0:
        lines.append(f"  and {n_hidden:,} more (--json or --results show all)")
    return "\n".join(lines)


def refusal_of(batch: BatchResult) -> InvalidInput | None:
    """Return the error that a command ends with if rows were refused, else None."""
    if not batch.refused:
        return None
    line_numbers = [str(refused["line"]) for refused in batch.refused[:MAX_ROWS_SHOWN]]
    if len(batch.refused) > MAX_ROWS_SHOWN:
        line_numbers.append("…")
    n_refused = len(batch.refused)
    return InvalidInput(
        f"{n_refused:,} of {batch.rows:,} rows were refused: line {', '.join(line_numbers)}"
    )
