"""A file of a million people with three bad rows: the rest goes in, sending it again is free."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from equipoise.ledger import LiveAudit
from equipoise.people import BatchResult, RowReader, carry_out, read_people
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld
from tests.support.postgres import in_memory

WORLD = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)})
BAD = ("x,Nowhere,0", "y,A,maybe", "z,A")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=1_000_000)


def run(options: argparse.Namespace) -> str:
    with tempfile.TemporaryDirectory(dir=in_memory()) as directory:
        path = Path(directory) / "people.csv"
        write_people(path, options.rows)
        live = LiveAudit.create(
            f"{directory}/ledger.db",
            "import",
            WORLD.past(None, 0),
            Question(gamma=0.1, epsilon=0.01),
            Costs(feature=5, label=100),
            budget=1_000_000,
            max_in_flight=1000,
        )
        lines = []
        for attempt in ("first", "again"):
            start = time.process_time()
            done = import_people(live, path)
            refused = ", ".join(f"line {row['line']:,}" for row in done.refused)
            lines.append(
                f"{attempt}: {done.rows:,} rows, {done.new:,} new, {done.repeated:,} known, "
                f"refused: {refused}; {time.process_time() - start:.0f} CPU seconds"
            )
        status = live.status()
        assert status.people == options.rows - len(BAD)
        start = time.process_time()
        live.verify()
        lines.append(f"everything verifies; {time.process_time() - start:.0f} CPU seconds")
        return "\n".join(lines)


def import_people(live: LiveAudit, path: Path) -> BatchResult:
    """Ask about everybody in the file."""
    table = read_people(path)
    total = BatchResult()
    for row_result in carry_out(
        table.rows, RowReader(live.settings, "ask", table.header), live.attempt
    ):
        total.add(row_result)
    return total


def write_people(path: Path, rows: int) -> None:
    """Write a file with a bad row near the beginning, in the middle and at the end."""
    bad = dict(zip((rows // 10, rows // 2, rows - 1), BAD, strict=True))
    with path.open("w") as file:
        file.write("person,group,decision\n")
        for start in range(0, rows, 10_000):
            people = WORLD.draw(min(10_000, rows - start), start)
            for i, person in enumerate(people, start=start):
                file.write(bad.get(i, f"p{i},{person.group},{person.decision}") + "\n")
