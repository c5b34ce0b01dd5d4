"""The ledger's tables.

``events`` is the truth and is only ever appended to. The rest can be rebuilt from it: ``audits``
holds each audit's head and balance, ``people`` the present state of each person, ``snapshots`` an
audit's memory at some event. ``features`` is kept apart so that it can be erased.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    text,
)

__all__ = ["HEAD_REVISION", "audits", "events", "features", "metadata", "people", "snapshots"]

HEAD_REVISION = "0002"

metadata = MetaData()

audits = Table(
    "audits",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("uid", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False, unique=True),
    Column("seed", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("hash", Text, nullable=False),
    Column("time", Text, nullable=False),
    Column("revised", BigInteger, nullable=False),
    Column("cap", BigInteger),
    Column("spent", BigInteger, nullable=False),
    Column("reserved", BigInteger, nullable=False),
    Column("overrun", BigInteger, nullable=False),
    CheckConstraint("spent >= 0 AND reserved >= 0 AND overrun >= 0", name="money_not_negative"),
    CheckConstraint("cap IS NULL OR spent + reserved <= cap", name="cap_not_exceeded"),
)

events = Table(
    "events",
    metadata,
    Column("audit_id", Integer, ForeignKey("audits.id"), primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("hash", Text, nullable=False),
    Column("body", Text, nullable=False),
    sqlite_with_rowid=False,
)

people = Table(
    "people",
    metadata,
    Column("audit_id", Integer, ForeignKey("audits.id"), primary_key=True, autoincrement=False),
    Column("person", Text, primary_key=True),
    Column("group_name", Text, nullable=False),
    Column("decision", SmallInteger, nullable=False),
    Column("want", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("number", BigInteger),
    Column("place", BigInteger),
    Column("hold", BigInteger, nullable=False),
    Column("paid", BigInteger, nullable=False),
    Column("overrun", BigInteger, nullable=False),
    Column("outcome", SmallInteger),
    Column("asked", Text, nullable=False),
    Column("executed", SmallInteger, nullable=False),
    Column("conflicted", SmallInteger, nullable=False),
    CheckConstraint("hold >= 0 AND paid >= 0 AND overrun >= 0", name="money_not_negative"),
    CheckConstraint("outcome IN (0, 1)", name="outcome_binary"),
    sqlite_with_rowid=False,
)
# Only people with a request that is still open are ever searched for by state.
Index(
    "people_open",
    people.c.audit_id,
    people.c.state,
    sqlite_where=text("state IN ('RESERVED', 'EXECUTED', 'OVERDUE')"),
    postgresql_where=text("state IN ('RESERVED', 'EXECUTED', 'OVERDUE')"),
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("audit_id", Integer, ForeignKey("audits.id"), primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("software", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("state", LargeBinary, nullable=False),
)

features = Table(
    "features",
    metadata,
    Column("audit_id", Integer, ForeignKey("audits.id"), primary_key=True, autoincrement=False),
    Column("person", Text, primary_key=True),
    Column("salt", Text, nullable=False),
    Column("vector", Text, nullable=False),
)
