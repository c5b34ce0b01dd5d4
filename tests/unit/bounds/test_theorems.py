from __future__ import annotations

import math

import numpy as np
import pytest
from paper.theorems import lower_bound_pair

from equipoise.audits.estimated_rates import paper_epsilon, paper_tau
from equipoise.bounds import (
    Price,
    expectation,
    family_bound,
    lower_bound,
    upper_bound,
)
from equipoise.errors import InvalidInput, UnknownName
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld, MixtureWorld
from tests.profiles import FULL, quick

pytestmark = pytest.mark.slow

WORLD = CellWorld.from_shares(
    {"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)}, shares={"A": 0.75, "B": 0.25}
)
COSTS = Costs(feature=0.5, label=2.0, groups={"B": Costs(1.0, 3.0)})
QUESTION = Question(epsilon=0.1, delta=0.05)


def test_expectations_by_hand() -> None:
    # base rates 0.42 and 0.18; a labelled arrival of A costs 0.6*0.5 + 0.48*2, of B 0.8 + 0.72*3
    price_a, price_b = 0.6 * 0.5 + 0.48 * 2.0, 0.8 * 1.0 + 0.72 * 3.0
    within = 10 * (1 / 0.42 + 1 / 0.58) * price_a + 10 * (1 / 0.18 + 1 / 0.82) * price_b
    assert expectation("rs", WORLD, QUESTION, COSTS, tau=10).cost == pytest.approx(within)
    arrivals = 10 * ((1 / 0.42 + 1 / 0.58) / 0.75 + (1 / 0.18 + 1 / 0.82) / 0.25)
    everybody = expectation("baseline", WORLD, QUESTION, COSTS, tau=10)
    assert everybody.cost == pytest.approx(arrivals * (0.75 * price_a + 0.25 * price_b))
    assert everybody.labels == pytest.approx(arrivals * (0.75 * 0.6 + 0.25 * 0.8))


def test_bounds_are_thirteen_twelfths_of_the_expectation() -> None:
    """624/576 = 13/12: the proofs bound 1 + epsilon/12 by it."""
    for audit in ("rs", "baseline"):
        upper = upper_bound(audit, WORLD, QUESTION, COSTS)
        mean = expectation(audit, WORLD, QUESTION, COSTS)
        assert upper.cost / mean.cost == pytest.approx(13 / 12, rel=1e-5)
        assert upper.labels / mean.labels == pytest.approx(13 / 12, rel=1e-5)


def test_exp_bound_spends_labels_that_do_not_depend_on_epsilon() -> None:
    wide = upper_bound("exp", WORLD, Question(epsilon=0.2), COSTS)
    narrow = upper_bound("exp", WORLD, Question(epsilon=0.1), COSTS)
    assert narrow.labels == wide.labels
    assert narrow.features == pytest.approx(4 * wide.features)
    log_term = math.log(14 * 2 / 0.05)
    labels = 440 * log_term * (0.6 / 0.42 + 0.6 / 0.58 + 0.8 / 0.18 + 0.8 / 0.82)
    assert narrow.labels == pytest.approx(labels)


def test_only_the_metrics_own_outcomes_are_paid_for() -> None:
    parts = [
        expectation("rs", WORLD, Question(m), COSTS).cost
        for m in ("equal_opportunity", "predictive_equality", "equalized_odds")
    ]
    assert parts[0] + parts[1] == pytest.approx(parts[2])
    assert expectation("rs", WORLD, Question("demographic_parity"), COSTS) == Price()
    with pytest.raises(InvalidInput, match="cannot answer 'metric' 'accuracy_parity'"):
        upper_bound("rs", WORLD, Question("accuracy_parity"), COSTS)
    with pytest.raises(UnknownName, match="unknown audit 'adaptive'"):
        upper_bound("adaptive", WORLD, QUESTION, COSTS)


def test_an_outcome_that_never_comes_has_no_price() -> None:
    world = CellWorld.from_shares({"A": (0.5, 0.0, 0.5, 1.0), "B": (0.1, 0.1, 0.8, 0.1)})
    price = expectation("rs", world, QUESTION, COSTS, tau=5)
    assert price.cost == math.inf
    assert price.to_dict()["cost"] is None
    free = CellWorld.from_shares({"A": (1.0, 0.0, 0.0, 0.0), "B": (0.1, 0.1, 0.8, 0.1)})
    labels = expectation("rs", free, Question("equal_opportunity"), COSTS, tau=18).labels
    assert labels == pytest.approx(18 / 0.18 * 0.8)


def test_family_bound_is_below_what_rs_pays_there() -> None:
    epsilon, delta = 0.1, 0.05
    question = Question(gamma=0.0, epsilon=epsilon, delta=delta)
    worlds = lower_bound_pair(epsilon, 0.2, 0.2)
    for fair, world in zip((True, False), worlds, strict=True):
        lower = family_bound(epsilon, delta, 0.2, 0.2, fair=fair)
        assert 0 < lower.labels < expectation("rs", world, question, Costs()).labels
        assert lower.cost < upper_bound("rs", world, question, Costs()).cost
        if FULL or fair:  # C* is the sharper one
            assert lower.cost < float(lower_bound(world, question, Costs()))


def test_family_bound_adds_over_the_groups_of_the_fair_world_alone() -> None:
    """b/32 labels of either group there, b/64 of one group elsewhere; r is that of the world."""
    epsilon, delta, p, q = 0.05, 0.01, 0.2, 0.1
    b = (1 - (p + q) / 2) * math.log(1 / (4 * delta)) / (q * epsilon**2)
    fair, unfair = (family_bound(epsilon, delta, p, q, fair=f) for f in (True, False))
    assert (fair.labels, unfair.labels) == pytest.approx((2 * b / 32, b / 64))
    worlds = lower_bound_pair(epsilon, p, q)
    for price, world in zip((fair, unfair), worlds, strict=True):
        assert price.cost == pytest.approx(price.labels * (1 - world.r["1"]))


def test_family_bound_is_zero_for_large_delta() -> None:
    epsilon, delta = 0.1, 0.05
    assert family_bound(epsilon, 0.3, 0.2, 0.2).labels == 0.0
    with pytest.raises(InvalidInput, match="'q' must be in"):
        family_bound(epsilon, delta, 0.2, 0.5)


def test_tau_and_epsilon_invert_each_other() -> None:
    tau = paper_tau(QUESTION, 3)
    assert paper_epsilon(tau, QUESTION, 3) == pytest.approx(QUESTION.epsilon, rel=1e-5)
    assert 8 * 3 * math.exp(-tau * (QUESTION.epsilon / 12) ** 2 / 4) <= QUESTION.delta


def test_theorem_4_by_hand() -> None:
    """Two groups: q = (0.42, 0.58) and (0.18, 0.82), denied 0.6 and 0.8, log(14 K/delta) = log 560.

    Coarse: 1.1 * 400 log 560 = 2784.29 people per 1/q; features: 1.1 * 343,000 log 560 per 1/q_m.
    """
    world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    bound = upper_bound("exp", world, Question(epsilon=0.1, delta=0.05), Costs(0.5, 3.0))
    people = 2784.29 * (1 / 0.42 + 1 / 0.58), 2784.29 * (1 / 0.18 + 1 / 0.82)
    labels = 0.6 * people[0] + 0.8 * people[1]
    failures = 0.48 * people[0] + 0.72 * people[1]
    features = 2_387_533 * (0.6 / 0.42 + 0.8 / 0.18)
    assert bound.labels == pytest.approx(labels, rel=1e-4)
    assert bound.features == pytest.approx(features, rel=1e-4)
    assert bound.cost == pytest.approx(0.5 * (labels + features) + 3.0 * failures, rel=1e-4)


@pytest.mark.parametrize(("label", "cheaper"), [(0.5, "rs"), (1.0, "rs"), (20.0, "exp")])
def test_exp_audit_is_cheaper_where_labels_are_expensive(label: float, cheaper: str) -> None:
    question, costs = Question(gamma=0.0, epsilon=0.1), Costs(0.5, label)
    world = MixtureWorld.synthetic(14.0, approval={"1": 0.6, "0": 0.5})
    cells = CellWorld(world.cells, world.r)
    exp = expectation("exp", cells, question, costs).cost
    assert ("exp" if exp < expectation("rs", cells, question, costs).cost else "rs") == cheaper
    assert exp < upper_bound("exp", cells, question, costs).cost


def test_exp_audit_s_expectation_is_what_it_costs() -> None:
    """At the true r the expectation is the mean of simulated costs, within five standard errors."""
    question, costs = Question(gamma=0.0, epsilon=0.1), Costs(0.5, 3.0)
    world = MixtureWorld.synthetic(14.0, approval={"1": 0.6, "0": 0.5})
    expected = expectation("exp", CellWorld(world.cells, world.r), question, costs)
    sim = simulate("exp", world, question, costs, repeats=quick(12, full=40), weights="published")
    for name in ("cost", "labels", "features"):
        mean = float(getattr(sim, name).mean())
        error = float(getattr(sim, name).std()) / np.sqrt(len(sim))
        # the features follow the coarse shares, so their mean lies a little off those at the mean
        assert mean == pytest.approx(getattr(expected, name), abs=5.0 * error + 0.02 * mean)
