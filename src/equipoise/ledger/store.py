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
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from equipoise.errors import InvalidInput, LedgerError, UnknownName
from equipoise.ledger.database import Connection, Database, driver_errors
from equipoise.ledger.inputs import name as stored_form
from equipoise.ledger.verify import OPEN, Head, PersonRecord, PersonState

VERSION = 2  # of the tables
TABLES = ("audits", "events", "people", "command_keys")
CACHE_TABLE = "state_cache"  # beside the chain; see ledger/state_cache.py
SET_ASIDE = "differs from the chain: "  # before the digest of a cached state to be looked into
EVENTS_PER_QUERY = 2000
ADVISORY_KEY = 0x65717569  # any number that other programs will not lock on
SCRUB_WAIT_MS = 5000  # milliseconds for which scrubbing waits until no program reads


@dataclass
class AuditRow(Head):
    """One audit as the list of audits shows it: where its chain ends, and what it is called."""

    id: int = 0
    uid: str = ""
    name: str = ""
    seed: str = ""


@dataclass(frozen=True)
class CacheRow:
    """An audit's state at an event, as ``ledger/state_cache.py`` stores and reads it."""

    seq: int
    hash: str
    edition: int
    digest: str
    body: str

    @property
    def is_set_aside(self) -> bool:
        """Whether somebody found that the events do not lead to this state."""
        return isinstance(self.digest, str) and self.digest.startswith(SET_ASIDE)


@dataclass(frozen=True)
class PeopleTotals:
    """What the table of people tells without a look at everybody.

    Attributes
    ----------
    arrived
        The largest number of a person, 0 for nobody.
    requests
        How often the audit was consulted: the number after the last request.
    approved, in_flight
        Group -> approved people, and denied people who were asked and have no outcome yet.
    """

    arrived: int
    requests: int
    approved: Mapping[str, int]
    in_flight: Mapping[str, int]


# The columns of the tables, by the names that are stored. The order is that of the rows, and each
# column is the field of the same name in the record.
HEAD_COLUMNS = ("seq", "hash", "time", "cap", "spent", "reserved", "overrun")
AUDIT_COLUMNS = (*HEAD_COLUMNS, "id", "uid", "name", "seed")
PERSON_COLUMNS = (
    *("number", "group_name", "decision", "want", "state", "request", "hold", "place", "person"),
    *("salt", "who", "why", "asked", "drawn", "draw", "paid", "overrun", "outcome", "executed"),
    *("conflicted", "erased"),
)
HEAD_VALUES = attrgetter(*HEAD_COLUMNS)
AUDIT_VALUES = attrgetter(*AUDIT_COLUMNS)
PERSON_VALUES = attrgetter(*PERSON_COLUMNS)
SELECT_AUDIT = f"SELECT {', '.join(AUDIT_COLUMNS)} FROM audits"
SELECT_PERSON = f"SELECT {', '.join(PERSON_COLUMNS)} FROM"
IS_OPEN = "state IN ('RESERVED', 'EXECUTED', 'OVERDUE')"  # as the index of them says it


def _head_from(row: Sequence[Any]) -> Head:
    return Head(**dict(zip(HEAD_COLUMNS, row, strict=True)))


def _audit_from(row: Sequence[Any]) -> AuditRow:
    return AuditRow(**dict(zip(AUDIT_COLUMNS, row, strict=True)))


def person_from(row: Sequence[Any]) -> PersonRecord:
    """Return the person of a row with the columns of :data:`PERSON_COLUMNS`."""
    return PersonRecord(**dict(zip(PERSON_COLUMNS, row, strict=True)))


class Store(Database):
    """A ledger database with what is asked of it; made if there is none and ``create`` is set."""

    def __init__(self, url: str, *, create: bool = False, timeout: float = 60.0) -> None:
        super().__init__(url, create=create, timeout=timeout)
        with self.using() as connection:
            if _version(connection) == VERSION:
                return
        if not create:
            raise self.no_ledger()
        with self.transaction() as connection:
            if self.kind == "postgresql":
                # Two programs may find the database empty at the same moment.
                connection.run(f"SELECT pg_advisory_xact_lock({ADVISORY_KEY})")
            # Another program may have made the tables while this one waited for its turn.
            if not _version(connection):
                for statement in statements(self.kind):
                    connection.run(statement)

    # -- audits ---------------------------------------------------------------------------------

    def audits(self) -> list[AuditRow]:
        """Return all audits, oldest first."""
        with self.using() as connection:
            return [_audit_from(row) for row in connection.run(f"{SELECT_AUDIT} ORDER BY id")]

    def audit(self, name: str) -> AuditRow:
        """Return the audit of this name or id."""
        audits = self.audits()
        for audit in audits:
            if stored_form("name", name) in (audit.name, audit.uid):
                return audit
        raise UnknownName("audit", name, [audit.name for audit in audits])

    def add_audit(self, row: AuditRow, body: str) -> AuditRow:
        """Store a new audit with its first event."""
        with self.transaction() as connection:
            if connection.kind == "postgresql":
                # Two programs must not create audits of one name at the same moment.
                connection.run("LOCK TABLE audits IN SHARE ROW EXCLUSIVE MODE")
            # An audit is found by its name or by its id, so neither may be taken.
            same_name = "SELECT 1 FROM audits WHERE name = ? OR uid = ?"
            if connection.run(same_name, (row.name, row.name)).fetchone():
                raise InvalidInput(
                    f"an audit named {row.name!r} exists already; choose another name"
                )
            row.id = connection.run("SELECT COALESCE(MAX(id), 0) + 1 FROM audits").fetchone()[0]
            connection.insert("audits", AUDIT_COLUMNS, [AUDIT_VALUES(row)])
            connection.insert("events", ("audit_id", "seq", "body"), [(row.id, 1, body)])
        return row

    # -- reading --------------------------------------------------------------------------------

    def clock_time(self) -> datetime:
        """Return the time by the clock of the machine that has the database."""
        with self.using() as connection:
            return connection.clock()

    def head(self, audit_id: int) -> Head:
        """Return the audit's head and balance."""
        with self.using() as connection:
            return _head_from(HEAD_VALUES(read_audit(connection, audit_id)))

    def events(self, audit_id: int, *, after: int = 0, upto: int) -> Iterator[str]:
        """Yield the bodies of the events after one number up to another, in order."""
        query = (
            "SELECT body FROM events WHERE audit_id = ? AND seq > ? AND seq <= ? "
            f"ORDER BY seq LIMIT {EVENTS_PER_QUERY}"
        )
        # A page at a time: other threads may use the connection in between.
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
        table = "people"
        conditions = ["audit_id = ?", "number > ?"]
        values: list[Any] = [audit_id, after]
        for state in states:
            if state not in list(PersonState):
                raise UnknownName("state", state, list(PersonState))
        with self.using() as connection:
            if states and set(states) <= set(OPEN):  # they are few and have an index
                conditions.append(IS_OPEN)
                table += " INDEXED BY people_open" if connection.kind == "sqlite" else ""
            if states:
                quoted = ", ".join(f"'{state}'" for state in states)  # known words only
                conditions.append(f"state IN ({quoted})")
            if numbers is not None:
                condition, condition_values = connection.among("number", numbers)
                conditions.append(condition)
                values.append(condition_values)
            query = f"{SELECT_PERSON} {table} WHERE {' AND '.join(conditions)} ORDER BY number"
            query += "" if limit is None else f" LIMIT {int(limit)}"
            return [person_from(row) for row in connection.run(query, values)]

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
            return next(iter(_find_people(connection, audit_id, "person", [person])), None)

    # -- the cache ------------------------------------------------------------------------------

    def cached_state(self, connection: Connection, audit_id: int) -> CacheRow | None:
        """Return the row of the cache; None if there is none, or no cache at all."""
        if CACHE_TABLE not in table_names(connection):
            return None
        query = f"SELECT seq, hash, edition, digest, body FROM {CACHE_TABLE} WHERE audit_id = ?"
        row = connection.run(query, (audit_id,)).fetchone()
        return None if row is None else CacheRow(*row)

    def rare_events(self, connection: Connection, audit_id: int, upto: int) -> list[str]:
        """Return the events, up to one, that are not about arrivals and outcomes alone."""
        # SQLite would rather walk through all events.
        index = " INDEXED BY events_rare" if self.kind == "sqlite" else ""
        query = (
            f"SELECT body FROM events{index} WHERE audit_id = ? AND seq <= ? "
            f"AND {is_rare(self.kind)} ORDER BY seq"
        )
        return [body for (body,) in connection.run(query, (audit_id, upto)).fetchall()]

    def people_totals(
        self, connection: Connection, audit_id: int, groups: Sequence[str]
    ) -> PeopleTotals:
        """Return how many people there are, by indexes."""
        mine = "FROM people WHERE audit_id = ?"
        newest = connection.run(f"SELECT MAX(number) {mine}", (audit_id,)).fetchone()[0]
        # "IS NOT NULL" repeats the condition of an index, without which it is not used.
        request_query = f"SELECT MAX(request) {mine} AND request IS NOT NULL"
        last_request = connection.run(request_query, (audit_id,)).fetchone()[0]
        place_query = f"SELECT MAX(place) {mine} AND group_name = ? AND place IS NOT NULL"
        approved = {}
        # Places are numbered from 0 without gaps, so a group's last one tells how many there are.
        for group in groups:
            last_place = connection.run(place_query, (audit_id, group)).fetchone()[0]
            approved[group] = 0 if last_place is None else last_place + 1
        index = " INDEXED BY people_open" if self.kind == "sqlite" else ""
        in_flight_query = (
            f"SELECT group_name, COUNT(*) FROM people{index} WHERE audit_id = ? AND {IS_OPEN} "
            "AND decision = 0 GROUP BY group_name"
        )
        in_flight = dict(connection.run(in_flight_query, (audit_id,)).fetchall())
        return PeopleTotals(
            arrived=newest or 0,
            requests=0 if last_request is None else last_request + 1,
            approved=approved,
            in_flight={group: in_flight.get(group, 0) for group in groups},
        )

    def save_cached_state(self, audit_id: int, row: CacheRow, before: CacheRow | None) -> None:
        """Put a state in the place of the one that is cached, unless that has changed meanwhile.

        ``before`` is the one to be replaced; None if there is none that the database can read.
        """
        columns = ("audit_id", "seq", "hash", "edition", "digest", "body")
        values: list[Any] = [audit_id, row.seq, row.hash, row.edition, row.digest, row.body]
        otherwise = (
            "ON CONFLICT (audit_id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, "
            "edition = excluded.edition, digest = excluded.digest, body = excluded.body"
        )
        if before is not None:
            otherwise += f" WHERE {CACHE_TABLE}.digest = ?"
            values.append(before.digest)
        with self.transaction() as connection:
            if CACHE_TABLE not in table_names(connection):
                for statement in cache_statements(self.kind):
                    connection.run(statement)
            connection.insert(CACHE_TABLE, columns, [values], otherwise)

    def set_cache_aside(self, audit_id: int, row: CacheRow) -> None:
        """Mark a cached state as one that the events do not lead to, if it is still there."""
        with self.transaction() as connection:
            connection.run(
                f"UPDATE {CACHE_TABLE} SET digest = ? WHERE audit_id = ? AND digest = ?",
                (SET_ASIDE + row.digest, audit_id, row.digest),
            )

    def event_of_cache_set_aside(self, audit_id: int) -> int | None:
        """Return the event of a cached state that was set aside; None if none was."""
        with self.using() as connection:
            if CACHE_TABLE not in table_names(connection):
                return None
            query = f"SELECT seq FROM {CACHE_TABLE} WHERE audit_id = ? AND digest LIKE ?"
            row = connection.run(query, (audit_id, f"{SET_ASIDE}%")).fetchone()
        return None if row is None else int(row[0])

    # -- writing --------------------------------------------------------------------------------

    @contextmanager
    def write(self, audit_id: int) -> Iterator[WriteTransaction]:
        """Be the audit's only writer; commit at the end, undo everything on an error."""
        with self.transaction() as connection:
            # The lock comes first: what is read after it stays true until the commit.
            row = read_audit(connection, audit_id, lock=True)
            yield WriteTransaction(connection, audit_id, _head_from(HEAD_VALUES(row)))

    def scrub(self) -> str:
        """Rewrite the database's files without what was erased; return what is still there.

        SQLite is rewritten whole and its write-ahead log emptied. In PostgreSQL the table of
        people is rewritten; its write-ahead log and its backups are beyond a client's reach.
        """
        with self.using() as connection:
            if connection.kind == "sqlite":
                return self._scrub_sqlite(connection)
            return _scrub_postgres(connection)

    def _scrub_sqlite(self, connection: Connection) -> str:
        connection.run("VACUUM")
        # The write-ahead log keeps old pages until a checkpoint empties it. Any reader delays that.
        connection.run(f"PRAGMA busy_timeout = {SCRUB_WAIT_MS}")
        ((is_busy, *_),) = connection.run("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.run(f"PRAGMA busy_timeout = {int(1000 * self.timeout)}")
        if not is_busy:
            return ""
        return (
            f"copies stay in {self.display_url}-wal while another program reads the ledger: "
            "let it end, then scrub the ledger again"
        )


def _scrub_postgres(connection: Connection) -> str:
    """Rewrite the table of people, which only its owner may do."""
    # A role that is not the owner gets a warning and no error. A new file shows that it was done.
    file_query = "SELECT pg_relation_filenode('people')"
    file_before = connection.run(file_query).fetchone()
    try:
        connection.run("VACUUM FULL people")
        is_rewritten = connection.run(file_query).fetchone() != file_before
    except driver_errors():
        is_rewritten = False
    if is_rewritten:
        return ""
    owner_query = "SELECT tableowner FROM pg_tables WHERE tablename = 'people'"
    owner = connection.run(owner_query).fetchone()[0]
    return (
        f"copies stay in the files of table 'people' until its owner, {owner}, scrubs the ledger "
        "or runs: VACUUM FULL people"
    )


class WriteTransaction:
    """What one transaction reads and stores, while nobody else writes to the audit."""

    def __init__(self, connection: Connection, audit_id: int, head: Head) -> None:
        self.head = head
        self.clock_time = connection.clock()
        self._connection = connection
        self._audit_id = audit_id

    def people(self, names: Sequence[str], numbers: Sequence[int] = ()) -> list[PersonRecord]:
        """Return those of the people who are known."""
        return [
            *_find_people(self._connection, self._audit_id, "person", names),
            *_find_people(self._connection, self._audit_id, "number", numbers),
        ]

    def events_of(self, keys: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Return key -> the event that a command with this key led to."""
        if not keys:
            return {}
        condition, values = self._connection.among("key", keys)
        query = (
            "SELECT key, body FROM command_keys JOIN events "
            "ON events.audit_id = command_keys.audit_id AND events.seq = command_keys.seq "
            f"WHERE command_keys.audit_id = ? AND {condition}"
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
        connection = self._connection
        audit_id = self._audit_id
        event_rows = [(audit_id, seq, body) for seq, body in events]
        connection.insert("events", ("audit_id", "seq", "body"), event_rows)
        key_rows = [(audit_id, key, seq) for key, seq in keys]
        connection.insert("command_keys", ("audit_id", "key", "seq"), key_rows)
        # All columns but the number, by which a row is found again.
        changes = ", ".join(f"{name} = excluded.{name}" for name in PERSON_COLUMNS[1:])
        connection.insert(
            "people",
            ("audit_id", *PERSON_COLUMNS),
            [(audit_id, *PERSON_VALUES(row)) for row in people],
            f"ON CONFLICT (audit_id, number) DO UPDATE SET {changes}",
        )
        assignments = ", ".join(f"{name} = ?" for name in HEAD_COLUMNS)
        updated = connection.run(
            f"UPDATE audits SET {assignments} WHERE id = ? AND seq = ?",
            (*HEAD_VALUES(head), audit_id, self.head.seq),
        )
        # Belt and braces: the row is locked, so only a broken lock can lead here.
        if updated.rowcount != 1:
            raise LedgerError("the ledger moved while its lock was held; nothing was stored")


def read_audit(connection: Connection, audit_id: int, *, lock: bool = False) -> AuditRow:
    """Return an audit's row; lock it where the database does not lock as a whole."""
    suffix = " FOR UPDATE" if lock and connection.kind == "postgresql" else ""
    row = connection.run(f"{SELECT_AUDIT} WHERE id = ?{suffix}", (audit_id,)).fetchone()
    if row is None:
        raise LedgerError("the audit was removed from its ledger")
    return _audit_from(row)


def _find_people(
    connection: Connection, audit_id: int, column: str, names: Sequence[str | int]
) -> list[PersonRecord]:
    """Return the people whose pseudonym or number, by ``column``, is among ``names``."""
    condition, values = connection.among(column, names)
    table = "people"
    if connection.kind == "sqlite" and column == "person":
        # With more than a few names SQLite would rather walk through everybody.
        table = "people INDEXED BY people_person"
    query = f"{SELECT_PERSON} {table} WHERE audit_id = ? AND {condition}"
    rows = connection.run(query, (audit_id, values)).fetchall()
    return [person_from(row) for row in rows]


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
    if "ledger_schema" not in table_names(connection):
        return 0
    rows = connection.run("SELECT version FROM ledger_schema").fetchall()
    version = rows[0][0] if rows else None
    # True would pass for 1, so the type is checked as well.
    if rows != [(VERSION,)] or type(version) is not int:
        raise LedgerError(
            f"the ledger has schema {version!a}, and this program writes and reads {VERSION}: "
            "use the version of equipoise that made it"
        )
    return VERSION


_TABLES = (
    "CREATE TABLE ledger_schema (version INTEGER NOT NULL)",
    """CREATE TABLE audits (
    seq BIGINT NOT NULL, hash TEXT NOT NULL, time TEXT NOT NULL, cap BIGINT,
    spent BIGINT NOT NULL, reserved BIGINT NOT NULL, overrun BIGINT NOT NULL,
    id BIGINT NOT NULL, uid TEXT NOT NULL, name TEXT NOT NULL, seed TEXT NOT NULL,
    PRIMARY KEY (id), UNIQUE (uid), UNIQUE (name),
    CONSTRAINT audit_money_not_negative CHECK (spent >= 0 AND reserved >= 0 AND overrun >= 0),
    CONSTRAINT cap_not_exceeded CHECK (cap IS NULL OR spent + reserved <= cap))""",
    """CREATE TABLE events (
    audit_id INTEGER NOT NULL REFERENCES audits (id), seq BIGINT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (audit_id, seq))""",
    """CREATE TABLE people (
    audit_id INTEGER NOT NULL REFERENCES audits (id), number BIGINT NOT NULL,
    group_name TEXT NOT NULL, decision BIGINT NOT NULL, want TEXT NOT NULL, state TEXT NOT NULL,
    request BIGINT, hold BIGINT NOT NULL, place BIGINT, person TEXT, salt TEXT,
    who TEXT NOT NULL, why TEXT NOT NULL, asked TEXT NOT NULL, drawn BIGINT, draw BIGINT,
    paid BIGINT NOT NULL, overrun BIGINT NOT NULL, outcome BIGINT, executed BIGINT NOT NULL,
    conflicted BIGINT NOT NULL, erased BIGINT NOT NULL,
    PRIMARY KEY (audit_id, number),
    CONSTRAINT money_not_negative CHECK (hold >= 0 AND paid >= 0 AND overrun >= 0),
    CONSTRAINT outcome_binary CHECK (outcome IN (0, 1)))""",
    "CREATE UNIQUE INDEX people_person ON people (audit_id, person)",
    f"CREATE INDEX people_open ON people (audit_id, state) WHERE {IS_OPEN}",
    """CREATE TABLE command_keys (
    audit_id INTEGER NOT NULL REFERENCES audits (id), key TEXT NOT NULL, seq BIGINT NOT NULL,
    PRIMARY KEY (audit_id, key))""",
    f"INSERT INTO ledger_schema (version) VALUES ({VERSION})",
)
# Even a program with a bug, or an administrator, cannot change an event by accident.
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


# How the JSON of events ends that come with every person; all others are few.
_FREQUENT_ENDINGS = tuple(
    f"'{ending}\"}}'"
    for ending in (
        *('"asked', "ecuted", "vealed", '"noted', "hdrawn", "verdue", "en_off", "nflict"),
    )
)


def is_rare(kind: str) -> str:
    """Return the condition that an event is of a rare type, as the index of them says it."""
    ending = "substr(body, -8)" if kind == "sqlite" else "right(body, 8)"
    return f"{ending} NOT IN ({', '.join(_FREQUENT_ENDINGS)})"


def cache_statements(kind: str) -> tuple[str, ...]:
    """Return what makes the cache beside the chain, and the indexes that reading it needs."""
    return (
        f"CREATE TABLE {CACHE_TABLE} (audit_id INTEGER NOT NULL REFERENCES audits (id), "
        "seq BIGINT NOT NULL, hash TEXT NOT NULL, edition BIGINT NOT NULL, digest TEXT NOT NULL, "
        "body TEXT NOT NULL, PRIMARY KEY (audit_id))",
        f"CREATE INDEX events_rare ON events (audit_id, seq) WHERE {is_rare(kind)}",
        "CREATE INDEX people_place ON people (audit_id, group_name, place) WHERE place IS NOT NULL",
        "CREATE INDEX people_request ON people (audit_id, request) WHERE request IS NOT NULL",
    )


def statements(kind: str) -> tuple[str, ...]:
    """Return what makes a ledger of an empty database."""
    if kind == "postgresql":
        return _TABLES + cache_statements(kind) + _POSTGRES_TRIGGERS
    keyed = ("CREATE TABLE events", "CREATE TABLE people")  # clustered by key, as they are read
    tables = tuple(s + " WITHOUT ROWID" if s.startswith(keyed) else s for s in _TABLES)
    return tables + cache_statements(kind) + _SQLITE_TRIGGERS
