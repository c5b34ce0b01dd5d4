"""Many corrections of a concluded audit in PostgreSQL: CPU, time, and how long others wait."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import gettempdir

from rich.table import Table
from tests.support.postgres import new_database, postgres
from tests.support.tables import table

from equipoise.ledger import LiveAudit
from equipoise.ledger.commands import Correct
from equipoise.ledger.store import Store
from equipoise.protocol import Want
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld

WORLD = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)})
BATCH = 1000


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--labels", type=int, default=48_000, help="outcomes that are told, at most"
    )
    parser.add_argument("--corrections", type=int, default=300, help="sent as one batch")
    parser.add_argument("--directory", default=gettempdir(), help="where the database is")


def run(options: argparse.Namespace) -> Table:
    """Tell outcomes, conclude, and correct some of them in one batch by a program that starts."""
    out = table(
        "Corrections of a concluded audit in PostgreSQL",
        *("labels", "corrections", "CPU s", "seconds", "longest transaction, s", "verdict"),
    )
    with postgres(options.directory) as server:
        ledger = new_database(server)
        told = fill(ledger, options.labels)
        live = LiveAudit.open(ledger, "corrected")
        live.status()  # a program that starts reads all events; that is measured elsewhere
        commands = [Correct(person, 1 - y, "typo") for person, y in told[:: len(told) // 300]]
        lengths: list[float] = []
        with transactions_timed(lengths):
            cpu = time.process_time()
            begun = time.perf_counter()
            replies = live.run(commands[: options.corrections])
            seconds = time.perf_counter() - begun
            cpu = time.process_time() - cpu
        assert all(reply.problem is None for reply in replies)
        finding = live.finding
        out.add_row(
            f"{len(told):,}",
            f"{len(replies):,}",
            f"{cpu:.1f}",
            f"{seconds:.1f}",
            f"{max(lengths):.2f}",
            "none" if finding is None else str(finding.verdict),
        )
        live.close_ledger()
    return out


def fill(ledger: str, labels: int) -> list[tuple[str, int]]:
    """Let denied people come until so many outcomes are told or there is a verdict; conclude."""
    live = LiveAudit.create(
        *(ledger, "corrected", WORLD.past(None, 0)),
        Question(gamma=0.2656, epsilon=0.02),  # the truth lets both answers be right: it takes long
        Costs(feature=5, label=100),
    )
    told: list[tuple[str, int]] = []
    start = 0
    while len(told) < labels:
        drawn = [person for person in WORLD.draw(2 * BATCH, start) if person.decision == 0][:BATCH]
        rows = [(f"p{start + i}", person.group, 0) for i, person in enumerate(drawn)]
        replies = live.ask_many(rows)
        pairs = zip(replies, drawn, strict=True)
        wanted = [(r.person, p.outcome) for r, p in pairs if r.want is Want.LABEL]
        live.tell_many(wanted)
        told += wanted
        if not wanted and live.finding is not None:
            break  # a verdict came first: nobody else is asked
        start += len(rows)
    live.conclude("enough")
    live.close_ledger()
    return told


@contextmanager
def transactions_timed(lengths: list[float]) -> Iterator[None]:
    """Note how long each write keeps others waiting."""
    original = Store.write

    @contextmanager
    def timed(self: Store, audit_id: int) -> Iterator[object]:
        with original(self, audit_id) as transaction:
            begun = time.perf_counter()
            yield transaction
        lengths.append(time.perf_counter() - begun)

    Store.write = timed  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Store.write = original  # type: ignore[method-assign]
