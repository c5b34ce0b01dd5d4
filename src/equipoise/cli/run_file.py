"""Carry out a file of commands against a live audit: every row reported, none half-done."""

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
from equipoise.errors import InvalidInput
from equipoise.ledger.commands import Command, Reply

if TYPE_CHECKING:
    from equipoise.ledger import LiveAudit

__all__ = ["BatchResult", "carry_out"]

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
