"""Checks behind the notes on the paper: each measures what its note names in braces."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from equipoise.audits.tau_audits import paper_epsilon, paper_tau
from equipoise.bounds import baseline_expectation, family_bound, rs_expectation
from equipoise.errors import MissingExtra
from equipoise.mixture import (
    Curvature,
    Gaussian,
    HalfSpace,
    fit_truncated,
    trunc_est_constants,
)
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld
from equipoise.worlds.data import adult, adult_world
from paper.classifiers import classify, decide, read_people
from paper.kept_work import Value
from paper.mixture_runs import DELTA
from paper.synthetic import (
    NEEDED_FEATURES,
    PROOF_FEATURES,
    Expected,
    break_even,
)
from paper.synthetic_world import VARIANCE, distance, find_world

__all__ = ["CHECKS", "Values"]

Values = dict[str, Value]
"""What a note's words name in braces."""

QUESTION = Question(gamma=0.0, epsilon=0.05, delta=0.01)


def threshold() -> Values:
    """Try Algorithm 3's printed threshold on a fair decision-maker."""
    world = CellWorld.from_shares({"A": (0.3, 0.2, 0.5, 0.4), "B": (0.25, 0.25, 0.5, 0.5)})
    question = Question(gamma=0.2, epsilon=0.05, delta=0.01)
    sim = simulate("baseline", world, question, Costs(), repeats=1000)
    return {
        "delta": sim.difference,
        "printed": float(np.mean(sim.estimate > question.epsilon / 2.0)),
        "text": float(np.mean(sim.verdict == "UNFAIR")),
    }


def restart() -> Values:
    """Compute how much of the Baseline's cost comes from restarting its stream."""
    world = adult_world()
    rs, rs_kept = (
        rs_expectation(world, QUESTION, Costs(), tau=1000, reuse_labels=keep).cost
        for keep in (False, True)
    )
    base, base_kept = (
        baseline_expectation(world, QUESTION, Costs(), tau=1000, reuse_labels=keep).cost
        for keep in (False, True)
    )
    return {
        "printed": rs / base,
        "kept": base_kept / base,
        "rest": rs / base_kept,
        "both": rs_kept / base_kept,
    }


def dry() -> Values:
    """Run RS-Audit as printed where a group is never approved."""
    people = read_people("adult")
    world = classify(people, decide(people, "sense_attr")).as_cells
    sim = simulate("rs", world, QUESTION, Costs(), repeats=100, tau=1000)
    return {
        "inconclusive": float(np.mean(sim.verdict == "INCONCLUSIVE")),
        "delta": world.difference("equalized_odds"),
    }


def tau() -> Values:
    """Find which epsilon tau = 1000 stands for."""
    return {"epsilon": paper_epsilon(1000, QUESTION, 2), "tau": paper_tau(QUESTION, 2)}


def twelve() -> Values:
    """Add up the failures with log(12K/delta) in R, as shares of delta = 0.05, for two groups."""
    groups, delta = 2, 0.05
    power = 3430.0 * 0.9 * (35.0 / 36.0) / (3.0 * 18.5**2)  # of delta/(12K), by Chernoff
    return {"total": 10 / 14 + 4 * groups * (delta / (12 * groups)) ** power / delta}


def features() -> Values:
    """Compute the constant of R that the proof needs."""
    return {"needed": NEEDED_FEATURES, "times": PROOF_FEATURES / NEEDED_FEATURES}


def booking() -> Values:
    """Compare the published bookkeeping with the right one."""
    at = Expected.of(find_world()[0], "as run", 0.1)
    return {
        "rs_booked": 0.5 * at.features_of_1 + at.rs_failures,
        "exp_booked": 0.5 * at.coarse + at.coarse_failures,
        "rs": 0.5 * at.rs + at.rs_failures,
        "exp": 0.5 * (at.coarse + at.features) + at.coarse_failures,
    }


def cheaper() -> Values:
    """Find when Exp-Audit is the cheaper audit."""
    world, _ = find_world()
    large, small = (break_even(world, "without caps", e) for e in (0.1, 0.001))
    return {
        "large": large.threshold,
        "small": small.threshold,
        "large_needed": large.threshold_needed,
        "small_needed": small.threshold_needed,
    }


def flat() -> Values:
    """Follow Exp-Audit's features as epsilon shrinks."""
    world, _ = find_world()
    large, small = (Expected.of(world, "without caps", e).features for e in (0.1, 0.01))
    return {"slope": math.log(small / large) / math.log(0.01 / 0.1)}


def truth() -> Values:
    """Give the two readings of the correctness table."""
    eod = find_world()[0].difference("equalized_odds")
    question = Question(gamma=0.0, epsilon=0.25, delta=DELTA)
    return {
        "eod": eod,
        "table": "FAIR" if eod <= question.epsilon else "UNFAIR",
        "definition": " or ".join(sorted(question.truth(eod))),
    }


def separation() -> Values:
    """Compare the separation condition with the separation used."""
    # (48 max(L, beta) beta + 3 lambda)/(8 kappa beta^2) is above 6 for kappa <= 1 and L, beta >= 1;
    # the group with q = 0.4 needs less than the other.
    large, small = (math.sqrt(6.0 * math.log(10.0 * 0.6 / (0.4 * e))) for e in (0.8, 0.001))
    return {"used": distance() / VARIANCE, "large": large, "small": small}


def bias() -> Values:
    """Compute the bias of MAP counts where the outcomes overlap."""
    here = distance() / math.sqrt(VARIANCE)
    names = {"one": 1.0, "two": 2.0, "three": 3.0, "here": here}
    return {**{name: _map_bias(0.3, d) for name, d in names.items()}, "sigmas": here}


def _map_bias(q: float, d: float) -> float:
    cut = d / 2.0 - math.log(q / (1.0 - q)) / d  # outcome 1 lies at d, outcome 0 at 0
    return (q * float(ndtr(d - cut)) + (1.0 - q) * float(ndtr(-cut))) / q - 1.0


def taylor() -> Values:
    """Try the Taylor lemma on W(theta) = theta^2/2 at theta_1 = 2, theta_2 = 0."""
    gap = (2.0**2 / 2.0 + 0.0) / 2.0 - 1.0**2 / 2.0
    size = 2.0**2 * 2.0  # |theta_1 - theta_2|^2 in the sum of the two Hessians
    return {"gap": gap, "lemma": size / 4.0, "proof": size / 8.0, "right": size / 16.0}


def steps() -> Values:
    """Compute TruncEst's step count for tame laws."""
    tame = Curvature(0.25, 4.0, 5.0)
    return {
        "constants": str(
            trunc_est_constants(tame, epsilon=0.05, delta=0.01, acceptance=0.5, dimension=5)
        )
    }


def trunc_est() -> Values:
    """Fit the same truncated sample exactly, by TruncEst, and as if it were not truncated."""
    rng = np.random.default_rng(0)
    normal, family = rng.standard_normal(5), Gaussian("full")
    cut = HalfSpace(normal / np.linalg.norm(normal))
    people = rng.standard_normal((40_000, 5))
    sample = people[cut(people)]
    off = {m: fit_truncated(sample, cut, family, m).mean for m in ("exact", "sgd")}
    tame = Curvature(0.25, 4.0, 5.0)
    found = trunc_est_constants(tame, epsilon=0.05, delta=0.01, acceptance=0.5, dimension=5)
    return {
        **{name: float(np.linalg.norm(mean)) for name, mean in off.items()},
        "vanilla": float(np.linalg.norm(sample.mean(axis=0))),
        "eta": found.log_eta / math.log(10.0),
    }


def majority() -> Values:
    """Take the majority rule of TruncEst at its worst, with theta* = 0 and epsilon = 1."""
    good, far = math.sqrt(3.0), 3.0 * math.sqrt(3.0)
    candidates = [good] * 6 + [far] * 4
    near = sum(abs(far - c) <= 2.0 * math.sqrt(3.0) + 1e-12 for c in candidates)
    return {"far": far, "near": near}


def quarter() -> Values:
    """Evaluate Theorem 3 for large delta."""
    small, fifth, large = (family_bound(0.05, d, 0.2, 0.2).labels for d in (0.01, 0.2, 0.3))
    return {"small": small, "fifth": fifth, "large": large}


def fair() -> Values:
    """Compare the EOD of a classifier trained with and without the fairness constraint."""
    people = read_people("adult")
    plain, constrained = (
        classify(people, decide(people, name)).difference("equalized_odds")
        for name in ("all_LR", "fair")
    )
    return {"plain": plain, "fair": constrained}


def scaling() -> Values:
    """Train on scaled and decide on unscaled features."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise MissingExtra("scikit-learn", extra="ml", purpose="classifiers") from None
    table = adult()
    names = [c for c in table.columns if c not in ("income", "part")]
    values = table.fetchnumpy()
    raw = np.column_stack([_numbers(values[name]) for name in names])
    outcome = (values["income"] == ">50K").astype(int)
    rows = np.random.default_rng(1).choice(len(outcome), 100, replace=False)
    centre, spread = raw[rows].mean(axis=0), raw[rows].std(axis=0)
    scaled = (raw - centre) / np.where(spread > 0.0, spread, 1.0)
    model = LogisticRegression(max_iter=1000).fit(scaled[rows], outcome[rows])
    alike, mixed = model.predict(scaled), model.predict(raw)
    return {
        "approved": float(alike.mean()),
        "accuracy": float((alike == outcome).mean()),
        "approved_raw": float(mixed.mean()),
        "accuracy_raw": float((mixed == outcome).mean()),
        "apart": float((alike != mixed).mean()),
    }


def _numbers(column: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return a column as numbers, words by their place in the alphabet."""
    if column.dtype.kind in "iuf":
        return column.astype(np.float64)
    return np.unique(column.astype(str), return_inverse=True)[1].astype(np.float64)


def delay() -> Values:
    """Stop at tau labels that have arrived, with outcomes that show at different times."""
    rng = np.random.default_rng(0)
    record: Values = {}
    for name, limit in (("short", 50), ("long", 500)):
        outcome = rng.random((400, 4000)) < 0.5
        wait = rng.exponential(np.where(outcome, 400.0, 20.0))
        arrival = np.argsort(np.arange(outcome.shape[1]) + wait, axis=1)[:, :limit]
        record[name] = float(np.take_along_axis(outcome, arrival, axis=1).mean())
        record[f"{name}_asked"] = float(outcome[:, :limit].mean())
    return record


CHECKS: Mapping[str, Callable[[], Values]] = {
    "threshold": threshold,
    "restart": restart,
    "dry": dry,
    "tau": tau,
    "twelve": twelve,
    "features": features,
    "booking": booking,
    "cheaper": cheaper,
    "flat": flat,
    "truth": truth,
    "separation": separation,
    "bias": bias,
    "taylor": taylor,
    "steps": steps,
    "trunc_est": trunc_est,
    "majority": majority,
    "quarter": quarter,
    "fair": fair,
    "scaling": scaling,
    "delay": delay,
}
"""Check by name."""
