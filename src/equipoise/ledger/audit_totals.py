"""What the tables tell about all audits of a ledger, without replaying any of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.ledger.database import Connection
from equipoise.ledger.store import (
    CACHE_TABLE,
    IS_OPEN,
    SET_ASIDE,
    AuditRow,
    Store,
    is_rare,
    table_names,
)

VERDICT_ENDING = "'erdict\"}'"  # of the JSON of such events, its last 8 characters


@dataclass(frozen=True)
class AuditTotals:
    """One audit as the tables show it.

    Attributes
    ----------
    row
        Its row of the list of audits.
    open_requests, overdue_requests
        Requests without an outcome, and those of them that were marked as overdue.
    oldest_request
        When the oldest of them was asked; "" if there is none.
    verdict
        What its last verdict event says; "" if there is none, or if it was taken back.
    cached_seq
        The event whose state is cached; 0 if none is.
    has_wrong_cache
        Whether a cached state was set aside, because the events do not lead to it.
    """

    row: AuditRow
    open_requests: int = 0
    overdue_requests: int = 0
    oldest_request: str = ""
    verdict: str = ""
    cached_seq: int = 0
    has_wrong_cache: bool = False


def audit_totals(ledger: Store) -> list[AuditTotals]:
    """Return what the tables tell about every audit, oldest first."""
    rows = ledger.audits()
    with ledger.using() as connection:
        requests = _open_requests(connection)
        # The cache came with an index that finds verdicts. An old ledger may have neither.
        has_cache = CACHE_TABLE in table_names(connection)
        cached = _cached_events(connection) if has_cache else {}
        verdicts = _verdicts(connection) if has_cache else {}
    totals = []
    for row in rows:
        n_open, n_overdue, oldest = requests.get(row.id, (0, 0, ""))
        cached_seq, digest = cached.get(row.id, (0, ""))
        is_set_aside = digest.startswith(SET_ASIDE)
        totals.append(
            AuditTotals(
                row,
                n_open,
                n_overdue,
                oldest,
                verdicts.get(row.id, ""),
                0 if is_set_aside else cached_seq,
                is_set_aside,
            )
        )
    return totals


def _open_requests(connection: Connection) -> Mapping[int, tuple[int, int, str]]:
    """Return audit -> open requests, overdue ones, and when the oldest was asked."""
    index = " INDEXED BY people_open" if connection.kind == "sqlite" else ""
    query = (
        "SELECT audit_id, COUNT(*), SUM(CASE WHEN state = 'OVERDUE' THEN 1 ELSE 0 END), MIN(asked) "
        f"FROM people{index} WHERE {IS_OPEN} GROUP BY audit_id"
    )
    rows = connection.run(query).fetchall()
    return {audit: (n_open, int(overdue), oldest) for audit, n_open, overdue, oldest in rows}


def _cached_events(connection: Connection) -> Mapping[int, tuple[int, str]]:
    """Return audit -> number of the event whose state is cached, and the digest of the cache."""
    rows = connection.run(f"SELECT audit_id, seq, digest FROM {CACHE_TABLE}").fetchall()
    return {audit: (int(seq), str(digest)) for audit, seq, digest in rows}


def _verdicts(connection: Connection) -> Mapping[int, str]:
    """Return audit -> what its last verdict event says; "" if it takes an earlier one back."""
    is_sqlite = connection.kind == "sqlite"
    index = " INDEXED BY events_rare" if is_sqlite else ""
    ending = "substr(body, -8)" if is_sqlite else "right(body, 8)"
    last_verdicts = (
        f"SELECT audit_id, MAX(seq) AS seq FROM events{index} WHERE {is_rare(connection.kind)} "
        f"AND {ending} = {VERDICT_ENDING} GROUP BY audit_id"
    )
    query = (
        f"SELECT events.audit_id, body FROM ({last_verdicts}) AS latest JOIN events "
        "ON events.audit_id = latest.audit_id AND events.seq = latest.seq"
    )
    rows = connection.run(query).fetchall()
    return {audit: _verdict_in(body) for audit, body in rows}


def _verdict_in(body: str) -> str:
    """Return the verdict that an event records; "" if it cannot be read, as of a damaged one."""
    try:
        finding: Any = json.loads(body)["data"]["finding"]
        return "" if finding is None else str(finding["verdict"])
    except (LookupError, TypeError, ValueError):
        return ""
