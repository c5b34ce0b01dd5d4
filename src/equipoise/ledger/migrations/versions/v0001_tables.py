"""The tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

OPEN = sa.text("state IN ('RESERVED', 'EXECUTED', 'OVERDUE')")


def upgrade() -> None:
    """Create them."""
    op.create_table(
        "audits",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("seed", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("time", sa.Text, nullable=False),
        sa.Column("revised", sa.BigInteger, nullable=False),
        sa.Column("cap", sa.BigInteger),
        sa.Column("spent", sa.BigInteger, nullable=False),
        sa.Column("reserved", sa.BigInteger, nullable=False),
        sa.Column("overrun", sa.BigInteger, nullable=False),
        sa.CheckConstraint(
            "spent >= 0 AND reserved >= 0 AND overrun >= 0", name="money_not_negative"
        ),
        sa.CheckConstraint("cap IS NULL OR spent + reserved <= cap", name="cap_not_exceeded"),
    )
    op.create_table(
        "events",
        _audit_id(),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "people",
        _audit_id(),
        sa.Column("person", sa.Text, primary_key=True),
        sa.Column("group_name", sa.Text, nullable=False),
        sa.Column("decision", sa.SmallInteger, nullable=False),
        sa.Column("want", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger),
        sa.Column("place", sa.BigInteger),
        sa.Column("hold", sa.BigInteger, nullable=False),
        sa.Column("paid", sa.BigInteger, nullable=False),
        sa.Column("overrun", sa.BigInteger, nullable=False),
        sa.Column("outcome", sa.SmallInteger),
        sa.Column("asked", sa.Text, nullable=False),
        sa.Column("executed", sa.SmallInteger, nullable=False),
        sa.Column("conflicted", sa.SmallInteger, nullable=False),
        sa.CheckConstraint("hold >= 0 AND paid >= 0 AND overrun >= 0", name="money_not_negative"),
        sa.CheckConstraint("outcome IN (0, 1)", name="outcome_binary"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "people_open",
        "people",
        ["audit_id", "state"],
        sqlite_where=OPEN,
        postgresql_where=OPEN,
    )
    op.create_table(
        "snapshots",
        _audit_id(),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("software", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("state", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "features",
        _audit_id(),
        sa.Column("person", sa.Text, primary_key=True),
        sa.Column("salt", sa.Text, nullable=False),
        sa.Column("vector", sa.Text, nullable=False),
    )


def _audit_id() -> "sa.Column[int]":
    return sa.Column(
        "audit_id", sa.Integer, sa.ForeignKey("audits.id"), primary_key=True, autoincrement=False
    )
