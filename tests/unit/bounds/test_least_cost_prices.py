"""C* where people of a table have prices of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import equipoise as eq
from equipoise.worlds import TableWorld

QUESTION = eq.Question("false_omission_parity", 0.05, 0.05)


def people() -> TableWorld:
    rng, rows = np.random.default_rng(0), 40_000
    return TableWorld(
        ("A", "B"),
        rng.integers(2, size=rows),
        (rng.random(rows) < 0.4).astype(np.int8),
        (rng.random(rows) < 0.3).astype(np.int8),
    )


def priced(price: np.ndarray | float) -> TableWorld:
    world = people()
    return replace(world, price=np.broadcast_to(price, len(world)).astype(np.float64))


def test_prices_that_are_all_alike_are_a_label_cost() -> None:
    plain = eq.lower_bound(people(), QUESTION, eq.Costs(label=7.0))
    for costs in (eq.Costs(), eq.Costs(label=0.0)):
        assert eq.lower_bound(priced(7.0), QUESTION, costs) == pytest.approx(plain)
    nobody_s = eq.lower_bound(priced(np.nan), QUESTION, eq.Costs(label=7.0))
    assert nobody_s == pytest.approx(plain)


def test_a_group_costs_what_its_failures_cost_on_average() -> None:
    world = priced(np.random.default_rng(1).uniform(0.0, 10.0, len(people())))
    assert world.price is not None
    means = {}
    for g, group in enumerate(world.groups):
        failed = (world.group == g) & (world.decision == 0) & (world.outcome == 0)
        means[group] = eq.Costs(feature=0.5, label=float(world.price[failed].mean()))
    same = eq.lower_bound(people(), QUESTION, eq.Costs(groups=means))
    assert eq.lower_bound(world, QUESTION, eq.Costs(feature=0.5)) == pytest.approx(same)


def test_where_no_label_costs_anything_labels_are_counted() -> None:
    counted = eq.lower_bound(priced(0.0), QUESTION, eq.Costs())
    assert counted == pytest.approx(eq.lower_bound(people(), QUESTION, eq.Costs(0.0, 0.0)))
    assert counted == pytest.approx(sum(counted.labels.values()))
