"""Worlds whose people have scores and prices, and audits of them with help and without."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray
from paper import tables as paper_tables
from rich.table import Table
from scipy.stats import norm
from tests.support.bank import LAW_SCHOOL, TOLERANCES
from tests.support.tables import table
from tools.adult_cells import FEATURES

import equipoise as eq
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.scores import Assist
from equipoise.simulation.drive import DeniedPeople, run_block_by_block
from equipoise.worlds import TableWorld
from study._pages import write_section
from study._resumed import Run, collect, made_by, mean

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

NEVER = 1e-9  # a gate that nothing passes: the uniform audit, which pays the same prices
HELP = Assist()
FEW = 20  # runs, for a standard error to be divided by
HEADER = (
    *("case", "runs", "uniform", "assisted", "ratio", "±", "labels", "people looked at per label"),
    *("wrong, uniform", "wrong, assisted", "inconclusive", "bias, in standard errors"),
)


@dataclass(frozen=True)
class Case:
    """A world and a question; ``noise_after`` labels the score is noise; ``past`` people if few."""

    world: TableWorld
    question: eq.Question
    assist: Assist = HELP
    noise_after: int | None = None
    past: int | None = None

    @cached_property
    def without_score(self) -> int:
        """The same for all cases that differ in the score alone: one uniform audit serves all."""
        world = self.world
        prices = b"" if world.price is None else world.price.tobytes()
        columns = (world.group, world.decision, world.outcome)
        return hash((self.question, self.past, prices, *(c.tobytes() for c in columns)))


def pairs(
    options: argparse.Namespace,
    cases: Mapping[str, Callable[[], Case]],
    title: str,
    words: str,
) -> Table:
    """Audit every case with help and without; return the costs as a table, and write its page."""
    made: dict[str, Case] = {}
    uniform: dict[tuple[int, int], Run] = {}

    def one(point: str, seed: int) -> Run:
        case = made.setdefault(point, cases[point]())
        if (case.without_score, seed) not in uniform:
            uniform[case.without_score, seed] = audit_once(case, seed, helped=False)
        pair = {
            "helped": audit_once(case, seed, helped=True),
            "uniform": uniform[case.without_score, seed],
        }
        return {f"{name} {key}": value for name, run in pair.items() for key, value in run.items()}

    runs = collect(options, list(cases), one)
    out = table("", *HEADER)
    for point in cases:
        out.add_row(*_cells(point, runs[point]))
    write_section(options.output, options.name, title, f"{made_by(options, runs)} {words}", [out])
    return out


def _cells(point: str, runs: Sequence[Run]) -> list[str]:
    """Return a row: costs, their ratio, and the price in calendar time."""
    helped, uniform = (np.array([r[f"{n} cost"] for r in runs]) for n in ("helped", "uniform"))
    ratio = helped.mean() / uniform.mean()
    apart = (helped - ratio * uniform).std(ddof=1) if len(runs) > 1 else np.inf
    return [
        point,
        f"{len(runs)}",
        f"{uniform.mean():,.0f}",
        f"{helped.mean():,.0f}",
        f"{ratio:.2f}",
        f"{apart / uniform.mean() / np.sqrt(len(runs)):.2f}",
        f"{mean(runs, 'helped labels'):,.0f}",
        f"{mean(runs, 'helped looks') / mean(runs, 'helped labels'):.1f}",
        *(f"{mean(runs, f'{name} wrong') * len(runs):.0f}" for name in ("uniform", "helped")),
        f"{mean(runs, 'helped inconclusive') * len(runs):.0f}",
        _errors_off(np.array([run["helped bias"] for run in runs])),
    ]


def _errors_off(sums: Array) -> str:
    """Return a mean in its standard errors; of a few runs that would say nothing."""
    if len(sums) < FEW:
        return "–"
    return f"{sums.mean() / sums.std(ddof=1) * np.sqrt(len(sums)):+.1f}"


def audit_once(case: Case, seed: int, *, helped: bool) -> Run:
    """Run one audit; return its cost, labels, people looked at, and whether it was wrong.

    ``bias`` sums Z - r over all observations, by what they are worth. It is a martingale, so its
    mean is 0 at whatever label the audit stops, if Z is unbiased.

    With help and without it begins with the same people, so that help that is never used costs
    exactly nothing.
    """
    rng = np.random.default_rng(seed)
    assist = case.assist if helped else replace(case.assist, gate=NEVER)
    past = case.world.past(case.past, rng)
    audit = AdaptiveAudit(past, case.question, eq.Costs(), assist=assist)
    denied, turns = DeniedPeople.of_world(audit, case.world), case.noise_after if helped else None
    for _ in run_block_by_block(audit, denied, rng):
        if turns is not None and audit.labels >= turns:  # scores are noise now, unannounced
            turns = None
            denied.scored_people = [
                np.stack([y, rng.permutation(s), c]) for y, s, c in denied.scored_people
            ]
    finding = audit.conclude()
    right = case.question.truth(case.world.gap(case.question.metric))
    inconclusive = finding.verdict is eq.Verdict.INCONCLUSIVE
    assert audit.evidence is not None
    log = audit.evidence.log
    r = np.array([case.world.r[group] for group in audit.groups])
    return {
        "cost": audit.cost,
        "labels": audit.labels,
        "looks": audit.labels + audit.features,
        "wrong": float(not inconclusive and finding.verdict not in right),
        "inconclusive": float(inconclusive),
        "bias": float((log.labels[:, 1] - r * log.n_told).sum()),
    }


def asking(
    world: TableWorld, metric: str = "equal_opportunity", most: float = 1_000.0
) -> eq.Question:
    """Return the question of the bank's tolerances whose C* is largest, up to a limit.

    Only one answer must be right: with two, costs vary so much that ratios say little.
    """
    questions = [eq.Question(metric, gamma=g, epsilon=e) for g, e in TOLERANCES]
    bounds = [eq.lower_bound(world, question, eq.Costs()) for question in questions]
    fit = [float(b) if b <= most and not b.reference else 0.0 for b in bounds]
    return questions[int(np.argmax(fit))]


@cache
def adult(model: str = "logistic regression", group: str = "sex") -> TableWorld:
    """Return Adult decided by a classifier, whose own score is at hand."""
    rows = eq.data.adult()
    people = rows.project("sex, race, income, part").fetchnumpy()
    good = people["income"] == ">50K"
    features, training = eq.data.encode(rows, FEATURES), people["part"] == "train"
    score = _predicted(model, features, good, training)
    race = np.where(people["race"] == "White", "White", "other")
    names = people["sex"] if group == "sex" else np.char.add(people["sex"].astype(str), race)
    return _scored(names, good, score, 0.5)


@cache
def law_school(cut: float) -> TableWorld:
    """Return Law School by sex, decided by a logistic regression whose own score is at hand."""
    rows = paper_tables.law_school(LAW_SCHOOL)
    people = rows.project("male, pass_bar").fetchnumpy()
    columns = [c for c in rows.columns if c not in ("race", "male", "pass_bar")]
    good, features = people["pass_bar"] == 1, eq.data.encode(rows, columns)
    score = _predicted("logistic regression", features, good, np.ones_like(good))
    return _scored(np.where(people["male"] == 1, "man", "woman"), good, score, cut)


def _predicted(model: str, features: Array, good: Flags, training: Flags) -> Array:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    makers = {
        "logistic regression": LogisticRegression(max_iter=1000),
        "boosted trees": HistGradientBoostingClassifier(max_iter=50, random_state=0),
        "one tree": DecisionTreeClassifier(max_depth=6, random_state=0),
    }
    fitted = makers[model].fit(features[training], good[training])
    return np.clip(fitted.predict_proba(features)[:, 1], 0.001, 0.999)


def _scored(names: NDArray[np.generic], good: Flags, score: Array, cut: float) -> TableWorld:
    frame = {
        "group": names,
        "good": good.astype(np.int8),
        "approved": (score > cut).astype(np.int8),
        "score": np.log(score / (1.0 - score)),
    }
    return TableWorld.from_frame(
        frame, group="group", outcome="good", decision="approved", score="score"
    )


@cache
def synthetic(auc: float, groups: int = 2, *, prices: str = "") -> TableWorld:
    """Return groups whose scores tell outcomes apart with an area under the curve.

    ``prices``: "spread" over a factor of 20; "telling" also higher for outcome 0.
    """
    rng, rows = np.random.default_rng(1), 120_000
    group = rng.integers(groups, size=rows)
    r = np.linspace(0.15, 0.3, groups)[group]
    decision = (rng.random(rows) < 0.3).astype(np.int8)
    outcome = (rng.random(rows) < np.where(decision == 1, 0.75, r)).astype(np.int8)
    score = rng.normal(size=rows) + np.sqrt(2.0) * norm.ppf(auc) * outcome
    price = None
    if prices:
        tilt = 0.5 * (1 - outcome) * (prices == "telling")
        price = 20.0 ** np.clip(rng.beta(1.0 + 2.0 * tilt, 1.5), 0.0, 1.0)
    names = tuple("ABCD"[:groups])
    return TableWorld(names, group.astype(np.intp), decision, outcome, None, score, price)
