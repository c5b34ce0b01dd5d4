"""The test whether the people counted are approved as often as past people."""

from __future__ import annotations

import numpy as np

from equipoise.audits.approval_shares import ApprovalShares
from equipoise.worlds import CellWorld


def test_a_fair_stream_is_not_suspected() -> None:
    """The test is an e-process at 1e-6: a hundred long streams give no alarm."""
    world = CellWorld.from_shares({"A": (0.4, 0.1, 0.5, 0.4), "B": (0.2, 0.1, 0.7, 0.4)})
    for seed in range(100):
        approvals = ApprovalShares(world.past(300, np.random.default_rng(seed)))
        people = world.draw(2_048, seed)
        assert not any(approvals.count_person(p.group, p.decision) for p in people)
        assert approvals.contradiction() is None
