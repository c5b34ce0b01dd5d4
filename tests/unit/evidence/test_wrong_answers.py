"""Null cells of comparisons other than all pairs: they cover both wrong answers, bets are legal."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.audits.design import AuditDesign
from equipoise.comparison import Compare
from equipoise.evidence import NullCells, WrongAnswers
from equipoise.evidence.wrong_answers import fair_covers, unfair_covers
from equipoise.question import Question
from equipoise.rates import RATES
from equipoise.worlds import CellWorld
from tests.profiles import quick
from tests.unit.test_comparison import KINDS, gap_of, random_world, rates_at

Array = NDArray[np.float64]

POINTS = 60_000


def setting(
    kind: str, metric: str, seed: int, size: int | None = None
) -> tuple[CellWorld, Question, tuple[str, ...], WrongAnswers]:
    compare, groups = KINDS[kind]
    world = random_world(groups, np.random.default_rng(seed), 0.25)
    gamma = 0.4 if compare.by == "ratio" else 0.2  # few points are FAIR by two ratios
    question = Question(metric, gamma, 0.1, compare=compare)
    past = world.past(size, seed)
    design = AuditDesign(past, question)
    vars(design)["weighs_past_rows"] = False  # bands, as with many groups
    wrong = design.wrong_answers()
    assert isinstance(wrong, WrongAnswers)
    return world, question, design.groups, wrong


def cells_with(cover: NullCells, points: Array) -> NDArray[np.bool_]:
    """Which cells hold which points, shape (points, cells)."""
    inside = (cover.low <= points[:, None] + 1e-12) & (points[:, None] <= cover.high + 1e-12)
    return np.asarray(inside.all(axis=-1))


def largest_mean(cover: NullCells, points: Array, inside: NDArray[np.bool_]) -> float:
    """The largest mean factor of a label at a point over the bets of its cells."""
    worst = 0.0
    for point, own in zip(points, inside, strict=True):
        for (zero, one), group in zip(cover.log_factor, cover.groups, strict=True):
            lam = point[np.broadcast_to(group, zero.shape)[own]]
            mean = lam * np.exp(one[own]) + (1.0 - lam) * np.exp(zero[own])
            worst = max(worst, float(mean.max(initial=0.0)))
    return worst


@pytest.mark.parametrize("metric", ["equal_opportunity", "equalized_odds"])
@pytest.mark.parametrize("size", [None, 20_000])
@pytest.mark.parametrize("kind", KINDS)
def test_cells_cover_both_wrong_answers_and_no_bet_gains_in_its_own(
    kind: str, size: int | None, metric: str
) -> None:
    compare, groups = KINDS[kind]
    tried = {"fair": 0, "unfair": 0}
    for seed in range(quick(1, full=5)):
        world, question, order, wrong = setting(kind, metric, seed, size)
        rng = np.random.default_rng(seed)
        by_name = rng.uniform(0, 1, (POINTS, 1)) + rng.normal(0, 0.2, (POINTS, len(groups)))
        by_name = np.clip(by_name, 0, 1)
        gaps = np.max([gap_of(compare, groups, r) for r in rates_at(world, metric, by_name)], 0)
        points = by_name[:, [groups.index(group) for group in order]]
        for name, held, covers in (
            ("fair", gaps <= question.gamma, fair_covers(wrong)),
            ("unfair", gaps >= question.threshold, unfair_covers(wrong)),
        ):
            wanted = points[held][:40]
            tried[name] += len(wanted)
            for cover in covers if len(wanted) else ():
                inside = cells_with(cover, wanted)
                assert inside.any(axis=1).all()
                assert largest_mean(cover, wanted, inside) <= 1.0 + 1e-9
                assert np.exp(cover.log_stake).sum(axis=1) == pytest.approx(1.0)
    assert min(tried.values()) >= 10


def test_a_set_is_no_larger_than_the_question_asks() -> None:
    # Below the reference: groups far above it, and far from each other, are FAIR.
    world = CellWorld.from_shares(
        {"A": (0.3, 0.2, 0.5, 0.45), "B": (0.4, 0.1, 0.5, 0.2), "C": (0.45, 0.05, 0.5, 0.1)}
    )
    held = {}
    for name, compare in {
        "all": Compare(),
        "below": Compare(against="A", direction="below"),
        "above": Compare(against="A", direction="above"),
    }.items():
        question = Question("equal_opportunity", 0.05, 0.05, compare=compare)
        design = AuditDesign(world.past(), question)
        wrong, point = (
            design.wrong_answers(),
            np.array([[world.r[group] for group in design.groups]]),
        )
        (unfair,) = unfair_covers(wrong)
        held[name] = bool(cells_with(unfair, point).any())
        assert all(cells_with(cover, point).any() for cover in fair_covers(wrong)) != held[name]
    assert held == {"all": True, "below": False, "above": True}
    assert RATES["true_positive_rate"].trend < 0


def test_a_reference_and_one_other_are_compared_as_a_pair() -> None:
    world = random_world(("A", "B"), np.random.default_rng(1), 0.5)
    covers = []
    for compare in (Compare(), Compare(against="B")):
        question = Question("equalized_odds", compare=compare)
        wrong = AuditDesign(world.past(), question).wrong_answers()
        covers.append((*unfair_covers(wrong), *fair_covers(wrong)))
    for one, other in zip(*covers, strict=True):
        assert np.array_equal(one.low, other.low)
        assert np.array_equal(one.log_factor, other.log_factor)


@pytest.mark.parametrize("compare", ["difference", "ratio"])
@pytest.mark.parametrize("metric", ["equal_opportunity", "predictive_equality", "equalized_odds"])
def test_a_group_without_denied_people_is_compared_up_to_the_boundary(
    metric: str, compare: str
) -> None:
    """Its rates are constant; a cell that the other group's boundary cuts must stay."""
    rng, tried = np.random.default_rng(7), 0
    for _ in range(quick(3, full=6)):
        known, other = rng.dirichlet([1, 1]), rng.dirichlet([3, 3, 2])
        world = CellWorld.from_shares({"A": (*known, 0.0, 0.0), "B": (*other, 0.5)})
        question = Question(metric, 0.3, 0.1, compare=compare)
        design = AuditDesign(world.past(), question)
        points = [
            [r[group] for group in design.groups]
            for x in np.linspace(0.0005, 0.9995, quick(300, full=1000)).tolist()
            if CellWorld(world.cells, r := {"A": 0.0, "B": x}).gap(metric, compare) <= 0.3
        ]
        tried += len(points)
        for cover in fair_covers(design.wrong_answers()) if points else ():
            assert cells_with(cover, np.array(points)).any(axis=1).all()
    assert tried > 100
