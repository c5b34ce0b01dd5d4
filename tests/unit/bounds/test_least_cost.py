from __future__ import annotations

import math
import pickle
from functools import cache

import numpy as np
import pytest

import equipoise as eq
from equipoise.comparison import GapScale
from equipoise.errors import BadData
from equipoise.free_check import bands_from_past, check, gap_bounds
from equipoise.metrics import METRICS
from equipoise.question import Costs, Question, Verdict
from equipoise.worlds import CellWorld
from tests.profiles import quick
from tests.unit.bounds.brute_force import brute_force, deltas, kl

pytestmark = pytest.mark.slow

REFERENCE = CellWorld.from_shares(
    {"A": (0.026, 0.023, 0.951, 0.0875), "B": (0.0762, 0.0285, 0.8953, 0.2542)}
)
QUESTION = Question(gamma=0.1, epsilon=0.05, delta=0.05)
PRICED = [name for name, metric in METRICS.items() if not metric.is_free]
Tolerances = tuple[tuple[float, float], ...]
TOLERANCES: Tolerances = ((0.05, 0.05), (0.1, 0.05), (0.05, 0.1), (0.1, 0.1), (0.0, 0.1))


def random_world(groups: int, rng: np.random.Generator, spread: float = 0.4) -> CellWorld:
    """Groups that resemble each other, on the scale of log odds."""
    centre = rng.uniform([0.2, 0.5, 0.05], [0.9, 0.95, 0.5])
    logits = np.log(centre / (1 - centre)) + spread * rng.normal(size=(groups, 3))
    shares = {}
    for i, (s, precision, r) in enumerate(1 / (1 + np.exp(-logits))):
        shares[f"g{i}"] = ((1 - s) * precision, (1 - s) * (1 - precision), s, r)
    return CellWorld.from_shares(shares)


def test_reference_instance() -> None:
    bound = eq.lower_bound(REFERENCE, QUESTION, Costs())
    assert bound == pytest.approx(192, rel=0.01)
    assert bound.verdict is Verdict.FAIR
    assert not bound.reference
    assert sum(bound.budget.values()) == pytest.approx(1)
    spent = sum(n * Costs().expected(REFERENCE.r[g]) for g, n in bound.labels.items())
    assert spent == pytest.approx(bound)


@cache
def instances(
    count: int, groups: int, tolerances: Tolerances = TOLERANCES
) -> list[tuple[CellWorld, Question]]:
    """Seeded instances outside the gap zone whose answer is not free, metrics in turn."""
    out: list[tuple[CellWorld, Question]] = []
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        turn, metric = divmod(len(out), len(PRICED))
        gamma, epsilon = tolerances[seed % len(tolerances)]
        compare = tuple(GapScale)[turn % 2]
        question = Question(PRICED[metric], gamma, epsilon, compare=compare.value)
        world = random_world(groups, rng)
        difference = world.gap(question.metric, question.compare)
        if question.gamma < difference <= question.threshold:
            continue
        if check(world.past(), question).verdict is Verdict.INCONCLUSIVE:
            out.append((world, question))
        if len(out) == count:
            break
    return out


@pytest.mark.parametrize("at", range(0, 2 * len(PRICED), quick(3, full=1)))
def test_equals_brute_force(at: int) -> None:
    world, question = instances(2 * len(PRICED), 2)[at]
    for costs in (Costs(), Costs(0.05, 1.0, groups={"g1": Costs(0.2, 0.5)})):
        bound = eq.lower_bound(world, question, costs)
        assert bound == pytest.approx(brute_force(world, question, costs), rel=0.02)


@pytest.mark.parametrize("at", range(1, 2 * len(PRICED), 6))
def test_three_groups_on_a_grid(at: int) -> None:
    """All budgets on a coarse simplex, alternatives on a grid that is finer near the truth.

    Instances are those of every sixth turn; a FAIR set thinner than the grid could not be seen.
    """
    world, question = instances(2 * len(PRICED), 3, TOLERANCES[1:4:2])[at]
    r = np.array(list(world.r.values()))
    steps = np.sign(u := np.linspace(-1, 1, 101)) * np.abs(u) ** 1.5
    axes = [np.unique(np.clip(x + steps, 1e-9, 1 - 1e-9)) for x in r]
    lam = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    delta = deltas(world, question.metric, lam, question.compare)
    fair = world.gap(question.metric, question.compare) <= question.gamma
    lam = lam[delta >= question.threshold if fair else delta <= question.gamma]
    rows = np.stack([kl(x, lam[:, i]) / (1 - x) for i, x in enumerate(r)], axis=1)
    n = 12
    budgets = np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)]) / n
    speed = max(float((rows @ budget).min()) for budget in budgets)
    need = kl(0.05, np.array([0.95]))[0]
    bound = eq.lower_bound(world, question, Costs())
    assert bound == pytest.approx(need / speed, rel=0.1)
    # alternatives on the grid cannot be harder than the certified optimum's worst case
    own = rows @ np.array(list(bound.budget.values()))
    assert own.min() >= need / bound * (1 - bound.certificate) * (1 - 1e-9)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("groups", quick([2, 4], full=[2, 3, 4]))
def test_certificate(metric: str, groups: int) -> None:
    """Both sides agree, and no random alternative is below the certified value."""
    need = kl(0.05, np.array([0.95]))[0]
    for seed in range(quick(1, full=4)):
        rng = np.random.default_rng([seed, groups])
        world = random_world(groups, rng, spread=0.2)
        gamma, epsilon = TOLERANCES[(seed + groups) % 5]
        compare = tuple(GapScale)[(seed + groups // 2) % 2]
        question = Question(metric, gamma, epsilon, compare=compare.value)
        bound = eq.lower_bound(world, question, Costs(0.05, 1.0))
        assert bound.certificate <= 0.005
        difference = world.gap(metric, compare)
        assert bound.reference == (question.gamma < difference <= question.threshold)
        bands, boxes = (
            bands_from_past(world.past(), metric, None),
            dict.fromkeys(world.r, (0.0, 1.0)),
        )
        lower, upper = gap_bounds(bands, boxes, compare=compare)
        if bound.verdict is Verdict.FAIR:
            assert (bound == 0.0) == (upper < question.threshold)
        else:
            assert (bound == 0.0) == (lower > question.gamma)
        if bound == 0.0:
            continue
        r = np.array(list(world.r.values()))
        lam = np.concatenate(
            [
                rng.random((10_000, groups)),
                np.clip(r + 0.2 * rng.normal(size=(10_000, groups)), 0, 1),
            ]
        )
        delta = deltas(world, metric, lam, compare)
        wrong = (
            delta >= question.threshold
            if bound.verdict is Verdict.FAIR
            else delta <= question.gamma
        )
        labels = np.array(list(bound.labels.values()))
        evidence = sum(
            n * kl(x, lam[wrong, i]) for i, (n, x) in enumerate(zip(labels, r, strict=True))
        )
        assert np.min(evidence, initial=np.inf) >= need * (1 - bound.certificate) * (1 - 1e-9)


def test_scaling() -> None:
    bound = eq.lower_bound(REFERENCE, QUESTION, Costs(0.1, 1.0))
    assert eq.lower_bound(REFERENCE, QUESTION, Costs(0.05, 0.5)) == pytest.approx(bound / 2)
    strict = eq.lower_bound(REFERENCE, Question(gamma=0.1, delta=0.001), Costs(0.1, 1.0))
    ratio = math.log(0.999 / 0.001) * 0.998 / (math.log(0.95 / 0.05) * 0.9)
    assert strict / bound == pytest.approx(ratio)
    assert strict.budget == bound.budget
    dearer = eq.lower_bound(REFERENCE, QUESTION, Costs(groups={"A": Costs(0.0, 4.0)}))
    cheap = eq.lower_bound(REFERENCE, QUESTION, Costs())
    assert cheap < dearer < 4 * cheap
    assert dearer.labels["A"] / dearer.labels["B"] < cheap.labels["A"] / cheap.labels["B"]


def test_separate_error_levels() -> None:
    """To say FAIR with probability 0.8 here and at most 0.01 where it is wrong."""
    question = Question(gamma=0.1, delta_wrong_fair=0.01, delta_wrong_unfair=0.2)
    bound = eq.lower_bound(REFERENCE, question, Costs())
    need = 0.8 * math.log(0.8 / 0.01) + 0.2 * math.log(0.2 / 0.99)
    same = 0.9 * math.log(0.95 / 0.05)
    assert bound / eq.lower_bound(REFERENCE, QUESTION, Costs()) == pytest.approx(need / same)
    careless = Question(gamma=0.1, delta_wrong_fair=0.6, delta_wrong_unfair=0.4)
    assert eq.lower_bound(REFERENCE, careless, Costs()) == 0.0


def test_zero_costs_count_labels() -> None:
    bound = eq.lower_bound(REFERENCE, QUESTION, Costs(0.0, 0.0))
    assert bound == pytest.approx(sum(bound.labels.values()))
    assert bound == pytest.approx(eq.lower_bound(REFERENCE, QUESTION, Costs(1.0, 0.0)))


def test_a_group_that_costs_nothing_is_known() -> None:
    """B's unknown is learnt for free; what is paid for is the way of A to the frontier."""
    bound = eq.lower_bound(REFERENCE, QUESTION, Costs(groups={"B": Costs(0.0, 0.0)}))
    assert bound.labels["B"] == 0.0
    assert bound.budget == {"A": 1.0, "B": 0.0}
    p1, _, s, r = 0.026, 0.023, 0.951, 0.0875
    tpr_b = 0.0762 / (0.0762 + 0.8953 * 0.2542)
    fpr_b = 0.0285 / (0.0285 + 0.8953 * (1 - 0.2542))
    lam = np.linspace(0.0001, 0.9999, 100_001)
    far = np.abs(p1 / (p1 + s * lam) - tpr_b) >= 0.15
    far |= np.abs(0.023 / (0.023 + s * (1 - lam)) - fpr_b) >= 0.15
    need = kl(0.05, np.array([0.95]))[0]
    assert bound == pytest.approx(need / (kl(r, lam[far]).min() / (1 - r)), rel=0.005)
    everybody = CellWorld.from_shares({"A": (0.1, 0.1, 0.8, 1.0), "B": (0.3, 0.1, 0.6, 1.0)})
    assert eq.lower_bound(everybody, QUESTION, Costs()) == 0.0


def test_extreme_rates() -> None:
    """r of 0 (0 log 0), a group with nobody denied, an alternative at an infinite distance."""
    question = Question("equal_opportunity", gamma=0.1, epsilon=0.1)
    never = CellWorld.from_shares({"A": (0.4, 0.1, 0.5, 0.0), "B": (0.5, 0.1, 0.4, 0.0)})
    bound = eq.lower_bound(never, question, Costs())
    assert bound == pytest.approx(brute_force(never, question, Costs()), rel=0.02)
    world = CellWorld.from_shares({"A": (0.8, 0.2, 0.0, 0.0), "B": (0.3, 0.1, 0.6, 0.05)})
    bound = eq.lower_bound(world, question, Costs())
    # only B can be wrong: its TPR falls to 0.8 at lam = 0.3 * (1/0.8 - 1) / 0.6
    need = kl(0.05, np.array([0.95]))[0]
    expected = need / (kl(0.05, np.array([0.3 * 0.25 / 0.6]))[0] / 0.95)
    assert bound == pytest.approx(expected, rel=0.002)
    assert bound.labels["A"] == pytest.approx(0.0, abs=1e-2 * bound)
    # the gap reaches 0.5 only at lam = 1 for B, which a single good outcome rules out
    edge = CellWorld.from_shares({"A": (1.0, 0.0, 0.0, 0.0), "B": (0.5, 0.0, 0.5, 0.1)})
    furthest = Question("equal_opportunity", gamma=0.2, epsilon=0.3)
    assert eq.lower_bound(edge, furthest, Costs()) == 0.0
    with pytest.raises(BadData, match="empty denominator"):
        eq.lower_bound(world, Question("false_omission_parity"), Costs())


def test_a_ratio_of_nothing_to_nothing_is_out_of_reach() -> None:
    """Nobody turned down would have turned out well: FAIR, and nothing tells it from a few."""
    world = CellWorld.from_shares({"A": (0.4, 0.1, 0.5, 0.0), "B": (0.3, 0.1, 0.6, 0.0)})
    question = Question("false_omission_parity", gamma=0.2, epsilon=0.1, compare="ratio")
    assert world.gap(question.metric, "ratio") == 0.0
    bound = eq.lower_bound(world, question, Costs())
    assert bound == math.inf
    assert "FAIR is out of reach" in str(bound)
    some = CellWorld.from_shares({"A": (0.4, 0.1, 0.5, 0.0), "B": (0.3, 0.1, 0.6, 0.3)})
    assert some.gap(question.metric, "ratio") == 1.0
    bound = eq.lower_bound(some, question, Costs())
    assert bound.verdict is Verdict.UNFAIR
    assert 0.0 < bound < math.inf


def test_gap_zone_takes_the_cheaper_and_says_so() -> None:
    world = CellWorld.from_shares({"A": (0.4, 0.1, 0.5, 0.2), "B": (0.4, 0.1, 0.5, 0.3)})
    difference = world.gap("equal_opportunity")
    near_fair = Question("equal_opportunity", difference - 0.01, 0.1)
    near_unfair = Question("equal_opportunity", difference - 0.07, 0.08)
    for question, verdict in ((near_fair, Verdict.FAIR), (near_unfair, Verdict.UNFAIR)):
        bound = eq.lower_bound(world, question, Costs())
        assert bound.reference
        assert bound.verdict is verdict
        assert 0 < bound < math.inf
        assert "reference" in str(bound)


def test_a_gap_a_rounding_error_above_gamma() -> None:
    """No audit tells it from gamma: UNFAIR is out of reach, and the linear program is not asked."""
    world = CellWorld.from_shares({"A": (0.42, 0.18, 0.4, 0.7), "B": (0.2, 0.3, 0.5, 0.4)})
    gap = world.gap("equalized_odds")
    at, above = (
        eq.lower_bound(world, Question(gamma=gamma, epsilon=0.1), Costs())
        for gamma in (gap, float(np.nextafter(gap, 0.0)))
    )
    assert at.verdict is above.verdict is Verdict.FAIR
    assert float(above) == pytest.approx(float(at), rel=1e-3)


def test_twenty_groups() -> None:
    rng = np.random.default_rng(3)
    world = random_world(20, rng, spread=0.05)
    bound = eq.lower_bound(world, Question(gamma=0.1, epsilon=0.1), Costs())
    assert bound.certificate <= 0.005
    assert min(bound.labels.values()) > 0.0
    apart = random_world(20, rng, spread=0.2)
    bound = eq.lower_bound(apart, Question("equal_opportunity"), Costs())
    assert bound.verdict is Verdict.UNFAIR
    assert bound.certificate <= 0.005


def test_is_a_number_that_travels() -> None:
    bound = eq.lower_bound(REFERENCE, QUESTION, Costs())
    again = pickle.loads(pickle.dumps(bound))
    assert again == bound
    assert again.labels == bound.labels
    assert f"{bound:.0f}" == "193"
    assert bound + 1 > bound
