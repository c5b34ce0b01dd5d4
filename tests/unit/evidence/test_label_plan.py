"""Whom to label next."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.evidence.states import random_setup, request


def test_the_wanted_group_is_the_one_behind_its_share() -> None:
    evidence = random_setup(5, 4).start(0.05)
    rng = np.random.default_rng(0)
    for _ in range(500):
        eligible = evidence.plan.eligible()
        assert eligible.any(), "some group is always welcome"
        request(evidence, rng.choice(np.flatnonzero(eligible)))
    requested = evidence.log.n_requested
    assert requested / requested.sum() == pytest.approx(evidence.plan.shares, abs=0.15)
