"""The way to a new version that docs/how-to/deploy.md describes, step by step."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from equipoise import evidence
from equipoise.ledger import LiveAudit, state_cache
from equipoise.ledger.store import VERSION
from tests.acceptance.shell import equipoise
from tests.conformance.ledgers import create, run


def audit(ledger: Path, *arguments: object, code: int = 0) -> str:
    """Run ``equipoise audit`` and return what it shows."""
    done = equipoise("audit", *arguments, "--ledger", ledger, columns=200)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def change(ledger: Path, *statements: str) -> None:
    with closing(sqlite3.connect(ledger)) as database, database:
        for statement in statements:
            database.execute(statement)


def test_a_ledger_moves_to_a_version_with_another_edition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_cache, "EVENTS_BEFORE_CACHING", 10)
    ledger = tmp_path / "audits.db"
    checkpoints = tmp_path / "checkpoints.jsonl"
    live = create(str(ledger), audit="adaptive", actor="anna")
    run(live, 40, share_told=0.7)
    live.close_ledger()
    # An older program kept no cache beside the chain.
    indexes = ("events_rare", "people_place", "people_request")
    change(ledger, "DROP TABLE state_cache", *(f"DROP INDEX {name}" for name in indexes))
    # 1. Back up, and take a checkpoint.
    change(ledger, f"VACUUM INTO '{tmp_path / 'backup.db'}'")
    audit(ledger, "checkpoint", "loans", "--to", checkpoints)
    # 2, 3. The new version starts. It has another edition of the statistics.
    old_edition = evidence.EDITION
    monkeypatch.setattr(evidence, "EDITION", old_edition + 1)
    # 4. Verify against the checkpoint.
    text = audit(ledger, "verify", "loans", "--checkpoint", checkpoints)
    assert f"statistics (edition {old_edition}) not repeated" in text
    # 5. The audit is read and not continued until it is upgraded.
    assert "EDITION" in audit(ledger, "status", "loans")
    refusal = audit(ledger, "ask", "loans", "new", "A", "0", code=2)
    assert "audit upgrade" in refusal
    audit(ledger, "upgrade", "loans", "--why", "version 2")
    audit(ledger, "ask", "loans", "new", "A", "0")
    text = audit(ledger, "verify", "loans", "--checkpoint", checkpoints)
    assert "since the upgrade" in text
    # 6. The cache is made by the way.
    audit(ledger, "status", "loans")
    with closing(sqlite3.connect(ledger)) as database:
        assert database.execute("SELECT edition FROM state_cache").fetchone() == (old_edition + 1,)
    # Going back: the old version reads its backup, and refuses what the new one has continued.
    monkeypatch.setattr(evidence, "EDITION", old_edition)
    assert f"edition {old_edition + 1}" in audit(ledger, "ask", "loans", "newer", "A", "0", code=2)
    audit(tmp_path / "backup.db", "verify", "loans", "--checkpoint", checkpoints)
    audit(tmp_path / "backup.db", "ask", "loans", "newer", "A", "0")


def test_a_ledger_of_another_schema_is_refused_and_names_the_version(tmp_path: Path) -> None:
    ledger = tmp_path / "audits.db"
    create(str(ledger)).close_ledger()
    before = LiveAudit.open(str(ledger), "loans").status().events
    change(ledger, "UPDATE ledger_schema SET version = 999")
    for arguments in (["status", "loans"], ["ask", "loans", "p", "A", "0"], ["list"]):
        text = audit(ledger, *arguments, code=2)
        assert "schema 999" in text
        assert "Traceback" not in text
    change(ledger, f"UPDATE ledger_schema SET version = {VERSION}")
    assert LiveAudit.open(str(ledger), "loans").status().events == before
