"""Same seeds give the verdicts and costs that they gave before."""

from __future__ import annotations

import json

import pytest

from tests.unit.simulation.recorded import FILE, runs_of

TABLE = json.loads(FILE.read_text())


@pytest.mark.parametrize("at", range(len(TABLE)), ids=lambda at: str(TABLE[at]["name"]))
def test_same_seeds_same_runs(at: int) -> None:
    assert runs_of(TABLE[at]) == TABLE[at]["runs"]
