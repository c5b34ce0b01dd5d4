"""Dask as the workers of a simulation finds what one process finds. Run by ``make matrix``."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from dask.distributed import Client, LocalCluster

import equipoise as eq

pytestmark = pytest.mark.filterwarnings("ignore")

WORLD = eq.worlds.CellWorld.from_shares({"A": (0.45, 0.15, 0.4, 0.5), "B": (0.15, 0.15, 0.7, 0.3)})
QUESTION = eq.Question(gamma=0.1, epsilon=0.2)


@pytest.mark.parametrize("workers", [1, 2])
def test_any_number_of_workers_finds_the_same(workers: int) -> None:
    one = eq.simulate("adaptive", WORLD, QUESTION, eq.Costs(), repeats=12, seed=3)
    alone = eq.plan(WORLD.past(), QUESTION, eq.Costs(), trial_runs=4)
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None, processes=True
    )
    with cluster, Client(cluster), joblib.parallel_config(backend="dask"):
        told = eq.simulate("adaptive", WORLD, QUESTION, eq.Costs(), repeats=12, seed=3)
        planned = eq.plan(WORLD.past(), QUESTION, eq.Costs(), trial_runs=4)
    for name in ("verdict", "cost", "labels", "lower", "upper"):
        assert np.array_equal(getattr(one, name), getattr(told, name))
    assert planned == alone
