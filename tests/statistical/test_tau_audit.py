"""Baseline and RS-Audit in distribution: exact draws, person by person, and the formulas agree.

Every test compares random numbers made from fixed seeds, so it gives the same answer each time.
Thresholds are set so that a correct program would fail a test with probability ``ALARM`` over the
choice of its seeds, shared among the comparisons that the test makes.
"""

from __future__ import annotations

import numpy as np
import pytest
from paper.theorems import lower_bound_pair
from scipy import stats

from equipoise.audits.baseline import BaselineAudit
from equipoise.audits.estimated_rates import paper_tau
from equipoise.audits.rs_audit import RSAudit
from equipoise.bounds import Price, expectation
from equipoise.bounds.theorems import outcome_shares, price_per_arrival
from equipoise.question import Costs, Question
from equipoise.rates import clopper_pearson
from equipoise.simulation import Simulation, simulate
from equipoise.worlds import CellWorld
from tests.profiles import quick

ALARM = 1e-4

WORLD = CellWorld.from_shares(
    {"A": (0.35, 0.25, 0.40, 0.5), "B": (0.2, 0.2, 0.6, 0.3)}, shares={"A": 0.6, "B": 0.4}
)
QUESTION = Question(gamma=0.1, epsilon=0.2, delta=0.1)


class SlowRS(RSAudit):
    """The same audit, unknown to the catalogue: run person by person."""


class SlowBaseline(BaselineAudit):
    """The same audit, unknown to the catalogue: run person by person."""


def agree(fast: Simulation, slow: Simulation, alarm: float) -> None:
    """Compare two simulations run by run numbers: five tests, each at a fifth of the alarm rate."""
    level = alarm / 5
    for name in ("cost", "labels", "estimate", "upper"):
        ours, theirs = (getattr(sim, name) for sim in (fast, slow))
        ours, theirs = ours[~np.isnan(ours)], theirs[~np.isnan(theirs)]
        assert stats.ks_2samp(ours, theirs).pvalue > level, name
    table = [
        [np.sum(sim.verdict == v) for v in ("FAIR", "UNFAIR", "INCONCLUSIVE")]
        for sim in (fast, slow)
    ]
    table = np.array(table)[:, np.sum(table, axis=0) > 0]
    assert table.shape[1] > 1, "a world in which every run says the same tests little"
    assert stats.chi2_contingency(table).pvalue > level


@pytest.mark.parametrize("reuse", [False, True], ids=["fresh labels", "reused labels"])
@pytest.mark.parametrize("size", [None, 170], ids=["unlimited past", "finite past"])
@pytest.mark.parametrize(("name", "slow"), [("rs", SlowRS), ("baseline", SlowBaseline)])
def test_person_by_person_and_exact_draws_agree(
    name: str, slow: type[RSAudit] | type[BaselineAudit], size: int | None, reuse: bool
) -> None:
    def runs(audit: str | type[RSAudit] | type[BaselineAudit], repeats: int) -> Simulation:
        return simulate(
            audit,
            WORLD,
            QUESTION,
            Costs(0.5, 1.0, groups={"B": Costs(0.25, 3.0)}),
            repeats=repeats,
            history_size=size,
            seed=11,
            tau=8,
            reuse_labels=reuse,
        )

    # Where a finite past runs dry, working out what it establishes takes most of the time.
    agree(
        runs(name, 3_000 if size is None else quick(120, full=400)),
        runs(slow, quick(60, full=400)),
        ALARM,
    )


def random_world(rng: np.random.Generator) -> CellWorld:
    groups = [f"g{i}" for i in range(rng.integers(2, 6))]
    return CellWorld.from_shares(
        {g: (*rng.dirichlet([1, 1, 2]), rng.uniform()) for g in groups},
        shares=dict(zip(groups, rng.dirichlet(np.full(len(groups), 3.0)), strict=True)),
    )


def mean_price(name: str, world: CellWorld, costs: Costs, tau: int, reuse: bool) -> Price:
    """Return what an audit costs on average; a reused stream lasts until all shares have come.

    Let people arrive as a Poisson process of rate 1: then the kinds are independent, the tau-th of
    a kind comes at T ~ Gamma(tau) / share, and the mean number of arrivals until a stopping time is
    its mean: here that of the largest T.
    """
    if not reuse:
        return expectation(name, world, QUESTION, costs, tau=tau)
    q, prices = outcome_shares(world), price_per_arrival(world, costs)
    if name == "baseline":
        return largest(q.ravel(), tau) * sum(prices, Price())
    return sum((largest(q[:, a], tau) * price for a, price in enumerate(prices)), Price())


def largest(shares: np.ndarray, tau: int) -> float:
    times = np.linspace(0.0, ((tau + 12.0 * np.sqrt(tau) + 40.0) / shares).max(), 40_001)
    early = np.prod([stats.gamma.cdf(times * share, tau) for share in shares], axis=0)
    return float(np.trapezoid(1.0 - early, times))


def z_scores(world: CellWorld, costs: Costs, seed: int) -> list[float]:
    out = []
    for name in ("rs", "baseline"):
        for reuse in (False, True):
            mean = mean_price(name, world, costs, 40, reuse)
            sim = simulate(
                name, world, QUESTION, costs, repeats=1_000, seed=seed, tau=40, reuse_labels=reuse
            )
            for drawn, expected in ((sim.cost, mean.cost), (sim.labels, mean.labels)):
                error = drawn.std(ddof=1) / np.sqrt(len(drawn))
                out.append(float((drawn.mean() - expected) / error))
    return out


def test_mean_cost_is_the_formula_on_random_worlds() -> None:
    rng, worlds = np.random.default_rng(5), quick(8, full=50)
    scores = []
    for seed in range(worlds):
        costs = Costs(rng.uniform(), rng.uniform(), groups={"g1": Costs(rng.uniform(), 2.0)})
        scores += z_scores(random_world(rng), costs, seed)
    # Means of 1,000 runs are normal enough: of all comparisons the largest stays below this.
    assert len(scores) == 8 * worlds
    assert np.abs(scores).max() < stats.norm.isf(ALARM / len(scores) / 2)


def test_costs_of_a_reused_stream_at_the_papers_tau() -> None:
    tau = paper_tau(QUESTION, 2)
    for name in ("rs", "baseline"):
        mean = mean_price(name, WORLD, Costs(), tau, reuse=True).cost
        sim = simulate(name, WORLD, QUESTION, Costs(), repeats=2_000, tau=tau, reuse_labels=True)
        error = sim.cost.std(ddof=1) / np.sqrt(len(sim))
        assert abs(sim.cost.mean() - mean) < stats.norm.isf(ALARM / 4) * error


@pytest.mark.parametrize("epsilon", [0.12, 0.02])
def test_rs_errs_less_than_delta_on_the_lower_bound_pair(epsilon: float) -> None:
    question = Question(gamma=0.0, epsilon=epsilon, delta=0.05)
    for truth, world in zip(("FAIR", "UNFAIR"), lower_bound_pair(epsilon), strict=True):
        sim = simulate("rs", world, question, Costs(), repeats=5_000, seed=1)
        summary = sim.summary()
        print(f"RS-Audit, {truth} world, epsilon={epsilon}: {summary.errors} wrong of 5,000")
        _, most = clopper_pearson(summary.errors, 5_000, ALARM)
        assert most < question.delta
        assert summary.coverage == 1.0


@pytest.mark.parametrize("tau", [60, 500, 5_000])
def test_intervals_hold_at_any_tau(tau: int) -> None:
    for name in ("rs", "baseline"):
        sim = simulate(name, WORLD, QUESTION, Costs(), repeats=4_000, tau=tau, seed=2)
        truth = WORLD.gap("equalized_odds")
        missed = int(np.sum((truth < sim.lower) | (truth > sim.upper)))
        low, _ = clopper_pearson(missed, len(sim), ALARM / 2)
        assert low <= QUESTION.delta


def test_early_failures_do_not_bias_the_count() -> None:
    """Outcome-dependent delay: in request order the estimated rate stays where it is."""

    def defaults_show_first(outcome: int, rng: np.random.Generator) -> int:
        return int(rng.geometric(0.02 if outcome else 0.5))

    question = Question("equal_opportunity", gamma=0.1, epsilon=0.2)
    late = simulate(
        "rs",
        WORLD,
        question,
        Costs(),
        repeats=quick(120, full=300),
        tau=50,
        delay=defaults_show_first,
    )
    prompt = simulate("rs", WORLD, question, Costs(), repeats=3_000, tau=50)
    assert stats.ks_2samp(late.estimate, prompt.estimate).pvalue > ALARM


def test_finite_pasts_are_uniformly_random_orders() -> None:
    """Rows until the tau-th: drawn from counts, against shuffled lists."""
    counts = {"A": (6, 5, 9), "B": (7, 3, 10)}
    kinds = np.repeat(np.arange(6), [c for row in counts.values() for c in row])
    rng = np.random.default_rng(0)
    shuffled, drawn = [], []
    from equipoise.history import History

    for seed in range(quick(1_000, full=3_000)):
        rng.shuffle(kinds)
        first = int(np.flatnonzero(kinds == 0)[3]) + 1
        other = int(np.flatnonzero(kinds == 1)[3]) + 1
        shuffled.append((first, other))
        past = History.from_cells(
            {
                g: dict(zip(("approved_positive", "approved_negative", "denied"), c, strict=True))
                for g, c in counts.items()
            },
            seed=seed,
        )
        rows = past.rows_until(4, Question(), within_group=False)
        drawn.append((rows[1, "A"], rows[0, "A"]))
    theirs, ours = np.array(shuffled), np.array(drawn)
    for column in (0, 1):
        assert stats.ks_2samp(theirs[:, column], ours[:, column]).pvalue > ALARM / 3
    # Dependence between the two goals: their product has the same law too.
    assert stats.ks_2samp(theirs.prod(axis=1), ours.prod(axis=1)).pvalue > ALARM / 3
