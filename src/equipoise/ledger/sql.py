"""The statements that run on every call, compiled once.

They are written with SQLAlchemy Core, so that one definition serves both databases, compiled, and
then run on the driver's own cursor: a single ask spends its time in ``fsync``, not in building SQL.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    Connection,
    Dialect,
    Text,
    any_,
    bindparam,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.sql import ClauseElement, ColumnElement

from equipoise.errors import LedgerError
from equipoise.ledger.rows import Head, PersonRow, fields_of
from equipoise.ledger.schema import audits, events, people

__all__ = ["Sql", "people_columns"]

CHANGING = ("state", "paid", "overrun", "outcome", "executed", "conflicted")


def people_columns() -> list[ColumnElement[Any]]:
    """Return the columns that make a :class:`PersonRow`, in its order."""
    return [people.c[name] for name in fields_of(PersonRow)]


class Sql:
    """The hot statements for one database dialect."""

    def __init__(self, dialect: Dialect) -> None:
        this = audits.c.id == bindparam("audit_id")
        head = select(*(audits.c[name] for name in fields_of(Head))).where(this)
        person = (people.c.audit_id == bindparam("audit_id")) & (
            people.c.person == bindparam("person")
        )
        self._begin = "BEGIN IMMEDIATE" if dialect.name == "sqlite" else "BEGIN"
        self._head = _Compiled(head, dialect)
        self._locked_head = _Compiled(head.with_for_update(), dialect)
        self._person = _Compiled(select(*people_columns()).where(person), dialect)
        self._insert_event = _Compiled(insert(events), dialect)
        self._insert_person = _Compiled(insert(people), dialect)
        self._update_person = _Compiled(
            update(people).where(person).values({name: bindparam(name) for name in CHANGING}),
            dialect,
        )
        changing = [name for name in fields_of(Head) if name != "cap"]
        self._update_head = _Compiled(
            update(audits)
            .where(this, audits.c.seq == bindparam("expected"))
            .values({name: bindparam(f"new_{name}") for name in changing}),
            dialect,
        )
        self._names_as_json = dialect.name == "sqlite"
        among = people.c.person == any_(bindparam("names", type_=ARRAY(Text)))
        if self._names_as_json:
            listed = func.json_each(bindparam("names")).table_valued("value")
            among = people.c.person.in_(select(listed.c.value))
        some = select(*people_columns()).where(people.c.audit_id == bindparam("audit_id"), among)
        self._some_people = _Compiled(some, dialect)
        self._head_values = attrgetter(*changing)
        self._head_names = tuple(f"new_{name}" for name in changing)

    def begin(self, connection: Connection) -> None:
        """Open a writing transaction."""
        _plainly(connection, self._begin)

    def commit(self, connection: Connection) -> None:
        """Make it durable."""
        _plainly(connection, "COMMIT")

    def rollback(self, connection: Connection) -> None:
        """Undo it."""
        _plainly(connection, "ROLLBACK")

    def head(self, connection: Connection, audit_id: int, *, lock: bool) -> tuple[Any, ...]:
        """Return the audit's head row, locked until the transaction ends if asked."""
        statement = self._locked_head if lock else self._head
        row = statement.one(connection, {"audit_id": audit_id})
        if row is None:
            raise LedgerError("the audit was removed from its ledger")
        return row

    def people(
        self, connection: Connection, audit_id: int, names: Sequence[str]
    ) -> dict[str, PersonRow]:
        """Return those of the people who are known."""
        if len(names) == 1:
            row = self._person.one(connection, {"audit_id": audit_id, "person": names[0]})
            return {} if row is None else {names[0]: PersonRow(*row)}
        listed = json.dumps(names) if self._names_as_json else list(names)
        rows = self._some_people.all(connection, {"audit_id": audit_id, "names": listed})
        return {row[0]: PersonRow(*row) for row in rows}

    def insert_events(
        self, connection: Connection, audit_id: int, rows: Sequence[tuple[int, str, str]]
    ) -> None:
        """Append ``(seq, hash, body)`` rows."""
        self._insert_event.many(connection, audit_id, [_EventRow(*row) for row in rows])

    def insert_people(
        self, connection: Connection, audit_id: int, rows: Sequence[PersonRow]
    ) -> None:
        """Add people."""
        self._insert_person.many(connection, audit_id, rows)

    def update_people(
        self, connection: Connection, audit_id: int, rows: Sequence[PersonRow]
    ) -> None:
        """Change people."""
        self._update_person.many(connection, audit_id, rows)

    def update_head(
        self, connection: Connection, audit_id: int, head: Head, *, expected: int
    ) -> bool:
        """Move the head; False if it is not where it was expected."""
        values = dict(zip(self._head_names, self._head_values(head), strict=True))
        parameters = {"audit_id": audit_id, "expected": expected, **values}
        return self._update_head.run(connection, parameters) == 1


class _EventRow(NamedTuple):
    seq: int
    hash: str
    body: str


class _Compiled:
    """A statement as the driver's own string, run on the driver's own cursor."""

    def __init__(self, statement: ClauseElement, dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        self._text = str(compiled)
        order = getattr(compiled, "positiontup", None)
        self._positional = order is not None
        self._names = tuple(order or compiled.params)
        self._audit_at = self._names.index("audit_id")
        own = [name for name in self._names if name != "audit_id"]
        self._own = attrgetter(*own) if len(own) > 1 else None  # one name alone gives no tuple

    def one(self, connection: Connection, parameters: Mapping[str, Any]) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._execute(connection, self._shape(parameters)).fetchone()
        return row

    def all(self, connection: Connection, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._execute(connection, self._shape(parameters)).fetchall()
        return rows

    def run(self, connection: Connection, parameters: Mapping[str, Any]) -> int:
        count: int = self._execute(connection, self._shape(parameters)).rowcount
        return count

    def many(self, connection: Connection, audit_id: int, rows: Sequence[object]) -> None:
        """Run once for every row, whose attributes are the parameters."""
        shaped = [self._shape_row(audit_id, row) for row in rows]
        if len(shaped) == 1:
            self._execute(connection, shaped[0])
        elif shaped:
            connection.connection.cursor().executemany(self._text, shaped)

    def _execute(self, connection: Connection, parameters: Any) -> Any:
        cursor = connection.connection.cursor()
        cursor.execute(self._text, parameters)
        return cursor

    def _shape(self, parameters: Mapping[str, Any]) -> Any:
        if self._positional:
            return tuple(parameters[name] for name in self._names)
        return parameters

    def _shape_row(self, audit_id: int, row: object) -> Any:
        assert self._own is not None
        values, at = self._own(row), self._audit_at
        values = (*values[:at], audit_id, *values[at:])
        return values if self._positional else dict(zip(self._names, values, strict=True))


def _plainly(connection: Connection, text: str) -> None:
    connection.connection.cursor().execute(text)
