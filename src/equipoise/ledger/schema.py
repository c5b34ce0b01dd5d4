"""The ledger's tables, as statements that both databases understand, one list per version.

``events`` is the truth. ``people`` and ``audits`` are indexes of it that ``verify`` checks column
by column; ``snapshots`` is a shortcut. Only ``people`` knows pseudonyms, with the key that ties
each to the chain; only ``features`` holds feature vectors: what can be erased is in no other place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import cache

from equipoise.errors import LedgerError
from equipoise.ledger.verify import OPEN

__all__ = [
    "VERSION",
    "Head",
    "PersonRow",
    "columns",
    "postgres_objects",
    "squeezed",
    "statements",
]

VERSION = 1


@dataclass(slots=True)
class Head:
    """Where an audit's chain ends and what its balance is."""

    seq: int
    hash: str
    time: str
    cap: int | None
    spent: int
    reserved: int
    overrun: int


@dataclass(slots=True)
class PersonRow:
    """The present state of one person; ``person`` is None once erased."""

    number: int  # in order of arrival, from 1; stands for the person in the chain
    person: str | None
    salt: str | None
    who: str
    group_name: str
    decision: int
    want: str
    state: str
    why: str
    request: int | None  # place in request order, None if the audit was not consulted
    place: int | None  # place among the group's approved people
    hold: int
    paid: int
    overrun: int
    outcome: int | None
    asked: str
    executed: int
    conflicted: int

    @property
    def open(self) -> bool:
        """Whether money is held for this person."""
        return self.state in OPEN


@cache
def columns(cls: type) -> tuple[str, ...]:
    """Return the columns of a row."""
    return tuple(f.name for f in fields(cls))


_TABLES = (
    "CREATE TABLE ledger_schema (version INTEGER NOT NULL)",
    """CREATE TABLE audits (
    id INTEGER PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    seed TEXT NOT NULL,
    seq BIGINT NOT NULL,
    hash TEXT NOT NULL,
    time TEXT NOT NULL,
    cap BIGINT,
    spent BIGINT NOT NULL,
    reserved BIGINT NOT NULL,
    overrun BIGINT NOT NULL,
    CONSTRAINT audit_money_not_negative CHECK (spent >= 0 AND reserved >= 0 AND overrun >= 0),
    CONSTRAINT cap_not_exceeded CHECK (cap IS NULL OR spent + reserved <= cap)
)""",
    """CREATE TABLE events (
    audit_id INTEGER NOT NULL REFERENCES audits (id),
    seq BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (audit_id, seq)
)""",
    """CREATE TABLE people (
    audit_id INTEGER NOT NULL REFERENCES audits (id),
    number BIGINT NOT NULL,
    person TEXT,
    salt TEXT,
    who TEXT NOT NULL,
    group_name TEXT NOT NULL,
    decision SMALLINT NOT NULL,
    want TEXT NOT NULL,
    state TEXT NOT NULL,
    why TEXT NOT NULL,
    request BIGINT,
    place BIGINT,
    hold BIGINT NOT NULL,
    paid BIGINT NOT NULL,
    overrun BIGINT NOT NULL,
    outcome SMALLINT,
    asked TEXT NOT NULL,
    executed SMALLINT NOT NULL,
    conflicted SMALLINT NOT NULL,
    PRIMARY KEY (audit_id, number),
    CONSTRAINT money_not_negative CHECK (hold >= 0 AND paid >= 0 AND overrun >= 0),
    CONSTRAINT outcome_binary CHECK (outcome IN (0, 1))
)""",
    "CREATE UNIQUE INDEX people_person ON people (audit_id, person)",
    "CREATE INDEX people_open ON people (audit_id, state) "
    "WHERE state IN ('RESERVED', 'EXECUTED', 'OVERDUE')",
    """CREATE TABLE snapshots (
    audit_id INTEGER PRIMARY KEY REFERENCES audits (id),
    seq BIGINT NOT NULL,
    hash TEXT NOT NULL,
    state TEXT NOT NULL
)""",
    """CREATE TABLE features (
    audit_id INTEGER NOT NULL REFERENCES audits (id),
    number BIGINT NOT NULL,
    salt TEXT NOT NULL,
    vector TEXT NOT NULL,
    PRIMARY KEY (audit_id, number)
)""",
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
    "ALTER TABLE features ALTER COLUMN vector SET STATISTICS 0",
)


def statements(found: int, kind: str) -> tuple[str, ...]:
    """Return what brings a database from one version to the present one."""
    if found == VERSION:
        return ()
    if found > VERSION:
        raise LedgerError(
            f"schema {found} is newer than this program's {VERSION}; install a newer equipoise"
        )
    if kind == "postgresql":
        return _TABLES + _POSTGRES_TRIGGERS
    keyed = ("CREATE TABLE events", "CREATE TABLE people")  # clustered by key, as they are read
    tables = tuple(s + " WITHOUT ROWID" if s.startswith(keyed) else s for s in _TABLES)
    return tables + _SQLITE_TRIGGERS


def postgres_objects() -> dict[str, str]:
    """Return the constraints and the trigger that PostgreSQL must have, each squeezed."""
    found = re.findall(r"CONSTRAINT (\w+) (CHECK \(.*\)),?$", "\n".join(_TABLES), re.MULTILINE)
    body = _POSTGRES_TRIGGERS[0].split("$$")[1]
    return {name: squeezed(text) for name, text in found} | {"events_append_only": squeezed(body)}


def squeezed(text: str) -> str:
    """Return a definition without what a database writes in its own way.

    Examples
    --------
    >>> squeezed("CHECK ((outcome = ANY (ARRAY[0, 1])))") == squeezed("CHECK (outcome IN (0, 1))")
    True
    """
    text = re.sub(r"::\w+(\[\])?", "", text.lower()).replace("= any", "in")
    return re.sub(r"array|[\s()\[\]]", "", text)
