"""A connection to a ledger database: SQLite or PostgreSQL, set so that what it commits is durable.

Statements are written once, with ``?`` for values, and run on the drivers themselves.
"""

from __future__ import annotations

import importlib.util
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from equipoise.errors import InvalidInput, LedgerError, MissingExtra, require_kind
from equipoise.ledger.failures import driver_errors

__all__ = ["Connection", "connect", "kind_and_path", "shown"]

STREAMED = 2000  # rows fetched at once

Row = tuple[Any, ...]


class Connection:
    """A driver's connection with one way to run a statement."""

    def __init__(self, raw: Any, kind: str) -> None:
        self.raw = raw
        self.kind = kind

    def run(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement and return its cursor."""
        return self.raw.execute(self._own(sql), values)

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once per row."""
        if len(rows) == 1:
            self.run(sql, rows[0])
        elif rows:
            self.raw.cursor().executemany(self._own(sql), rows)

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add rows; PostgreSQL takes many in one stream, which is several times quicker."""
        names = ", ".join(columns)
        if self.kind == "postgresql" and len(rows) > 1:
            with self.raw.cursor().copy(f"COPY {table} ({names}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        else:
            marks = ", ".join("?" * len(columns))
            self.run_many(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """Yield rows without holding all of them; inside a transaction."""
        name = {} if self.kind == "sqlite" else {"name": "ledger_stream"}
        cursor = self.raw.cursor(**name)
        try:
            cursor.execute(self._own(sql), values)
            while rows := cursor.fetchmany(STREAMED):
                yield from rows
        finally:
            with suppress(*driver_errors()):  # whoever stopped early may have closed everything
                cursor.close()

    def among(self, column: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
        """Return a condition that a column is one of the values, and what to pass for it."""
        if self.kind == "sqlite":
            return f"{column} IN ({','.join('?' * len(values))})", list(values)
        return f"{column} = ANY(?)", [list(values)]

    def clock(self) -> datetime:
        """Return the time by the clock of the machine that has the database."""
        if self.kind == "sqlite":
            return datetime.now(UTC)
        now: datetime = self.run("SELECT clock_timestamp()").fetchone()[0]
        return now.astimezone(UTC)

    def close(self) -> None:
        """Let go."""
        self.raw.close()

    def _own(self, sql: str) -> str:
        return sql if self.kind == "sqlite" else sql.replace("?", "%s")


def connect(url: str, timeout: float = 60.0) -> Connection:
    """Open a connection on which what is committed is durable."""
    kind, path = kind_and_path(url)
    return _connect_sqlite(path, timeout) if kind == "sqlite" else _connect_postgres(url, timeout)


def _connect_sqlite(path: Path | None, timeout: float) -> Connection:
    raw = sqlite3.connect(
        # mode=rw: a file that is gone is not made anew, empty and readable by all
        ":memory:" if path is None else f"{path.absolute().as_uri()}?mode=rw",
        uri=path is not None,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
    )
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        "secure_delete=ON",
        "trusted_schema=OFF",
        "cache_size=-32768",
        "wal_autocheckpoint=4000",
    ):
        raw.execute(f"PRAGMA {pragma}")
    return Connection(raw, "sqlite")


def _connect_postgres(url: str, timeout: float) -> Connection:
    import psycopg

    raw = psycopg.connect(url, autocommit=True, connect_timeout=30, keepalives_idle=30)
    connection, wait = Connection(raw, "postgresql"), max(1, int(timeout * 1000))
    try:
        waits = connection.run("SHOW synchronous_commit").fetchone()[0]
        if waits not in ("on", "remote_apply"):
            connection.run("SET synchronous_commit = on")
        for setting in ("fsync", "full_page_writes"):
            if connection.run(f"SHOW {setting}").fetchone()[0] != "on":
                raise LedgerError(
                    f"the server of {shown(url)} runs with {setting}=off: what it acknowledges "
                    f"may be lost; set {setting}=on there"
                )
        connection.run(f"SET lock_timeout = {wait}")
        connection.run(f"SET statement_timeout = {wait + 60_000}")
        connection.run(f"SET idle_in_transaction_session_timeout = {wait + 60_000}")
    except BaseException:
        connection.close()
        raise
    return connection


def shown(url: str) -> str:
    """Return the address without its password, wherever it stands.

    Examples
    --------
    >>> shown("postgresql://anna:secret@db/audits?password=secret&sslmode=require")
    'postgresql://anna:***@db/audits?password=***&sslmode=require'
    """
    if not url.startswith("postgres"):
        return url
    start, mark, rest = url.rpartition("@")
    found = re.sub(r"(://[^:/]*):.*", r"\1:***", start) + mark + rest
    return re.sub(r"(?i)((?:ssl)?passw?o?r?d?=)[^&]*", r"\1***", found)


def kind_and_path(url: str) -> tuple[str, Path | None]:
    """Return which database an address is of, and the file if it is one."""
    require_kind("ledger", url, str, "a file name or an address, as text")
    if url in ("sqlite://", "sqlite:///:memory:", ":memory:"):
        return "sqlite", None
    scheme, mark, rest = url.partition("://")
    if not mark:
        return "sqlite", Path(url)
    if scheme == "sqlite":
        return "sqlite", Path(rest.removeprefix("/"))
    if scheme in ("postgres", "postgresql"):
        if importlib.util.find_spec("psycopg") is None:
            raise MissingExtra("psycopg", extra="postgres", purpose="ledgers in PostgreSQL")
        return "postgresql", None
    raise InvalidInput(
        f"a ledger lives in SQLite (a file name) or PostgreSQL (postgresql://…); got {url!r}"
    )
