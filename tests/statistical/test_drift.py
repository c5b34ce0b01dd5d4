"""False alarms of the drift test over whole streams, looked at all the time."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from equipoise.cells import Cells, GroupCells
from equipoise.history.past import Past
from equipoise.ledger.drift import BLOCK, DriftCounts, drift_tests

LEVEL = 0.2  # large, so that few streams suffice to see a test that alarms too often
STREAMS = 300
FALSE_ALARM = 1e-4  # of this test itself


def test_alarms_under_the_null_are_as_rare_as_promised() -> None:
    rng = np.random.default_rng(20)
    alarms = sum(_alarms(rng) for _ in range(STREAMS))
    assert alarms <= binom.ppf(1 - FALSE_ALARM, STREAMS, LEVEL)


def _alarms(rng: np.random.Generator) -> bool:
    """Draw a past and a stream from one population; every block is a look."""
    shares = np.array([[0.30, 0.10, 0.20], [0.12, 0.08, 0.20]])
    drawn = rng.multinomial(2000, shares.ravel()).reshape(shares.shape)
    cells = Cells({g: GroupCells(*row.tolist()) for g, row in zip("AB", drawn, strict=True)})
    counts = DriftCounts(("A", "B"))
    kinds = rng.choice(6, size=20 * BLOCK, p=shares.ravel())
    places = {"A": 0, "B": 0}
    for number, kind in enumerate(kinds.tolist(), start=1):
        group, cell = "AB"[kind // 3], kind % 3
        counts.arrive(group, number, places[group] if cell < 2 else None)
        if cell < 2:
            counts.reveal(group, places[group], 1 - cell)
            places[group] += 1
    return any(t.alarm for t in drift_tests(counts, Past(cells, False), level=LEVEL))
