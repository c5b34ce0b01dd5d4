"""Nobody steers the labels of random accepts: hidden outcomes and weekly looks err within delta.

The study ``python -m study random_accepts_attacks`` does this a thousand times per row; here are as
many programmes as a test can afford. Seeds are fixed; a correct program would fail a test with
probability ``ALARM`` at most over the choice of its seed.
"""

from __future__ import annotations

import pytest

from equipoise.rates import clopper_pearson
from tests.profiles import quick
from tests.support.random_accepts import count_misled

ALARM = 1e-4


@pytest.mark.parametrize(
    ("groups", "delta"), quick([(2, 0.1)], full=[(2, 0.1), (3, 0.05), (5, 0.1)])
)
@pytest.mark.parametrize("attack", ["chosen silence", "weekly looks"])
def test_an_attack_does_not_mislead(attack: str, groups: int, delta: float) -> None:
    runs = quick(6, full=300)
    wrong = count_misled(attack, groups, delta, runs, seed=1)
    assert clopper_pearson(wrong, runs, ALARM)[0] <= delta


def test_files_of_known_outcomes_only_would_mislead() -> None:
    """Failures first: the harness notices what must not be built."""
    assert count_misled("known outcomes only", 2, 0.1, 5, seed=1) >= 1
