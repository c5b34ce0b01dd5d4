"""One handle on a ledger database: SQLite or PostgreSQL, durable, and clean over a fork.

Statements are written once, with ``?`` for values, and run on the drivers themselves. A handle has
one connection, opened when it is needed. Nothing is ever open at a fork: SQLite keeps a process's
locks in memory that a child would inherit and believe in, and two processes on one PostgreSQL
socket garble each other. So Python's fork hooks wait for what is under way, close every handle,
and let parent and child open their own again; a fork that passed the hooks by is found by its
process number, and refused.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from equipoise.errors import InvalidInput, LedgerError, MissingExtra, require_kind
from equipoise.ledger.failures import Explainer, driver_errors
from equipoise.ledger.schema import statements

__all__ = ["Connection", "Database", "connect"]

ADVISORY_KEY = 0x65717569  # any number that other programs will not lock on
FORK_PATIENCE = 60.0  # seconds that a fork waits for other threads' transactions
STREAMED = 2000  # rows fetched at once

Row = tuple[Any, ...]

_handles: weakref.WeakSet[Database] = weakref.WeakSet()
_fork_gate = threading.RLock()
_spoilt: set[Path] = set()  # SQLite files that were in use when this process was forked


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


class Database:
    """A ledger database; may be shared between threads and carried over a fork.

    Parameters
    ----------
    url
        A file name (SQLite), ``sqlite://`` (in memory) or ``postgresql://…``.
    create
        Make the database if there is none.
    timeout
        Seconds to wait for other writers.
    """

    def __init__(self, url: str, *, create: bool = False, timeout: float = 60.0) -> None:
        self.url, self.timeout = url, timeout
        self.kind, self.path = _kind_and_path(url)
        self.shown = _shown(url)
        self.turn = threading.RLock()  # held by a thread from catching up to the commit
        self.after_fork: weakref.WeakMethod[Callable[[], None]] | None = None
        self._lock = threading.RLock()  # held while the connection is in use
        self._pid = os.getpid()
        self._busy = 0
        self._held: list[Connection] = []
        self._explain = Explainer(self.shown, timeout)
        weakref.finalize(self, _let_go, self._held, self._pid)
        with self._explain:
            self._prepare(create)
        _handles.add(self)

    @property
    def in_memory(self) -> bool:
        """Whether the ledger ends with this handle."""
        return self.kind == "sqlite" and self.path is None

    def close(self) -> None:
        """Let go of the connection; it is opened again when needed."""
        with self._lock:
            if not self.in_memory:
                _let_go(self._held, self._pid)

    @contextmanager
    def using(self) -> Iterator[Connection]:
        """Yield the connection, to this thread alone."""
        self._require_own_process()
        with self._lock, self._explain:
            if not self._held:
                self._held.append(connect(self.url, self.timeout))
            self._busy += 1
            try:
                yield self._held[0]
            except driver_errors():
                self.close()  # whatever it was, begin anew
                raise
            finally:
                self._busy -= 1

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Hold a writing transaction; commit at the end, undo everything on an error."""
        with self.using() as connection:
            connection.run("BEGIN IMMEDIATE" if self.kind == "sqlite" else "BEGIN")
            try:
                yield connection
            except BaseException:
                with suppress(*driver_errors()):
                    connection.run("ROLLBACK")
                raise
            self.commit(connection)

    def commit(self, connection: Connection) -> None:
        """Make a transaction durable, or say whether it may have become so."""
        try:
            connection.run("COMMIT")
        except driver_errors() as error:
            if self.kind == "sqlite" and "i/o" not in str(error).lower():
                if connection.raw.in_transaction:
                    connection.run("ROLLBACK")
                raise
            self.close()
            raise LedgerError(
                f"the ledger {self.shown} did not acknowledge ({error}): whether this was stored "
                "is unknown; repeat the call, which is safe: what was stored is answered as it was"
            ) from error

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Yield a connection that sees the database as of one moment; writers go on meanwhile."""
        self._require_own_process()
        if self.in_memory:
            with self.using() as connection:
                connection.run("BEGIN")
                try:
                    yield connection
                finally:
                    connection.run("COMMIT")
            return
        with self._explain, contextlib.closing(connect(self.url, self.timeout)) as connection:
            with self._lock:
                self._busy += 1
            try:
                if self.kind == "sqlite":
                    connection.run("BEGIN")
                else:
                    connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    connection.run("SET LOCAL statement_timeout = 0")
                    connection.run("SET LOCAL idle_in_transaction_session_timeout = 0")
                yield connection
            finally:
                with self._lock:
                    self._busy -= 1

    # -- opening ----------------------------------------------------------------------------------

    def _prepare(self, create: bool) -> None:
        if self.kind == "sqlite" and self.path is not None and not self.path.exists():
            if not create:
                raise LedgerError(f"no ledger at {self.path}; make one with: equipoise audit new")
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # The seed is in it. SQLite gives its journal files the rights of the file.
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        self._require_own_process()
        self._held.append(connect(self.url, self.timeout))
        connection = self._held[0]
        if _version(connection) == 0 and not create:
            raise LedgerError(f"no ledger in {self.shown}; make one with: equipoise audit new")
        if statements(_version(connection), self.kind):
            self._upgrade(connection)

    def _upgrade(self, connection: Connection) -> None:
        connection.run("BEGIN IMMEDIATE" if self.kind == "sqlite" else "BEGIN")
        try:
            if self.kind == "postgresql":
                connection.run(f"SELECT pg_advisory_xact_lock({ADVISORY_KEY})")
            for statement in statements(_version(connection), self.kind):
                connection.run(statement)
            connection.run("COMMIT")
        except BaseException:
            with suppress(*driver_errors()):
                connection.run("ROLLBACK")
            raise

    # -- forks ------------------------------------------------------------------------------------

    def _require_own_process(self) -> None:
        if self.path is not None and self.path.resolve() in _spoilt:
            raise LedgerError(
                f"{self.path} was in use when this process was forked, so SQLite cannot be trusted "
                "with it here; fork between calls, or open the ledger after the fork"
            )
        if os.getpid() == self._pid:
            return
        if self.in_memory:
            raise LedgerError(
                "a ledger in memory belongs to the process that made it; use a file for several"
            )
        if self._held and self.kind == "sqlite":  # the fork went past Python's hooks
            raise LedgerError(
                f"{self.path} was open when this process was forked; open it after the fork"
            )
        self._start_anew()

    def _start_anew(self) -> None:
        """Forget what belongs to the parent, without closing it."""
        self._pid = os.getpid()
        _abandoned.extend(self._held)
        self._held = []
        weakref.finalize(self, _let_go, self._held, self._pid)
        self._busy = 0
        self.turn, self._lock = threading.RLock(), threading.RLock()
        tell = None if self.after_fork is None else self.after_fork()
        if tell is not None:
            tell()

    def before_fork(self) -> None:
        """Wait for what is under way and close."""
        self._ours = self.turn.acquire(timeout=FORK_PATIENCE)
        self._ours_too = self._lock.acquire(timeout=FORK_PATIENCE)
        if self._ours and self._ours_too and not self._busy:
            self.close()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        if self._ours_too:
            self._lock.release()
        if self._ours:
            self.turn.release()

    def after_fork_in_child(self) -> None:
        """Begin anew; if something was under way in the parent, make sure that it is noticed."""
        if self.in_memory:
            return
        if self._busy and self.path is not None:
            _spoilt.add(self.path.resolve())
        else:
            self._start_anew()


_abandoned: list[Connection] = []  # of parents: never closed here, not even by a garbage collector


def _before() -> None:
    _fork_gate.acquire()
    for handle in list(_handles):
        handle.before_fork()


def _in_parent() -> None:
    for handle in list(_handles):
        handle.after_fork_in_parent()
    _fork_gate.release()


def _in_child() -> None:
    for handle in list(_handles):
        handle.after_fork_in_child()
    _fork_gate.release()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


def _let_go(held: list[Connection], pid: int) -> None:
    if pid == os.getpid():
        while held:
            with suppress(*driver_errors()):
                held.pop().close()
    else:
        _abandoned.extend(held)


def connect(url: str, timeout: float = 60.0) -> Connection:
    """Open a connection on which what is committed is durable."""
    kind, path = _kind_and_path(url)
    return _connect_sqlite(path, timeout) if kind == "sqlite" else _connect_postgres(url, timeout)


def _connect_sqlite(path: Path | None, timeout: float) -> Connection:
    raw = sqlite3.connect(
        ":memory:" if path is None else path,
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
                    f"the server of {_shown(url)} runs with {setting}=off: what it acknowledges "
                    f"may be lost; set {setting}=on there"
                )
        connection.run(f"SET lock_timeout = {wait}")
        connection.run(f"SET statement_timeout = {wait + 60_000}")
        connection.run(f"SET idle_in_transaction_session_timeout = {wait + 60_000}")
    except BaseException:
        connection.close()
        raise
    return connection


def _shown(url: str) -> str:
    """Return the address without its password."""
    secret = urlsplit(url).password if url.startswith("postgres") else None
    return url if secret is None else url.replace(f":{secret}@", ":***@", 1)


def _kind_and_path(url: str) -> tuple[str, Path | None]:
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


def _version(connection: Connection) -> int:
    if connection.kind == "sqlite":
        names = {row[0] for row in connection.run("SELECT name FROM sqlite_master")}
    else:
        found = connection.run(
            "SELECT table_name FROM information_schema.tables "
            "WHERE table_schema = ANY (current_schemas(false))"
        )
        names = {row[0] for row in found}
    if "alembic_version" in names:
        raise LedgerError("a ledger from before the first release; use the program that made it")
    if "ledger_schema" not in names:
        return 0
    version: int = connection.run("SELECT version FROM ledger_schema").fetchone()[0]
    return version
