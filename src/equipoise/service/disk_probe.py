"""Whether the ledger can be written, and has room for more."""

from __future__ import annotations

import errno
import tempfile

from equipoise.errors import LedgerError
from equipoise.ledger.database import Connection
from equipoise.ledger.store import Store

PROBE_BYTES = 256 << 10  # of room that there must be
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
# An update that changes nothing and reaches the disk. It alone would not show that a disk is full,
# because databases write to room that they have already.
TOUCH = "UPDATE audits SET time = time WHERE id = (SELECT MAX(id) FROM audits)"
# PostgreSQL cuts the file of such a table to nothing at every commit, so that each probe needs room
# anew. It belongs to the connection, and its rows stay out of the write-ahead log.
POSTGRES_TABLE = "CREATE TEMP TABLE IF NOT EXISTS equipoise_probe (body TEXT) ON COMMIT DELETE ROWS"
MAY_MAKE_TABLE = "SELECT has_database_privilege(current_database(), 'TEMP')"
BYTES_PER_ROW = 1024


def require_writable(ledger: Store) -> None:
    """Raise :class:`LedgerError` if the ledger cannot be written, or its disk is full."""
    with ledger.transaction() as connection:
        connection.run(TOUCH)
        if ledger.kind == "postgresql":
            _require_room_in_postgres(connection)
    if ledger.path is not None:
        _require_room_beside(ledger)


def _require_room_in_postgres(connection: Connection) -> None:
    """Raise if the server has no room; a role that may make no such table cannot find out."""
    if not connection.run(MAY_MAKE_TABLE).fetchone()[0]:
        return
    connection.run("SET LOCAL temp_tablespaces = ''")  # where the ledger is
    connection.run(POSTGRES_TABLE)
    connection.run(
        "INSERT INTO equipoise_probe SELECT repeat('x', ?) FROM generate_series(1, ?)",
        (BYTES_PER_ROW, PROBE_BYTES // BYTES_PER_ROW),
    )


def _require_room_beside(ledger: Store) -> None:
    """Raise if the disk of a ledger that is a file has no room."""
    assert ledger.path is not None
    try:
        # It has no name, and is gone before it reaches the disk.
        with tempfile.TemporaryFile(dir=ledger.path.parent) as file:
            file.write(bytes(PROBE_BYTES))
    except OSError as error:
        # A folder in which this program may make no files tells nothing about room.
        if error.errno in NO_ROOM:
            raise LedgerError(f"no space left for the ledger {ledger.display_url}") from None
