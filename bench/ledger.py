"""Live audits: durable asks against bare fsync, batches, and the millionth person."""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.table import Table
from tests.support.tables import CACHE, table

from equipoise.ledger import LiveAudit
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld

WORLD = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)})
SINGLES, BATCHES, BATCH = 300, 20, 100


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--directory", type=Path, default=CACHE, help="where the disk is measured")


def run(options: argparse.Namespace) -> Table:
    """Measure everything in turns, so that a busy machine is busy for all of them."""
    options.directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        early = _Asker(Path(directory) / "early.db")
        late = _Asker(Path(directory) / "late.db")
        early.fill(10_000)
        late.fill(options.people)
        tasks: dict[str, Callable[[], float]] = {
            "bare fsync append": lambda: _append_rate(Path(directory) / "bare", early.event_size),
            "single asks": early.single_rate,
            "batches of 100": early.batch_rate,
            "late single asks": late.single_rate,
        }
        rates: dict[str, list[float]] = {name: [] for name in tasks}
        for _ in range(options.rounds):
            for name, task in tasks.items():
                rates[name].append(task())
    out = table("Live audits on SQLite (medians over rounds)", "task", "per second", "ratio")
    bare, single, batch, last = (statistics.median(found) for found in rates.values())
    out.add_row("append + fsync of one event, bare", f"{bare:,.0f}", "")
    out.add_row("durable single asks at 10,000 people", f"{single:,.0f}",
                f"{_ratio(rates, 'single asks', 'bare fsync append'):.2f} of bare")  # fmt: skip
    out.add_row(f"asks in batches of {BATCH}", f"{batch:,.0f}",
                f"{_ratio(rates, 'batches of 100', 'single asks'):.1f} x single")  # fmt: skip
    out.add_row(f"durable single asks at {options.people:,} people", f"{last:,.0f}",
                f"{_ratio(rates, 'single asks', 'late single asks'):.2f} x the cost")  # fmt: skip
    return out


def _ratio(rates: dict[str, list[float]], above: str, below: str) -> float:
    return statistics.median(a / b for a, b in zip(rates[above], rates[below], strict=True))


class _Asker:
    """An audit that never ends, and people who keep coming."""

    def __init__(self, path: Path) -> None:
        self._number = 0
        self._live = LiveAudit.create(
            str(path),
            "bench",
            WORLD.past(None, 0),
            Question(gamma=0.1, epsilon=0.01),
            Costs(feature=5, label=100),
            budget=1_000_000,
            max_in_flight=1000,  # soon reached, as it is when outcomes take months
        )

    @property
    def event_size(self) -> int:
        return max(len(line) for line in self._live.lines() if '"asked"' in line)

    def fill(self, people: int) -> None:
        while self._number < people:
            self._live.ask_many(self._people(min(1000, people - self._number)))

    def single_rate(self) -> float:
        start = time.perf_counter()
        for person in self._people(SINGLES):
            self._live.ask(*person)
        return SINGLES / (time.perf_counter() - start)

    def batch_rate(self) -> float:
        batches = [self._people(BATCH) for _ in range(BATCHES)]
        start = time.perf_counter()
        for batch in batches:
            self._live.ask_many(batch)
        return BATCHES * BATCH / (time.perf_counter() - start)

    def _people(self, size: int) -> list[tuple[str, str, int]]:
        drawn = WORLD.draw(size, self._number)
        start, self._number = self._number, self._number + size
        # Pseudonyms are spread, as hashes would be: every insert goes to another page.
        return [
            (f"{(start + i) * 2654435761 % 2**32:08x}-{start + i}", p.group, p.decision)
            for i, p in enumerate(drawn)
        ]


def _append_rate(path: Path, size: int) -> float:
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        start = time.perf_counter()
        for _ in range(SINGLES):
            os.write(file, b"x" * size)
            os.fsync(file)
        return SINGLES / (time.perf_counter() - start)
    finally:
        os.close(file)
