"""The instances that audits are compared on: Adult, Law School, FICO and random worlds.

An instance is a world and a question. Which ones are in the bank follows from a rule, so that
nobody picks them by their results. Every source yields its worlds in a fixed shuffled order, each
with a metric (equalized odds in three of five, four others in turn) and the five tolerances
(gamma, epsilon) below, starting with another one every time. Per visit the first FAIR, the first
UNFAIR and the first gap-zone instance are taken whose C* at c=(0, 1), delta=0.05 is between 50 and
5,000 failures (less is over before an audit has learnt anything, more takes too long to repeat
hundreds of times), and the first of either verdict that past data decide for free, until the
source's share of each kind is full.

The worlds: a lender who approves FICO scores above a cut-off, for pairs of groups and for all four;
logistic regressions with several cut-offs on Adult (by sex; by sex and race) and, if the table is
there, on Law School (by race, where the gap is large; by sex, where there is hardly any; by both);
random worlds whose first group has s in [0.1, 0.95], precision p1/(p1+p0) in [0.5, 0.95] and r in
[0.02, precision], all uniform, and whose other groups are moved from it by normal steps of log
odds, the size of which is uniform in [0.05, 0.4]; groups with r above their precision are drawn
anew.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations, count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from paper.tables import law_school
from tools.adult_cells import FEATURES

import equipoise as eq
from equipoise.bounds import LowerBound
from equipoise.free_check import check
from equipoise.question import Verdict
from equipoise.worlds import CellWorld, TableWorld

DELTA = 0.05
FEWEST, MOST = 50.0, 5000.0
TOLERANCES = ((0.05, 0.05), (0.1, 0.05), (0.05, 0.1), (0.1, 0.1), (0.0, 0.1))
METRICS = (
    "equalized_odds",
    "equal_opportunity",
    "equalized_odds",
    "accuracy_parity",
    "equalized_odds",
    "predictive_equality",
    "equalized_odds",
    "equalized_odds",
    "false_omission_parity",
    "equalized_odds",
)
FICO_CUTS = (5, 10, 20, 30, 40, 50, 60, 70)
ADULT_CUTS = (0.2, 0.35, 0.5, 0.65, 0.8)
LAW_CUTS = (0.8, 0.85, 0.9, 0.95)
FRESH_SEEDS = 1_000_000  # where seeds of random worlds of the fresh bank begin
FREE_FAIR, FREE_UNFAIR, GAP = "free FAIR", "free UNFAIR", "gap"
BESIDE = Path(__file__).parents[3] / "shared" / "data" / "law_school" / "law_school_clean.csv"
LAW_SCHOOL = Path(os.environ.get("EQUIPOISE_LAW_SCHOOL", BESIDE))

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Visits = Iterator[tuple[str, CellWorld, str]]


@dataclass(frozen=True)
class Instance:
    """A world and a question, what is true, and C* at c=(0, 1).

    ``kind`` is FAIR, UNFAIR, gap (both are right), free FAIR or free UNFAIR (past data decide).
    """

    name: str
    source: str
    world: CellWorld
    question: eq.Question
    kind: str
    bound: LowerBound

    @property
    def groups(self) -> int:
        return len(self.world.groups)

    @property
    def difference(self) -> float:
        return self.world.gap(self.question.metric, self.question.compare)

    @property
    def is_free(self) -> bool:
        return self.kind in (FREE_FAIR, FREE_UNFAIR)


@cache
def bank() -> tuple[Instance, ...]:
    """Return all instances, those of Law School only if its table is there."""
    fair, unfair = Verdict.FAIR, Verdict.UNFAIR
    by_sex, by_both = _adult()
    parts = [
        _take("FICO", _visits(_fico_pairs()), {fair: 6, unfair: 6, GAP: 2, FREE_FAIR: 1}),
        _take("FICO", _visits(_fico_all()), {fair: 2, unfair: 3, FREE_UNFAIR: 1}),
        _take("Adult", _visits(by_sex), {fair: 2, unfair: 2, FREE_UNFAIR: 1}),
        _take("Adult", _visits(by_both), {fair: 1, unfair: 1}),
        _take("random", _random(2), {fair: 5, unfair: 5, GAP: 1, FREE_UNFAIR: 1}),
        _take("random", _random(4), {fair: 4, unfair: 4, GAP: 1}),
        _take("random", _random(8), {fair: 2, unfair: 2}),
    ]
    if LAW_SCHOOL.is_file():
        by_race, by_sex, by_both = _law_school()
        parts.append(_take("Law School", _visits(by_race), {unfair: 2}))
        parts.append(_take("Law School", _visits(by_sex), {fair: 2}))
        parts.append(_take("Law School", _visits(by_both), {unfair: 1}))
    return tuple(instance for part in parts for instance in part)


@cache
def fresh_bank() -> tuple[Instance, ...]:
    """Return random instances by the same rule that nothing was chosen or fitted on."""
    fair, unfair = Verdict.FAIR, Verdict.UNFAIR
    return tuple(
        _take("random", _random(2, FRESH_SEEDS), {fair: 4, unfair: 4})
        + _take("random", _random(4, FRESH_SEEDS), {fair: 2, unfair: 2})
    )


def sources(groups: int) -> dict[str, Visits]:
    """Return worlds of two or of four groups by where they come from, each with a metric."""
    by_sex, by_both = _adult()
    return {
        "FICO": _visits(_fico_pairs() if groups == 2 else _fico_all()),
        "Adult": _visits(by_sex if groups == 2 else by_both),
        "random": _random(groups),
    }


def _take(source: str, visits: Visits, quota: Mapping[str, int]) -> list[Instance]:
    """Take instances by the rule above until every kind is full or the worlds end."""
    taken: dict[tuple[str, eq.Question], Instance] = {}
    left = Counter(quota)
    for at, (name, world, metric) in enumerate(visits):
        kinds = set()
        for turn in range(len(TOLERANCES)):
            gamma, epsilon = TOLERANCES[(at + turn) % len(TOLERANCES)]
            question = eq.Question(metric, gamma, epsilon, DELTA)
            if not any(left[kind] for kind in _kinds(world, question)):
                continue
            instance = _instance(source, name, world, question)
            kind = instance.kind
            fits = instance.is_free or FEWEST <= instance.bound <= MOST
            if fits and left[kind] and kind not in kinds and (name, question) not in taken:
                taken[name, question] = instance
                left[kind] -= 1
                kinds.add(kind)
        if not left.total():
            break
    return list(taken.values())


def _kinds(world: CellWorld, question: eq.Question) -> list[str]:
    """Return what an instance can be, short of computing C*."""
    right = sorted(question.truth(world.gap(question.metric, question.compare)))
    return [GAP if len(right) > 1 else right[0], *(f"free {verdict}" for verdict in right)]


def _instance(source: str, name: str, world: CellWorld, question: eq.Question) -> Instance:
    bound = eq.lower_bound(world, question, eq.Costs())
    if bound == 0.0:
        kind = f"free {check(world.past(), question).verdict}"
    else:
        kind = GAP if bound.reference else str(bound.verdict)
    return Instance(name, source, world, question, kind, bound)


def _visits(worlds: Mapping[str, CellWorld]) -> Visits:
    """Go through the worlds in a shuffled order, again and again, each time with another metric."""
    names = np.random.default_rng(0).permutation(sorted(worlds)).tolist()
    for turn in range(len(METRICS)):
        for at, name in enumerate(names):
            yield name, worlds[name], METRICS[(at + turn) % len(METRICS)]


def _random(groups: int, first_seed: int = 0) -> Visits:
    for seed in count(first_seed):
        rng = np.random.default_rng([groups, seed])
        yield f"random {groups}-{seed}", _random_world(groups, rng), METRICS[seed % len(METRICS)]


def _random_world(groups: int, rng: np.random.Generator) -> CellWorld:
    s, precision = rng.uniform(0.1, 0.95), rng.uniform(0.5, 0.95)
    made = [(s, precision, rng.uniform(0.02, precision))]
    centre, size = np.array(made[0]), rng.uniform(0.05, 0.4)
    while len(made) < groups:
        moved = np.log(centre / (1.0 - centre)) + size * rng.normal(size=3)
        s, precision, r = (1.0 / (1.0 + np.exp(-moved))).tolist()
        if r <= precision:
            made.append((s, precision, r))
    return CellWorld.from_shares(
        {
            "ABCDEFGH"[i]: ((1.0 - s) * precision, (1.0 - s) * (1.0 - precision), s, r)
            for i, (s, precision, r) in enumerate(made)
        }
    )


def _fico_pairs() -> dict[str, CellWorld]:
    return {
        f"FICO {cut}, {' and '.join(pair)}": eq.data.fico_lender(cut, pair).world
        for cut in FICO_CUTS
        for pair in combinations(("White", "Black", "Hispanic", "Asian"), 2)
    }


def _fico_all() -> dict[str, CellWorld]:
    return {f"FICO {cut}": eq.data.fico_lender(cut).world for cut in FICO_CUTS}


def _adult() -> tuple[dict[str, CellWorld], ...]:
    """Return Adult by sex, and by sex and race (white or not)."""
    rows = eq.data.adult()
    people = rows.project("sex, race, income, part").fetchnumpy()
    good, training = people["income"] == ">50K", people["part"] == "train"
    score = _scores(eq.data.encode(rows, FEATURES), good, training)
    race = np.where(people["race"] == "White", "White", "other")
    return (
        _classified("Adult", {"sex": people["sex"]}, good, score, ADULT_CUTS),
        _classified("Adult", {"sex": people["sex"], "race": race}, good, score, ADULT_CUTS),
    )


def _law_school() -> tuple[dict[str, CellWorld], ...]:
    """Return Law School by race, by sex, and by both."""
    rows = law_school(LAW_SCHOOL)
    people = rows.project("race, male, pass_bar").fetchnumpy()
    columns = [column for column in rows.columns if column not in ("race", "male", "pass_bar")]
    good = people["pass_bar"] == 1
    score = _scores(eq.data.encode(rows, columns), good, np.ones(len(good), dtype=bool))
    sex = np.where(people["male"] == 1, "man", "woman")
    return (
        _classified("Law School", {"race": people["race"]}, good, score, LAW_CUTS),
        _classified("Law School", {"sex": sex}, good, score, LAW_CUTS),
        _classified("Law School", {"race": people["race"], "sex": sex}, good, score, LAW_CUTS),
    )


def _scores(features: Array, good: Flags, training: Flags) -> Array:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=1000).fit(features[training], good[training])
    return np.asarray(model.predict_proba(features)[:, 1])


def _classified(
    name: str, groups: Mapping[str, object], good: Flags, score: Array, cuts: Iterable[float]
) -> dict[str, CellWorld]:
    """Return the worlds of a decision-maker who approves scores of at least a cut-off."""
    return {
        f"{name} {cut:g}, by {' and '.join(groups)}": TableWorld.from_frame(
            {**groups, "good": good.astype(np.int8), "approved": (score >= cut).astype(np.int8)},
            group=tuple(groups),
            outcome="good",
            decision="approved",
        ).as_cells
        for cut in cuts
    }
