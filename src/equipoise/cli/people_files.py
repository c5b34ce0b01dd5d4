"""Files of people who come to a live audit: every row reported, none half-done."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from equipoise._json import JsonValue
from equipoise.cli.console import fail, working
from equipoise.cli.read_rows import Row, read_rows
from equipoise.errors import InvalidInput, UnknownName
from equipoise.history.values import LiveValues
from equipoise.ledger.commands import Command, Reply

if TYPE_CHECKING:
    from equipoise.ledger import LiveAudit

__all__ = ["BatchResult", "CodedRows", "carry_out"]

AT_ONCE = 1000
SHOWN = 5  # refused rows named on the screen
WANTED = {
    "LABEL": "outcome wanted: override the denial, if there was one, and tell it",
    "FEATURES": "features wanted",
    "SCORE_ONLY": "looked at, nothing wanted",
    "NOTHING": "nothing wanted",
}
RESULT_COLUMNS = ("line", "person", "want", "hold", "state", "why", "repeated", "problem")

Make = Callable[[Mapping[str, Any]], Command | None]
"""A row -> what to do; None where it says nothing yet."""


@dataclass
class BatchResult(JsonValue):
    """What came of a file."""

    rows: int = 0
    new: int = 0
    repeated: int = 0
    silent: int = 0
    refused: list[dict[str, Any]] = field(default_factory=list)
    wanted: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{self.rows:,} rows: {self.new:,} new, {self.repeated:,} known before"]
        lines[0] += f", {len(self.refused):,} refused"
        lines[0] += f", {self.silent:,} without an outcome yet" if self.silent else ""
        lines += [f"  {n:,} x {WANTED[want]}" for want, n in sorted(self.wanted.items())]
        lines += [f"  line {row['line']:,}: {row['problem']}" for row in self.refused[:SHOWN]]
        if len(self.refused) > SHOWN:
            lines.append(f"  and {len(self.refused) - SHOWN:,} more (--json or --results show all)")
        return "\n".join(lines)

    def exit_if_refused(self) -> None:
        """End with code 2 if a row was refused."""
        if self.refused:
            lines = ", ".join(str(row["line"]) for row in self.refused[:SHOWN])
            more = ", …" if len(self.refused) > SHOWN else ""
            fail(f"{len(self.refused):,} of {self.rows:,} rows were refused: line {lines}{more}")


def carry_out(
    live: LiveAudit,
    path: Path,
    columns: Mapping[str, str],
    make: Make,
    *,
    results: Path | None = None,
    asks: bool = False,
) -> BatchResult:
    """Carry out every row of a file; running it again changes nothing.

    Each row is stored whole or not at all. Rows that cannot be read, or that the audit refuses,
    are listed with their line and hold up nobody.
    """
    total, wanted = BatchResult(), Counter[str]()
    rows = read_rows(path, columns)
    with _writer(results) as write, working(f"Storing {path.name} …"):
        while part := list(islice(rows, AT_ONCE)):
            for line, reply in _store(live, part, make):
                total.rows += 1
                if reply is None:
                    total.silent += 1
                    continue
                if reply.problem is not None:
                    refused = {"line": line, "person": reply.person, "problem": reply.problem}
                    total.refused.append(refused)
                elif reply.repeated:
                    total.repeated += 1
                else:
                    total.new += 1
                if asks and reply.problem is None:
                    wanted[reply.want.value] += 1
                write(line, reply)
    total.wanted = dict(wanted)
    return total


def _store(live: LiveAudit, rows: Sequence[Row], make: Make) -> Iterator[tuple[int, Reply | None]]:
    commands: list[Command] = []
    slots: list[Reply | Literal["stored", "silent"]] = []
    for _, row in rows:
        if isinstance(row, str):
            slots.append(Reply("", problem=row))
            continue
        person = row.get("person")
        if not isinstance(person, str | int):
            slots.append(Reply("", problem=f"'person' must be a text; got {person!r}"))
            continue
        try:
            command = make({**row, "person": str(person)})
        except InvalidInput as error:  # a value that nobody explained
            slots.append(Reply(str(person), problem=str(error)))
            continue
        slots.append("silent" if command is None else "stored")
        commands += [] if command is None else [command]
    stored = iter(live.run(commands))
    for (line, _), slot in zip(rows, slots, strict=True):
        yield line, next(stored) if slot == "stored" else None if slot == "silent" else slot


@contextmanager
def _writer(path: Path | None) -> Iterator[Callable[[int, Reply], None]]:
    if path is None:
        yield lambda line, reply: None
        return
    if path.suffix != ".csv":
        raise InvalidInput(f"'--results' must name a .csv file; got {path}")
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(RESULT_COLUMNS)

        def write(line: int, reply: Reply) -> None:
            values = (getattr(reply, name) for name in RESULT_COLUMNS[1:])
            out.writerow([line, *("" if v is None else v for v in values)])

        yield write


class CodedRows:
    """What the columns of a file mean.

    A file may have the columns of the past decisions, whose coding is kept with the audit, or
    plain ones (``group``, ``decision``, ``outcome``). What ``given`` names goes first.
    """

    def __init__(
        self,
        values: LiveValues,
        names: Sequence[str],
        given: Mapping[str, str],
        header: Sequence[str],
    ) -> None:
        for name in given:
            if name not in names:
                raise UnknownName("column in '--column'", name, names)
        self._values = values
        self._coded: dict[str, list[str]] = {}
        self.columns: dict[str, str] = {}
        for name in names:
            past = self._past_columns(name)
            named = name not in given or (given[name],) == tuple(past)
            if named and past and all(column in header for column in past):
                self._coded[name] = [f"{name} {at}" for at in range(len(past))]
                self.columns |= dict(zip(self._coded[name], past, strict=True))
            else:
                self.columns[name] = given.get(name, name)

    def value(self, name: str, row: Mapping[str, Any]) -> Any:
        """Return what a column says of a person, as the ledger takes it."""
        if name == "person":
            return row[name]
        coding, own = self._values.coding, [row[at] for at in self._coded.get(name, [name])]
        if name == "group":
            if name in self._coded and coding is not None:
                return coding.group_of(own)
            return self._values.group(own[0])
        if name in self._coded and coding is not None:
            return coding.bit_of(name, own[0])
        return self._values.bit(name, own[0])

    def lacks_outcome(self, row: Mapping[str, Any]) -> bool:
        """Whether a row has a cell for the outcome, and nothing in it."""
        own = [row[at] for at in self._coded.get("outcome", ["outcome"]) if at in row]
        return bool(own) and self._values.is_missing(own[0])

    def _past_columns(self, name: str) -> Sequence[str]:
        coding = self._values.coding
        if coding is None or name == "person":
            return ()
        columns = coding.columns
        return columns.groups if name == "group" else (getattr(columns, name),)
