"""Small, seeded versions of the studies that break things on purpose."""

from __future__ import annotations

import pytest
from study.ledger_disk import NoMount, fill_disk
from study.ledger_kill import BUDGET, kill_writers, place
from study.ledger_model import run_machine
from study.ledger_tamper import changes, is_found, small_export


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_nothing_acknowledged_is_lost_when_writers_are_killed(kind: str) -> None:
    with place(kind) as ledger:
        result = kill_writers(ledger, kills=100, seed=1, kind=kind)
    assert result.acknowledged >= result.kills
    assert (result.lost, result.requested_twice) == (0, 0)
    assert result.spent + result.reserved <= BUDGET


def test_a_full_disk_acknowledges_nothing_that_is_not_stored() -> None:
    try:
        result = fill_disk(megabytes=6)
    except NoMount as error:
        pytest.skip(f"a small file system cannot be mounted here: {error}")
    assert result.refused == 3
    assert result.message == "no space left"
    assert result.after > 0


def test_every_change_of_an_export_is_found() -> None:
    export, head = small_export(people=3)
    assert not is_found(export, head)
    missed = [changed for changed in changes(export, bits=1) if not is_found(changed, head)]
    assert missed == []


def test_a_random_machine_and_a_plain_model_agree() -> None:
    run_machine(runs=60, steps=50, number=7)
