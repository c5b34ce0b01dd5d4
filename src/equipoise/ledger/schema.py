"""The ledger's tables, as statements that both databases understand.

``events`` is the truth. ``people``, ``audits`` and ``command_keys`` are indexes of it that
``verify`` checks column by column; ``snapshots`` is a shortcut. Only ``people`` knows pseudonyms,
with the key that ties each to the chain: what can be erased is in no other place.
"""

from __future__ import annotations

__all__ = ["TABLES", "VERSION", "statements"]

VERSION = 2
TABLES = ("audits", "events", "people", "command_keys", "snapshots")

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
    group_name TEXT NOT NULL,
    decision SMALLINT NOT NULL,
    want TEXT NOT NULL,
    state TEXT NOT NULL,
    request BIGINT,
    hold BIGINT NOT NULL,
    place BIGINT,
    person TEXT,
    salt TEXT,
    who TEXT NOT NULL,
    why TEXT NOT NULL,
    asked TEXT NOT NULL,
    drawn SMALLINT,
    draw BIGINT,
    paid BIGINT NOT NULL,
    overrun BIGINT NOT NULL,
    outcome SMALLINT,
    executed SMALLINT NOT NULL,
    conflicted SMALLINT NOT NULL,
    erased SMALLINT NOT NULL,
    PRIMARY KEY (audit_id, number),
    CONSTRAINT money_not_negative CHECK (hold >= 0 AND paid >= 0 AND overrun >= 0),
    CONSTRAINT outcome_binary CHECK (outcome IN (0, 1))
)""",
    "CREATE UNIQUE INDEX people_person ON people (audit_id, person)",
    "CREATE INDEX people_open ON people (audit_id, state) "
    "WHERE state IN ('RESERVED', 'EXECUTED', 'OVERDUE')",
    """CREATE TABLE command_keys (
    audit_id INTEGER NOT NULL REFERENCES audits (id),
    key TEXT NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (audit_id, key)
)""",
    """CREATE TABLE snapshots (
    audit_id INTEGER PRIMARY KEY REFERENCES audits (id),
    seq BIGINT NOT NULL,
    hash TEXT NOT NULL,
    state TEXT NOT NULL
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
)


def statements(kind: str) -> tuple[str, ...]:
    """Return what makes a ledger of an empty database."""
    if kind == "postgresql":
        return _TABLES + _POSTGRES_TRIGGERS
    keyed = ("CREATE TABLE events", "CREATE TABLE people")  # clustered by key, as they are read
    tables = tuple(s + " WITHOUT ROWID" if s.startswith(keyed) else s for s in _TABLES)
    return tables + _SQLITE_TRIGGERS
