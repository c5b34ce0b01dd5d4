"""C*_n: with n past rows, by brute force, in the limit, and on the instances of the issue."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import rel_entr

import equipoise as eq
from equipoise.bounds import least_history_size, lower_bound
from equipoise.bounds.least_cost import needed_information
from equipoise.errors import InvalidInput
from equipoise.metrics import METRICS
from equipoise.question import Costs, Question, Verdict
from equipoise.worlds import CellWorld
from equipoise.worlds.data import adult_world, fico_lender
from tests.profiles import FULL, quick
from tests.unit.bounds.brute_force import Array, kl

pytestmark = pytest.mark.slow

COSTS = Costs(feature=0.1, label=1.0)
FAIR = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.24, 0.12, 0.64, 0.2)})
UNFAIR = CellWorld.from_shares({"A": (0.35, 0.1, 0.55, 0.2), "B": (0.12, 0.12, 0.76, 0.4)})
ODDS = Question("equalized_odds", gamma=0.1, epsilon=0.15)
OPPORTUNITY = Question("equal_opportunity", gamma=0.1, epsilon=0.15)


def random_groups(metric: str, verdict: str, groups: int) -> tuple[CellWorld, Question]:
    """The random instances of the issue, drawn in its order."""
    rng = np.random.default_rng(5)
    wanted = [("equal_opportunity", "F", 2), ("equal_opportunity", "U", 2)]
    wanted += [("equalized_odds", "F", 2), ("equalized_odds", "U", 2)]
    wanted += [("equal_opportunity", "U", 4), ("equalized_odds", "F", 4)]
    for one_metric, side, k in wanted:
        while True:
            s = rng.uniform(0.3, 0.8, k)
            precision = rng.uniform(0.6, 0.9, k)
            r = np.clip(precision * rng.uniform(0.2, 0.8, k), 0.03, 0.9)
            share = rng.dirichlet(np.full(k, 4.0))
            gamma = round(float(rng.uniform(0.02, 0.15)), 2)
            p1, p0 = (1 - s) * precision, (1 - s) * (1 - precision)
            names = "ABCD"[:k]
            shares = dict(zip(names, zip(p1, p0, s, r, strict=True), strict=True))
            world = CellWorld.from_shares(shares, dict(zip(names, share, strict=True)))
            gap = world.gap(one_metric)
            if gap <= gamma - 0.01 if side == "F" else gamma + 0.07 <= gap <= gamma + 0.2:
                break
        if (one_metric, side, k) == (metric, verdict, groups):
            return world, Question(one_metric, gamma=gamma, epsilon=0.05)
    raise AssertionError


# -- by brute force --------------------------------------------------------------------------------


def grid_of_populations(shares: tuple[float, ...], r: float, reach: float) -> Array:
    """Populations around the true one, the true one among them: rows of p1', p0', s', r'."""
    offsets = np.linspace(-reach, reach, 25)
    logits = np.log([shares[0] / shares[2], shares[1] / shares[2], r / (1 - r)])
    axes = [logit + offsets for logit in logits]
    a, b, c = (axis.ravel() for axis in np.meshgrid(*axes))
    s = 1.0 / (1.0 + np.exp(a) + np.exp(b))
    return np.stack([s * np.exp(a), s * np.exp(b), s, 1.0 / (1.0 + np.exp(-c))], axis=1)


def brute_force(world: CellWorld, question: Question, n: int) -> float:
    """C*_n of two groups over all pairs of populations on a grid, by one linear program.

    The alternatives are fewer than there are, so the cost is never above C*_n.
    """
    verdict = Verdict.FAIR if world.gap(question.metric) <= question.gamma else Verdict.UNFAIR
    # Alternatives are near where many rows show the shares and the tolerance is small.
    reach = 0.5 if verdict is Verdict.UNFAIR and n > 2_000 else 1.0
    past, label, values = [], [], []
    for group, counts in world.cells.items():
        grid = grid_of_populations(counts.shares, world.r[group], reach)
        rows = n * counts.total / world.cells.total
        past.append(rows * rel_entr(np.array(counts.shares), grid[:, :3]).sum(axis=1))
        label.append(kl(world.r[group], grid[:, 3]))
        p1, p0, s, r = grid.T
        by_rate = []
        for rate in METRICS[question.metric].rates:
            part, whole = rate.fraction(p1, p0, s * r, s * (1 - r))  # type: ignore[arg-type]
            by_rate.append(part / whole)
        values.append(np.array(by_rate))
    information = needed_information(question, verdict)
    prices = [COSTS.of(group).expected(world.r[group]) for group in world.cells]
    rows_found: list[Array] = []
    limits: list[float] = []
    labels = np.array([0.5, 0.5])  # too few, so that the first round finds alternatives
    for _ in range(60):
        totals = [past[g] + labels[g] * label[g] for g in (0, 1)]
        a, b = worst_pair(values, totals, question, verdict)
        if totals[0][a] + totals[1][b] >= information * (1 - 1e-4):
            break
        rows_found.append(-np.array([label[0][a], label[1][b]]))
        limits.append(past[0][a] + past[1][b] - information)
        labels = linprog(prices, A_ub=np.array(rows_found), b_ub=limits).x
        if labels is None:
            return math.inf
    return float(np.array(prices) @ labels)


def worst_pair(
    values: list[Array], totals: list[Array], question: Question, verdict: Verdict
) -> tuple[int, int]:
    """The pair of populations that takes least among those for which the verdict is wrong."""
    keep = [np.argsort(total)[:1200] for total in totals]
    gap = np.abs(values[0][:, keep[0], None] - values[1][:, None, keep[1]]).max(axis=0)
    is_wrong = gap >= question.threshold if verdict is Verdict.FAIR else gap <= question.gamma
    assert is_wrong.any()
    total = totals[0][keep[0]][:, None] + totals[1][keep[1]]
    a, b = np.unravel_index(np.where(is_wrong, total, np.inf).argmin(), total.shape)
    return int(keep[0][a]), int(keep[1][b])


NEAR = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.12, 0.68, 0.3)})
SMALL_TOLERANCE = {"gamma": 0.02, "epsilon": 0.05}  # of which NEAR is UNFAIR, by 0.13 and 0.05
BY_GRID = {
    "opportunity, fair": (FAIR, OPPORTUNITY),
    "odds, fair": (FAIR, ODDS),
    "opportunity, unfair": (NEAR, Question("equal_opportunity", **SMALL_TOLERANCE)),
    "odds, unfair": (NEAR, Question("equalized_odds", **SMALL_TOLERANCE)),
}


@pytest.mark.parametrize("n", quick([800], full=[800, 5_000]))
@pytest.mark.parametrize("row", quick(["odds, fair", "opportunity, unfair"], full=list(BY_GRID)))
def test_it_is_what_a_grid_of_all_populations_gives(row: str, n: int) -> None:
    world, question = BY_GRID[row]
    exact = float(lower_bound(world, question, COSTS, history_size=n))
    coarse = brute_force(world, question, n)
    assert coarse <= exact * 1.001
    assert coarse == pytest.approx(exact, rel=0.3)


# -- the limit of many rows, and of few ------------------------------------------------------------

ROWS = {
    "opportunity, fair": (FAIR, OPPORTUNITY),
    "opportunity, unfair": (UNFAIR, OPPORTUNITY),
    "odds, fair": (FAIR, ODDS),
    "odds, unfair": (UNFAIR, ODDS),
    "accuracy": (FAIR, Question("accuracy_parity", gamma=0.15, epsilon=0.1)),
    "ratio, fair": (FAIR, Question("equal_opportunity", 0.3, 0.2, compare="ratio")),
    "ratio, unfair": (UNFAIR, Question("equal_opportunity", 0.2, 0.2, compare="ratio")),
    "reference": (UNFAIR, replace(OPPORTUNITY, compare=eq.Compare(against="A"))),
    "no tolerance": (UNFAIR, Question("equal_opportunity", gamma=0.0, epsilon=0.1)),
}


@pytest.mark.parametrize("row", quick(["ratio, unfair"], full=list(ROWS)))
def test_it_is_c_star_as_the_past_grows_and_falls_on_the_way(row: str) -> None:
    world, question = ROWS[row]
    unlimited = float(lower_bound(world, question, COSTS))
    least = least_history_size(world, question)
    sizes = [math.ceil(1.02 * least), *quick([], full=[2 * math.ceil(least), 10**5]), 10**9]
    costs = [float(lower_bound(world, question, COSTS, history_size=n)) for n in sizes]
    assert all(later <= earlier * 1.002 for earlier, later in pairwise(costs))
    assert min(costs) >= unlimited * 0.997
    assert costs[-1] == pytest.approx(unlimited, rel=0.003, abs=1e-6)
    assert math.isfinite(costs[0])
    assert lower_bound(world, question, COSTS, history_size=int(0.98 * least)) == math.inf


def test_a_metric_that_needs_no_label_is_free_or_out_of_reach() -> None:
    question = Question("demographic_parity", gamma=0.05, epsilon=0.05)
    least = least_history_size(UNFAIR, question)
    assert lower_bound(UNFAIR, question, COSTS, history_size=math.ceil(1.01 * least)) == 0.0
    few = lower_bound(UNFAIR, question, COSTS, history_size=int(0.99 * least))
    assert few == math.inf
    assert "past rows do not tell it from others" in str(few)


# -- what it says ----------------------------------------------------------------------------------


def test_the_allocation_costs_what_is_said() -> None:
    bound = lower_bound(FAIR, OPPORTUNITY, COSTS, history_size=3_000)
    spent = sum(n * COSTS.expected(FAIR.r[group]) for group, n in bound.labels.items())
    assert spent == pytest.approx(bound, rel=1e-3)
    assert sum(bound.budget.values()) == pytest.approx(1.0)
    assert 0.0 <= bound.certificate < 0.002
    assert (bound.history_size, bound.verdict) == (3_000, Verdict.FAIR)


def test_an_audit_that_may_be_inconclusive_needs_less() -> None:
    delta = OPPORTUNITY.delta
    always = float(lower_bound(FAIR, OPPORTUNITY, COSTS))
    for decided in quick((0.5,), full=(0.2, 0.5, 0.95)):
        share = float(kl(decided, np.array([delta]))[0] / kl(delta, np.array([1 - delta]))[0])
        some = float(lower_bound(FAIR, OPPORTUNITY, COSTS, decided=decided))
        assert some == pytest.approx(share * always)
    assert lower_bound(FAIR, OPPORTUNITY, COSTS, decided=1 - delta) == pytest.approx(always)
    assert lower_bound(FAIR, OPPORTUNITY, COSTS, decided=delta) == 0.0
    finite = [
        float(lower_bound(FAIR, OPPORTUNITY, COSTS, history_size=2_000, decided=decided))
        for decided in quick((0.3, 0.9), full=(0.3, 0.6, 0.9))
    ]
    assert finite == sorted(finite)
    assert finite[0] < finite[-1]
    assert least_history_size(FAIR, OPPORTUNITY, decided=0.5) < least_history_size(
        FAIR, OPPORTUNITY
    )


def test_blocks_share_the_information_that_is_needed() -> None:
    """Two strata alike: past data of both count, so half of the labels may be spared."""
    shares = {
        f"{stratum} | {group}": (*UNFAIR.cells[group].shares, UNFAIR.r[group])
        for stratum in ("x", "y")
        for group in ("A", "B")
    }
    both = CellWorld.from_shares(shares)
    within = Question("equal_opportunity", 0.1, 0.15, compare=eq.Compare(within=True))
    alone = float(lower_bound(UNFAIR, OPPORTUNITY, COSTS, history_size=1_000))
    together = float(lower_bound(both, within, COSTS, history_size=2_000))
    assert together < alone
    if FULL:  # of one block this is tested above
        assert least_history_size(both, within) == pytest.approx(
            least_history_size(UNFAIR, OPPORTUNITY), rel=0.003
        )
        unlimited = float(lower_bound(both, within, COSTS))
        assert lower_bound(both, within, COSTS, history_size=10**9) == pytest.approx(
            unlimited, rel=0.003
        )


def test_a_group_whose_labels_cost_nothing_is_known() -> None:
    free = Costs(0.0, 1.0, {"A": Costs(0.0, 0.0)})
    bound = lower_bound(FAIR, OPPORTUNITY, free, history_size=5_000)
    assert bound.labels["A"] == 0.0
    assert 0.0 < bound < lower_bound(FAIR, OPPORTUNITY, Costs(0.0, 1.0), history_size=5_000)


def test_bad_arguments_are_refused() -> None:
    for size in (0, -5, 1.5):
        with pytest.raises(InvalidInput, match="'history_size'"):
            lower_bound(FAIR, OPPORTUNITY, COSTS, history_size=size)  # type: ignore[arg-type]
    for decided in (-0.1, 1.1):
        with pytest.raises(InvalidInput, match="'decided'"):
            lower_bound(FAIR, OPPORTUNITY, COSTS, decided=decided)


# -- the table of the issue ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instance", "cost", "rows"),
    [
        ("FICO", 131, 15_011),
        ("Adult", 2_264, 4_073),
        ("two groups, FAIR", 66, 556),
        ("four groups, UNFAIR", 189, 2_465),
        ("four groups, odds, FAIR", 520, 3_694),
    ],
)
def test_instances_with_50_000_past_rows(instance: str, cost: float, rows: float) -> None:
    world, question = {
        "FICO": lambda: (fico_lender().world, Question("equalized_odds", 0.25, 0.05)),
        "Adult": lambda: (adult_world(), Question("equalized_odds", 0.1, 0.05)),
        "two groups, FAIR": lambda: random_groups("equal_opportunity", "F", 2),
        "four groups, UNFAIR": lambda: random_groups("equal_opportunity", "U", 4),
        "four groups, odds, FAIR": lambda: random_groups("equalized_odds", "F", 4),
    }[instance]()
    if not FULL and instance != "two groups, FAIR":
        assert least_history_size(world, question) == pytest.approx(rows, rel=0.002)
        return
    bound = lower_bound(world, question, Costs(), history_size=50_000)
    assert round(float(bound)) == cost
    assert least_history_size(world, question) == pytest.approx(rows, rel=0.002)
