"""Files of people who come to a live audit: every row reported, none half-done."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise._json import JsonValue
from equipoise._output_files import refuse_overwriting, replace_file
from equipoise.cli.console import show_activity
from equipoise.cli.replies import REPLY_TEXT, reply_key
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.history.coding import ValueReader
from equipoise.history.tables import as_bad_data, require_once
from equipoise.ledger.commands import BATCH_LIMIT, Ask, Command, printable

if TYPE_CHECKING:
    from equipoise.ledger import LiveAudit

SHOWN = 5  # refused rows named on the screen
RESULT_COLUMNS = ("person", "want", "hold", "state", "why", "repeated", "problem")

Row = Mapping[str, Any]
Make = Callable[[Row], Command]
"""A row, by the file's columns -> what to do."""


# -- reading ---------------------------------------------------------------------------------------


def read_rows(path: Path) -> Iterator[tuple[int, Row | InvalidInput]]:
    """Yield the rows of a CSV, Parquet or JSON lines file with the line that each came from.

    A row that cannot be read is there as the reason why.
    """
    readers = {".csv": _csv, ".parquet": _parquet, ".jsonl": _json_lines, ".ndjson": _json_lines}
    if path.suffix not in readers:
        raise UnknownName("kind of file", path.suffix or path.name, readers)
    if not path.is_file():
        raise InvalidInput(f"no such file: {path}")
    return readers[path.suffix](path)


def _csv(path: Path) -> Iterator[tuple[int, Row | InvalidInput]]:
    # A byte that is no UTF-8 spoils its own row only: it becomes a character no pseudonym may have.
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        first = re.sub('"[^"]*"', "", file.readline())  # says what stands between cells
        file.seek(0)
        rows = csv.DictReader(file, delimiter=max(",;\t", key=first.count))
        with as_bad_data(str(path)):
            refuse_repeated_columns(rows.fieldnames or ())
            for row in rows:
                cut = None in row or None in row.values()
                wrong = InvalidInput("its number of cells is not the header's")
                yield rows.line_num, wrong if cut else row


def refuse_repeated_columns(header: Sequence[str]) -> None:
    """Raise :class:`BadData` if two columns have one name: which of them is meant is unknown.

    Columns without a name, as spreadsheets leave behind the last one, hold nothing that is read.
    """
    require_once([name for name in header if name], header)


def _json_lines(path: Path) -> Iterator[tuple[int, Row | InvalidInput]]:
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, _json_row(line)


def _json_row(line: str) -> Row | InvalidInput:
    """Return one line as a row, or why it is none."""
    try:
        row = json.loads(line, object_pairs_hook=_json_object)
    except BadData as error:
        return error
    except ValueError:
        row = None
    return row if isinstance(row, dict) else InvalidInput("not a JSON object")


def _json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    refuse_repeated_columns([name for name, _ in pairs])
    return dict(pairs)


def _parquet(path: Path) -> Iterator[tuple[int, Row | InvalidInput]]:
    import duckdb

    with as_bad_data(str(path)), duckdb.connect() as database:
        query = "SELECT name, num_children FROM parquet_schema(?)"
        refuse_repeated_columns(_outer_columns(database.execute(query, [str(path)]).fetchall()))
        found = database.execute("SELECT COLUMNS(*)::VARCHAR FROM read_parquet(?)", [str(path)])
        names = [column[0] for column in found.description or ()]
        number = 0
        while cells := found.fetchone():
            number += 1
            yield number, dict(zip(names, cells, strict=True))


def _outer_columns(schema: Sequence[tuple[str, int | None]]) -> list[str]:
    """Return a table's columns from a Parquet schema: every field with its number of parts.

    The first field is the table. The parts of a field that has some follow it, and are no columns.
    DuckDB itself would rename the second of two columns of one name.
    """
    names = []
    n_parts_to_skip = 0
    for name, n_parts in schema[1:]:
        if n_parts_to_skip == 0:
            names.append(name)
        else:
            n_parts_to_skip -= 1
        n_parts_to_skip += n_parts or 0
    return names


class PeopleColumns:
    """Which columns of a file say what of a person, and what their values mean.

    A file may have the columns of the past decisions, whose coding is kept with the audit, or
    plain ones (``group``, ``decision``, ``outcome``). What ``given`` names goes first. Without a
    header, as on the command line, all of them are plain.
    """

    def __init__(
        self,
        values: ValueReader,
        names: Sequence[str],
        given: Mapping[str, str],
        header: Sequence[str] = (),
    ) -> None:
        kept = values.coding.columns if values.coding is not None and header else {}
        past = {name: columns for name, columns in kept.items() if set(columns) <= {*header}}
        for name in given:
            if name not in names:
                raise UnknownName("column in '--column'", name, names)
        plain = {name: (given.get(name, name),) for name in names}
        self._values, self._past = values, past
        self._columns = plain | {n: past[n] for n in names if n in past and n not in given}
        for name, column in ((n, c) for n in names for c in self._columns[n] if header):
            if column not in header:
                unknown = UnknownName("column of the file", column, header)
                raise BadData(f"{unknown}. Say which one it is: --column {name}=NAME")

    def value(self, name: str, row: Row) -> Any:
        """Return what a row says of a person, as the ledger takes it."""
        columns = self._columns[name]
        first, *_ = own = tuple(row.get(column) for column in columns)
        coding = self._values.coding if columns == self._past.get(name) else None
        if name == "person":
            return str(first) if isinstance(first, int) else first
        if name in ("score", "price"):
            return number(columns[0], first, self._values)
        if name == "group":
            return (
                self._values.read_group(first)
                if coding is None
                else coding.grouping.group_name(own)
            )
        return (
            self._values.read_bit(name, first) if coding is None else coding.read_bit(name, first)
        )

    def command(self, row: Row | InvalidInput, make: Make) -> Command | InvalidInput | None:
        """Return what is to be done, why not, or None where an outcome is not known yet."""
        try:
            if isinstance(row, InvalidInput):
                return row
            outcome = [row.get(column) for column in self._columns.get("outcome", ())]
            return None if any(map(self._values.is_missing, outcome)) else make(row)
        except InvalidInput as error:  # a value that nobody explained
            return error


def number(what: str, value: object, values: ValueReader) -> float | int | None:
    """Return a number that was written down, None where nothing was; whole ones stay whole."""
    text = "" if value is None else str(value).strip()
    try:
        found = float(text)
    except ValueError:
        if values.is_missing(text):
            return None
        raise InvalidInput(f"{what!r} must be a number; got {text!r}") from None
    if isnan(found):
        return None
    return int(found) if found.is_integer() and abs(found) < 2**53 else found


# -- carrying out ----------------------------------------------------------------------------------


@dataclass
class BatchResult(JsonValue):
    """What came of a file; ``answers`` counts people by state, or by why nothing is wanted."""

    rows: int = 0
    new: int = 0
    repeated: int = 0
    silent: int = 0
    refused: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{self.rows:,} rows: {self.new:,} new, {self.repeated:,} known before"]
        lines[0] += f", {len(self.refused):,} refused"
        lines[0] += f", {self.silent:,} without an outcome yet" if self.silent else ""
        lines += [f"  {n:,} x {REPLY_TEXT[came]}" for came, n in sorted(self.answers.items())]
        lines += [f"  line {row['line']:,}: {row['problem']}" for row in self.refused[:SHOWN]]
        if len(self.refused) > SHOWN:
            lines.append(f"  and {len(self.refused) - SHOWN:,} more (--json or --results show all)")
        return "\n".join(lines)

    def problem(self) -> InvalidInput | None:
        """Return which rows were refused, None if none was."""
        lines = ", ".join(str(row["line"]) for row in self.refused[:SHOWN])
        more = ", …" if len(self.refused) > SHOWN else ""
        said = f"{len(self.refused):,} of {self.rows:,} rows were refused: line {lines}{more}"
        return InvalidInput(said) if self.refused else None


def store(
    live: LiveAudit, path: Path, columns: PeopleColumns, make: Make, *, results: Path | None = None
) -> BatchResult:
    """Carry out every row of a file; running it again changes nothing.

    Each row is stored whole or not at all. Rows that cannot be read, or that the audit refuses,
    are listed with their line and hold up nobody. ``results`` is a CSV file with a row for each;
    it must not be the file that is read, nor the ledger.
    """
    if results is not None:
        refuse_overwriting(results, [path], "the file of people")
        live.refuse_overwriting(results)
    total, rows = BatchResult(), read_rows(path)
    with (
        nullcontext() if results is None else replace_file(results) as file,
        show_activity(f"Storing {path.name} …"),
    ):
        table = None if file is None else csv.writer(file)
        if table is not None:
            table.writerow(("line", *RESULT_COLUMNS))
        while part := list(islice(rows, BATCH_LIMIT)):
            commands = [columns.command(row, make) for _, row in part]
            replies = iter(live.run(command for command in commands if command is not None))
            for (line, row), command in zip(part, commands, strict=True):
                total.rows += 1
                if command is None:
                    total.silent += 1
                    continue
                reply = next(replies)
                if not reply.person and isinstance(row, Mapping):  # it never became a command
                    reply = replace(reply, person=printable(columns.value("person", row)))
                if table is not None:
                    table.writerow([line, *(getattr(reply, name) for name in RESULT_COLUMNS)])
                if reply.problem is not None:
                    refused = {"line": line, "person": reply.person, "problem": reply.problem}
                    total.refused.append(refused)
                    continue
                total.repeated += reply.repeated
                total.new += not reply.repeated
                if isinstance(command, Ask):
                    came = reply_key(reply, command)
                    total.answers[came] = total.answers.get(came, 0) + 1
    return total
