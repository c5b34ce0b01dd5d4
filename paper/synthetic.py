"""Mixture model, synthetic (section 6 and its appendix): RS-Audit against Exp-Audit.

How the two are run as published, priced and drawn is the same on embedded Adult.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pandas import DataFrame, concat

from equipoise.audits.estimated_rates import paper_tau
from equipoise.bounds import expectation, lower_bound
from equipoise.mixture import Gaussian, HalfSpace
from equipoise.mixture.map_weights import ExpConstants
from equipoise.mixture.model import MixtureModel, PastFeatures
from equipoise.question import Costs, Question
from equipoise.simulation import simulate, sweep
from equipoise.worlds import CellWorld, World
from equipoise.worlds.mixture import GroupMixture, MixtureWorld
from paper.blackbox import run_phases
from paper.page import Chapter, Claim, Settings, holds, listed, number, span, where
from paper.pictures import AUDITS, TRUTH, band, legend_below, new_figure, to_svg
from paper.tables import regression
from paper.trunc_est_laws import ESTIMATORS, TruncEstLaws, fit_by_trunc_est

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DELTA = 0.01
EPSILONS = (0.8, 0.5, 0.25, 0.1, 0.05, 0.01, 0.001)
COST_PAIRS = ((0.0, 1.0), (0.5, 0.25), (0.5, 0.5), (0.5, 1.0), (0.5, 3.0))
QUESTIONS = [Question(gamma=0.0, epsilon=e, delta=DELTA) for e in EPSILONS]
REGIMES = ("as run", "printed, capped", "without caps")
WHOLE_PAST = 10**8  # rows counted of a past whose shares are known
TAU_CAP, R_CAP = 1000, 20_000
# R over log(14K/delta)/(q_m epsilon^2): as printed, and what the Chernoff step of the proof needs.
PROOF_FEATURES, NEEDED_FEATURES = 3430.0, 3.0 * 18.5**2 / 0.9 * 36.0 / 35.0

RUN = ["run", "regime", "gamma", "epsilon", "audit", "requests", "failures", "estimate", "verdict"]
TRUNC_EST_STEP = 0.02  # eta of TruncEst; theta is the mean over the variance
TRUNC_EST_RUNS = 5  # of the paper's runs; a fit takes a hundred thousand single steps
Pair = tuple[float, float]
Row = dict[str, object]

# -- the population --------------------------------------------------------------------------------

DIMENSION = 5
VARIANCE = 4.0
TRAINING_ROWS = 1000
SHARES, Q = {"1": 0.7, "0": 0.3}, {"1": 0.7, "0": 0.4}
# The paper's correctness table has FAIR at epsilon = 0.25, and answers of UNFAIR there that the
# text explains by a true EOD above epsilon/2: so it lies between.
EOD = (0.125, 0.25)


def distance(variance: float = VARIANCE, epsilon: float = 0.001) -> float:
    """Return the distance of the two means, ``variance sqrt(log(50/epsilon) / 2)``.

    The paper gives its order only, Omega(sqrt(log 1/epsilon)); this is the authors' code.
    """
    return variance * math.sqrt(0.5 * math.log(50.0 / epsilon))


@cache
def find_world() -> tuple[MixtureWorld, int]:
    """Return the first population, and its seed, whose true EOD is what the paper's table tells."""
    seed, world = 0, make_world(0)
    while not EOD[0] < world.gap("equalized_odds") < EOD[1]:
        seed += 1
        world = make_world(seed)
    return world, seed


def make_world(seed: int, *, scaled_training: bool = False) -> MixtureWorld:
    """Draw means as the paper says and train a logistic regression on (X, A) of 1000 people.

    With ``scaled_training`` the regression is trained on standardised rows and then decides on
    rows as they are, as the authors' code does online.
    """
    rng = np.random.default_rng(seed)
    means = {}
    for name in SHARES:
        good = rng.uniform(-1.0, 1.0, DIMENSION)
        direction = rng.standard_normal(DIMENSION)
        means[name] = (good + distance() * direction / np.linalg.norm(direction), good)
    group = (rng.random(TRAINING_ROWS) < SHARES["1"]).astype(int)
    outcome = (rng.random(TRAINING_ROWS) < np.where(group == 1, Q["1"], Q["0"])).astype(int)
    centres = np.array([means["0"], means["1"]])[group, outcome]
    X = centres + math.sqrt(VARIANCE) * rng.standard_normal(centres.shape)
    training = np.column_stack([X, group])
    if scaled_training:
        training = (training - training.mean(axis=0)) / training.std(axis=0)
    model = regression().fit(training, outcome)
    normal, of_group = model.coef_[0][:-1], model.coef_[0][-1]
    family, sigma = Gaussian("full"), VARIANCE * np.eye(DIMENSION)
    mixtures = {}
    for name, share in SHARES.items():
        cut = HalfSpace(normal, -float(model.intercept_[0] + of_group * int(name)))
        bad, good = means[name]
        thetas = family.pack(bad, sigma), family.pack(good, sigma)
        mixtures[name] = GroupMixture.of(share, Q[name], family, thetas, cut)
    return MixtureWorld(mixtures)


def _cells() -> CellWorld:
    world, _ = find_world()
    return CellWorld(world.cells, world.r)


# -- runs and expectations -------------------------------------------------------------------------


class Constants(NamedTuple):
    """tau, tau' and R of one group in one regime."""

    tau: int
    coarse: int
    features: int

    @classmethod
    def of(cls, regime: str, epsilon: float, smaller: float) -> Constants:
        """Return them; ``smaller`` is the weight of the group's rarer outcome.

        "as run": the authors' constants with the paper's caps; "printed, capped": the printed
        constants with the paper's caps; "without caps": the printed constants.
        """
        if regime == "as run":
            log_24, log_8 = math.log(24.0 / DELTA), math.log(8.0 / DELTA)
            tau = math.ceil(2.0 * log_24 / epsilon**2)
            features = math.ceil(500.0 * log_8 / (smaller * epsilon**2))
            return cls(min(tau, TAU_CAP), math.ceil(0.5 * log_24 / 0.2**2), min(features, R_CAP))
        proof = ExpConstants(epsilon, DELTA, 2)
        tau = paper_tau(Question(gamma=0.0, epsilon=epsilon, delta=DELTA), 2)
        features = proof.map_features(smaller, events=12)
        if regime == "printed, capped":
            return cls(min(tau, TAU_CAP), proof.coarse_tau, min(features, R_CAP))
        return cls(tau, proof.coarse_tau, features)


class Setting(NamedTuple):
    """Where and about what audits are run; ``smaller`` is the weight of the rarer outcome."""

    world: World
    cells: CellWorld
    questions: Sequence[Question]
    pairs: Sequence[Pair]
    smaller: float
    seed: int


def run_published(
    here: Setting, at: int, model: MixtureModel, rng: np.random.Generator
) -> list[tuple[object, ...]]:
    """Run RS-Audit and Exp-Audit as published on every question, with one model of the past.

    A row (``RUN``) has the requests to denied people (labels and features) and the failures among
    the labels, so that any pair of costs can be put on it.
    """
    rows: list[tuple[object, ...]] = []
    for question, regime in product(here.questions, REGIMES):
        tau, coarse, features = Constants.of(regime, question.epsilon, here.smaller)
        phases = run_phases("rs", here.cells, tau, repeats=1, rng=rng).iloc[0]
        options: dict[str, object] = {"weights": "published", "model": model}
        if regime != "without caps":
            options |= {"tau": WHOLE_PAST, "coarse_tau": coarse, "features": features}
        sim = simulate(
            "exp", here.world, question, Costs(0.0, 1.0), repeats=1, seed=here.seed + at,
            **options,  # type: ignore[arg-type]
        )  # fmt: skip
        found = {
            "rs": (phases.labels, phases.failures, phases.estimate),
            "exp": (sim.labels[0] + sim.features[0], sim.cost[0], sim.estimate[0]),
        }
        asked = (at, regime, question.gamma, question.epsilon)
        is_unfair = phases.estimate > question.gamma + question.epsilon / 2.0
        verdicts = {"rs": "UNFAIR" if is_unfair else "FAIR", "exp": str(sim.verdict[0])}
        for audit, (requests, failures, estimate) in found.items():
            spent = (int(requests), int(failures), float(estimate))
            rows.append((*asked, audit, *spent, verdicts[audit]))
    return rows


def price(here: Setting, runs: DataFrame, repeats: int) -> DataFrame:
    """Return mean costs with their spreads by regime, audit, epsilon and pair of costs.

    Every request costs c_feat, every failure c_lab more. The adaptive audit, whose choice of groups
    depends on the costs, is run here; it knows no regime.
    """
    tables = []
    for c_feat, c_lab in here.pairs:
        spent = c_feat * runs.requests + c_lab * runs.failures
        by = spent.groupby([runs.regime, runs.audit, runs.epsilon])
        ours: list[Row] = []
        for gamma in dict.fromkeys(question.gamma for question in here.questions):
            asked = [question for question in here.questions if question.gamma == gamma]
            adaptive = sweep(
                ["adaptive"], here.cells, asked[0], Costs(c_feat, c_lab),
                epsilon=[question.epsilon for question in asked], repeats=repeats, seed=here.seed,
            )  # fmt: skip
            for row, regime in product(adaptive.rows, REGIMES):
                shown = {name: row[name] for name in ("audit", "epsilon", "cost", "cost_sd")}
                ours.append({"regime": regime, **shown})
        published = DataFrame({"cost": by.mean(), "cost_sd": by.std()}).reset_index()
        tables.append(concat([published, DataFrame(ours)]).assign(c_feat=c_feat, c_lab=c_lab))
    return concat(tables, ignore_index=True)


class Expected(NamedTuple):
    """Expected requests and failures of the phases: what any pair of costs is paid for.

    ``coarse`` are Exp-Audit's labels; ``features`` and ``features_of_1`` what it looks at in both
    groups and in group 1.
    """

    rs: float
    rs_failures: float
    coarse: float
    coarse_failures: float
    features: float
    features_of_1: float

    @classmethod
    def of(cls, regime: str, question: Question) -> Expected:
        """Return them for one regime; with the printed constants each group has its own R."""
        cells, own = _cells(), regime != "as run"
        per_group = {
            group: Constants.of(regime, question.epsilon, min(q, 1.0 - q) if own else 0.3)
            for group, q in Q.items()
        }
        tau, coarse_tau, _ = per_group["1"]
        rs = expectation("rs", cells, question, Costs(0.0, 1.0), tau=tau)
        coarse = expectation("rs", cells, question, Costs(0.0, 1.0), tau=coarse_tau)
        seen = {g: cells.cells[g].shares[2] * c.features for g, c in per_group.items()}
        return cls(rs.labels, rs.cost, coarse.labels, coarse.cost, sum(seen.values()), seen["1"])

    def booked(self, pair: Pair) -> Pair:
        """Return the costs of RS-Audit and Exp-Audit as the authors' code books them."""
        rs = pair[0] * self.features_of_1 + pair[1] * self.rs_failures
        return rs, pair[0] * self.coarse + pair[1] * self.coarse_failures


def break_even(question: Question) -> Pair:
    """Say above how many times c_feat ``c_lab P[Y=0|f=0]`` makes Exp-Audit the cheaper audit.

    Without caps: with the printed R, and with the R that its proof needs.
    """
    at = Expected.of("without caps", question)
    saved = (at.rs_failures - at.coarse_failures) * at.rs / at.rs_failures
    # the printed R has log(12K/delta), the proof log(14K/delta)
    log_ratio = math.log(28.0 / DELTA) / math.log(24.0 / DELTA)
    needed = at.features * NEEDED_FEATURES / PROOF_FEATURES * log_ratio
    return (at.coarse + at.features - at.rs) / saved, (at.coarse + needed - at.rs) / saved


# -- pictures --------------------------------------------------------------------------------------


def draw_all(
    runs: DataFrame,
    prices: DataFrame,
    pairs: Sequence[Pair],
    truth: float,
    booked: DataFrame | None = None,
) -> Figure:
    """Draw cost against epsilon, a row per pair of costs, and the estimated EOD below.

    A column for each regime. ``booked`` has exact costs as the authors' code books them.
    """
    figure, panels = new_figure(len(pairs) + 1, len(REGIMES), width=11.0, height=2.5)
    for column, regime in enumerate(REGIMES):
        for row, pair in zip(panels, pairs, strict=False):
            draw_cost(row[column], prices, regime, pair, booked)
        draw_estimate(panels[-1][column], runs, regime, truth)
        panels[0][column].set_title(f"{regime}\n{panels[0][column].get_title()}")
    legend_below(figure)
    return figure


def draw_cost(
    axes: Axes, prices: DataFrame, regime: str, pair: Pair, booked: DataFrame | None = None
) -> None:
    """Draw cost against epsilon at one pair of costs."""
    at = {"c_feat": pair[0], "c_lab": pair[1]}
    here = where(prices, regime=regime, **at).query("cost > 0")  # the scale is logarithmic
    for audit in ("rs", "exp"):
        band(axes, audit, here, "epsilon", "cost")
        if booked is not None:
            name, colour, *_ = AUDITS[audit]
            lines = where(booked, constants=regime, **at)
            y, label = lines[f"{audit}_booked"], f"{name} as the authors' code books it"
            axes.plot(lines.epsilon, y, color=colour, ls=(0, (1, 2)), lw=1.2, label=label)
    band(axes, "adaptive", here, "epsilon", "cost")
    axes.set(title=f"c_feat = {pair[0]:g}, c_lab = {pair[1]:g}", xscale="log", yscale="log")
    axes.set(xlabel="epsilon (log scale)", ylabel="cost (log scale)")


def draw_estimate(axes: Axes, runs: DataFrame, regime: str, truth: float) -> None:
    """Draw the estimated EOD against epsilon."""
    by = where(runs, regime=regime).groupby(["audit", "epsilon"]).estimate
    means = DataFrame({"estimate": by.mean(), "estimate_sd": by.std()}).reset_index()
    for audit in ("rs", "exp"):
        band(axes, audit, means, "epsilon", "estimate")
    axes.axhline(truth, color=TRUTH, lw=1.5, label="true EOD")
    axes.set(xscale="log", xlabel="epsilon (log scale)", ylabel="estimated EOD", ylim=(0, None))


# -- the experiment --------------------------------------------------------------------------------


def run(settings: Settings) -> Chapter:
    """Run RS-Audit and Exp-Audit as published, each run with a past of its own."""
    world, world_seed = find_world()
    eod = world.gap("equalized_odds")
    past, repeats, ours = (20_000, 2, 2) if settings.quick else (200_000, 30, 20)
    here = Setting(world, _cells(), QUESTIONS, COST_PAIRS, 0.3, settings.seed)
    made = []
    made_by_trunc_est = []
    settled: list[bool] = []
    for at, run_seed in enumerate(settings.run_seeds(repeats)):
        rng = np.random.default_rng(run_seed)
        features = replace(world, feature_rows=past).past(None, rng).features
        everybody = replace(features, held_out=0.0)  # the paper fits to all of them
        made += run_published(here, at, everybody.model, rng)
        if at < TRUNC_EST_RUNS:
            laws = _trunc_est_laws(world, everybody)
            settled += laws.settled
            made_by_trunc_est += run_published(here, at, laws.model, rng)
    runs = DataFrame(made, columns=RUN)
    by_trunc_est = DataFrame(made_by_trunc_est, columns=RUN)
    estimators = _compare_estimators(runs, by_trunc_est, eod)
    prices = price(here, runs, ours)
    levels = emulated_levels()
    costs, right = _costs(prices), correctness(runs, eod)
    priced = where(costs, epsilon=0.1, c_feat=0.5)
    return Chapter(
        "Mixture model, synthetic: RS-Audit against Exp-Audit",
        WORDS,
        facts={
            "distance": distance(),
            "EOD": eod,
            "world_seed": world_seed,
            "past": past,
            "runs": repeats,
            "seed": settings.seed,
            "free": {r: _ratios(where(costs, constants=r, c_feat=0), "epsilon") for r in REGIMES},
            "priced": {r: _ratios(where(priced, constants=r), "c_lab") for r in REGIMES},
            "even": break_even(QUESTIONS[-1]),
            "bad": " and ".join(f"{1.0 - r:.2f}" for r in world.r.values()),
            "capped": where(costs, constants="printed, capped").exp_over_rs,
            "capped_priced": where(costs, constants="printed, capped", c_feat=0.5).exp_over_rs,
            "settled": settled,
            "trunc_est_runs": by_trunc_est.run.nunique(),
            "levels": levels,
            "level": Expected.of("as run", QUESTIONS[-1]).booked((0.5, 1.0))[1],
        },
        tables={
            "costs": costs[costs.epsilon.isin((0.5, 0.1, 0.01))],
            "all-costs": costs,
            "correctness": right,
            "estimators": estimators,
            "runs": runs,
        },
        pictures={"costs": to_svg(partial(draw_all, runs, prices, COST_PAIRS, eod, costs))},
        claims=[
            _estimates(runs, eod),
            _closer(runs, eod),
            *_cost_claims(costs, levels),
            *_table_6(right),
        ],
        found={"EOD": eod, "runs": runs, "prices": prices},
    )


def _trunc_est_laws(world: MixtureWorld, past: PastFeatures) -> TruncEstLaws:
    """Fit Gaussians of the known covariance by TruncEst: single steps settle no other family."""
    accepts: dict[str, HalfSpace] = {}
    for group, mixture in world.mixtures.items():
        assert isinstance(mixture.accepts, HalfSpace)
        accepts[group] = mixture.accepts
    family = Gaussian(VARIANCE * np.eye(DIMENSION))
    return fit_by_trunc_est(past, accepts, family, delta=DELTA, eta=TRUNC_EST_STEP, kappa=1.0)


def _compare_estimators(by_mle: DataFrame, by_trunc_est: DataFrame, eod: float) -> DataFrame:
    """Return Exp-Audit's estimates and right verdicts by both estimators, on the same pasts."""
    rows = []
    shared = by_mle[by_mle.run.isin(by_trunc_est.run)]
    for regime, question in product(REGIMES, QUESTIONS):
        row: Row = {"constants": regime, "epsilon": question.epsilon}
        for name, runs in zip(ESTIMATORS, (shared, by_trunc_est), strict=True):
            mine = where(runs, regime=regime, epsilon=question.epsilon, audit="exp")
            row[f"median,_{name}"] = mine.estimate.median()
            row[f"right,_{name}"] = float(mine.verdict.isin(question.truth(eod)).mean())
        rows.append({**row, "true_EOD": eod})
    return DataFrame(rows)


def emulated_levels(n_worlds: int = 10) -> list[float]:
    """Return Exp-Audit's booked cost in Figure 4 if rows are standardised for training only.

    One value per population whose true EOD lies where Table 6 implies, at c_feat = 0.5, c_lab = 1.
    """
    coarse_tau = Constants.of("as run", QUESTIONS[-1].epsilon, 0.3).coarse
    levels: list[float] = []
    seed = 0
    while len(levels) < n_worlds and seed < 200:
        world = make_world(seed, scaled_training=True)
        seed += 1
        if EOD[0] < world.gap("equalized_odds") < EOD[1]:
            cells = CellWorld(world.cells, world.r)
            levels.append(
                expectation("rs", cells, QUESTIONS[-1], Costs(0.5, 1.0), tau=coarse_tau).cost
            )
    return levels


def _ratios(rows: DataFrame, by: str) -> str:
    pairs = zip(rows.exp_over_rs, rows[by], strict=True)
    return ", ".join(f"{number(ratio, 3)} at {number(value)}" for ratio, value in pairs)


def _costs(prices: DataFrame) -> DataFrame:
    """Return mean costs by regime, price and epsilon, rightly booked and as published."""
    rows = []
    for regime, pair, question in product(REGIMES, COST_PAIRS, QUESTIONS):
        at = {"epsilon": question.epsilon, "c_feat": pair[0], "c_lab": pair[1]}
        mean = where(prices, regime=regime, **at).set_index("audit").cost
        rs_booked, exp_booked = Expected.of(regime, question).booked(pair)
        spent = {"rs": mean["rs"], "exp": mean["exp"], "exp_over_rs": mean["exp"] / mean["rs"]}
        spent |= {"rs_booked": rs_booked, "exp_booked": exp_booked, "adaptive": mean["adaptive"]}
        bound = float(lower_bound(_cells(), question, Costs(*pair)))
        rows.append({"constants": regime, **at, **spent, "C*": bound})
    return DataFrame(rows)


def correctness(runs: DataFrame, eod: float) -> DataFrame:
    """Return Table 6: shares of right verdicts under both definitions of the truth."""
    rows = []
    for regime, question in product(REGIMES, QUESTIONS):
        here = where(runs, regime=regime, epsilon=question.epsilon)
        table, truth = "FAIR" if eod <= question.epsilon else "UNFAIR", question.truth(eod)
        row = {"constants": regime, "epsilon": question.epsilon, "truth,_table": table}
        row["truth,_definition"] = " or ".join(sorted(truth))
        for audit in ("exp", "rs"):
            verdicts = where(here, audit=audit).verdict
            row[f"{audit},_table"] = float((verdicts == table).mean())
            row[f"{audit},_definition"] = float(verdicts.isin(truth).mean())
        rows.append(row)
    return DataFrame(rows)


# -- claims and words ------------------------------------------------------------------------------


def _estimates(runs: DataFrame, eod: float) -> Claim:
    by = where(runs, regime="as run").query("epsilon <= 0.1").groupby(["audit", "epsilon"])
    mean = by.estimate.mean()
    return Claim(
        "Figure 1 (bottom)",
        "both audits estimate the true EOD (RS-Audit, Exp-Audit, epsilon <= 0.1)",
        "(plot), true 0.171 (file)",
        f"{span(mean['rs'])}, {span(mean['exp'])}, true {eod:.3f}",
        holds((mean - eod).abs().max() < 0.02),
    )


def _closer(runs: DataFrame, eod: float) -> Claim:
    """Compare how close both audits come to the true EOD."""
    off = (runs.estimate - eod).abs()
    is_small = (runs.regime == "as run") & (runs.epsilon <= 0.1)
    mean = off[is_small].groupby(runs.audit).mean()
    return Claim(
        "section 6, Figure 1 (bottom)",
        "RS-Audit's estimate is slightly closer to the true EOD than Exp-Audit's (synthetic)",
        "no number",
        f"mean distance, as run, epsilon <= 0.1: RS-Audit {mean['rs']:.4f}, Exp-Audit "
        f"{mean['exp']:.4f}",
        holds(mean["rs"] < mean["exp"], "reversed: Exp-Audit is closer"),
    )


def _cost_claims(costs: DataFrame, levels: Sequence[float]) -> list[Claim]:
    ratio = costs.rename(columns={"exp_over_rs": "ratio"})
    free = {r: where(ratio, c_feat=0.0, constants=r).set_index("epsilon") for r in REGIMES}
    below = {r: free[r].query("ratio < 1").index.max() for r in REGIMES}
    capped = where(ratio, constants="printed, capped").ratio
    lower = ratio.query("constants == 'as run' and c_feat == 0.5 and epsilon <= 0.1 and ratio < 1")
    small = where(costs, constants="as run", epsilon=0.001, c_feat=0.5)
    steep = where(costs, constants="without caps", c_feat=0.5, c_lab=1.0).set_index("epsilon").exp
    flat = [f"{free[r].exp[0.001] / free[r].exp[0.1]:.2g}" for r in REGIMES]
    cheaper = lower.c_lab.unique()
    return [
        Claim(
            "Figure 1 (bottom)",
            "c = (0, 1): Exp-Audit costs less than RS-Audit",
            "(plot)",
            f"{span(free['as run'].ratio)} of it as run, {span(free['without caps'].ratio)} "
            "without caps",
            f"holds at epsilon <= {below['as run']:g} as run, <= {below['without caps']:g} without "
            "caps",
        ),
        Claim(
            "section 6, appendix D.2",
            "with the printed constants, tau up to 1000 and R up to 20,000, Exp-Audit costs less",
            "(plots, the code has other constants)",
            f"{span(capped)} times RS-Audit, over all epsilons and prices",
            holds(
                capped.max() < 1.0,
                "does not hold at any epsilon or price"
                if capped.min() > 1.0
                else "does not hold everywhere",
            ),
        ),
        Claim(
            "Figure 4",
            "c_feat = 0.5: Exp-Audit costs less at c_lab = 0.25, 0.5, 1, 3. Cost at epsilon 0.001",
            "74, 95, 152, 372 (file, one run), RS-Audit (plot)",
            f"{listed(small.exp_booked, ',.0f')} as booked, {listed(small.exp, ',.0f')} rightly; "
            f"cheaper at c_lab = {listed(cheaper) or 'none'}",
            holds(len(cheaper) == 4, "does not hold: its features were booked on RS-Audit"),
        ),
        Claim(
            "Figure 4, level",
            "cost of Exp-Audit as booked, epsilon = 0.001, c = (0.5, 1)",
            "152 (file, one run)",
            f"{where(small, c_lab=1.0).exp_booked.item():,.0f}; {min(levels):,.0f} to "
            f"{max(levels):,.0f} in {len(levels)} populations if rows are standardised for "
            "training and not online",
            "unexplained",
        ),
        Claim(
            "section 6, appendix",
            "the cost of Exp-Audit is nearly independent of epsilon",
            "(plots)",
            f"grows {flat[0]} times from epsilon 0.1 to 0.001 as run at c = (0, 1), {flat[-1]} "
            f"without caps. At c_feat = 0.5 without caps {steep[0.001] / steep[0.1]:.2g}",
            "holds where features are free or R is capped"
            if set(flat) == {"1"}
            else "does not hold",
        ),
    ]


# The paper's shares of right verdicts at its seven epsilons, of five runs.
TABLE_6 = {"exp": "1, 1, 0, 1, 1, 1, 1", "rs": "0.8, 1, 0.2, 1, 1, 1, 1"}


def _table_6(right: DataFrame) -> list[Claim]:
    table = where(right, constants="as run")
    claims = []
    for audit, published in TABLE_6.items():
        shares, by_definition = table[f"{audit},_table"], table[f"{audit},_definition"]
        claims.append(
            Claim(
                "Table 6",
                f"{AUDITS[audit][0]} is right, at epsilon = {listed(table.epsilon)}",
                published,
                f"{listed(shares, '.2g')}, by the definition at least {by_definition.min():.2g}",
                "holds. Above 0.1 either answer is right"
                if shares[table.epsilon <= 0.1].min() == 1.0
                else "does not hold at every epsilon <= 0.1",
            )
        )
    return claims


WORDS = """
Section 6, Figure 1 (bottom), and the appendix, Figure 4 and Table 6.

P[A=1] = 0.7, q_(1|1) = 0.7, q_(1|0) = 0.4, spherical Gaussians in 5 dimensions with variance 4.
Means are as in the paper, at a distance of {{ distance | n(2) }} (the authors' code). A logistic
regression on (X, A) of 1000 people decides. The paper does not give its means. We take the first
seed ({{ world_seed }}) whose true EOD lies where its Table 6 implies, between 0.125 and 0.25. It is
{{ EOD | n }} (theirs 0.171, see the notes). gamma = 0, delta = 0.01, {{ runs }} runs from seed {{
seed }} (the paper has 5), each with a past of {{ past | n }} people.

Three sets of constants. “As run”: The authors' constants and caps (tau = 2 log(24/delta)/epsilon²
up to 1000, tau' = 98, R = 500 log(8/delta)/(q_m epsilon²) up to 20,000). “Printed, capped”: The
printed constants with the printed caps, tau and R as the appendix says. “Without caps”: The printed
constants. Exp-Audit is Algorithm 2, MAP counts without a test of separation, with P[f=1, Y=y | a]
read off 10^8 rows. The laws are by exact maximum likelihood in the figures, and by TruncEst in a
table of their own.

- At c_feat = 0, c_lab = 1 Exp-Audit costs this share of RS-Audit, by epsilon. As run:
  {{ free["as run"] }}. Without caps: {{ free["without caps"] }}. At this price its cost does not
  depend on epsilon, with or without the cap on R: it pays for coarse labels only.
- At epsilon = 0.1, c_feat = 0.5, rightly booked, it costs by c_lab: Without caps {{
  priced["without caps"] }}. As run: {{ priced["as run"] }}. Without the cap on R its features grow
  like 1/epsilon², as Theorem 4 says.
- With the printed constants and the printed caps Exp-Audit costs {{ capped | span }} times
  RS-Audit,
  over all epsilons and prices ({{ capped_priced | span }} at c_feat = 0.5). The cap makes RS-Audit
  cheap, and Exp-Audit's coarse labels alone are more than tau = 1000.
- Figure 4's level is unexplained. As the authors book it, Exp-Audit costs {{ level | n(3) }} here
  at c = (0.5, 1), and 152 in their file. Their code standardises rows for training and for the
  past, and not online. If we train on standardised rows and decide on rows as they are, the cost is
  {{ levels | min | n(3) }} to {{ levels | max | n(3) }} over {{ levels | length }} populations,
  further away. The file's costs at c_lab = 1 and 3 imply 110 failed overrides, and then only 84
  requests at c_lab = 1. This cannot be, because each override is a request. So requests are not
  all booked.
- At the paper's constants Exp-Audit is cheaper only where c_lab P[Y=0|f=0] exceeds about {{ even[0]
  | n(2) }} times c_feat (small epsilon, where P[Y=0|f=0] is {{ bad }}). With the R that its own
  proof needs, a third of the printed one, the factor is {{ even[1] | n(2) }}.
- The published RS-Audit pays for features of Exp-Audit, and the published Exp-Audit for none (see
  the notes). The dotted lines show that bookkeeping on our population.

{{ picture("costs", "Cost against epsilon at five pairs of prices, and the estimated EOD (last row):
as run (left), printed constants with caps (middle), without caps (right). Solid and dashed: booked
on the audit that asked. Dotted: as
the authors' code books it. Bands ± one standard deviation." | replace("\n", " ")) }}

Mean cost, each phase booked on the audit that asked for it, and as the authors' code books it
(exact). C* is a reference, not a bound, where 0 < gap <= epsilon.

{{ table("costs") }}

Table 6: share of runs with the right verdict. The paper's rule is FAIR if and only if the gap is
at most epsilon. Its definition with gamma = 0 allows either verdict for 0 < gap <= epsilon.

{{ table("correctness") }}

TruncEst (Algorithms 4 and 5) in place of exact likelihood, on the same {{ trunc_est_runs }} pasts:
It takes single steps of size 0.02 on fresh people, with Gaussians of the known covariance, up to
2,000 people
for the start and 100 steps in each of the 80 repeats. In {{ settled | sum }} of the {{ settled |
length }} fits the majority of candidates agrees within 2 · 0.05, as line 10 of Algorithm 4 asks.
Elsewhere the candidate with the most neighbours is used. Median estimate of the EOD, and share of
right verdicts by the definition:

{{ table("estimators") }}
"""
