"""The service's own database: its tokens, and the record of checkpoints and verifications."""

from __future__ import annotations

from equipoise.ledger.database import Database
from equipoise.ledger.store import table_names

_TABLES = (
    """CREATE TABLE IF NOT EXISTS service_tokens (
    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, role TEXT NOT NULL, audit TEXT,
    secret_hash TEXT NOT NULL, created TEXT NOT NULL, expires TEXT NOT NULL, revoked TEXT,
    logged_out TEXT NOT NULL DEFAULT '')""",
    """CREATE TABLE IF NOT EXISTS service_marks (
    id TEXT PRIMARY KEY, audit TEXT NOT NULL, kind TEXT NOT NULL, seq BIGINT NOT NULL,
    hash TEXT NOT NULL, time TEXT NOT NULL, actor TEXT NOT NULL, note TEXT NOT NULL)""",
)


def open_service_database(url: str) -> Database:
    """Return a handle on the service's database, with its tables.

    All tables are made at once, because the server may run under a database role that may not make
    tables. In that case ``equipoise token new`` has made them before, under another role.
    """
    database = Database(url, create=True, timeout=10.0)
    with database.using() as connection:
        # A role that may not make tables is refused even if they exist, so look first. The last
        # table stands for all of them.
        if "service_marks" not in table_names(connection):
            for statement in _TABLES:
                connection.run(statement)
    return database
