"""The record of checkpoints that were handed out, and of verifications."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from equipoise._json import JsonValue
from equipoise.ledger.timestamps import format_timestamp
from equipoise.service.database import open_service_database

VERIFICATIONS = ("running", "verified", "broken", "lost")
"""The kinds of marks that are verifications."""
MARK_COLUMNS = ("id", "audit", "kind", "seq", "hash", "time", "actor", "note")
"""The columns of ``service_marks``; ``database.py`` makes the table."""


@dataclass(frozen=True)
class Mark(JsonValue):
    """A checkpoint that was handed out, or a verification.

    ``kind`` is ``checkpoint``, ``verified``, ``broken``, ``running`` or, if it did not come to an
    end, ``lost``; ``note`` says what is broken.
    """

    # The names of this class and of its fields are part of the API (OpenAPI schema ``Mark``).

    id: str
    audit: str
    kind: str
    seq: int
    hash: str
    time: str
    actor: str
    note: str = ""


@dataclass(frozen=True)
class VerificationTotals:
    """How many verifications of an audit ended in one way, ``verified`` or ``broken``."""

    kind: str
    number: int
    last_time: str


class CheckpointLog:
    """Marks in a database; may be shared between threads."""

    def __init__(self, url: str) -> None:
        self._database = open_service_database(url)

    def add_mark(self, audit: str, kind: str, seq: int, event_hash: str, actor: str) -> Mark:
        """Store a mark: that a checkpoint is handed out, or a verification begins; return it."""
        mark = Mark(
            id=secrets.token_hex(8),
            audit=audit,
            kind=kind,
            seq=seq,
            hash=event_hash,
            time=format_timestamp(datetime.now(UTC)),
            actor=actor,
        )
        row = (
            mark.id, mark.audit, mark.kind, mark.seq, mark.hash, mark.time, mark.actor, mark.note
        )  # fmt: skip
        with self._database.using() as connection:
            connection.insert("service_marks", MARK_COLUMNS, [row])
        return mark

    def end_verification(self, mark: Mark) -> None:
        """Store how a verification ended."""
        changes = "kind = ?, seq = ?, hash = ?, note = ?, time = ?"
        values = (
            mark.kind,
            mark.seq,
            mark.hash,
            mark.note,
            format_timestamp(datetime.now(UTC)),
            mark.id,
        )
        with self._database.using() as connection:
            connection.run(f"UPDATE service_marks SET {changes} WHERE id = ?", values)

    def end_lost_verifications(self) -> None:
        """Mark the verifications that an earlier server left unfinished as ``lost``."""
        with self._database.using() as connection:
            # Also those of other servers of this ledger, if there are any: they overwrite it.
            connection.run("UPDATE service_marks SET kind = 'lost' WHERE kind = 'running'")

    def marks(self, audit: str, *kinds: str, limit: int = 100) -> list[Mark]:
        """Return the latest marks of an audit that are of one of these kinds, latest first."""
        query = (
            f"SELECT {', '.join(MARK_COLUMNS)} FROM service_marks WHERE audit = ? AND "
            f"kind IN ({', '.join('?' * len(kinds))}) "
            f"ORDER BY time DESC, seq DESC, id LIMIT {int(limit)}"
        )
        with self._database.using() as connection:
            rows = connection.run(query, (audit, *kinds)).fetchall()
        return [_mark_from_row(row) for row in rows]

    def latest(self, audit: str, *kinds: str) -> Mark | None:
        """Return the latest mark of an audit that is of one of these kinds, None if none is."""
        marks = self.marks(audit, *kinds, limit=1)
        return marks[0] if marks else None

    def verification_totals(self) -> dict[str, list[VerificationTotals]]:
        """Return audit -> how its verifications ended."""
        query = (
            "SELECT audit, kind, COUNT(*), MAX(time) FROM service_marks "
            "WHERE kind IN ('verified', 'broken') GROUP BY audit, kind ORDER BY audit, kind"
        )
        with self._database.using() as connection:
            rows = connection.run(query).fetchall()
        totals: dict[str, list[VerificationTotals]] = {}
        for audit, kind, number, last_time in rows:
            totals.setdefault(audit, []).append(VerificationTotals(kind, number, last_time))
        return totals

    def close(self) -> None:
        """Close the connection; it is opened again when it is needed."""
        self._database.close()


def _mark_from_row(row: Sequence[Any]) -> Mark:
    """Return a mark from a row of the database, in the order of ``MARK_COLUMNS``."""
    mark_id, audit, kind, seq, event_hash, time, actor, note = row
    return Mark(
        id=mark_id,
        audit=audit,
        kind=kind,
        seq=seq,
        hash=event_hash,
        time=time,
        actor=actor,
        note=note,
    )
