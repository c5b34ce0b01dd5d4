"""One handle on a ledger database: SQLite or PostgreSQL, set so that what it commits is durable.

Statements are written once, with ``?`` for values, and run on the drivers themselves. A handle has
one connection, opened when it is needed, and belongs to the process that made it: SQLite keeps a
process's locks in memory that a forked child would inherit and believe in, and two processes on
one PostgreSQL socket garble each other. So a child refuses handles, and SQLite files, that were
open when it was forked, and says how to open them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import select
import sqlite3
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from equipoise.database_url import check_database_url, display_url, hide_secrets
from equipoise.errors import (
    InvalidInput,
    LedgerError,
    MissingExtra,
    require_kind,
    require_non_negative,
)
from equipoise.messages.refusals import Refusal, to_python


def driver_errors() -> tuple[type[Exception], ...]:
    """Return the base errors of the drivers in use."""
    # None while psycopg is being imported
    psycopg_error = getattr(sys.modules.get("psycopg"), "Error", None)
    return (sqlite3.Error,) if psycopg_error is None else (sqlite3.Error, psycopg_error)


_LIKE_AN_ADDRESS = re.compile(r"(?i)^postgres(ql)?:|passw(or)?d\s*=")
_SAFE_TO_REPEAT = "nothing was stored; repeating the call is safe"
_COMPLAINTS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("locked", "lock timeout", "busy"),
        "the ledger {ledger} was locked by others for {timeout:g} s; {repeat}",
    ),
    (("full", "no space"), "no space left for the ledger {ledger}; {repeat} once space is free"),
    (
        ("not a database", "malformed"),
        "{ledger} is not a ledger, or is damaged ({words}); restore it from a backup",
    ),
    (
        ("readonly", "read-only"),
        "the ledger {ledger} is read-only; {repeat} where writing is allowed",
    ),
    (("unable to open",), "cannot open the ledger {ledger}: {words}"),
)
"""Words of which one is in a driver's complaint, and the sentence that we make of it."""
_OTHER_COMPLAINT = "the ledger {ledger} failed ({words}); {repeat}"


class Connection:
    """A driver's connection with one way to run a statement.

    ``is_immutable``: SQLite takes it for granted that nobody changes the file.
    """

    def __init__(self, raw: Any, kind: str, *, is_immutable: bool = False) -> None:
        self.raw = raw
        self.kind = kind
        self.is_immutable = is_immutable

    def run(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement and return its cursor."""
        return self.raw.execute(self._for_driver(sql), values)

    def insert(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], otherwise: str = ""
    ) -> None:
        """Add rows; ``otherwise`` says what to do where one is there already."""
        if not rows:
            return
        names = ", ".join(columns)
        placeholders = ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table} ({names}) VALUES ({placeholders}) {otherwise}"
        self.raw.cursor().executemany(self._for_driver(sql), rows)

    def stream(self, sql: str, values: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
        """Return rows one by one, without holding all of them."""
        if self.kind == "sqlite":
            return self.run(sql, values)  # type: ignore[no-any-return]
        return self.raw.cursor().stream(self._for_driver(sql), values)  # type: ignore[no-any-return]

    def among(self, column: str, values: Sequence[Any]) -> tuple[str, Any]:
        """Return a condition that a column is one of the values, and what to pass for it."""
        if self.kind == "sqlite":
            return f"{column} IN (SELECT value FROM json_each(?))", json.dumps(values)
        return f"{column} = ANY(?)", values

    def clock(self) -> datetime:
        """Return the time by the clock of the machine that has the database."""
        if self.kind == "sqlite":
            return datetime.now(UTC)
        server_time: datetime = self.run("SELECT clock_timestamp()").fetchone()[0]
        return server_time.astimezone(UTC)

    def is_stale(self) -> bool:
        """Say whether the server has ended an idle connection, after a restart for example.

        A server sends nothing to an idle connection but its end, so a socket that can be read is
        one that was closed.
        """
        if self.kind == "sqlite":
            return False
        from psycopg.pq import TransactionStatus

        if self.raw.closed:
            return True
        if self.raw.info.transaction_status != TransactionStatus.IDLE:
            return False  # within a transaction the server may be sending rows
        readable, _, _ = select.select([self.raw.fileno()], [], [], 0)
        return bool(readable)

    def close(self) -> None:
        """Let go."""
        self.raw.close()

    def _for_driver(self, sql: str) -> str:
        """Return a statement with the driver's placeholders."""
        return sql if self.kind == "sqlite" else sql.replace("?", "%s")


def connect(url: str, timeout: float = 60.0) -> Connection:
    """Open a connection on which what is committed is durable."""
    kind, path = kind_and_path(url)
    return _connect_sqlite(path, timeout) if kind == "sqlite" else _connect_postgres(url, timeout)


def _connect_sqlite(path: Path | None, timeout: float) -> Connection:
    # mode=rw: a file that is gone is not made anew, empty and readable by all
    address = ":memory:" if path is None else f"{path.absolute().as_uri()}?mode=rw"
    connection = _open_sqlite(address, timeout)
    try:
        # WAL lets readers go on while one writes; FULL makes each commit survive a power failure;
        # secure_delete overwrites what is erased.
        _set_pragmas(connection, ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"))
        # Reading needs a file of shared memory beside the ledger, which read-only media refuse. A
        # user who may only read can read while a program that writes keeps it there.
        connection.run("SELECT COUNT(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        # The lowest byte is the kind of error.
        if path is None or error.sqlite_errorcode & 0xFF not in _ERRORS_OF_READERS:
            raise
        _require_read_only_media(path)
        # immutable: nobody can change the file, so no lock and no shared memory are needed.
        address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        connection = _open_sqlite(address, timeout, is_immutable=True)
    _set_pragmas(
        connection,
        ("foreign_keys=ON", "trusted_schema=OFF", "cache_size=-32768", "wal_autocheckpoint=4000"),
    )
    return connection


_ERRORS_OF_READERS = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


def _open_sqlite(address: str, timeout: float, *, is_immutable: bool = False) -> Connection:
    raw = sqlite3.connect(
        address,
        uri=address.startswith("file:"),
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
    )
    return Connection(raw, "sqlite", is_immutable=is_immutable)


def _set_pragmas(connection: Connection, pragmas: Sequence[str]) -> None:
    for pragma in pragmas:
        connection.run(f"PRAGMA {pragma}")


def _require_read_only_media(path: Path) -> None:
    """Refuse to read a file, which SQLite could not open, as one that nobody can change.

    Raises
    ------
    LedgerError
        If the file can change, or if its last events are in a log that cannot be read here.
    """
    if not os.access(path, os.R_OK, effective_ids=_CAN_ASK_FOR_EFFECTIVE_IDS):
        raise LedgerError(f"cannot open the ledger {path}: this user may not read it")
    if _size_of_log(path):
        raise LedgerError(
            f"the last events of {path} are still in {path.name}-wal, and SQLite cannot bring them "
            "together here, because this user may not write to the folder or the disk: copy both "
            "files to a folder of your own, and open the copy"
        )
    # Not whether this user may write: where others may, what is read would be stale or torn.
    if not os.statvfs(path).f_flag & os.ST_RDONLY:
        raise LedgerError(
            f"cannot open the ledger {path}: SQLite needs {path.name}-shm beside it, which this "
            f"user may not make in {path.parent}. Copy the ledger to a folder of your own and open "
            "the copy, read it while a program that writes has it open, or let this user write to "
            "the folder"
        )


def _size_of_log(path: Path) -> int:
    """Return the size of SQLite's write-ahead log, 0 if there is none."""
    try:
        return Path(f"{path}-wal").stat().st_size
    except FileNotFoundError:
        return 0


_CAN_ASK_FOR_EFFECTIVE_IDS = os.access in os.supports_effective_ids


def _connect_postgres(url: str, timeout: float) -> Connection:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        options: dict[str, Any] = conninfo_to_dict(url, connect_timeout=30, keepalives_idle=30)
    except psycopg.Error:  # whose words may quote a password
        raise InvalidInput(
            f"the driver of PostgreSQL cannot read the address {display_url(url)}: check the names "
            "of its parameters, and write special characters as %XX"
        ) from None
    raw = psycopg.connect(**options, autocommit=True)
    connection = Connection(raw, "postgresql")
    wait_ms = max(1, int(timeout * 1000))
    try:
        # In the other modes a server acknowledges what is not on its disk yet.
        commit_mode = connection.run("SHOW synchronous_commit").fetchone()[0]
        if commit_mode not in ("on", "remote_apply"):
            connection.run("SET synchronous_commit = on")
        for setting in ("fsync", "full_page_writes"):
            if connection.run(f"SHOW {setting}").fetchone()[0] != "on":
                raise LedgerError(
                    f"the server of {display_url(url)} runs with {setting}=off: what it "
                    f"acknowledges may be lost; set {setting}=on there"
                )
        # A program that hangs must not keep others from writing for good.
        connection.run(f"SET lock_timeout = {wait_ms}")
        connection.run(f"SET statement_timeout = {wait_ms + 60_000}")
        connection.run(f"SET idle_in_transaction_session_timeout = {wait_ms + 60_000}")
    except BaseException:
        connection.close()
        raise
    return connection


def kind_and_path(url: str) -> tuple[str, Path | None]:
    """Return which database an address is of, and the file if it is one."""
    require_kind("ledger", url, str, "a file name or an address, as text")
    if url in ("sqlite://", "sqlite:///:memory:", ":memory:"):
        return "sqlite", None
    scheme, mark, rest = url.partition("://")
    if not mark and _LIKE_AN_ADDRESS.search(url):
        raise InvalidInput(
            "the ledger looks like an address of a database and is none: PostgreSQL's begins with "
            "postgresql://, and SQLite's is a file name"
        )
    if not mark or scheme == "sqlite":
        return "sqlite", Path(rest.removeprefix("/") if mark else url)
    if scheme in ("postgres", "postgresql"):
        if importlib.util.find_spec("psycopg") is None:
            raise MissingExtra("psycopg", extra="postgres", purpose="ledgers in PostgreSQL")
        check_database_url(url)
        return "postgresql", None
    raise InvalidInput(
        "a ledger lives in SQLite (a file name) or PostgreSQL (postgresql://…); "
        f"got {display_url(url)!r}"
    )


class Database:
    """A ledger database; may be shared between threads, not between processes.

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
        self.display_url = display_url(url)
        self.url = url
        self.timeout = timeout
        if self.path is not None:  # the same file wherever the program goes
            self.path = self.path.absolute()
            self.url = str(self.path)
        self._file: tuple[int, ...] | None = None  # device and number of the file in use
        self.turn = threading.RLock()  # held by a thread from catching up to the commit
        self._lock = threading.RLock()  # held while the connection is in use
        self._pid = os.getpid()
        # A list, because what lets go at the end must not refer to this handle itself.
        self.held: list[Connection] = []
        weakref.finalize(self, _let_go, self.held)
        self.require_own_process()
        if self.path is not None and not self.path.exists():
            if not create:
                raise self.no_ledger()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # The seed is in it. SQLite gives its journal files the rights of the file.
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        _handles.add(self)

    def no_ledger(self) -> LedgerError:
        """Return the error of a place that has no ledger."""
        refusal = Refusal("no-ledger", {"ledger": self.display_url})
        error = LedgerError(to_python(refusal))
        error.refusal = refusal
        return error

    @property
    def is_in_memory(self) -> bool:
        """Whether the connection is the ledger, so that nothing outlives it."""
        return self.kind == "sqlite" and self.path is None

    def close(self) -> None:
        """Let go of the connection; it is opened again when needed."""
        with self._lock:
            if not self.is_in_memory:
                _let_go(self.held)

    @contextmanager
    def using(self) -> Iterator[Connection]:
        """Yield the connection, to this thread alone."""
        self.require_own_process()
        with self._lock:
            try:
                if self.held and self.held[0].is_stale():
                    self.close()
                if not self.held:
                    self.held.append(connect(self.url, self.timeout))
                    self._file = self._file_now()
                self._require_same_file()
                yield self.held[0]
            except driver_errors() as error:
                self.close()  # whatever it was, begin anew
                complaint = hide_secrets(str(error).strip(), self.url)
                raise LedgerError(self._explain(complaint)) from error

    def _explain(self, complaint: str) -> str:
        """Return what a driver's complaint means for the caller."""
        sentence = _OTHER_COMPLAINT
        for marks, meaning in _COMPLAINTS:
            if any(mark in complaint.lower() for mark in marks):
                sentence = meaning
                break
        return sentence.format(
            ledger=self.display_url, timeout=self.timeout, words=complaint, repeat=_SAFE_TO_REPEAT
        )

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Hold a writing transaction; commit at the end, undo everything on an error."""
        with self.using() as connection:
            # IMMEDIATE: wait for the turn to write before anything is read.
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
            # A commit that SQLite refuses has stored nothing, unless the disk failed.
            if self.kind == "sqlite" and "i/o" not in str(error).lower():
                if connection.raw.in_transaction:
                    connection.run("ROLLBACK")
                raise
            self.close()
            raise LedgerError(
                f"the ledger {self.display_url} did not acknowledge ({error}): whether this was "
                "stored is unknown; repeat the call, which is safe: what was stored is answered as "
                "it was"
            ) from error

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Yield the connection, which sees the database as of one moment; others may go on."""
        with self.using() as connection:
            if self.kind == "sqlite":
                connection.run("BEGIN")
            else:
                connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                connection.run("SET LOCAL statement_timeout = 0")
                connection.run("SET LOCAL idle_in_transaction_session_timeout = 0")
            try:
                yield connection
            finally:
                if self.kind == "sqlite":
                    with suppress(*driver_errors()):
                        connection.run("ROLLBACK")
                self.close()  # rows may be left unread, and PostgreSQL would wait until they are

    def _file_now(self) -> tuple[int, ...] | None:
        if self.path is None or not self.path.exists():
            return None
        file_status = self.path.stat()
        file = file_status.st_dev, file_status.st_ino
        if not self.held[0].is_immutable:
            return file
        # Another machine may write to what is mounted read-only here.
        return *file, file_status.st_size, file_status.st_mtime_ns, _size_of_log(self.path)

    def _require_same_file(self) -> None:
        """Refuse a file that was removed or replaced: SQLite would go on writing to the old one."""
        if self._file_now() != self._file:
            self.close()
            raise LedgerError(
                f"{self.display_url} was removed or replaced while it was open; nothing was "
                "stored, repeat the call to use the file that is there now"
            )

    # -- forks ------------------------------------------------------------------------------------

    def require_own_process(self) -> None:
        """Refuse a handle, and a file, that were open when this process was forked."""
        if os.getpid() != self._pid:
            raise LedgerError(
                f"this handle on {self.display_url} was opened before this process was forked; "
                "open the audit here instead, with LiveAudit.open, and close_ledger() it before a "
                "fork"
            )
        if self.path is not None and self.path in _open_at_fork:
            raise LedgerError(
                f"{self.path} was open when this process was forked, so SQLite cannot be trusted "
                "with it here; close_ledger() before the fork, or start the process by spawn"
            )


_handles: weakref.WeakSet[Database] = weakref.WeakSet()
_open_at_fork: set[Path] = set()  # SQLite files, as a forked child remembers them
_abandoned: list[Connection] = []  # of parents: never closed here, not even by a garbage collector


def _in_child() -> None:
    for handle in list(_handles):
        if handle.held and handle.path is not None:
            _open_at_fork.add(handle.path)
        _abandoned.extend(handle.held)
        handle.held.clear()
        # Other threads of the parent may have held the old locks.
        handle.turn = threading.RLock()
        handle._lock = threading.RLock()


os.register_at_fork(after_in_child=_in_child)


def _let_go(held: list[Connection]) -> None:
    while held:
        with suppress(*driver_errors()):
            held.pop().close()
