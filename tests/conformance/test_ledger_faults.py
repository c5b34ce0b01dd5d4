"""Small, seeded versions of the studies that break things on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.profiles import quick
from tests.torture.ledger_disk import NoMount, fill_disk
from tests.torture.ledger_kill import kill_writers, place
from tests.torture.ledger_model import run_machine
from tests.torture.ledger_tamper import changes, is_found, small_export, tamper_with_tables
from tests.torture.ledger_verify import verify_while_writing


def require_nothing_lost(ledger: str, kills: int, way: str) -> None:
    result = kill_writers(ledger, kills, seed=1, way=way)
    assert result.acknowledged >= result.kills
    assert (result.lost, result.requested_twice, result.cap_exceeded) == (0, 0, 0)


def test_nothing_acknowledged_is_lost_when_programs_are_killed(either: str) -> None:
    on_postgres = either.startswith("postgresql")
    require_nothing_lost(either, *((5, "postgresql") if on_postgres else (10, "sqlite")))


def test_nor_when_the_database_is() -> None:
    with place("postgresql") as ledger:
        require_nothing_lost(ledger, 3, "postgresql server")


def test_verify_is_right_while_writers_are_at_work(either: str) -> None:
    assert verify_while_writing(either, 3) == []


def test_every_change_of_a_table_is_found(tmp_path: Path) -> None:
    changes = quick(30, full=60)
    tried, escaped = tamper_with_tables(f"{tmp_path}/ledger.db", changes, seed=3)
    assert (tried, escaped) == (changes, [])


def test_a_full_disk_acknowledges_nothing_that_is_not_stored() -> None:
    try:
        result = fill_disk(megabytes=6)
    except NoMount as error:
        pytest.skip(f"a small file system cannot be mounted here: {error}")
    assert result.refused == 3
    assert result.message == "no space left"
    assert result.after > 0


def test_every_change_of_an_export_is_found() -> None:
    export, head = small_export(people=2)
    assert not is_found(export, head)
    missed = [changed for changed in changes(export, bits=1) if not is_found(changed, head)]
    assert missed == []


def test_a_random_machine_and_a_plain_model_agree() -> None:
    run_machine(runs=quick(6, full=12), steps=40, number=7)
