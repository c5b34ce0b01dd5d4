"""Small, seeded versions of the studies that break things on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.ledger_disk import NoMount, fill_disk
from tests.torture.ledger_kill import kill_writers, place
from tests.torture.ledger_model import run_machine
from tests.torture.ledger_tamper import changes, is_found, small_export, tamper_with_tables
from tests.torture.ledger_verify import verify_while_writing


@pytest.mark.parametrize(
    ("way", "kills"), [("sqlite", 20), ("postgresql", 10), ("postgresql server", 3)]
)
def test_nothing_acknowledged_is_lost_when_programs_are_killed(way: str, kills: int) -> None:
    with place(way.split()[0]) as ledger:
        result = kill_writers(ledger, kills, seed=1, way=way)
    assert result.acknowledged >= result.kills
    assert (result.lost, result.requested_twice, result.cap_exceeded) == (0, 0, 0)


@pytest.mark.parametrize(("kind", "times"), [("sqlite", 12), ("postgresql", 4)])
def test_verify_is_right_while_writers_are_at_work(kind: str, times: int) -> None:
    with place(kind) as ledger:
        assert verify_while_writing(ledger, times) == []


def test_every_change_of_a_table_is_found(tmp_path: Path) -> None:
    tried, escaped = tamper_with_tables(f"{tmp_path}/ledger.db", 60, seed=3)
    assert (tried, escaped) == (60, [])


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
    run_machine(runs=12, steps=40, number=7)
