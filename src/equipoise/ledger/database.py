"""One handle on a ledger database: SQLite or PostgreSQL, durable, and clean over a fork.

A handle has one connection, opened when it is needed. Nothing is ever open at a fork: SQLite keeps
a process's locks in memory that a child would inherit and believe in, and two processes on one
PostgreSQL socket garble each other. So Python's fork hooks wait for what is under way, close every
handle, and let parent and child open their own again; a fork that passed the hooks by is found by
its process number, and refused.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from equipoise.errors import LedgerError, require_non_negative
from equipoise.ledger.connection import Connection, connect, kind_and_path, shown
from equipoise.ledger.failures import Explainer, driver_errors
from equipoise.ledger.schema import statements

__all__ = ["Connection", "Database", "connect"]

ADVISORY_KEY = 0x65717569  # any number that other programs will not lock on
FORK_PATIENCE = 60.0  # seconds that a fork waits for other threads' transactions

_handles: weakref.WeakSet[Database] = weakref.WeakSet()
_fork_gate = threading.RLock()
_spoilt: set[Path] = set()  # SQLite files that were in use when this process was forked


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
        require_non_negative("timeout", timeout)
        self.kind, self.path = kind_and_path(url)
        self.shown, self.url, self.timeout = shown(url), url, timeout
        if self.path is not None:  # the same file wherever the program goes
            self.path = self.path.absolute()
            self.url = str(self.path)
        self._file: tuple[int, int] | None = None  # device and number of the file in use
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
                self._connect()
            self._require_same_file()
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
                raise LedgerError(f"no ledger at {self.shown}; make one with: equipoise audit new")
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # The seed is in it. SQLite gives its journal files the rights of the file.
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        self._require_own_process()
        connection = self._connect()
        if _version(connection) == 0 and not create:
            raise LedgerError(f"no ledger in {self.shown}; make one with: equipoise audit new")
        if statements(_version(connection), self.kind):
            self._upgrade(connection)

    def _connect(self) -> Connection:
        self._held.append(connect(self.url, self.timeout))
        self._file = self._file_now()
        return self._held[0]

    def _file_now(self) -> tuple[int, int] | None:
        try:
            found = None if self.path is None else os.stat(self.path)
        except FileNotFoundError:
            found = None
        return None if found is None else (found.st_dev, found.st_ino)

    def _require_same_file(self) -> None:
        """Refuse a file that was removed or replaced: SQLite would go on writing to the old one."""
        if self._file_now() != self._file:
            self.close()
            raise LedgerError(
                f"{self.shown} was removed or replaced while it was open; nothing was stored, "
                "repeat the call to use the file that is there now"
            )

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
        if _spoilt and self.path is not None and self.path.resolve() in _spoilt:
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
