"""The cheapest chances of asking, against an optimum found by brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

import equipoise as eq
from equipoise.bounds import most_efficient
from equipoise.errors import InvalidInput
from equipoise.worlds import CellWorld, TableWorld


def brute_force(
    shares: np.ndarray, rates: np.ndarray, prices: np.ndarray, feature: float, looks: float
) -> float:
    """Return the least price over chances, by a general solver from several starts."""
    mean = shares @ rates
    between = shares @ (rates - mean) ** 2

    def price(pi: np.ndarray) -> float:
        variance = between + shares @ (rates * (1.0 - rates) / pi)
        cost = feature + shares @ (pi * prices)
        return float(variance * cost / (mean * (1.0 - mean)))

    enough = {"type": "ineq", "fun": lambda pi: shares @ pi - 1.0 / looks}
    starts = (np.full(len(rates), level) for level in (0.3, 0.6, 1.0))
    found = [
        minimize(price, x, bounds=[(1e-3, 1.0)] * len(rates), constraints=[enough], tol=1e-12)
        for x in starts
    ]
    return min(float(one.fun) for one in found if enough["fun"](one.x) >= -1e-9)  # type: ignore[operator]


@pytest.mark.parametrize("seed", range(25))
def test_no_other_chances_are_cheaper(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares, rates = rng.dirichlet(np.ones(4)), rng.uniform(0.02, 0.95, 4)
    prices = (1.0 - rates) * rng.uniform(0.2, 5.0, 4)
    feature, looks = float(rng.choice([0.0, 0.05, 0.5])), float(rng.choice([1.5, 3.0, 8.0]))
    best = most_efficient(shares, rates, prices, feature, looks)
    assert best.price == pytest.approx(brute_force(shares, rates, prices, feature, looks), rel=1e-4)
    assert best.asked >= 1.0 / looks - 1e-9
    assert best.price <= feature + shares @ prices + 1e-12  # asking everybody is one of the ways


def test_without_limit_it_is_the_known_formula() -> None:
    """With free looks and no limit the price is E[sqrt(r(1-r) c)]^2 / (r(1-r))."""
    shares, rates = np.array([0.2, 0.5, 0.3]), np.array([0.05, 0.2, 0.7])
    prices, mean = 1.0 - rates, float(shares @ rates)
    known = (shares @ np.sqrt(rates * (1.0 - rates) * prices)) ** 2 / (mean * (1.0 - mean))
    assert most_efficient(shares, rates, prices).price == pytest.approx(known, rel=1e-4)


def scored(slope: float) -> TableWorld:
    rng, rows = np.random.default_rng(0), 40_000
    outcome = (rng.random(rows) < 0.3).astype(np.int8)
    return TableWorld(
        ("A", "B"),
        rng.integers(2, size=rows),
        (rng.random(rows) < 0.4).astype(np.int8),
        outcome,
        score=rng.normal(size=rows) + slope * outcome,
    )


def test_a_useless_score_saves_nothing_and_a_good_one_much() -> None:
    question, looking = eq.Question("false_omission_parity", 0.05, 0.05), eq.Assist()
    for slope, least, most in ((0.0, 0.97, 1.0), (2.5, 0.1, 0.25)):
        world = scored(slope)
        plain = eq.lower_bound(world, question, eq.Costs())
        helped = eq.lower_bound(world, question, eq.Costs(), assist=looking)
        assert least * plain <= helped <= most * plain
        assert max(helped.people_per_label.values()) <= looking.people_per_label + 1e-9
    assert "with help" in str(helped)
    assert not plain.people_per_label


def priced(price: np.ndarray | float) -> TableWorld:
    world = scored(2.5)
    return replace(world, price=np.broadcast_to(price, len(world)).astype(np.float64))


def test_a_bound_without_help_pays_the_same_prices() -> None:
    """As an audit that asks everybody it looks at; prices that are all alike are a label cost."""
    question = eq.Question("false_omission_parity", 0.05, 0.05)
    plain = eq.lower_bound(scored(2.5), question, eq.Costs(label=7.0))
    for free in (eq.Costs(), eq.Costs(label=0.0)):
        assert eq.lower_bound(priced(7.0), question, free) == pytest.approx(plain)
    world = priced(np.random.default_rng(1).uniform(0.0, 10.0, len(scored(2.5))))
    everybody = eq.Assist(people_per_label=1.0, max_price=10.0)
    looking = eq.lower_bound(world, question, eq.Costs(), assist=everybody)
    assert eq.lower_bound(world, question, eq.Costs()) == pytest.approx(looking)
    none = eq.lower_bound(priced(np.nan), question, eq.Costs(label=7.0))
    assert none == pytest.approx(plain)


def test_whoever_has_no_score_is_a_stratum_of_their_own() -> None:
    question, world = eq.Question("false_omission_parity", 0.05, 0.05), scored(2.5)
    assert world.score is not None
    half = replace(world, score=np.where(np.arange(len(world)) % 2, world.score, np.nan))
    none = replace(world, score=np.full(len(world), np.nan))
    bounds = [
        float(eq.lower_bound(one, question, eq.Costs(), assist=eq.Assist()))
        for one in (world, half, none)
    ]
    assert bounds == sorted(set(bounds))
    assert bounds[2] == pytest.approx(eq.lower_bound(none, question, eq.Costs()))


@pytest.mark.parametrize(
    ("assist", "price", "rule"),
    [
        (True, 1.0, "'assist' must be an Assist"),
        (eq.Assist(), 1.0, "'price' needs a largest price"),
        (eq.Assist(max_price=2.0), 3.0, "between 0 and the declared 'max_price', 2"),
        (eq.Assist(max_price=2.0), -1.0, "between 0 and the declared 'max_price', 2"),
        (eq.Assist(max_price=0.5), 0.1, "at least the label cost, 1"),
    ],
)
def test_a_bound_keeps_to_the_declared_prices(assist: eq.Assist, price: float, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        eq.lower_bound(priced(price), eq.Question(), eq.Costs(), assist=assist)


def test_a_world_without_a_score_is_refused() -> None:
    world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    with pytest.raises(InvalidInput, match="from_frame"):
        eq.lower_bound(world, eq.Question(), eq.Costs(), assist=eq.Assist())
