"""Opening a ledger database, and saying plainly what is wrong with one."""

from __future__ import annotations

import importlib.util
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, exc, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import StaticPool

from equipoise.errors import InvalidInput, LedgerError, MissingExtra
from equipoise.ledger.schema import HEAD_REVISION

__all__ = ["connect", "database_errors", "ensure_schema", "explained"]

KNOWN_REVISIONS = ("0001", "0002")
LOCK_KEY = 0x65717569  # any number that other programs will not lock on


def connect(url: str, *, create: bool, timeout: float) -> Connection:
    """Open one connection; statements run as given, transactions are begun by hand."""
    parsed = _parse(url)
    if parsed.get_backend_name() == "sqlite":
        engine = _sqlite(parsed, create=create, timeout=timeout)
    elif parsed.get_backend_name() == "postgresql":
        if importlib.util.find_spec("psycopg") is None:
            raise MissingExtra("psycopg", extra="postgres", purpose="ledgers in PostgreSQL")
        options = f"-c lock_timeout={int(timeout * 1000)}"
        engine = create_engine(
            parsed.set(drivername="postgresql+psycopg"),
            isolation_level="AUTOCOMMIT",
            connect_args={"options": options},
        )
    else:
        raise InvalidInput(
            f"a ledger lives in SQLite (a file name) or PostgreSQL (postgresql://…); got {url!r}"
        )
    return engine.connect()


def ensure_schema(connection: Connection, url: str, *, create: bool) -> None:
    """Bring an older schema up to date; refuse a newer one, and a database without a ledger."""
    found = _revision(connection)
    if found == HEAD_REVISION:
        return
    if found is None and not create:
        raise LedgerError(f"no ledger in {_shown(url)}; make one with: equipoise audit new")
    if found is not None and found not in KNOWN_REVISIONS:
        raise LedgerError(
            f"the ledger in {_shown(url)} has schema {found}, newer than this program's "
            f"{HEAD_REVISION}; install a newer equipoise"
        )
    from equipoise.ledger.migrations import upgrade

    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.exec_driver_sql("BEGIN")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK_KEY})")
    try:
        upgrade(connection)
    except BaseException:
        connection.exec_driver_sql("ROLLBACK")
        raise
    connection.exec_driver_sql("COMMIT")


@contextmanager
def explained(url: str, timeout: float) -> Iterator[None]:
    """Turn the driver's errors into one line that says what to do."""
    try:
        yield
    except database_errors() as error:
        cause = error.orig if isinstance(error, exc.DBAPIError) else error
        raise LedgerError(_explanation(str(cause), _shown(url), timeout)) from error


def database_errors() -> tuple[type[Exception], ...]:
    """Return the base errors of SQLAlchemy and of the drivers in use."""
    psycopg = sys.modules.get("psycopg")
    drivers = (sqlite3.Error,) if psycopg is None else (sqlite3.Error, psycopg.Error)
    return (exc.DBAPIError, *drivers)


def _explanation(message: str, where: str, timeout: float) -> str:
    low = message.lower()
    again = "nothing was stored; repeating the call is safe"
    if "locked" in low or "lock timeout" in low or "busy" in low:
        return f"the ledger {where} was locked by others for {timeout:g} s; {again}"
    if "full" in low or "no space" in low:
        return f"no space left for the ledger {where}; {again} once space is free"
    if "not a database" in low or "malformed" in low:
        return f"{where} is not a ledger, or is damaged ({message}); restore it from an export"
    if "readonly" in low or "read-only" in low:
        return f"the ledger {where} is read-only; {again} where writing is allowed"
    if "unable to open" in low:
        return f"cannot open the ledger {where}: {message}"
    return f"the ledger {where} failed ({message.strip()}); {again}"


def _parse(url: str) -> URL:
    if "://" not in url:
        return URL.create("sqlite", database=url)
    try:
        return make_url(url.replace("postgres://", "postgresql://", 1))
    except exc.ArgumentError:
        raise InvalidInput(f"cannot read the ledger's address {url!r}") from None


def _sqlite(url: URL, *, create: bool, timeout: float) -> Engine:
    path = url.database
    if path in (None, "", ":memory:"):
        options: dict[str, Any] = {"poolclass": StaticPool}
    else:
        options = {}
        if not Path(str(path)).exists():
            if not create:
                raise LedgerError(f"no ledger at {path}; make one with: equipoise audit new")
            Path(str(path)).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        url,
        isolation_level="AUTOCOMMIT",
        connect_args={"timeout": timeout, "check_same_thread": False},
        **options,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",
            "cache_size=-32768",
            "wal_autocheckpoint=4000",
        ):
            connection.execute(f"PRAGMA {pragma}")

    return engine


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def _shown(url: str) -> str:
    return _parse(url).render_as_string(hide_password=True).removeprefix("sqlite:///")
