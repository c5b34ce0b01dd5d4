"""Black box (section 6 and its appendix): Baseline against RS-Audit on Adult and Law School."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from equipoise.bounds import baseline_expectation, rs_expectation
from equipoise.free_check import check
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld
from paper.classifiers import CLASSIFIERS, classify, decide, read_people
from paper.dataset_tables import Column, CompleteRows, compare_rows, describe_columns
from paper.kept_work import Part, Result
from paper.label_phases import run_phases
from paper.settings import Settings

__all__ = [
    "NAME",
    "QUESTION",
    "SEEDS",
    "TAUS",
    "TOLERANT",
    "Adaptive",
    "Means",
    "Ratio",
    "Run",
    "Truth",
    "parts",
    "run_classifier",
]

NAME = "blackbox"
QUICK = ("all_LR", "random", "sense_attr")
TAUS = (5, 10, 50, 100, 200, 500, 1000)
SEEDS = (1092, 42, 13, 729, 333)
COSTS = Costs(feature=0.0, label=1.0)
QUESTION = Question(gamma=0.0, epsilon=0.05, delta=0.05)
TOLERANT = Question(gamma=0.05, epsilon=0.05, delta=0.05)


@dataclass(frozen=True)
class Audited(Result):
    """Something found of a classifier on a table."""

    dataset: str
    classifier: str


@dataclass(frozen=True)
class Run(Audited):
    """One run with one of the paper's five seeds."""

    audit: str
    tau: int
    seed: int
    labels: int
    cost: int
    estimate: float


@dataclass(frozen=True)
class Means(Audited):
    """Means and standard deviations over many runs, and the exact expectation of the cost."""

    audit: str
    tau: int
    repeats: int
    labels: float
    cost: float
    cost_sd: float
    cost_expected: float
    estimate: float
    estimate_sd: float


@dataclass(frozen=True)
class Ratio(Audited):
    """The cost of RS-Audit over that of the Baseline, with its standard error."""

    tau: int
    ratio: float
    ratio_se: float


@dataclass(frozen=True)
class Adaptive(Audited):
    """Runs of the adaptive audit."""

    gamma: float
    repeats: int
    verdict: str
    wrong: int
    labels: float
    cost: float
    cost_sd: float


@dataclass(frozen=True)
class Truth(Audited):
    """The population, and exact costs at tau = 1000, also where labels are reused."""

    rows: int
    approved: float
    accuracy: float
    eod: float
    free: str
    rs: float
    baseline: float
    rs_reuse: float
    baseline_reuse: float


KINDS = (Run, Means, Ratio, Adaptive, Truth)


def parts(settings: Settings) -> list[Part]:
    """Return one part per table and classifier."""
    datasets = ["adult"] + (["law"] if settings.law_school is not None else [])
    classifiers = QUICK if settings.quick else CLASSIFIERS
    made = []
    for dataset in datasets:
        path = settings.law_school if dataset == "law" else None
        for classifier in classifiers:
            arguments = {
                "dataset": dataset,
                "classifier": classifier,
                "repeats": 200 if settings.quick else 4000,
                "adaptive": 2 if settings.quick else 20,
                "seed": settings.seed,
                "law_path": None if path is None else str(path),
                "law_digest": None if path is None else _digest(path),
            }
            made.append(Part(f"{NAME}/{dataset}/{classifier}", run_classifier, arguments, KINDS))
        names = ("dataset", "law_path", "law_digest")
        described = {name: arguments[name] for name in names}
        made.append(Part(f"{NAME}/{dataset}/columns", describe_columns, described, (Column,)))
    chosen = {"classifiers": classifiers}
    return [*made, Part(f"{NAME}/complete", compare_rows, chosen, (CompleteRows,))]


def run_classifier(
    dataset: str,
    classifier: str,
    repeats: int,
    adaptive: int,
    seed: int,
    law_path: str | None,
    law_digest: str | None,
) -> list[Audited]:
    """Audit one classifier at every tau; ``law_digest`` only says which file was read."""
    people = read_people(dataset, law_path)
    decision = decide(people, classifier)
    world, name = classify(people, decision).as_cells, (dataset, classifier)
    exact = (
        price(world, QUESTION, COSTS, tau=1000, reuse_labels=reuse).cost
        for reuse in (False, True)
        for price in (rs_expectation, baseline_expectation)
    )
    truth = Truth(
        *name,
        len(people),
        float(decision.mean()),
        float((decision == people.outcome).mean()),
        world.difference("equalized_odds"),
        str(check(world.past(), QUESTION).verdict),
        *exact,
    )
    questions = (QUESTION, TOLERANT)
    ours = [_adaptive(name, world, question, adaptive, seed) for question in questions]
    return [*_runs(name, world), *_many(name, world, repeats, seed), *ours, truth]


def _runs(name: tuple[str, str], world: CellWorld) -> list[Run]:
    """Return the paper's five seeds."""
    made = []
    for seed in SEEDS:
        for audit in ("baseline", "rs"):
            rng = np.random.default_rng(seed)
            for tau in TAUS:
                run = run_phases(audit, world, tau, repeats=1, rng=rng)
                labels, cost, guess = run.labels[0], run.failures[0], run.estimate[0]
                made.append(Run(*name, audit, tau, seed, int(labels), int(cost), float(guess)))
    return made


def _many(name: tuple[str, str], world: CellWorld, repeats: int, seed: int) -> list[Audited]:
    """Return means and spreads over many runs, and the cost ratio at every tau."""
    rng = np.random.default_rng(seed)
    made: list[Audited] = []
    for tau in TAUS:
        means = {}
        for audit, price in (("baseline", baseline_expectation), ("rs", rs_expectation)):
            run = run_phases(audit, world, tau, repeats=repeats, rng=rng)
            means[audit] = Means(
                *name,
                audit,
                tau,
                repeats,
                labels=float(run.labels.mean()),
                cost=float(run.failures.mean()),
                cost_sd=float(run.failures.std(ddof=1)),
                cost_expected=price(world, QUESTION, COSTS, tau=tau).cost,
                estimate=float(run.estimate.mean()),
                estimate_sd=float(run.estimate.std(ddof=1)),
            )
        ratio = means["rs"].cost / means["baseline"].cost
        error = math.hypot(*(m.cost_sd / m.cost for m in means.values())) / repeats**0.5
        made += [*means.values(), Ratio(*name, tau, ratio, ratio * error)]
    return made


def _adaptive(
    name: tuple[str, str], world: CellWorld, question: Question, repeats: int, seed: int
) -> Adaptive:
    sim = simulate("adaptive", world, question, COSTS, repeats=repeats, seed=seed)
    return Adaptive(
        *name,
        question.gamma,
        repeats,
        verdict=max(set(sim.verdict.tolist()), key=sim.verdict.tolist().count),
        wrong=int(sim.wrong.sum()),
        labels=float(sim.labels.mean()),
        cost=float(sim.cost.mean()),
        cost_sd=float(sim.cost.std(ddof=1)),
    )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
