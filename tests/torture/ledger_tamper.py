"""Tampering: every changed byte of an export, every changed table and column of a database."""

from __future__ import annotations

import argparse
import io
import random
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import combinations
from pathlib import Path
from typing import Any

from equipoise.audits.scores import Assist
from equipoise.errors import LedgerError
from equipoise.ledger import LiveAudit
from equipoise.ledger.database import Connection, connect, driver_errors
from equipoise.ledger.store import CACHE_TABLE, Store, statements
from equipoise.ledger.verify import Broken, verify
from equipoise.protocol import Want
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld
from tests.torture import _attacks
from tests.torture.ledger_kill import place

WORLD = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)})
ROUND = 250  # changes of one database
TABLES = ("audits", "events", "people", "command_keys", "ledger_schema")
WORDS = ("", "x", "RESERVED", "NOTHING", "A", "0" * 64, "2099-01-01T00:00:00.000000Z", "{}")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--people", type=int, default=10)
    parser.add_argument("--bits", type=int, default=8, help="bits of each byte to flip, up to 8")
    parser.add_argument("--total", type=int, default=10_000, help="changes of a database")


def run(options: argparse.Namespace) -> str:
    """Change an export in every way, and add to what earlier runs did to databases."""
    _attacks.cache_often()
    said = []
    if not _attacks.counted("ledger_tamper", "export", "changes"):
        export, head = small_export(options.people)
        found = [is_found(changed, head) for changed in changes(export, options.bits)]
        counts = {"changes": len(found), "not_found": found.count(False)}
        _attacks.add("ledger_tamper", "export", **counts)
    for kind, share in (("sqlite", 0.9), ("postgresql", 0.1)):
        while _attacks.counted("ledger_tamper", kind, "changes") < share * options.total:
            with place(kind) as ledger:
                tried, escaped = tamper_with_tables(ledger, ROUND, seed=time.time_ns())
            _attacks.add("ledger_tamper", kind, changes=tried, not_found=len(escaped))
            said += [f"{kind}: {what}" for what in escaped]
    return "\n".join(said) or "nothing escaped"


def small_export(people: int) -> tuple[bytes, str]:
    """Return the export of a small audit and its head."""
    live = small_audit("sqlite://", people)
    return "".join(f"{line}\n" for line in live.lines()).encode(), live.checkpoint().hash


def small_audit(ledger: str, people: int, **more: Any) -> LiveAudit:
    """Return an audit with a bit of everything."""
    live = LiveAudit.create(
        ledger,
        "tampered",
        WORLD.past(None, 0),
        Question(gamma=0.1, epsilon=0.2),
        Costs(feature=5, label=100),
        audit="rs",
        options={"tau": 5},
        lottery=0.9,
        budget=100_000,
        max_in_flight=50,
        **more,
    )
    for i, person in enumerate(WORLD.draw(people, 0)):
        if live.ask(f"p{i}", person.group, person.decision, key=f"key {i}").want is Want.LABEL:
            live.tell(f"p{i}", person.outcome)
    return live


def with_scores(ledger: str, people: int) -> LiveAudit:
    """Return an audit that looks at scores before it asks."""
    live = LiveAudit.create(
        ledger,
        "scored",
        WORLD.past(None, 0),
        Question("false_omission_parity", gamma=0.05, epsilon=0.1),
        Costs(feature=1, label=100),
        options={"assist": Assist(max_price=400)},
    )
    rng = random.Random(0)
    for i, person in enumerate(WORLD.draw(people, 1)):
        score, price = rng.gauss(3.0 * person.outcome, 1.0), rng.randint(50, 400)
        reply = live.ask(f"p{i}", person.group, person.decision, score=score, price=price)
        if reply.want is Want.LABEL:
            live.tell(reply.person, person.outcome)
    return live


def changes(export: bytes, bits: int) -> Iterator[bytes]:
    """Yield the export with every bit flip, byte and line drop, swap, and truncation."""
    for at in range(len(export)):
        for bit in range(bits):
            yield export[:at] + bytes([export[at] ^ (1 << bit)]) + export[at + 1 :]
        yield export[:at] + export[at + 1 :]
        yield export[:at]
        if at and export[at] != export[at - 1]:
            swapped = bytes([export[at], export[at - 1]])
            yield export[: at - 1] + swapped + export[at + 1 :]
    lines = export.splitlines(keepends=True)
    for i in range(len(lines)):
        yield b"".join(lines[:i] + lines[i + 1 :])
        yield b"".join([*lines[: i + 1], *lines[i:]])
    for i, j in combinations(range(len(lines)), 2):
        moved = list(lines)
        moved[i], moved[j] = moved[j], moved[i]
        yield b"".join(moved)


def is_found(export: bytes, head: str) -> bool:
    """Whether the change is found."""
    try:
        verify(io.BytesIO(export), head=head)
    except Broken:
        return True
    return False


# -- a database ------------------------------------------------------------------------------------


def tamper_with_tables(ledger: str, count: int, seed: int) -> tuple[int, list[str]]:
    """Change so many cells, rows and rules of a new ledger; return tries and what was not found.

    Every column of every table has its turn before any has a second one.
    """
    lives = [small_audit(ledger, 25), with_scores(ledger, 60)]
    heads = [(live.checkpoint().seq, live.checkpoint().hash) for live in lives]
    for live in lives:
        live.verify()
        live.close_ledger()
    rng, escaped, tried = random.Random(seed), [], 0
    with closing(Store(ledger)) as store:
        targets = _targets(store)
    while tried < count:
        rng.shuffle(targets)
        for table, column in targets[: count - tried]:
            with _restored(ledger):
                what = _change(ledger, table, column, rng)
                if what is None:
                    continue
                tried += 1
                if not _is_noticed(ledger, heads):
                    escaped.append(what)
    return tried, escaped


def _targets(store: Store) -> list[tuple[str, str]]:
    found = []
    with store.using() as connection:
        for table in TABLES:
            cursor = connection.run(f"SELECT * FROM {table}")
            found += [(table, column[0]) for column in cursor.description]
            cursor.fetchall()
            if table in ("audits", "events", "people", "command_keys"):
                found.append((table, "a row is gone"))
            if table in ("people", "events"):
                found.append((table, "a row is doubled"))
    return found


class _restored:  # noqa: N801
    """Put a SQLite file back as it was; what is done to PostgreSQL undoes itself by copy."""

    def __init__(self, ledger: str) -> None:
        self.ledger = ledger

    def __enter__(self) -> None:
        if self.ledger.startswith("postgresql"):
            with closing(connect(self.ledger)) as connection:
                for table in TABLES:
                    connection.run(f"CREATE TABLE IF NOT EXISTS kept_{table} AS TABLE {table}")
        else:
            shutil.copy(self.ledger, f"{self.ledger}.kept")

    def __exit__(self, *_: object) -> None:
        if not self.ledger.startswith("postgresql"):
            for end in ("-wal", "-shm"):
                Path(self.ledger + end).unlink(missing_ok=True)
            shutil.copy(f"{self.ledger}.kept", self.ledger)
            return
        with closing(connect(self.ledger)) as connection:
            for table in (CACHE_TABLE, *reversed(TABLES)):  # the cache refers to audits
                connection.run(f"DROP TABLE IF EXISTS {table} CASCADE")
            connection.run("DROP FUNCTION IF EXISTS events_are_append_only CASCADE")
            for statement in statements("postgresql"):
                connection.run(statement)
            connection.run("DELETE FROM ledger_schema")
            for table in TABLES:
                connection.run(f"INSERT INTO {table} SELECT * FROM kept_{table}")


def _change(ledger: str, table: str, column: str, rng: random.Random) -> str | None:
    """Do one thing behind the ledger's back; None if the database would not let it happen."""
    with closing(connect(ledger)) as connection:
        rows = connection.run(f"SELECT * FROM {table}").fetchall()
        names = [c[0] for c in connection.run(f"SELECT * FROM {table}").description]
        row = rng.choice(rows)
        where = " AND ".join(
            f"{n} IS NULL" if v is None else f"{n} = ?" for n, v in zip(names, row, strict=True)
        )
        known = [v for v in row if v is not None]
        try:
            return _do(connection, table, column, (names, row, where, known), rng)
        except driver_errors():
            return None


def _do(
    connection: Connection, table: str, column: str, target: Any, rng: random.Random
) -> str | None:
    names, row, where, known = target
    with _unguarded(connection, table):
        if column == "a row is gone":
            connection.run(f"DELETE FROM {table} WHERE {where}", known)
        elif column == "a row is doubled":
            key = "number" if table == "people" else "seq"
            largest = connection.run(f"SELECT MAX({key}) FROM {table}").fetchone()[0]
            new = [largest + 1 if n == key else v for n, v in zip(names, row, strict=True)]
            marks = ", ".join("?" * len(new))
            new = [f"{v}'" if n == "person" else v for n, v in zip(names, new, strict=True)]
            connection.run(f"INSERT INTO {table} VALUES ({marks})", new)
        else:
            old = row[names.index(column)]
            value = _another(old, rng)
            connection.run(f"UPDATE {table} SET {column} = ? WHERE {where}", [value, *known])
            return f"{table}.{column}: {str(old)[:60]!r} -> {str(value)[:60]!r}"
    return f"{table}: {column}"


class _unguarded:  # noqa: N801
    """Take the guards of events away, and put them back so that nobody sees it."""

    def __init__(self, connection: Connection, table: str) -> None:
        self.connection, self.guards = connection, []
        if connection.kind == "sqlite":
            connection.run("PRAGMA foreign_keys = OFF")
            if table == "events":
                self.guards = connection.run(
                    "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
                ).fetchall()

    def __enter__(self) -> None:
        if self.connection.kind == "postgresql":
            self.connection.run("SET session_replication_role = replica")
        for name, _ in self.guards:
            self.connection.run(f"DROP TRIGGER {name}")

    def __exit__(self, *_: object) -> None:
        for _, text in self.guards:
            self.connection.run(text)


def _another(old: Any, rng: random.Random) -> Any:
    """Return another value, as a clumsy or a clever forger would choose it."""
    if isinstance(old, int):
        return rng.choice([v for v in (old + 1, old - 1, 0, 1, 7, 2**40, None) if v != old])
    if old is None:
        return rng.choice((0, 1, 5))
    at = rng.randrange(len(old)) if old else 0
    flipped = old[:at] + chr(ord(old[at]) ^ 1) + old[at + 1 :] if old else "y"
    digits = [i for i, c in enumerate(old) if c.isdigit()]
    if digits:
        at = rng.choice(digits)
        flipped = rng.choice([flipped, old[:at] + str((int(old[at]) + 1) % 10) + old[at + 1 :]])
    return rng.choice([v for v in (flipped, flipped, flipped, *WORDS, None) if v != old])


def _is_noticed(ledger: str, heads: list[tuple[int, str]]) -> bool:
    """Whether one of the audits no longer opens or verifies."""
    for name, head in zip(("tampered", "scored"), heads, strict=True):
        try:
            live = LiveAudit.open(ledger, name)
        except (LedgerError, ValueError):
            return True
        try:
            live.verify([head])
        except LedgerError:
            return True
        finally:
            with suppress(LedgerError):
                live.close_ledger()
    return False
