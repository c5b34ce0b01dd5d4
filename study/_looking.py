"""Worlds whose people have scores and prices, and one audit of them with help or without."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

import equipoise as eq
from equipoise.assist import Assist
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.data.classifier_worlds import FEATURES
from equipoise.simulation.loop import InBlocks, let_come
from equipoise.worlds import TableWorld
from study._resumed import Run
from study.bank import LAW_SCHOOL, TOLERANCES, _scores

Array = NDArray[np.float64]

MOST = 3_000.0  # C* of the instances
NEVER = 1e-9  # a gate that nothing passes: the uniform audit, which pays the same prices


HELP = Assist()


@dataclass(frozen=True)
class Case:
    """A world and a question; ``noise_after`` labels the score is noise; ``past`` people if few."""

    world: TableWorld
    question: eq.Question
    assist: Assist = HELP
    noise_after: int | None = None
    past: int | None = None


def audit_once(case: Case, seed: int, *, helped: bool) -> Run:
    """Run one audit; return its cost, labels, people looked at, and whether it was wrong.

    With help and without it begins with the same people, so that help that is never used costs
    exactly nothing.
    """
    rng = np.random.default_rng(seed)
    assist = case.assist if helped else replace(case.assist, gate=NEVER)
    past = case.world.past(case.past, rng)
    audit = AdaptiveAudit(past, case.question, eq.Costs(), assist=assist)
    crowd = Turning.of(audit, case.world, rng)
    crowd.noise_after = case.noise_after
    let_come(crowd)
    finding = audit.conclude()
    right = case.question.truth(case.world.difference(case.question.metric))
    inconclusive = finding.verdict is eq.Verdict.INCONCLUSIVE
    return {
        "cost": audit.cost,
        "labels": audit.labels,
        "looks": audit.labels + audit.features,
        "wrong": float(not inconclusive and finding.verdict not in right),
        "inconclusive": float(inconclusive),
    }


class Turning(InBlocks):
    """People whose scores turn into noise, unannounced, after so many labels."""

    noise_after: int | None = None

    def come(self, most: int | None) -> int:
        if self.noise_after is not None and self._audit.labels >= self.noise_after:
            self.noise_after = None
            self._looks = [
                replace(looks, score=self._rng.permutation(looks.score)) for looks in self._looks
            ]
        return super().come(most)


def asking(world: TableWorld) -> eq.Question:
    """Return the question of the bank's tolerances whose C* is largest, up to a limit."""
    questions = [eq.Question("equal_opportunity", gamma=g, epsilon=e) for g, e in TOLERANCES]
    bounds = [float(eq.lower_bound(world, question, eq.Costs())) for question in questions]
    return questions[int(np.argmax([bound * (bound <= MOST) for bound in bounds]))]


@cache
def adult(cut: float, group: str = "sex") -> TableWorld:
    """Return Adult decided by a logistic regression, whose own score is at hand."""
    rows = eq.data.adult()
    people = rows.project("sex, race, income, part").fetchnumpy()
    good = people["income"] == ">50K"
    score = _scores(eq.data.encode(rows, FEATURES), good, people["part"] == "train")
    race = np.where(people["race"] == "White", "White", "other")
    names = people["sex"] if group == "sex" else np.char.add(people["sex"].astype(str), race)
    return _scored(names, good, score, cut)


@cache
def law_school(cut: float) -> TableWorld:
    """Return Law School by sex, decided by a logistic regression whose own score is at hand."""
    rows = eq.data.law_school(LAW_SCHOOL)
    people = rows.project("male, pass_bar").fetchnumpy()
    columns = [c for c in rows.columns if c not in ("race", "male", "pass_bar")]
    good = people["pass_bar"] == 1
    score = _scores(eq.data.encode(rows, columns), good, np.ones(len(good), dtype=bool))
    return _scored(np.where(people["male"] == 1, "man", "woman"), good, score, cut)


def _scored(names: NDArray[np.generic], good: NDArray[np.bool_], score: Array, cut: float):  # type: ignore[no-untyped-def]
    frame = {"group": names, "good": good.astype(np.int8), "score": np.log(score / (1.0 - score))}
    return TableWorld.from_frame(
        frame,
        group="group",
        outcome="good",
        decision=lambda _: (score > cut).astype(np.int8),
        score="score",
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
