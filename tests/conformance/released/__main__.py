"""Write the ledgers of the present schema, once, before it is released."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import psycopg
from psycopg.sql import Literal
from study.postgres import new_database, postgres

from equipoise.errors import Conflict
from equipoise.ledger import driver
from equipoise.ledger.schema import VERSION, statements
from equipoise.question import Want
from tests.conformance.ledgers import create, people

HERE = Path(__file__).parent


def fill(ledger: str) -> None:
    """Let everything happen that a ledger records."""
    driver.SNAPSHOT_EVERY = 30
    live = create(
        ledger, "loans", budget=20_000, approvals=("corrected",), lottery=0.8, actor="anna"
    )
    wanted = []
    for person, group, decision, outcome in people(40):
        if live.ask(person, group, decision).want is Want.LABEL:
            wanted.append((person, outcome))
    for person, outcome in wanted[:-6]:
        live.tell(person, outcome)
    with suppress(Conflict):
        live.tell(wanted[0][0], 1 - wanted[0][1])
    proposed = live.correct(wanted[0][0], 1 - wanted[0][1], "a typing error")
    assert proposed.number is not None
    live.acting_as("bert").approve(proposed.number)
    live.executed(wanted[-6][0])
    live.withdraw(wanted[-5][0])
    live.overdue(days=0)
    live.write_off(wanted[-4][0])
    live.erase(wanted[1][0])
    live.set_budget(25_000, "more money")
    live.set_limits(50, why="more hands")
    live.pause("a holiday")
    live.resume("back")
    live.close_ledger()


def dumped(ledger: str) -> str:
    """Return the statements that made a ledger in PostgreSQL, and those that fill it again."""
    lines = list(statements(0, "postgresql"))
    with psycopg.connect(ledger) as connection:
        for table in ("audits", "events", "people", "snapshots", "features"):
            for row in connection.execute(f"SELECT * FROM {table}"):  # type: ignore[call-overload]
                values = ", ".join(Literal(value).as_string(connection) for value in row)
                lines.append(f"INSERT INTO {table} VALUES ({values})")
    return ";\n".join(lines) + ";\n"


def main() -> None:
    """Write both files; refuse to change what is released."""
    path = HERE / f"v{VERSION}.db"
    if path.exists():
        raise SystemExit(f"{path} is there already; a released ledger is never made again")
    fill(str(path))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")
    with postgres() as server:
        ledger = new_database(server)
        fill(ledger)
        path.with_suffix(".sql").write_text(dumped(ledger))


if __name__ == "__main__":
    main()
