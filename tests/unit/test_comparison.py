"""Who is compared with whom: gap, free check and C* against their definitions, on random cells."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray

import equipoise as eq
from equipoise.cells import Cells, GroupCells
from equipoise.comparison import Compare, GapScale
from equipoise.errors import InvalidInput, UnknownName
from equipoise.free_check import Check, bands_from_past, check, gap_bounds
from equipoise.metrics import METRICS
from equipoise.question import Costs, Question, Verdict
from equipoise.worlds import CellWorld
from tests.profiles import quick
from tests.unit.bounds.brute_force import kl, rate_at

Array = NDArray[np.float64]

STRATA = ("x | A", "x | B", "y | A", "y | B")
KINDS = {
    "all pairs": (Compare(), ("A", "B", "C")),
    "against": (Compare(against="B"), ("A", "B", "C")),
    "below": (Compare(against="B", direction="below"), ("A", "B", "C")),
    "above": (Compare(against="B", direction="above"), ("A", "B", "C")),
    "within": (Compare(within=True), STRATA),
    "within, below": (Compare(against="A", direction="below", within=True), STRATA),
    "left out": (Compare(leave_out=("C",)), ("A", "B", "C")),
}
KINDS |= {
    f"{name}, ratio": (
        replace(compare, by="ratio"),
        groups,
    )
    for name, (compare, groups) in KINDS.items()
}


def triples(compare: Compare, groups: tuple[str, ...]) -> list[tuple[int, int]]:
    """The (higher, lower) pairs, from the words of the question."""
    pairs = []
    for high, low in permutations(range(len(groups)), 2):
        (high_stratum, high_group), (low_stratum, low_group) = (
            groups[position].split(" | ") if compare.within else ("", groups[position])
            for position in (high, low)
        )
        counts = high_stratum == low_stratum and not {high_group, low_group} & {*compare.leave_out}
        if compare.against is not None:
            counts &= compare.against in (high_group, low_group)
        if compare.direction == "below":  # the lower one is compared with the reference
            counts &= high_group == compare.against
        if compare.direction == "above":
            counts &= low_group == compare.against
        if counts:
            pairs.append((high, low))
    return pairs


def gap_of(compare: Compare, groups: tuple[str, ...], rates: Array) -> Array:
    """The largest gap of rates (..., groups), by its definition."""
    worst = np.zeros(rates.shape[:-1])
    for high, low in triples(compare, groups):
        top, bottom = rates[..., high], rates[..., low]
        gap = top - bottom
        if compare.by == "ratio":
            gap = np.where(top > 0, gap / np.where(top > 0, top, 1), 0)
        worst = np.maximum(worst, gap)
    return worst


def random_world(groups: tuple[str, ...], rng: np.random.Generator, spread: float) -> CellWorld:
    centre = rng.uniform([0.2, 0.5, 0.05], [0.9, 0.95, 0.5])
    logits = np.log(centre / (1 - centre)) + spread * rng.normal(size=(len(groups), 3))
    return CellWorld.from_shares(
        {
            group: ((1 - s) * precision, (1 - s) * (1 - precision), s, r)
            for group, (s, precision, r) in zip(groups, 1 / (1 + np.exp(-logits)), strict=True)
        }
    )


def rates_at(world: CellWorld, metric: str, lam: Array) -> Array:
    """Rates at unknowns (n, groups), shape (rates, n, groups)."""
    shares = [cells.shares for cells in world.cells.values()]
    return np.array(
        [
            np.stack(
                [rate_at(rate, group_shares, lam[:, g]) for g, group_shares in enumerate(shares)],
                axis=-1,
            )
            for rate in METRICS[metric].rates
        ]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_is_the_largest_over_its_triples(kind: str) -> None:
    compare, groups = KINDS[kind]
    for seed, metric in enumerate(METRICS):
        world = random_world(groups, np.random.default_rng(seed), 1.0)
        lam = np.array([[world.r[group] for group in groups]])
        expected = max(gap_of(compare, groups, rates)[0] for rates in rates_at(world, metric, lam))
        assert world.gap(metric, compare) == pytest.approx(expected, abs=1e-12)
        past = world.past()
        at = {group: (world.r[group],) * 2 for group in groups}
        bounds = gap_bounds(bands_from_past(past, metric, None), at, compare=compare)
        assert bounds == pytest.approx((expected, expected), abs=2e-6)


@pytest.mark.parametrize("metric", ["equal_opportunity", "equalized_odds", "accuracy_parity"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_check_s_interval_is_that_of_brute_force(kind: str, metric: str) -> None:
    compare, groups = KINDS[kind]
    for seed in range(3):
        rng = np.random.default_rng([seed, len(kind)])
        world = random_world(groups, rng, 1.0)
        start = rng.uniform(0.0, 0.6, len(groups))
        ends = np.stack([start, start + rng.uniform(0.0, 0.4, len(groups))])
        boxes = dict(zip(groups, map(tuple, ends.T.tolist()), strict=True))
        bands = bands_from_past(world.past(), metric, None)
        lower, upper = gap_bounds(bands, boxes, compare=compare)
        corners = np.array(list(product(*ends.T)))
        largest = max(gap_of(compare, groups, r).max() for r in rates_at(world, metric, corners))
        assert upper == pytest.approx(largest, abs=1e-9)
        least = 1.0
        low, high = ends
        for _ in range(12):  # a grid around the best point so far, finer and finer
            width = (high - low) / 2
            lam = low + rng.random((4000, len(groups))) * (high - low)
            gaps = np.max([gap_of(compare, groups, r) for r in rates_at(world, metric, lam)], 0)
            best = lam[gaps.argmin()]
            least = min(least, float(gaps.min()))
            low, high = np.maximum(ends[0], best - width / 2), np.minimum(ends[1], best + width / 2)
        assert lower <= least + 1e-9
        assert lower >= least - 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_a_free_verdict_is_right_and_its_interval_holds(kind: str) -> None:
    compare, groups = KINDS[kind]
    decided = 0
    for seed in range(12):
        world = random_world(groups, np.random.default_rng(seed), 1.5)
        question = Question("demographic_parity", gamma=0.1, epsilon=0.1, compare=compare)
        finding = check(world.past(50_000, seed), question)
        gap = world.gap("demographic_parity", compare)
        assert finding.lower <= gap <= finding.upper
        if finding.verdict is not Verdict.INCONCLUSIVE:
            decided += 1
            assert finding.verdict in question.truth(gap)
        assert Check.from_json(finding.to_json()).question == question
    assert decided >= 6


# -- C* --------------------------------------------------------------------------------------------


def nearest(grid: Array, allowed: NDArray[np.bool_], r: float) -> Array:
    """The least kl to r over the allowed of a grid, per row; infinite if none is allowed."""
    return np.asarray(np.where(allowed, kl(r, grid), np.inf).min(axis=-1))


def cheapest(rows: Array) -> Array:
    """The rows of two groups to which no other is nearer in both; some 300 of them."""
    first, *_, last = np.flatnonzero(rows.any(axis=0))
    rows = rows[np.lexsort((rows[:, first], rows[:, last]))]
    least = np.minimum.accumulate(rows[:, first])
    kept = rows[rows[:, first] < np.append(np.inf, least[:-1])]
    return kept[:: -(-len(kept) // 300)]


def rows_of_unfair(world: CellWorld, question: Question, groups: tuple[str, ...]) -> Array:
    """Kl to alternatives of a FAIR world: the nearest of every triple and lower group's lam."""
    compare, c = question.comparison, question.threshold
    r, grid = [world.r[g] for g in groups], np.linspace(0.0, 1.0, 301)
    shares, rows = [cells.shares for cells in world.cells.values()], []
    for rate in METRICS[question.metric].rates:
        for high, low in triples(compare, groups):
            below = rate_at(rate, shares[low], grid)
            needed = below + c if compare.by == "difference" else below / (1 - c)
            fine = np.unique(np.append(np.linspace(0.0, 1.0, 4001), r[high]))
            allowed = rate_at(rate, shares[high], fine) >= needed[:, None] - 1e-12
            row = np.zeros((len(grid), len(groups)))
            row[:, low] = kl(r[low], grid)
            row[:, high] = nearest(fine, allowed, r[high])
            rows.append(row)
    return np.concatenate(rows)


def rows_of_fair(world: CellWorld, question: Question, groups: tuple[str, ...]) -> Array:
    """Kl to alternatives of an UNFAIR world, against one group (or the only other) per stratum.

    Per lam of the reference the nearest allowed lam of every other group; strata are combined.
    """
    compare, gamma = question.comparison, question.gamma
    pairs = triples(compare, groups)
    names = [group.split(" | ") for group in groups]
    against = names[0][-1] if compare.against is None else compare.against
    references = [position for position, name in enumerate(names) if name[-1] == against]
    r, shares = [world.r[g] for g in groups], [cells.shares for cells in world.cells.values()]
    fine = np.linspace(0.0, 1.0, 4001)
    per_stratum = []
    for ref in references:
        grid = np.unique(np.append(np.linspace(0.0, 1.0, 2001), r[ref]))
        row = np.zeros((len(grid), len(groups)))
        row[:, ref] = kl(r[ref], grid)
        for g in {x for pair in pairs if ref in pair for x in pair} - {ref}:
            grid_of_g = np.unique(np.append(fine, r[g]))
            allowed = np.ones((len(grid), len(grid_of_g)), dtype=bool)
            for rate in METRICS[question.metric].rates:
                of_ref = rate_at(rate, shares[ref], grid)[:, None]
                of_g = rate_at(rate, shares[g], grid_of_g)[None]
                for high, low in pairs:
                    if {high, low} == {ref, g}:
                        top, bottom = (of_ref, of_g) if high == ref else (of_g, of_ref)
                        limit = top - gamma if compare.by == "difference" else top * (1 - gamma)
                        allowed &= bottom >= limit - 1e-12
            row[:, g] = nearest(grid_of_g, allowed, r[g])
        row = row[np.isfinite(row).all(axis=1)]
        per_stratum.append(row if len(references) == 1 else cheapest(row))
    return np.array([sum(rows) for rows in product(*per_stratum)])


def brute_force_bound(world: CellWorld, question: Question, groups: tuple[str, ...]) -> float:
    from scipy.optimize import linprog

    (verdict,) = question.truth(world.gap(question.metric, question.compare))
    rows = (rows_of_unfair if verdict is Verdict.FAIR else rows_of_fair)(world, question, groups)
    rows = rows[np.isfinite(rows).all(axis=1)]
    prices = np.array([Costs().expected(world.r[g]) for g in groups])
    count, k = rows.shape
    solution = linprog(
        [*np.zeros(k), -1.0],
        A_ub=np.column_stack([-rows / prices, np.ones(count)]),
        b_ub=np.zeros(count),
        A_eq=[[*np.ones(k), 0.0]],
        b_eq=[1.0],
        method="highs",
    )
    d = question.delta
    return float(kl(d, np.array([1 - d]))[0]) / float(solution.x[-1])


PRICED = [kind for kind in KINDS if "all" not in kind and "left" not in kind]
BOTH_RATES = quick([], full=PRICED)


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        *((kind, "equal_opportunity") for kind in quick(PRICED[::3], full=PRICED)),
        *((kind, "equalized_odds") for kind in BOTH_RATES),
    ],
)
def test_c_star_is_that_of_brute_force(kind: str, metric: str) -> None:
    compare, groups = KINDS[kind]
    seen: dict[Verdict, int] = dict.fromkeys((Verdict.FAIR, Verdict.UNFAIR), 0)
    for seed in range(400):
        world = random_world(groups, np.random.default_rng([seed, 7]), 0.5)
        question = Question(metric, 0.1, 0.1, compare=compare)
        right = question.truth(world.gap(metric, compare))
        if len(right) > 1 or seen[min(right)] or check(world.past(), question).verdict in right:
            continue
        seen[min(right)] += 1
        bound = eq.lower_bound(world, question, Costs())
        assert bound == pytest.approx(brute_force_bound(world, question, groups), rel=0.03)
        if all(seen.values()):
            break
    assert all(seen.values())


def test_c_star_of_a_reference_and_one_other_is_that_of_both() -> None:
    world = random_world(("A", "B"), np.random.default_rng(3), 0.5)
    for metric, by in product(
        quick(["equalized_odds"], full=["equalized_odds", "accuracy_parity"]),
        ("difference", "ratio"),
    ):
        plain = Question(metric, 0.05, 0.1, compare=by)
        against = Question(metric, 0.05, 0.1, compare=Compare(by, against="A"))
        bounds = [eq.lower_bound(world, question, Costs()) for question in (plain, against)]
        assert bounds[0] == pytest.approx(bounds[1], rel=3e-3)


# -- words and refusals ----------------------------------------------------------------------------


def test_one_question_is_written_in_one_way() -> None:
    assert Question(compare=Compare("ratio")) == Question(compare="ratio")
    question = Question(compare=Compare(against="A", leave_out=["C"]))
    assert Question.from_json(question.to_json()) == question
    assert hash(question) == hash(Question.from_json(question.to_json()))
    assert Question().to_dict()["compare"] == "difference"


def test_what_cannot_be_compared_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="'direction' 'below' needs 'against'"):
        Compare(direction="below")
    with pytest.raises(UnknownName, match="'direction'"):
        Compare(against="A", direction="up")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="is left out by 'leave_out'"):
        Compare(against="A", leave_out=("A",))
    for message, compare in (
        ("group in 'against'", Compare(against="Z")),
        ("group in 'leave_out'", Compare(leave_out=("Z",))),
        ("the group 'A' has none", Compare(within=True)),
        ("that takes two groups", Compare(leave_out=("A", "B"))),
    ):
        with pytest.raises(InvalidInput, match=message):
            Question(compare=compare).resolve(("A", "B", "C"))
    with pytest.raises(InvalidInput, match="were read within strata"):
        Compare().resolve(STRATA)


def test_strata_that_nobody_can_be_compared_in_are_left_out() -> None:
    names = (*STRATA, "z | A", "w | B", "w | C")
    assert Compare(within=True).resolve(names).left_out == ("z | A",)
    against = Compare(against="A", within=True).resolve(names)
    assert against.left_out == ("z | A", "w | B", "w | C")
    assert [block.stratum for block in against.blocks] == ["x", "y"]


def test_groups_that_are_left_out_may_be_anything() -> None:
    cells = {"A": GroupCells(30, 10, 60), "B": GroupCells(10, 5, 85), "?": GroupCells(0, 0, 5)}
    question = Question("predictive_parity", compare=Compare(leave_out=("?",)))
    finding = check(eq.History.from_cells(Cells(cells)), question)
    assert finding.approved_only == pytest.approx(0.75 - 2 / 3)
    assert GapScale.RATIO.reversed_gap(0.2) == pytest.approx(-0.25)


def test_who_is_left_out_is_named_as_the_strata_are_read() -> None:
    """The stratum ends at the first mark; a name that leaves nobody out is unknown."""
    names = ["s | x | A", "s | x | B", "s | x | C"]
    with pytest.raises(UnknownName, match="group in 'leave_out' 'A'"):
        eq.Question(compare=eq.Compare(within=True, leave_out=["A"])).resolve(names)
    question = eq.Question(compare=eq.Compare(within=True, leave_out=["x | A"]))
    assert question.resolve(names).left_out == ("s | x | A",)
