"""The whole database against its events, as of one moment, while writers go on."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from equipoise.errors import LedgerError
from equipoise.ledger.connection import Connection
from equipoise.ledger.schema import (
    VERSION,
    PersonRow,
    columns,
    postgres_objects,
    squeezed,
    statements,
)
from equipoise.ledger.standing import OLDER_SNAPSHOTS
from equipoise.ledger.state import State
from equipoise.ledger.store import AUDIT, PERSON, AuditRow, Store
from equipoise.ledger.verify import Books, Broken, Person, Summary, verify

__all__ = ["check_ledger"]

_BROKEN = (Broken, ArithmeticError, LookupError, RecursionError, TypeError, ValueError)

_COMPARED = [name for name in columns(PersonRow) if name not in ("number", "person", "salt")]
_STORED = attrgetter(*_COMPARED)
_BY_EVENTS = attrgetter(*(name.removesuffix("_name") for name in _COMPARED))

BEFORE_STATEMENT = 2 + 8 + 16 + 32  # pg_trigger.tgtype: before delete, update, truncate


def check_ledger(
    store: Store,
    audit_id: int,
    checkpoints: Sequence[tuple[int, str]],
    peek: Callable[[int], State | None],
) -> Summary:
    """Check everything that is stored about an audit; raise at the first difference.

    Parameters
    ----------
    checkpoints
        Ends of the chain that were handed out earlier.
    peek
        Returns the state that a program holds in memory as of some event, None if of another.
    """
    with store.snapshot() as connection:
        _check_database(connection)
        row = _audit_row(connection, audit_id)
        snapshot = connection.run(
            "SELECT seq, hash, state FROM snapshots WHERE audit_id = ?", (audit_id,)
        ).fetchone()
        books, state = Books(), State(_features(connection, audit_id), strict=True)

        def repeat(event: Mapping[str, Any], own: str) -> None:
            state.take(event, own)
            if snapshot is not None and state.seq == snapshot[0]:
                _same("the snapshot's hash", snapshot[1], own)
                found = json.loads(snapshot[2])
                if found["format"] not in OLDER_SNAPSHOTS:  # those are never read again
                    _same_state("the snapshot", found, state)

        try:
            lines = _lines(connection, audit_id)
            summary = verify(
                lines, head=row.hash, checkpoints=checkpoints, books=books, also=repeat
            )
            books.require_seed(row.seed)
            books.check_people(_compared_people(connection, audit_id, books.people), row.seed)
        except _BROKEN as error:
            raise LedgerError(f"the ledger is broken: {error}") from error
        _check_row(row, summary)
        _check_features(connection, audit_id, books)
        if snapshot is not None and not 0 < snapshot[0] <= summary.events:
            raise LedgerError(f"a snapshot is of event {snapshot[0]}, which does not exist")
    _check_statistics(state, summary)
    if (held := peek(state.seq)) is not None:
        _same_state("the state in memory", json.loads(json.dumps(held.to_data())), state)
    return summary


def _check_statistics(state: State, summary: Summary) -> None:
    if state.blind or state.features_erased:
        return
    if not state.unsettled:  # whoever changed an answer may have been killed before the verdict
        finding = state.finding()
        _same("the verdict", summary.verdict, None if finding is None else finding.verdict.value)
    state.check_books()


def _audit_row(connection: Connection, audit_id: int) -> AuditRow:
    row = connection.run(f"SELECT {AUDIT} FROM audits WHERE id = ?", (audit_id,)).fetchone()
    if row is None:
        raise LedgerError("the audit was removed from its ledger")
    return AuditRow(*row)


def _check_row(row: AuditRow, summary: Summary) -> None:
    for name, right in (
        ("uid", summary.audit),
        ("name", summary.name),
        ("seq", summary.events),
        ("time", summary.time),
        ("cap", summary.cap),
        ("spent", summary.spent),
        ("reserved", summary.reserved),
        ("overrun", summary.overrun),
    ):
        _same(f"the audit's {name}", getattr(row, name), right)


def _lines(connection: Connection, audit_id: int) -> Iterator[bytes]:
    query = "SELECT seq, body FROM events WHERE audit_id = ? ORDER BY seq"
    for number, (seq, body) in enumerate(connection.stream(query, (audit_id,)), start=1):
        _same("an event's number", seq, number)
        yield f"{body}\n".encode("utf-8", "surrogateescape")


def _compared_people(
    connection: Connection, audit_id: int, people: Sequence[Person]
) -> Iterator[Mapping[str, Any]]:
    """Compare every column with the events; yield the keys of those who have one."""
    query = f"SELECT {PERSON} FROM people WHERE audit_id = ? ORDER BY number"
    number = 0
    for values in connection.stream(query, (audit_id,)):
        row, number = PersonRow(*values), number + 1
        if row.number != number or number > len(people):
            raise LedgerError(f"person {row.number} is stored where {number} should be, if anybody")
        known = people[number - 1]
        if _STORED(row) != _BY_EVENTS(known):
            for name, found, right in zip(_COMPARED, _STORED(row), _BY_EVENTS(known), strict=True):
                _same(f"{name} of person {number}", found, right)
        if known.erased:
            _same(f"pseudonym of person {number}, erased,", (row.person, row.salt), (None, None))
        elif not isinstance(row.person, str) or not isinstance(row.salt, str):
            raise LedgerError(f"the key of person {number} is gone, and no event says why")
        else:
            yield {"person": number, "pseudonym": row.person, "salt": row.salt}
    _same("the number of people", number, len(people))


def _features(connection: Connection, audit_id: int) -> Callable[[int], Sequence[float] | None]:
    def features_of(number: int) -> Sequence[float] | None:
        query = "SELECT vector FROM features WHERE audit_id = ? AND number = ?"
        row = connection.run(query, (audit_id, number)).fetchone()
        return None if row is None else json.loads(row[0])

    return features_of


def _check_features(connection: Connection, audit_id: int, books: Books) -> None:
    everybody = [] if books.features_erased else list(enumerate(books.people, start=1))
    wanted = {n: p.features for n, p in everybody if p.features and not p.erased}
    query = "SELECT number, salt, vector FROM features WHERE audit_id = ? ORDER BY number"
    found = {}
    for number, salt, vector in connection.stream(query, (audit_id,)):
        found[number] = hashlib.sha256(f"{salt}{vector}".encode()).hexdigest()
    _same("feature vectors, as hashes,", found, wanted)


# -- the database itself --------------------------------------------------------------------------


def _check_database(connection: Connection) -> None:
    _same(
        "the schema", connection.run("SELECT version FROM ledger_schema").fetchall(), [(VERSION,)]
    )
    if connection.kind == "postgresql":
        _check_postgres(connection)
        return
    _same(
        "SQLite's integrity check", connection.run("PRAGMA integrity_check").fetchall(), [("ok",)]
    )
    _same("orphans", connection.run("PRAGMA foreign_key_check").fetchall(), [])
    objects = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
    fresh = sqlite3.connect(":memory:")
    for statement in statements(0, "sqlite"):
        fresh.execute(statement)
    wanted = dict(fresh.execute(objects).fetchall())
    fresh.close()
    found = dict(connection.run(objects).fetchall())
    for name, text in wanted.items():
        if found.get(name) != text:
            raise LedgerError(f"{name!r} of the database is missing or was changed")
    if extra := sorted(set(found) - set(wanted)):
        raise LedgerError(f"{extra[0]!r} is in the database and not the ledger's")


def _check_postgres(connection: Connection) -> None:
    checks = connection.run(
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'c' "
        "AND convalidated AND conrelid IN ('audits'::regclass, 'people'::regclass)"
    ).fetchall()
    triggers = connection.run(
        "SELECT tgname, prosrc, tgenabled, tgtype FROM pg_trigger "
        "JOIN pg_proc ON pg_proc.oid = tgfoid "
        "WHERE tgrelid = 'events'::regclass AND NOT tgisinternal"
    ).fetchall()
    found = {name: squeezed(text) for name, text in checks}
    for name, source, enabled, kind in triggers:
        if enabled in ("O", "A", b"O", b"A") and kind == BEFORE_STATEMENT:
            found[name] = squeezed(source)
    for name, text in postgres_objects().items():
        if found.get(name) != text:
            raise LedgerError(f"{name!r} of the database is missing or was changed")
    for table in ("events", "people", "snapshots", "features"):
        lost = (
            f"SELECT DISTINCT audit_id FROM {table} WHERE audit_id NOT IN (SELECT id FROM audits)"
        )
        _same(f"audits that only {table} know", connection.run(lost).fetchall(), [])
    keys = connection.run(
        "SELECT indexrelid::regclass::text FROM pg_index WHERE indisunique AND indisvalid "
        "AND indrelid IN ('audits'::regclass, 'events'::regclass, 'people'::regclass)"
    ).fetchall()
    missing = {"audits_pkey", "events_pkey", "people_pkey", "people_person"} - {k[0] for k in keys}
    if missing:
        raise LedgerError(f"{min(missing)!r} of the database is missing")


def _same(what: str, found: object, right: object) -> None:
    if found != right:
        raise LedgerError(f"{what} is stored as {found!r}; the events say {right!r}")


def _same_state(what: str, found: Mapping[str, Any], state: State) -> None:
    right = json.loads(json.dumps(state.to_data()))
    for name in right | dict(found):
        if name not in right or name not in found or found[name] != right[name]:
            raise LedgerError(f"{name!r} of {what} at event {state.seq} is not what the events say")
