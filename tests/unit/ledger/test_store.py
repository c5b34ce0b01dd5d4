"""SQLite finds people by an index, however many are asked about and however few there are."""

from __future__ import annotations

from pathlib import Path

from equipoise.ledger.store import AuditRow, Store


def test_nobody_walks_through_everybody(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "ledger.db"), create=True)
    row = store.add_audit(AuditRow(seq=1, uid="u", name="n", seed="s"), "{}")
    seen: list[str] = []
    with store.using() as connection:
        connection.raw.set_trace_callback(seen.append)
    with store.write(row.id) as turn:
        turn.people([f"p{i}" for i in range(25)], list(range(25)))
    store.people(row.id, states=("OVERDUE",), limit=10)
    store.people(row.id, states=("RESERVED", "EXECUTED"))
    store.people(row.id, after=3, limit=10)
    store.open_by_day(row.id)
    store.person(row.id, "p1")
    with store.using() as connection:
        connection.raw.set_trace_callback(None)
        found = [s for s in seen if s.startswith("SELECT") and "FROM people" in s]
        plans = [connection.run(f"EXPLAIN QUERY PLAN {s}").fetchall()[0][3] for s in found]
    assert len(plans) == 7
    for statement, plan in zip(found, plans, strict=True):
        assert plan.startswith("SEARCH"), statement
        assert "(audit_id=?)" not in plan, statement
    store.close()
