"""Several programs write to one audit in PostgreSQL: what more of them, and batches, bring."""

from __future__ import annotations

import argparse
import os
import time
from tempfile import gettempdir

import psycopg
from rich.table import Table
from tests.support.postgres import new_database, postgres
from tests.support.tables import table

from bench.measure import file_system
from equipoise.ledger import LiveAudit
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld

WORLD = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)})
BATCH = 500
BARE_COMMITS = 300
IN_MEMORY = ("tmpfs", "ramfs")  # file systems of which nothing is on a disk


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--singles", type=int, default=200, help="asks of each writer")
    parser.add_argument("--batches", type=int, default=8, help="batches of each writer")
    parser.add_argument(
        "--directory", default=gettempdir(), help="where the database is: a disk that flushes"
    )
    parser.add_argument(
        "--in-memory", action="store_true", help="measure on a file system in memory"
    )


def run(options: argparse.Namespace) -> Table:
    """Measure everything against one writer's single asks, in the same minute."""
    kind = file_system(options.directory)
    if kind in IN_MEMORY and not options.in_memory:
        raise SystemExit(
            f"{options.directory} is on a {kind}, where a flush to disk costs nothing: name a "
            "--directory on a disk, or add --in-memory"
        )
    with postgres(options.directory) as server:
        ledger = new_database(server)
        commits = _bare_commits_per_second(ledger)
        LiveAudit.create(
            ledger,
            "shared",
            WORLD.past(None, 0),
            Question(gamma=0.1, epsilon=0.05),
            Costs(feature=5, label=100),
            max_in_flight=100,
        ).close_ledger()
        rates = {
            (kind, writers): _rate(ledger, writers, kind, options)
            for writers in (1, 2, 4, 8)
            for kind in ("single asks", f"batches of {BATCH}")
        }
    one = rates["single asks", 1]
    title = (
        f"Writers of one audit in PostgreSQL, on {kind} with {commits:,.0f} bare commits and "
        f"{one:,.0f} single asks of one writer per second"
    )
    out = table(title, "writers", "single asks", f"batches of {BATCH}")
    for writers in (1, 2, 4, 8):
        single, batch = rates["single asks", writers], rates[f"batches of {BATCH}", writers]
        out.add_row(str(writers), f"{single / one:.2f} of one writer's", f"{batch / one:.1f}")
    return out


def _bare_commits_per_second(ledger: str) -> float:
    """Return how many transactions of one updated row are on disk after a second."""
    with psycopg.connect(ledger, autocommit=True) as connection:
        connection.execute("CREATE TABLE bare (number BIGINT)")
        connection.execute("INSERT INTO bare VALUES (0)")
        begun = time.perf_counter()
        for _ in range(BARE_COMMITS):
            connection.execute("UPDATE bare SET number = number + 1")
        return BARE_COMMITS / (time.perf_counter() - begun)


def _rate(ledger: str, writers: int, kind: str, options: argparse.Namespace) -> float:
    """Return asks per second of so many programs together, from when all of them are ready."""
    ready, start, pids = os.pipe(), os.pipe(), []
    for number in range(writers):
        pid = os.fork()
        if pid == 0:
            try:
                os.close(start[1])
                name, live = f"{writers}-{number}", LiveAudit.open(ledger, "shared")
                live.ask(f"{kind}-{name}", "A", 1)
                os.write(ready[1], b"x")
                os.read(start[0], 1)  # until the other end is closed
                asked = _write(live, name, kind, options)
                os._exit(0 if asked else 1)
            finally:
                os._exit(1)
        pids.append(pid)
    for _ in pids:
        assert os.read(ready[0], 1)
    begun = time.perf_counter()
    os.close(start[1])
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * writers
    seconds = time.perf_counter() - begun
    for end in (*ready, start[0]):
        os.close(end)
    each = options.singles if kind == "single asks" else options.batches * BATCH
    return writers * each / seconds


def _write(live: LiveAudit, name: str, kind: str, options: argparse.Namespace) -> int:
    drawn = list(WORLD.draw(max(options.singles, BATCH), 0))
    if kind == "single asks":
        for i, person in enumerate(drawn[: options.singles]):
            live.ask(f"{name}-{i}", person.group, person.decision)
        return options.singles
    for batch in range(options.batches):
        rows = [(f"{name}-{batch}-{i}", p.group, p.decision) for i, p in enumerate(drawn[:BATCH])]
        live.ask_many(rows)
    return options.batches * BATCH
