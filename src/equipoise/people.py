"""People who come to a live audit: rows of a file become commands, and replies come back.

The command line, the dashboard and the HTTP interface read the same file in the same way:

1. :func:`read_people` reads a CSV, Parquet, Excel or JSON lines file into numbered rows.
2. :class:`RowReader` turns a row into a command. It knows the columns and the words of the table of
   past decisions, which are kept with the audit, beside plain ones (``group``, ``approved``).
3. :func:`carry_out` has an audit carry the commands out and yields what came of each row.

What is wrong with one row holds up no other.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from math import isnan
from pathlib import Path
from typing import Any

from equipoise._json import JsonValue
from equipoise.errors import BadData, EquipoiseError, InvalidInput, UnknownName
from equipoise.history.coding import Coding, ValueReader
from equipoise.ledger.commands import BATCH_LIMIT, COMMANDS, Ask, Command, Reply, printable
from equipoise.ledger.settings import Settings

Row = Mapping[str, Any]
"""The cells of a row by column; None or text, and in JSON lines any value."""

REQUIRED_ROLES: Mapping[str, tuple[str, ...]] = {
    "ask": ("person", "group", "decision"),
    "tell": ("person", "outcome"),
    "execute": ("person",),
    "withdraw": ("person",),
}
"""Command -> what must be known of a person."""
SCORE_ROLES = ("score", "price", "version")
"""What ``ask`` takes besides if the audit uses scores."""


# -- reading files ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class NumberedRow:
    """A row with the line of the file, or the number of the record, that it came from.

    ``problem`` says why the row cannot be read; it has no cells then.
    """

    line: int
    cells: Row
    problem: str = ""


@dataclass(frozen=True)
class PeopleTable:
    """A file of people: the names of its columns, and its rows, which can be read once."""

    header: tuple[str, ...]
    rows: Iterator[NumberedRow]


def read_people(path: Path) -> PeopleTable:
    """Open a file of people.

    Raises
    ------
    InvalidInput
        If there is no such file, or it is of an unknown kind.
    BadData
        If the file cannot be read, or two columns have one name.
    """
    from equipoise.history.tables import as_bad_data  # loads the engines of files

    if path.suffix not in _READERS:
        raise UnknownName("kind of file", path.suffix or path.name, _READERS)
    if not path.is_file():
        raise InvalidInput(f"no such file: {path}")
    with as_bad_data(str(path)):
        table = _READERS[path.suffix](path)
        refuse_repeated_columns(table.header)
    # The rows are read after this block has ended, so they get one of their own.
    return PeopleTable(table.header, _rows_with_bad_data(table.rows, str(path)))


def _rows_with_bad_data(rows: Iterator[NumberedRow], name: str) -> Iterator[NumberedRow]:
    """Yield rows; an error of the engine that reads them is about the file of this name."""
    from equipoise.history.tables import as_bad_data  # loads the engines of files

    with as_bad_data(name):
        yield from rows


def refuse_repeated_columns(header: Sequence[str]) -> None:
    """Raise :class:`BadData` if two columns have one name: which of them is meant is unknown.

    Columns without a name, as spreadsheets leave behind the last one, hold nothing that is read.
    """
    from equipoise.history.tables import require_once  # loads the engines of files

    require_once([name for name in header if name], list(header))


def _read_csv(path: Path) -> PeopleTable:
    lines = _decoded_lines(path)
    first_line = next(lines, "")
    # Outside of quotes, the first line shows what stands between cells.
    separator = max(",;\t", key=re.sub('"[^"]*"', "", first_line).count)
    # The first line was read from the file already, so it is put back in front of the others.
    records = csv.reader(_prepend(first_line, lines), delimiter=separator)
    header = tuple(next(records, ()))

    def rows() -> Iterator[NumberedRow]:
        for cells in records:
            if not cells:  # an empty line
                continue
            # A cell too many, as by a comma in a name, would move all later ones under a wrong
            # header, so that the row is refused and not cut.
            if len(cells) == len(header):
                yield NumberedRow(records.line_num, dict(zip(header, cells, strict=True)))
            else:
                problem = "its number of cells is not the header's"
                yield NumberedRow(records.line_num, {}, problem)

    return PeopleTable(header, rows())


def _decoded_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file in UTF-8.

    A byte that is no UTF-8 spoils its own row only: it becomes a character that no pseudonym may
    have.
    """
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        yield from file


def _prepend(first_line: str, later_lines: Iterator[str]) -> Iterator[str]:
    yield first_line
    yield from later_lines


def _read_json_lines(path: Path) -> PeopleTable:
    """Open a file with one JSON object per line; the first object has the columns."""
    header: tuple[str, ...] = ()
    # The file is opened once more for the rows, so that none is lost to the search for columns.
    for row in _json_rows(path):
        if not row.problem:
            header = tuple(row.cells)
            break
    return PeopleTable(header, _json_rows(path))


def _json_rows(path: Path) -> Iterator[NumberedRow]:
    for number, line in enumerate(_decoded_lines(path), start=1):
        if not line.strip():
            continue
        try:
            # The hook sees a name that comes twice; a plain dictionary would keep the last value.
            cells = json.loads(line, object_pairs_hook=_json_object)
        except BadData as error:
            yield NumberedRow(number, {}, str(error))
            continue
        except ValueError:
            cells = None
        if isinstance(cells, dict):
            yield NumberedRow(number, cells)
        else:
            yield NumberedRow(number, {}, "not a JSON object")


def _json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    refuse_repeated_columns([name for name, _ in pairs])
    return dict(pairs)


def _read_parquet(path: Path) -> PeopleTable:
    import duckdb

    database = duckdb.connect()
    schema_query = "SELECT name, num_children FROM parquet_schema(?)"
    # DuckDB would rename the second of two columns of one name, the schema has both.
    header = _outer_columns(database.execute(schema_query, [str(path)]).fetchall())

    def rows() -> Iterator[NumberedRow]:
        # As text, because the words of the past are texts: a decision may be a number here.
        query = "SELECT COLUMNS(*)::VARCHAR FROM read_parquet(?)"
        records = database.execute(query, [str(path)])
        number = 0
        while cells := records.fetchone():
            number += 1
            yield NumberedRow(number, dict(zip(header, cells, strict=True)))
        database.close()

    return PeopleTable(header, rows())


def _outer_columns(schema: Sequence[tuple[str, int | None]]) -> tuple[str, ...]:
    """Return a table's columns from a Parquet schema: every field with its number of parts.

    The first field is the table. The parts of a field that has some follow it, and are no columns.
    """
    names = []
    n_parts_to_skip = 0
    for name, n_parts in schema[1:]:
        if n_parts_to_skip == 0:
            names.append(name)
        else:
            n_parts_to_skip -= 1
        n_parts_to_skip += n_parts or 0
    return tuple(names)


def _read_excel(path: Path) -> PeopleTable:
    """Open the first sheet of an Excel file."""
    from openpyxl import load_workbook

    # data_only: the value that Excel computed last, not the formula.
    sheet = load_workbook(path, read_only=True, data_only=True).worksheets[0]
    records = sheet.iter_rows(values_only=True)
    header = tuple(_text_of_cell(cell) or "" for cell in next(records, ()))

    def rows() -> Iterator[NumberedRow]:
        for number, cells in enumerate(records, start=2):
            texts = [_text_of_cell(cell) for cell in cells]
            if any(texts):  # sheets may end with thousands of rows without content
                yield NumberedRow(number, dict(zip(header, texts, strict=False)))

    return PeopleTable(header, rows())


def _text_of_cell(cell: object) -> str | None:
    return None if cell is None else str(cell)


_READERS: Mapping[str, Callable[[Path], PeopleTable]] = {
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".xlsx": _read_excel,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
}


# -- rows as commands ------------------------------------------------------------------------------


class MissingColumn(BadData):
    """A file of people lacks the column of a role.

    ``role`` is what the column would hold (``group``), ``column`` its name, ``header`` what the
    file has. Whoever shows the error adds how another column is named there.
    """

    def __init__(self, role: str, column: str, header: Sequence[str]) -> None:
        self.role = role
        self.column = column
        self.header = tuple(header)
        super().__init__(str(UnknownName("column of the file", column, header)))


def columns_to_read(settings: Settings, verb: str) -> list[str]:
    """Return every column that a :class:`RowReader` of the command might read, for a selection."""
    roles = REQUIRED_ROLES[verb]
    columns = [*roles, *SCORE_ROLES] if verb == "ask" else list(roles)
    coding = settings.values.coding
    if coding is not None:
        for role in roles:
            columns += coding.columns.get(role, ())
    return columns


class RowReader:
    """Turns rows about people into commands of one kind.

    A file may have the columns of the table of past decisions, whose meaning is kept with the
    audit, or plain ones (``group``, ``decision``, ``outcome``). Scores and prices are read if the
    audit uses them.

    Parameters
    ----------
    settings
        The audit's.
    verb
        The command: a key of :data:`REQUIRED_ROLES`.
    header
        The columns of the file. None for a person who was typed: a row then has the values by role.
    columns
        Role -> column, where somebody named it. Such a column goes before one of the past.
    constants
        Fields of the command that are the same for everybody.

    Raises
    ------
    MissingColumn
        If the file lacks the column of a role that must be known.
    """

    def __init__(
        self,
        settings: Settings,
        verb: str,
        header: Sequence[str] | None,
        columns: Mapping[str, str] | None = None,
        constants: Mapping[str, Any] | None = None,
    ) -> None:
        self._values: ValueReader = settings.values
        self._command_class: Callable[..., Command] = COMMANDS[verb]
        self._constants = dict(constants or {})
        columns = columns or {}
        # Role -> columns that hold it. Those in _coded_roles are read as the past's own columns.
        self._columns: dict[str, tuple[str, ...]] = {}
        self._coded_roles: set[str] = set()
        for role in REQUIRED_ROLES[verb]:
            self._find_columns(role, columns, header)
        if verb == "ask":
            self._find_score_columns(columns, header, uses_scores=settings.assist is not None)
        # Before the first row is carried out, so that a wrong file changes nothing.
        for role, names in self._columns.items():
            for name in names:
                if header and name not in header:
                    raise MissingColumn(role, name, header)

    def _find_columns(
        self, role: str, columns: Mapping[str, str], header: Sequence[str] | None
    ) -> None:
        """Choose the columns of a role: the one that was named, those of the past, or the plain."""
        coding = self._values.coding
        past_columns: tuple[str, ...] = ()
        # A person who was typed has no header: there the values come by role, in plain words.
        if coding is not None and header is not None:
            past_columns = tuple(coding.columns.get(role, ()))
            if role == "person" and not set(past_columns) <= set(header):
                # The table of outcomes may have had another name for it.
                past_columns = tuple(coding.columns.get("person_of_outcomes", past_columns))
        if role in columns:
            self._columns[role] = (columns[role],)
        elif past_columns and set(past_columns) <= set(header or ()):
            self._columns[role] = past_columns
        else:
            self._columns[role] = (role,)
        # A past column is read in the words of the past, also if the user named it.
        if self._columns[role] == past_columns:
            self._coded_roles.add(role)

    def _find_score_columns(
        self, columns: Mapping[str, str], header: Sequence[str] | None, *, uses_scores: bool
    ) -> None:
        """Read scores from columns that were named, or that have the plain names."""
        for role in SCORE_ROLES:
            if role in columns:
                self._columns[role] = (columns[role],)
            elif uses_scores and header and role in header and role not in self._constants:
                self._columns[role] = (role,)

    def read_command(self, row: NumberedRow) -> Command | InvalidInput | None:
        """Return what is to be done, why not, or None if no outcome or decision is known yet."""
        if row.problem:
            return InvalidInput(row.problem)
        # No mistake: the outcome of this person has not come yet.
        outcome_cells = [row.cells.get(name) for name in self._columns.get("outcome", ())]
        if any(self._values.is_missing(cell, "outcome") for cell in outcome_cells):
            return None
        # The reading of the past left out rows such as withdrawn applications, and so does this.
        if "decision" in self._coded_roles:
            (decision_column,) = self._columns["decision"]
            if self._values.is_missing(row.cells.get(decision_column), "decision"):
                return None
        try:
            return self.build_command(row.cells)
        except InvalidInput as error:  # a value that nobody explained
            return error

    def build_command(self, cells: Row) -> Command:
        """Return the command for one person; raise :class:`InvalidInput` if a value is unknown."""
        values = {role: self.read_value(role, cells) for role in self._columns}
        return self._command_class(**self._constants, **values)

    def read_value(self, role: str, cells: Row) -> Any:
        """Return what a row says of a person in one role, as the ledger takes it."""
        names = self._columns[role]
        values = tuple(cells.get(name) for name in names)
        if role == "person":
            # In JSON lines an application number may be a number. All else is left to the ledger.
            return str(values[0]) if isinstance(values[0], int) else values[0]
        if role == "version":
            return "" if values[0] is None else str(values[0])
        if role in SCORE_ROLES:
            return read_number(names[0], values[0], self._values)
        coding = self._values.coding if role in self._coded_roles else None
        if coding is not None:
            return _read_coded(coding, role, values)
        if role == "group":
            return self._values.read_group(values[0])
        return self._values.read_bit(role, values[0])

    def name_person(self, row: NumberedRow) -> str:
        """Return the pseudonym in a row, or what stands there, as it can be printed."""
        return "" if row.problem else printable(self.read_value("person", row.cells))


def _read_coded(coding: Coding, role: str, values: tuple[Any, ...]) -> Any:
    """Return a group, a decision or an outcome from the past's own columns."""
    if role == "group":
        return coding.grouping.group_name(values)
    return coding.read_bit(role, values[0])


def read_number(name: str, value: object, values: ValueReader) -> float | int | None:
    """Return a number that was written down, None if there is none; whole ones stay whole."""
    text = "" if value is None else str(value).strip()
    try:
        number = float(text)
    except ValueError:
        if values.is_missing(text):
            return None
        raise InvalidInput(f"{name!r} must be a number; got {text!r}") from None
    if isnan(number):
        return None
    # A price is a whole number of minor units. From 2**53 on a float may be a rounded one.
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def understand_command(command: Command, values: ValueReader) -> Command | InvalidInput:
    """Return a command with group, decision and outcome in the ledger's words, or why not.

    They may be in the words of the historical data: ``asian``, or the code of a decision. A value
    that stands for none, such as the code of a withdrawn application, is refused: a file would skip
    the row.
    """
    changes: dict[str, Any] = {}
    if isinstance(command, Ask) and isinstance(command.group, str):
        with suppress(InvalidInput):  # what is no group is left to the ledger to refuse
            changes["group"] = values.read_group(command.group)
    for role in ("decision", "outcome"):
        value = getattr(command, role, None)
        if not isinstance(value, str):
            continue
        if values.is_missing(value, role):
            return InvalidInput(
                f"{role!r} of {value!r} means that there is no {role} yet: send the person once it "
                "is known"
            )
        try:
            changes[role] = values.read_bit(role, value)
        except InvalidInput as error:
            return error
    return replace(command, **changes) if changes else command


# -- carrying out ----------------------------------------------------------------------------------

CommandResult = Reply | Exception
Attempt = Callable[[Sequence[Command | EquipoiseError]], Sequence[CommandResult]]
"""What carries out commands, such as ``LiveAudit.attempt``: a reply, or why not, for each."""


@dataclass(frozen=True)
class RowResult:
    """What carrying out a row led to.

    ``command`` and ``result`` are None if the row brought no outcome yet; ``result`` is a reply, or
    the reason why the row was refused.
    """

    line: int
    person: str
    command: Command | InvalidInput | None
    result: CommandResult | None


def carry_out(
    rows: Iterable[NumberedRow], reader: RowReader, attempt: Attempt
) -> Iterator[RowResult]:
    """Carry out every row, and yield the result of each in the order of the rows.

    Each row is stored whole or not at all, and carrying it out again changes nothing. At most
    :data:`BATCH_LIMIT` rows are held at once.
    """
    remaining = iter(rows)
    while batch := list(islice(remaining, BATCH_LIMIT)):
        # Rows without an outcome bring no command, so results are counted off beside the rows.
        commands = [reader.read_command(row) for row in batch]
        answers = iter(attempt([command for command in commands if command is not None]))
        for row, command in zip(batch, commands, strict=True):
            answer = None if command is None else next(answers)
            # A reply has the pseudonym as it is stored, which may differ in outer spaces.
            person = answer.person if isinstance(answer, Reply) else reader.name_person(row)
            yield RowResult(row.line, person, command, answer)


@dataclass
class BatchResult(JsonValue):
    """Counts of the rows of a file by their results.

    Attributes
    ----------
    rows, new, repeated
        Rows in all, those that changed something, and those that were carried out before.
    silent
        Rows without an outcome yet.
    refused
        Rows that were refused: line, person and problem of each.
    answers
        People who were asked about, counted by state or by why nothing is wanted.
    """

    rows: int = 0
    new: int = 0
    repeated: int = 0
    silent: int = 0
    refused: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[str, int] = field(default_factory=dict)

    def add(self, row: RowResult, describe: Callable[[Exception], str] = str) -> None:
        """Count one row; ``describe`` puts into words why it was refused."""
        self.rows += 1
        if row.result is None:
            self.silent += 1
        elif not isinstance(row.result, Reply):
            refused = {"line": row.line, "person": row.person, "problem": describe(row.result)}
            self.refused.append(refused)
        else:
            self.repeated += row.result.repeated
            self.new += not row.result.repeated
            if isinstance(row.command, Ask):
                key = reply_key(row.result, row.command)
                self.answers[key] = self.answers.get(key, 0) + 1


def reply_key(reply: Reply, command: object) -> str:
    """Return which text describes the result of a command: a state, or why nothing is wanted.

    Two states have another text for some commands. ``AWAITED`` is RESERVED of an approved person,
    whose outcome needs no override. ``UNUSED`` is WITHDRAWN if the command brought an outcome.
    """
    if reply.state == "RESERVED" and getattr(command, "decision", 0) == 1:
        return "AWAITED"
    if reply.state == "WITHDRAWN" and hasattr(command, "outcome"):
        return "UNUSED"
    # Of a person who is not asked the reason says more than the state.
    return reply.why if reply.state == "SKIPPED" else reply.state
