"""Where events are kept: SQLite or PostgreSQL, one connection, one writing transaction at a time.

Decisions must be made one after the other, whoever makes them, because each depends on the ones
before. The database does the queueing: ``BEGIN IMMEDIATE`` in SQLite, a lock on the audit's row in
PostgreSQL. What is committed is on disk (write-ahead log, ``synchronous=FULL``).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select
from sqlalchemy.pool import StaticPool

from equipoise.errors import InvalidInput, LedgerError, UnknownName
from equipoise.ledger.engine import connect, database_errors, ensure_schema, explained
from equipoise.ledger.rows import Head, PersonRow, fields_of
from equipoise.ledger.schema import audits, events, features, people, snapshots
from equipoise.ledger.sql import Sql, people_columns

__all__ = ["AuditRow", "Store", "Transaction"]

CHUNK = 2000
IN_ONE_QUERY = 500


@dataclass(frozen=True)
class AuditRow:
    """One audit as the list of audits shows it."""

    id: int
    uid: str
    name: str
    seed: str
    seq: int
    time: str
    cap: int | None
    spent: int
    reserved: int


class Store:
    """A ledger database; safe to share between threads, and to carry over a fork.

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
        self.url = url
        self._lock = threading.RLock()
        self._timeout = timeout
        self._held = _Held()
        weakref.finalize(self, self._held.let_go)
        with explained(url, timeout):
            connection = self._held.keep(connect(url, create=create, timeout=timeout))
            ensure_schema(connection, url, create=create)
        self._sql = Sql(connection.dialect)
        self._in_memory = isinstance(connection.engine.pool, StaticPool)

    def close(self) -> None:
        """Let go of the connection; it is opened again when needed."""
        with self._lock:
            self._held.let_go()

    # -- audits ---------------------------------------------------------------------------------

    def audits(self) -> list[AuditRow]:
        """Return all audits, oldest first."""
        columns = [audits.c[name] for name in fields_of(AuditRow)]
        with self._using() as connection:
            rows = connection.execute(select(*columns).order_by(audits.c.id)).all()
        return [AuditRow(*row) for row in rows]

    def audit(self, name: str) -> AuditRow:
        """Return the audit of this name."""
        for row in (known := self.audits()):
            if name in (row.name, row.uid):
                return row
        raise UnknownName("audit", name, [row.name for row in known])

    def add_audit(
        self, *, uid: str, name: str, seed: str, cap: int | None, event: tuple[int, str, str, str]
    ) -> AuditRow:
        """Store a new audit with its first event ``(seq, time, hash, body)``."""
        seq, time, digest, body = event
        with self._transaction() as connection:
            taken = connection.execute(select(audits.c.id).where(audits.c.name == name)).first()
            if taken is not None:
                raise InvalidInput(f"an audit named {name!r} exists already; choose another name")
            number = connection.execute(
                insert(audits)
                .values(uid=uid, name=name, seed=seed, seq=seq, hash=digest, time=time)
                .values(revised=0, cap=cap, spent=0, reserved=0, overrun=0)
                .returning(audits.c.id)
            ).scalar_one()
            first = {"audit_id": number, "seq": seq, "hash": digest, "body": body}
            connection.execute(insert(events), first)
        return self.audit(name)

    # -- reading --------------------------------------------------------------------------------

    def head(self, audit_id: int) -> Head:
        """Return the audit's head and balance."""
        with self._using() as connection:
            return Head(*self._sql.head(connection, audit_id, lock=False))

    def events(
        self, audit_id: int, *, after: int = 0, upto: int | None = None
    ) -> Iterator[tuple[str, str]]:
        """Yield ``(hash, body)`` of the events after one number, in order."""
        while upto is None or after < upto:
            where = [events.c.audit_id == audit_id, events.c.seq > after]
            if upto is not None:
                where.append(events.c.seq <= upto)
            query = select(events.c.hash, events.c.body).where(*where)
            with self._using() as connection:
                rows = connection.execute(query.order_by(events.c.seq).limit(CHUNK)).all()
            if not rows:
                return
            yield from ((row[0], row[1]) for row in rows)
            after += len(rows)

    def people(
        self, audit_id: int, *, states: Sequence[str] = (), conflicted: bool = False
    ) -> list[PersonRow]:
        """Return people in the given states, or those about whom conflicting things were told."""
        query = select(*people_columns()).where(people.c.audit_id == audit_id)
        if states:
            query = query.where(people.c.state.in_(states))
        if conflicted:
            query = query.where(people.c.conflicted == 1)
        with self._using() as connection:
            rows = connection.execute(query.order_by(people.c.number, people.c.person)).all()
        return [PersonRow(*row) for row in rows]

    def person(self, audit_id: int, person: str) -> PersonRow | None:
        """Return one person, None if nobody asked about them."""
        with self._using() as connection:
            return self._sql.people(connection, audit_id, [person]).get(person)

    def features(self, audit_id: int, person: str) -> str | None:
        """Return a person's feature vector as JSON, None if it was never stored or is erased."""
        query = select(features.c.vector).where(
            features.c.audit_id == audit_id, features.c.person == person
        )
        with self._using() as connection:
            return connection.execute(query).scalar()

    # -- snapshots ------------------------------------------------------------------------------

    def snapshot(
        self, audit_id: int, *, software: str, since: int, upto: int
    ) -> tuple[int, str, bytes] | None:
        """Return the newest usable snapshot as ``(seq, digest, state)``."""
        query = (
            select(snapshots.c.seq, snapshots.c.digest, snapshots.c.state)
            .where(snapshots.c.audit_id == audit_id, snapshots.c.software == software)
            .where(snapshots.c.seq >= since, snapshots.c.seq <= upto)
            .order_by(snapshots.c.seq.desc())
            .limit(1)
        )
        with self._using() as connection:
            row = connection.execute(query).first()
        return None if row is None else (row[0], row[1], bytes(row[2]))

    def add_snapshot(
        self, audit_id: int, seq: int, *, software: str, digest: str, state: bytes
    ) -> None:
        """Keep a snapshot in place of the older ones."""
        values = {"audit_id": audit_id, "seq": seq, "software": software, "digest": digest}
        with self._transaction() as connection:
            newest = connection.execute(
                select(func.max(snapshots.c.seq)).where(snapshots.c.audit_id == audit_id)
            ).scalar_one()
            if newest is None or newest < seq:
                connection.execute(delete(snapshots).where(snapshots.c.audit_id == audit_id))
                connection.execute(insert(snapshots), {**values, "state": state})

    # -- writing --------------------------------------------------------------------------------

    @contextmanager
    def write(self, audit_id: int) -> Iterator[Transaction]:
        """Hold the audit's writing turn; commit at the end, undo everything on an error."""
        with self._transaction() as connection:
            head = Head(*self._sql.head(connection, audit_id, lock=True))
            yield Transaction(self, connection, audit_id, head)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._using() as connection:
            try:
                self._sql.begin(connection)
                yield connection
                self._commit(connection)
            except BaseException:
                with suppress(*database_errors()):
                    self._sql.rollback(connection)
                raise

    def _commit(self, connection: Connection) -> None:
        self._sql.commit(connection)

    @contextmanager
    def _using(self) -> Iterator[Connection]:
        with self._lock, explained(self.url, self._timeout):
            connection = self._held.connection
            if connection is None:
                connection = self._held.keep(connect(self.url, create=False, timeout=self._timeout))
            try:
                yield connection
            except database_errors():
                if not self._in_memory:
                    self.close()  # whatever it was, begin anew
                raise


class _Held:
    """The connection of one process. After a fork it is left to the parent, never closed."""

    def __init__(self) -> None:
        self._kept: list[tuple[int, Connection]] = []

    @property
    def connection(self) -> Connection | None:
        """The connection, if this process has one."""
        mine = [connection for pid, connection in self._kept if pid == os.getpid()]
        return mine[0] if mine else None

    def keep(self, connection: Connection) -> Connection:
        """Hold on to a connection of this process."""
        self._kept.append((os.getpid(), connection))
        return connection

    def let_go(self) -> None:
        """Close this process's connection."""
        connection = self.connection
        if connection is not None:
            self._kept.remove((os.getpid(), connection))
            connection.close()
            connection.engine.dispose()


class Transaction:
    """One writing turn."""

    def __init__(self, store: Store, connection: Connection, audit_id: int, head: Head) -> None:
        self.head = head
        self._store = store
        self._connection = connection
        self._audit_id = audit_id

    def people(self, names: Sequence[str]) -> dict[str, PersonRow]:
        """Return those of the people who are known."""
        sql, found = self._store._sql, {}
        unique = list(dict.fromkeys(names))
        for start in range(0, len(unique), IN_ONE_QUERY):
            part = unique[start : start + IN_ONE_QUERY]
            found.update(sql.people(self._connection, self._audit_id, part))
        return found

    def append(
        self,
        head: Head,
        new_events: Sequence[tuple[int, str, str]],
        new_people: Sequence[PersonRow],
        changed_people: Sequence[PersonRow],
    ) -> None:
        """Store events ``(seq, hash, body)`` with the people and the balance that follow."""
        sql, connection, audit_id = self._store._sql, self._connection, self._audit_id
        sql.insert_events(connection, audit_id, new_events)
        sql.insert_people(connection, audit_id, new_people)
        sql.update_people(connection, audit_id, changed_people)
        if not sql.update_head(connection, audit_id, head, expected=self.head.seq):
            raise LedgerError("the ledger moved while its lock was held; nothing was stored")

    def add_features(self, vectors: Sequence[tuple[str, str, str]]) -> None:
        """Store ``(person, salt, JSON)``."""
        rows = [
            {"audit_id": self._audit_id, "person": person, "salt": salt, "vector": vector}
            for person, salt, vector in vectors
        ]
        self._connection.execute(insert(features), rows)

    def erase_features(self) -> None:
        """Delete every feature vector, and the snapshots that may hold some."""
        for table in (features, snapshots):
            self._connection.execute(delete(table).where(table.c.audit_id == self._audit_id))
