"""What is kept where: the ledger's tables and statements, each written once for both databases.

``events`` is the truth. ``people``, ``audits`` and ``command_keys`` are indexes of it that
``verify`` checks column by column. Only ``people`` knows pseudonyms, with the key that ties each to
the chain: what can be erased is in no other place.

Decisions must be made one after the other, whoever makes them, because each depends on the ones
before. The database does the queueing: ``BEGIN IMMEDIATE`` in SQLite, a lock on the audit's row in
PostgreSQL. What is committed is on disk.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter
from typing import Any

from equipoise.errors import InvalidInput, LedgerError, UnknownName
from equipoise.ledger.database import Connection, Database, driver_errors
from equipoise.ledger.inputs import name as stored_form
from equipoise.ledger.verify import OPEN, Head, PersonRecord, PersonState

VERSION = 2  # of the tables
TABLES = ("audits", "events", "people", "command_keys")
CHUNK = 2000
ADVISORY_KEY = 0x65717569  # any number that other programs will not lock on
READERS_WAIT = 5000  # milliseconds for which scrubbing waits until nobody reads


@dataclass
class AuditRow(Head):
    """One audit as the list of audits shows it: where its chain ends, and what it is called."""

    id: int = 0
    uid: str = ""
    name: str = ""
    seed: str = ""


def _columns(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


HEAD_VALUES = attrgetter(*_columns(Head))
AUDIT, AUDIT_VALUES = ", ".join(_columns(AuditRow)), attrgetter(*_columns(AuditRow))
PERSON, PERSON_VALUES = ", ".join(_columns(PersonRecord)), attrgetter(*_columns(PersonRecord))
IS_OPEN = "state IN ('RESERVED', 'EXECUTED', 'OVERDUE')"  # as the index of them says it


class Store(Database):
    """A ledger database with what is asked of it; made if there is none and ``create`` is set."""

    def __init__(self, url: str, *, create: bool = False, timeout: float = 60.0) -> None:
        super().__init__(url, create=create, timeout=timeout)
        with self.using() as connection:
            if _version(connection) == VERSION:
                return
        if not create:
            raise LedgerError(f"no ledger in {self.shown}; make one with: equipoise audit new")
        with self.transaction() as connection:
            if self.kind == "postgresql":
                connection.run(f"SELECT pg_advisory_xact_lock({ADVISORY_KEY})")
            for statement in () if _version(connection) else statements(self.kind):
                connection.run(statement)

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

    def add_audit(self, row: AuditRow, body: str) -> AuditRow:
        """Store a new audit with its first event."""
        with self.transaction() as connection:
            if connection.kind == "postgresql":
                connection.run("LOCK TABLE audits IN SHARE ROW EXCLUSIVE MODE")
            taken = "SELECT 1 FROM audits WHERE name = ? OR uid = ?"  # audits are found by either
            if connection.run(taken, (row.name, row.name)).fetchone():
                raise InvalidInput(
                    f"an audit named {row.name!r} exists already; choose another name"
                )
            row.id = connection.run("SELECT COALESCE(MAX(id), 0) + 1 FROM audits").fetchone()[0]
            connection.insert("audits", _columns(AuditRow), [AUDIT_VALUES(row)])
            connection.insert("events", ("audit_id", "seq", "body"), [(row.id, 1, body)])
        return row

    # -- reading --------------------------------------------------------------------------------

    def now(self) -> datetime:
        """Return the time by the clock of the machine that has the database."""
        with self.using() as connection:
            return connection.clock()

    def head(self, audit_id: int) -> Head:
        """Return the audit's head and balance."""
        with self.using() as connection:
            return Head(*HEAD_VALUES(read_audit(connection, audit_id)))

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
        states: Sequence[str] = (),
        numbers: Sequence[int] | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> list[PersonRecord]:
        """Return people in order of arrival, those in some states or of some numbers if asked."""
        people, where, values = "people", "audit_id = ? AND number > ?", [audit_id, after]
        with self.using() as connection:
            if states and set(states) <= set(OPEN):  # they are few and have an index
                where += f" AND {IS_OPEN}"
                people += " INDEXED BY people_open" if connection.kind == "sqlite" else ""
            if states:
                if unknown := [state for state in states if state not in list(PersonState)]:
                    raise UnknownName("state", unknown[0], list(PersonState))
                where += f" AND state IN ({', '.join(map(repr, map(str, states)))})"
            if numbers is not None:
                among, own = connection.among("number", numbers)
                where, values = f"{where} AND {among}", [*values, own]
            query = f"SELECT {PERSON} FROM {people} WHERE {where} ORDER BY number"
            query += "" if limit is None else f" LIMIT {int(limit)}"
            return [PersonRecord(*row) for row in connection.run(query, values)]

    def open_by_day(self, audit_id: int) -> list[tuple[str, str, int]]:
        """Return ``(state, day of the request, how many)`` of requests without an answer."""
        query = (
            "SELECT state, substr(asked, 1, 10), COUNT(*) FROM people WHERE audit_id = ? "
            f"AND {IS_OPEN} GROUP BY 1, 2 ORDER BY 1, 2"
        )
        with self.using() as connection:
            return [tuple(row) for row in connection.run(query, (audit_id,)).fetchall()]

    def person(self, audit_id: int, person: str) -> PersonRecord | None:
        """Return one person, None if nobody asked about them."""
        with self.using() as connection:
            return next(_people(connection, audit_id, "person", [person]), None)

    # -- writing --------------------------------------------------------------------------------

    @contextmanager
    def write(self, audit_id: int) -> Iterator[WriteTransaction]:
        """Be the audit's only writer; commit at the end, undo everything on an error."""
        with self.transaction() as connection:
            row = read_audit(connection, audit_id, lock=True)
            yield WriteTransaction(connection, audit_id, Head(*HEAD_VALUES(row)))

    def scrub(self) -> str:
        """Rewrite the database's files without what was erased; return what is still there.

        SQLite is rewritten whole and its write-ahead log emptied. In PostgreSQL the table of
        people is rewritten; its write-ahead log and its backups are beyond a client's reach.
        """
        with self.using() as connection:
            if connection.kind == "sqlite":
                connection.run("VACUUM")
                connection.run(f"PRAGMA busy_timeout = {READERS_WAIT}")
                ((busy, *_),) = connection.run("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                connection.run(f"PRAGMA busy_timeout = {int(1000 * self.timeout)}")
                still_there = (
                    f"copies stay in {self.shown}-wal while another program reads the ledger: "
                    "let it end, then run 'equipoise audit scrub'"
                )
                return still_there if busy else ""
            before = connection.run("SELECT pg_relation_filenode('people')").fetchone()
            try:
                connection.run("VACUUM FULL people")
                done = before != connection.run("SELECT pg_relation_filenode('people')").fetchone()
            except driver_errors():
                done = False
            who = "SELECT tableowner FROM pg_tables WHERE tablename = 'people'"
            owner = connection.run(who).fetchone()[0]
            still_there = (
                f"copies stay in the files of table 'people' until its owner, {owner}, runs "
                "'equipoise audit scrub' or: VACUUM FULL people"
            )
            return "" if done else still_there


class WriteTransaction:
    """What one transaction reads and stores, while nobody else writes to the audit."""

    def __init__(self, connection: Connection, audit_id: int, head: Head) -> None:
        self.head = head
        self.now = connection.clock()
        self._connection = connection
        self._audit_id = audit_id

    def people(self, names: Sequence[str], numbers: Sequence[int] = ()) -> list[PersonRecord]:
        """Return those of the people who are known."""
        by_name = _people(self._connection, self._audit_id, "person", names)
        return [*by_name, *_people(self._connection, self._audit_id, "number", numbers)]

    def events_of(self, keys: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Return key -> the event that a command with this key led to."""
        if not keys:
            return {}
        among, values = self._connection.among("key", keys)
        query = (
            "SELECT key, body FROM command_keys JOIN events "
            "ON events.audit_id = command_keys.audit_id AND events.seq = command_keys.seq "
            f"WHERE command_keys.audit_id = ? AND {among}"
        )
        rows = self._connection.run(query, (self._audit_id, values))
        return {key: json.loads(body) for key, body in rows}

    def append(
        self,
        head: Head,
        events: Sequence[tuple[int, str]],
        keys: Sequence[tuple[str, int]],
        people: Sequence[PersonRecord],
    ) -> None:
        """Store events ``(seq, body)``, keys, and the people and the balance that follow."""
        connection, audit_id = self._connection, self._audit_id
        rows = [(audit_id, seq, body) for seq, body in events]
        connection.insert("events", ("audit_id", "seq", "body"), rows)
        known = [(audit_id, key, seq) for key, seq in keys]
        connection.insert("command_keys", ("audit_id", "key", "seq"), known)
        changes = ", ".join(f"{name} = excluded.{name}" for name in _columns(PersonRecord)[1:])
        connection.insert(
            "people",
            ("audit_id", *_columns(PersonRecord)),
            [(audit_id, *PERSON_VALUES(row)) for row in people],
            f"ON CONFLICT (audit_id, number) DO UPDATE SET {changes}",
        )
        sets = ", ".join(f"{name} = ?" for name in _columns(Head))
        moved = connection.run(
            f"UPDATE audits SET {sets} WHERE id = ? AND seq = ?",
            (*HEAD_VALUES(head), audit_id, self.head.seq),
        )
        if moved.rowcount != 1:
            raise LedgerError("the ledger moved while its lock was held; nothing was stored")


def read_audit(connection: Connection, audit_id: int, *, lock: bool = False) -> AuditRow:
    """Return an audit's row; lock it where the database does not lock as a whole."""
    suffix = " FOR UPDATE" if lock and connection.kind == "postgresql" else ""
    row = connection.run(f"SELECT {AUDIT} FROM audits WHERE id = ?{suffix}", (audit_id,)).fetchone()
    if row is None:
        raise LedgerError("the audit was removed from its ledger")
    return AuditRow(*row)


def _people(
    connection: Connection, audit_id: int, column: str, wanted: Sequence[str | int]
) -> Iterator[PersonRecord]:
    among, values = connection.among(column, wanted)
    # With more than a few names SQLite would rather walk through everybody.
    by_name = connection.kind == "sqlite" and column == "person"
    people = "people INDEXED BY people_person" if by_name else "people"
    query = f"SELECT {PERSON} FROM {people} WHERE audit_id = ? AND {among}"
    return (PersonRecord(*row) for row in connection.run(query, (audit_id, values)).fetchall())


def table_names(connection: Connection) -> set[str]:
    """Return the names of the tables that are there."""
    query = (
        "SELECT name FROM sqlite_master"
        if connection.kind == "sqlite"
        else "SELECT table_name FROM information_schema.tables "
        "WHERE table_schema = ANY (current_schemas(false))"
    )
    return {row[0] for row in connection.run(query)}


def _version(connection: Connection) -> int:
    """Return the tables' version, 0 where there is no ledger; refuse any but this program's."""
    names, rows = table_names(connection), []
    if "alembic_version" not in names and "ledger_schema" not in names:
        return 0
    if "ledger_schema" in names:
        rows = connection.run("SELECT version FROM ledger_schema").fetchall()
    if rows != [(VERSION,)] or type(rows[0][0]) is not int:
        version = rows[0][0] if rows else "of before the first release"
        raise LedgerError(
            f"the ledger has schema {version!a}, and this program writes and reads {VERSION}: "
            "use the version of equipoise that made it"
        )
    return VERSION


_TYPES = {
    "int": "BIGINT NOT NULL",
    "int | None": "BIGINT",
    "str": "TEXT NOT NULL",
    "str | None": "TEXT",
}


def _typed(cls: type) -> str:
    """Return a record's fields as columns of a table."""
    return ", ".join(f"{f.name} {_TYPES[str(f.type)]}" for f in fields(cls))


_OF_AUDIT = "audit_id INTEGER NOT NULL REFERENCES audits (id)"
_TABLES = (
    "CREATE TABLE ledger_schema (version INTEGER NOT NULL)",
    f"""CREATE TABLE audits ({_typed(AuditRow)},
    PRIMARY KEY (id), UNIQUE (uid), UNIQUE (name),
    CONSTRAINT audit_money_not_negative CHECK (spent >= 0 AND reserved >= 0 AND overrun >= 0),
    CONSTRAINT cap_not_exceeded CHECK (cap IS NULL OR spent + reserved <= cap))""",
    f"""CREATE TABLE events ({_OF_AUDIT}, seq BIGINT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (audit_id, seq))""",
    f"""CREATE TABLE people ({_OF_AUDIT}, {_typed(PersonRecord)},
    PRIMARY KEY (audit_id, number),
    CONSTRAINT money_not_negative CHECK (hold >= 0 AND paid >= 0 AND overrun >= 0),
    CONSTRAINT outcome_binary CHECK (outcome IN (0, 1)))""",
    "CREATE UNIQUE INDEX people_person ON people (audit_id, person)",
    f"CREATE INDEX people_open ON people (audit_id, state) WHERE {IS_OPEN}",
    f"""CREATE TABLE command_keys ({_OF_AUDIT}, key TEXT NOT NULL, seq BIGINT NOT NULL,
    PRIMARY KEY (audit_id, key))""",
    f"INSERT INTO ledger_schema (version) VALUES ({VERSION})",
)
_SQLITE_TRIGGERS = tuple(
    f"CREATE TRIGGER events_no_{verb.lower()} BEFORE {verb} ON events "
    "BEGIN SELECT RAISE(ABORT, 'events are append-only'); END"
    for verb in ("UPDATE", "DELETE")
)
_POSTGRES_TRIGGERS = (
    "CREATE FUNCTION events_are_append_only() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'events are append-only'; END $$",
    "CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON events "
    "FOR EACH STATEMENT EXECUTE FUNCTION events_are_append_only()",
    # The planner's statistics would keep copies that erasing cannot reach.
    "ALTER TABLE people ALTER COLUMN person SET STATISTICS 0",
    "ALTER TABLE people ALTER COLUMN salt SET STATISTICS 0",
)


def statements(kind: str) -> tuple[str, ...]:
    """Return what makes a ledger of an empty database."""
    if kind == "postgresql":
        return _TABLES + _POSTGRES_TRIGGERS
    keyed = ("CREATE TABLE events", "CREATE TABLE people")  # clustered by key, as they are read
    tables = tuple(s + " WITHOUT ROWID" if s.startswith(keyed) else s for s in _TABLES)
    return tables + _SQLITE_TRIGGERS
