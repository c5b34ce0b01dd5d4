"""What is kept where: the ledger's statements, each written once for both databases.

Decisions must be made one after the other, whoever makes them, because each depends on the ones
before. The database does the queueing: ``BEGIN IMMEDIATE`` in SQLite, a lock on the audit's row in
PostgreSQL. What is committed is on disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter

from equipoise.errors import InvalidInput, LedgerError, UnknownName
from equipoise.ledger.connection import Connection
from equipoise.ledger.database import Database
from equipoise.ledger.failures import driver_errors
from equipoise.ledger.inputs import name as stored_form
from equipoise.ledger.schema import Head, PersonRow, columns
from equipoise.ledger.verify import OPEN

__all__ = ["AuditRow", "Store", "Turn"]

CHUNK = 2000
IN_ONE_QUERY = 500

HEAD, HEAD_VALUES = ", ".join(columns(Head)), attrgetter(*columns(Head))
PERSON, PERSON_VALUES = ", ".join(columns(PersonRow)), attrgetter(*columns(PersonRow))
STATES = (
    *("SKIPPED", "SCORE_ONLY", "RESERVED", "EXECUTED", "REVEALED", "DESCRIBED", "CORRECTED"),
    *("WITHDRAWN", "OVERDUE", "WRITTEN_OFF"),
)
IS_OPEN = "state IN ('RESERVED', 'EXECUTED', 'OVERDUE')"  # as the index of them says it
CHANGING = ("person", "salt", "state", "paid", "overrun", "outcome", "executed", "conflicted")


@dataclass(frozen=True)
class AuditRow:
    """One audit as the list of audits shows it."""

    id: int
    uid: str
    name: str
    seed: str
    seq: int
    hash: str
    time: str
    cap: int | None
    spent: int
    reserved: int
    overrun: int


AUDIT, AUDIT_VALUES = ", ".join(columns(AuditRow)), attrgetter(*columns(AuditRow))


class Store(Database):
    """A ledger database with what is asked of it."""

    # -- audits ---------------------------------------------------------------------------------

    def audits(self) -> list[AuditRow]:
        """Return all audits, oldest first."""
        with self.using() as connection:
            return [AuditRow(*r) for r in connection.run(f"SELECT {AUDIT} FROM audits ORDER BY id")]

    def audit(self, name: str) -> AuditRow:
        """Return the audit of this name."""
        for row in (known := self.audits()):
            if stored_form("name", name) in (row.name, row.uid):
                return row
        raise UnknownName("audit", name, [row.name for row in known])

    def add_audit(
        self, *, uid: str, name: str, seed: str, cap: int | None, time: str, own: str, body: str
    ) -> AuditRow:
        """Store a new audit with its first event, whose hash is ``own``."""
        with self.transaction() as connection:
            if connection.kind == "postgresql":
                connection.run("LOCK TABLE audits IN SHARE ROW EXCLUSIVE MODE")
            taken = "SELECT 1 FROM audits WHERE name = ? OR uid = ?"  # audits are found by either
            if connection.run(taken, (name, name)).fetchone():
                raise InvalidInput(f"an audit named {name!r} exists already; choose another name")
            number = connection.run("SELECT COALESCE(MAX(id), 0) + 1 FROM audits").fetchone()[0]
            row = AuditRow(number, uid, name, seed, 1, own, time, cap, 0, 0, 0)
            connection.insert("audits", columns(AuditRow), [AUDIT_VALUES(row)])
            connection.insert("events", ("audit_id", "seq", "body"), [(number, 1, body)])
        return row

    # -- reading --------------------------------------------------------------------------------

    def head(self, audit_id: int) -> Head:
        """Return the audit's head and balance."""
        with self.using() as connection:
            return _head(connection, audit_id)

    def events(self, audit_id: int, *, after: int = 0, upto: int) -> Iterator[str]:
        """Yield the bodies of the events after one number up to another, in order."""
        query = (
            "SELECT body FROM events WHERE audit_id = ? AND seq > ? AND seq <= ? "
            f"ORDER BY seq LIMIT {CHUNK}"
        )
        while after < upto:
            with self.using() as connection:
                rows = connection.run(query, (audit_id, after, upto)).fetchall()
            if not rows:
                return
            yield from (row[0] for row in rows)
            after += len(rows)

    def people(
        self,
        audit_id: int,
        *,
        states: Sequence[str] = (),
        conflicted: bool = False,
        after: int = 0,
        limit: int | None = None,
    ) -> list[PersonRow]:
        """Return people in order of arrival, those in some states or with conflicts if asked."""
        people, where, values = "people", "audit_id = ? AND number > ?", [audit_id, after]
        with self.using() as connection:
            if states and set(states) <= set(OPEN):  # they are few and have an index
                where += f" AND {IS_OPEN}"
                people += " INDEXED BY people_open" if connection.kind == "sqlite" else ""
            if states:
                where += f" AND state IN ({', '.join(_known(state) for state in states)})"
            if conflicted:
                where += " AND conflicted = 1"
            query = f"SELECT {PERSON} FROM {people} WHERE {where} ORDER BY number"
            query += "" if limit is None else f" LIMIT {int(limit)}"
            return [PersonRow(*row) for row in connection.run(query, values)]

    def open_by_day(self, audit_id: int) -> list[tuple[str, str, int]]:
        """Return ``(state, day of the request, how many)`` of requests without an answer."""
        query = (
            "SELECT state, substr(asked, 1, 10), COUNT(*) FROM people WHERE audit_id = ? "
            f"AND {IS_OPEN} GROUP BY 1, 2 ORDER BY 1, 2"
        )
        with self.using() as connection:
            return [tuple(row) for row in connection.run(query, (audit_id,)).fetchall()]

    def person(self, audit_id: int, person: str) -> PersonRow | None:
        """Return one person, None if nobody asked about them."""
        with self.using() as connection:
            found = _people(connection, audit_id, "person", [person])
        return found[0] if found else None

    def features(self, audit_id: int, number: int) -> str | None:
        """Return a person's feature vector as JSON, None if it was never stored or is erased."""
        query = "SELECT vector FROM features WHERE audit_id = ? AND number = ?"
        with self.using() as connection:
            row = connection.run(query, (audit_id, number)).fetchone()
        return None if row is None else row[0]

    # -- snapshots ------------------------------------------------------------------------------

    def read_snapshot(self, audit_id: int) -> tuple[int, str, str] | None:
        """Return the snapshot as ``(seq, hash of that event, state)``."""
        query = "SELECT seq, hash, state FROM snapshots WHERE audit_id = ?"
        with self.using() as connection:
            row: tuple[int, str, str] | None = connection.run(query, (audit_id,)).fetchone()
        return row

    def keep_snapshot(self, audit_id: int, seq: int, own: str, state: str) -> None:
        """Keep a snapshot in place of an older one."""
        with self.transaction() as connection:
            connection.run(
                "INSERT INTO snapshots (audit_id, seq, hash, state) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (audit_id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, "
                "state = excluded.state WHERE snapshots.seq < excluded.seq",
                (audit_id, seq, own, state),
            )

    def drop_snapshot(self, audit_id: int) -> None:
        """Forget a snapshot that is not what the events say."""
        with self.transaction() as connection:
            connection.run("DELETE FROM snapshots WHERE audit_id = ?", (audit_id,))

    # -- writing --------------------------------------------------------------------------------

    @contextmanager
    def write(self, audit_id: int) -> Iterator[Turn]:
        """Hold the audit's writing turn; commit at the end, undo everything on an error."""
        with self.transaction() as connection:
            yield Turn(connection, audit_id, _head(connection, audit_id, lock=True))

    def scrub(self) -> None:
        """Overwrite what was erased in the database's own files.

        SQLite is rewritten whole and its write-ahead log emptied. In PostgreSQL the tables that
        held it are rewritten; its write-ahead log and its backups are beyond a client's reach.
        """
        with self.using() as connection:
            if connection.kind == "sqlite":
                connection.run("VACUUM")
                connection.run("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                return
            for table in ("people", "features", "snapshots"):
                try:
                    connection.run(f"VACUUM FULL {table}")
                except driver_errors() as error:
                    raise LedgerError(
                        f"erased, but its bytes stay in table {table!r} until the table's owner "
                        f"runs: VACUUM FULL {table} ({error})"
                    ) from error


class Turn:
    """One writing turn."""

    def __init__(self, connection: Connection, audit_id: int, head: Head) -> None:
        self.head = head
        self._connection = connection
        self._audit_id = audit_id

    def clock_ahead(self, now: float) -> float:
        """Return by how many seconds a clock is ahead of the database's."""
        return now - self._connection.clock().timestamp()

    def people(self, names: Sequence[str], numbers: Sequence[int] = ()) -> list[PersonRow]:
        """Return those of the people who are known."""
        found: list[PersonRow] = []
        for column, wanted in (("person", names), ("number", numbers)):
            unique: list[str | int] = list(dict.fromkeys(wanted))
            for start in range(0, len(unique), IN_ONE_QUERY):
                part = unique[start : start + IN_ONE_QUERY]
                found += _people(self._connection, self._audit_id, column, part)
        return found

    def append(
        self,
        head: Head,
        events: Sequence[tuple[int, str]],
        new: Sequence[PersonRow],
        changed: Sequence[PersonRow],
    ) -> None:
        """Store events ``(seq, body)`` with the people and the balance that follow."""
        connection, audit_id = self._connection, self._audit_id
        rows = [(audit_id, seq, body) for seq, body in events]
        connection.insert("events", ("audit_id", "seq", "body"), rows)
        people = [(audit_id, *PERSON_VALUES(row)) for row in new]
        connection.insert("people", ("audit_id", *columns(PersonRow)), people)
        sets = ", ".join(f"{name} = ?" for name in CHANGING)
        connection.run_many(
            f"UPDATE people SET {sets} WHERE audit_id = ? AND number = ?",
            [(*(getattr(r, name) for name in CHANGING), audit_id, r.number) for r in changed],
        )
        sets = ", ".join(f"{name} = ?" for name in columns(Head))
        moved = connection.run(
            f"UPDATE audits SET {sets} WHERE id = ? AND seq = ?",
            (*HEAD_VALUES(head), audit_id, self.head.seq),
        )
        if moved.rowcount != 1:
            raise LedgerError("the ledger moved while its lock was held; nothing was stored")

    def add_features(self, vectors: Sequence[tuple[int, str, str]]) -> None:
        """Store ``(number, salt, JSON)``."""
        rows = [(self._audit_id, *vector) for vector in vectors]
        self._connection.insert("features", ("audit_id", "number", "salt", "vector"), rows)

    def erase_features(self, numbers: Sequence[int] | None = None) -> None:
        """Delete the feature vectors of some people, or of all."""
        delete = "DELETE FROM features WHERE audit_id = ?"
        if numbers is None:
            self._connection.run(delete, (self._audit_id,))
        else:
            rows = [(self._audit_id, number) for number in numbers]
            self._connection.run_many(delete + " AND number = ?", rows)


def _known(state: str) -> str:
    if state not in STATES:
        raise UnknownName("state", state, STATES)
    return f"'{state}'"


def _head(connection: Connection, audit_id: int, *, lock: bool = False) -> Head:
    suffix = " FOR UPDATE" if lock and connection.kind == "postgresql" else ""
    row = connection.run(f"SELECT {HEAD} FROM audits WHERE id = ?{suffix}", (audit_id,)).fetchone()
    if row is None:
        raise LedgerError("the audit was removed from its ledger")
    return Head(*row)


def _people(
    connection: Connection, audit_id: int, column: str, wanted: Sequence[str | int]
) -> list[PersonRow]:
    if not wanted:
        return []
    among, values = connection.among(column, wanted)
    # With more than a few names SQLite would rather walk through everybody.
    by_name = connection.kind == "sqlite" and column == "person"
    people = "people INDEXED BY people_person" if by_name else "people"
    query = f"SELECT {PERSON} FROM {people} WHERE audit_id = ? AND {among}"
    return [PersonRow(*row) for row in connection.run(query, (audit_id, *values))]
