"""The statements that run on every call, compiled once.

They are written with SQLAlchemy Core, so that one definition serves both databases, compiled, and
then run on the driver's own cursor: a single ask spends its time in ``fsync``, not in building SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any

from sqlalchemy import Connection, Dialect, bindparam, insert, select, update
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
            people.c.person == bindparam("name")
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
        self._some_people = select(*people_columns()).where(
            people.c.audit_id == bindparam("audit_id"),
            people.c.person.in_(bindparam("names", expanding=True)),
        )
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
            row = self._person.one(connection, {"audit_id": audit_id, "name": names[0]})
            return {} if row is None else {names[0]: PersonRow(*row)}
        parameters = {"audit_id": audit_id, "names": list(names)}
        rows = connection.execute(self._some_people, parameters)
        return {row[0]: PersonRow(*row) for row in rows}

    def insert_events(
        self, connection: Connection, audit_id: int, rows: Sequence[tuple[int, str, str]]
    ) -> None:
        """Append ``(seq, hash, body)`` rows."""
        names = ("audit_id", "seq", "hash", "body")
        self._insert_event.many(
            connection, [dict(zip(names, (audit_id, *row), strict=True)) for row in rows]
        )

    def insert_people(
        self, connection: Connection, audit_id: int, rows: Sequence[PersonRow]
    ) -> None:
        """Add people."""
        names = fields_of(PersonRow)
        self._insert_person.many(
            connection,
            [{"audit_id": audit_id, **{n: getattr(row, n) for n in names}} for row in rows],
        )

    def update_people(
        self, connection: Connection, audit_id: int, rows: Sequence[PersonRow]
    ) -> None:
        """Change people."""
        self._update_person.many(
            connection,
            [
                {"audit_id": audit_id, "name": row.person, **{n: getattr(row, n) for n in CHANGING}}
                for row in rows
            ],
        )

    def update_head(
        self, connection: Connection, audit_id: int, head: Head, *, expected: int
    ) -> bool:
        """Move the head; False if it is not where it was expected."""
        values = dict(zip(self._head_names, self._head_values(head), strict=True))
        parameters = {"audit_id": audit_id, "expected": expected, **values}
        return self._update_head.run(connection, parameters) == 1


class _Compiled:
    """A statement as the driver's own string, run on the driver's own cursor."""

    def __init__(self, statement: ClauseElement, dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        self._text = str(compiled)
        order = getattr(compiled, "positiontup", None)
        self._shape: Callable[[Mapping[str, Any]], Any] = _unchanged
        if order is not None:
            get = itemgetter(*order)
            self._shape = get if len(order) > 1 else lambda parameters: (get(parameters),)

    def one(self, connection: Connection, parameters: Mapping[str, Any]) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._execute(connection, parameters).fetchone()
        return row

    def run(self, connection: Connection, parameters: Mapping[str, Any]) -> int:
        count: int = self._execute(connection, parameters).rowcount
        return count

    def many(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        if len(rows) == 1:
            self._execute(connection, rows[0])
        elif rows:
            cursor = connection.connection.cursor()
            cursor.executemany(self._text, [self._shape(row) for row in rows])

    def _execute(self, connection: Connection, parameters: Mapping[str, Any]) -> Any:
        cursor = connection.connection.cursor()
        cursor.execute(self._text, self._shape(parameters))
        return cursor


def _unchanged(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    return parameters


def _plainly(connection: Connection, text: str) -> None:
    connection.connection.cursor().execute(text)
