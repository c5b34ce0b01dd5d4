"""A rate is two sets of cells: all else follows, and one made in a line works everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.cells import GroupCells
from equipoise.errors import InvalidInput, UnknownName
from equipoise.finding import Interval
from equipoise.metrics import METRICS, Metric, register
from equipoise.protocol import Want
from equipoise.rates import CONFUSION_CELLS, RATES, Band, Curve, Rate, clopper_pearson
from equipoise.worlds import CellWorld
from tests.profiles import quick
from tests.unit.bounds.brute_force import brute_force, deltas

NOTATION = Path(__file__).parents[2] / "docs" / "understand" / "notation.md"


BASE_RATE = Rate("base_rate", {"tp", "fn"}, CONFUSION_CELLS, "share of outcome 1 among everybody")


@pytest.fixture
def metric() -> Iterator[str]:
    """Register a throw-away rate in one line: nothing else in the tree knows it."""
    rates, metrics = dict(RATES), dict(METRICS)
    register(Metric("base_rate_parity", (BASE_RATE,), "Would equally many turn out well?"))
    yield "base_rate_parity"
    RATES.clear()
    METRICS.clear()
    RATES.update(rates)
    METRICS.update(metrics)


FAIR = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.30), "B": (0.2, 0.1, 0.7, 0.40)})
UNFAIR = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.70), "B": (0.2, 0.1, 0.7, 0.30)})


def test_a_new_rate_works_everywhere(metric: str, tmp_path: Path) -> None:
    question, costs = eq.Question(metric, gamma=0.1, epsilon=0.15, delta=0.1), eq.Costs(0.1, 1.0)
    lam = np.stack(np.meshgrid(*[np.linspace(0, 1, 101)] * 2), axis=-1).reshape(-1, 2)
    for world, truth in ((FAIR, "FAIR"), (UNFAIR, "UNFAIR")):
        finding = eq.check(world.past(), question)
        reached = deltas(world, metric, lam)
        assert (finding.lower, finding.upper) == pytest.approx(
            (reached.min(), reached.max()), abs=0.01
        )
        bound = eq.lower_bound(world, question, costs)
        assert bound == pytest.approx(brute_force(world, question, costs), rel=0.02)
        for size in quick([None], full=[None, 20_000]):
            sim = eq.simulate(
                "adaptive",
                world,
                question,
                costs,
                repeats=quick(6, full=15),
                seed=1,
                history_size=size,
            )
            least, _ = clopper_pearson(int(sim.wrong.sum()), len(sim), 1e-4)
            assert least <= question.delta
            assert np.mean(sim.verdict == truth) > 0.5
            delta = world.gap(metric)
            missed = int(((delta < sim.lower) | (delta > sim.upper)).sum())
            assert clopper_pearson(missed, len(sim), 1e-4)[0] <= question.delta
        if truth == "UNFAIR":
            assert sim.cost.mean() > 0.5 * bound


def test_a_new_rate_is_planned_and_lives_in_a_ledger(metric: str, tmp_path: Path) -> None:
    question, costs = eq.Question(metric, gamma=0.1, epsilon=0.2, delta=0.1), eq.Costs(5, 100)
    plan = eq.plan(UNFAIR.past(), question, costs, trial_runs=quick(1, full=4))
    assert (plan.recommended, plan.others) == ("adaptive", ())
    assert all(case.is_decidable for case in plan.cases)
    live = eq.LiveAudit.create(
        str(tmp_path / "ledger.db"),
        "base",
        UNFAIR.past(quick(None, full=50_000), 0),
        question,
        costs,
    )
    for number, person in enumerate(UNFAIR.draw(4_000, 1)):
        if live.ask(f"p{number}", person.group, person.decision).want is Want.LABEL:
            live.tell(f"p{number}", person.outcome)
            if live.finding is not None:
                break
    finding = live.status().finding
    assert finding is not None
    assert finding.verdict == "UNFAIR"
    assert UNFAIR.gap(metric) in Interval(finding.lower, finding.upper)
    live.close_ledger()


@pytest.mark.parametrize(
    ("part", "whole", "message"),
    [
        (
            {"tp", "tn"},
            {"tp", "fn"},
            r"'part' of the rate 'odd' must lie inside 'whole'.*of \['fn'",
        ),
        ({"tp", "fn"}, {"tp", "fn"}, "'part' of the rate 'odd' must lie inside 'whole'"),
        (
            set(),
            {"tp", "fn"},
            "'part' of the rate 'odd' must be a set of 'tp', 'fp', 'fn' and 'tn'",
        ),
        ({"tp"}, {"tp", "denied"}, "'whole' of the rate 'odd' must be a set of .*'denied'"),
        ("tp", {"tp", "fn"}, "'part' of the rate 'odd' must be a set of .*got 'tp'"),
        (lambda tp, fp, fn, tn: tp / fp, {"tp", "fn"}, "'part' of the rate 'odd' must be a set"),
    ],
)
def test_what_is_not_a_set_inside_a_set_is_refused(part: Any, whole: Any, message: str) -> None:
    """Such a quotient may rise and fall in r, and no exact band is known: nothing is promised."""
    with pytest.raises(InvalidInput, match=message):
        Rate("odd", part, whole, "odds")


PAIRS = [
    Rate("any", set(part), set(whole), "words")
    for size in range(2, 5)
    for whole in combinations(sorted(CONFUSION_CELLS), size)
    for few in range(1, size)
    for part in combinations(whole, few)
]


@pytest.mark.parametrize("rate", PAIRS, ids=lambda r: f"{sorted(r.part)} of {sorted(r.whole)}")
def test_whatever_the_sets_curve_trend_and_band_are_right(rate: Rate) -> None:
    """Curves by definition; how often each curve misses is added up over all pasts of 5 people."""
    points, people, alpha = (0.0, 0.3, 1.0), 5, 0.1
    for p1, p0, s in ((0.5, 0.2, 0.3), (0.1, 0.3, 0.6), (0.0, 0.4, 0.6), (0.4, 0.6, 0.0)):
        curve = rate.curve(p1, p0, s)
        fractions = [rate.fraction(p1, p0, s * r, s * (1 - r)) for r in points]
        if curve is None:
            assert all(whole == 0.0 for _, whole in fractions)
            continue
        assert curve.trend in (0, rate.trend)
        for r, (part, whole) in zip(points, fractions, strict=True):
            assert whole == 0.0 or curve.value_at(r) == pytest.approx(part / whole, abs=1e-15)
        missed = np.zeros(2)
        for n1, n0 in product(range(people + 1), repeat=2):
            counts = (n1, n0, people - n1 - n0)
            if counts[2] >= 0:
                band = rate.band(GroupCells(*counts), alpha)
                assert {band.low.trend, band.high.trend} <= {0, rate.trend}
                ways = factorial(people) / np.prod([factorial(c) for c in counts])
                chance = ways * np.prod([x**c for x, c in zip((p1, p0, s), counts, strict=True)])
                missed += chance * np.array([
                    any(band.low.value_at(r) > curve.value_at(r) + 1e-12 for r in points),
                    any(band.high.value_at(r) < curve.value_at(r) - 1e-12 for r in points),
                ])  # fmt: skip
        assert (missed <= alpha).all()


def test_curves_of_arrays_are_the_curves_one_by_one() -> None:
    rng = np.random.default_rng(3)
    shares = rng.dirichlet([1, 1, 1], 5)
    for rate in RATES.values():
        curves = [curve for x in shares if (curve := rate.curve(*x)) is not None]
        bands = [rate.band(GroupCells(*np.round(20 * x)), 0.1) for x in shares]
        values = rng.random((7, 1))
        stacked, whole = Curve.stack(curves), Band.stack(bands)
        assert np.array_equal(
            stacked.largest_r_with(values, falling=rate.trend < 0),
            np.stack(
                [c.largest_r_with(values[:, 0], falling=rate.trend < 0) for c in curves], axis=-1
            ),
        )
        for side in (0, 1):
            assert np.array_equal(
                whole.r_range(values, values + 0.1, falling=rate.trend < 0)[side],
                np.stack(
                    [
                        b.r_range(values[:, 0], values[:, 0] + 0.1, falling=rate.trend < 0)[side]
                        for b in bands
                    ],
                    axis=-1,
                ),
            )


def test_names_stand_for_one_thing(metric: str) -> None:
    register(METRICS[metric])  # again: nothing changes
    other = replace(METRICS[metric].rates[0], phrase="something else")
    with pytest.raises(InvalidInput, match="another rate called 'base_rate'"):
        register(Metric("other_parity", (other,), "Is it?"))
    with pytest.raises(InvalidInput, match="another metric called 'equal_opportunity'"):
        register(Metric("equal_opportunity", (other,), "Is it?"))
    with pytest.raises(InvalidInput, match="one or more rates"):
        Metric("empty_parity", (), "Is it?")
    assert "other_parity" not in METRICS


def test_a_metric_that_nobody_registered_is_unknown() -> None:
    with pytest.raises(UnknownName, match="unknown metric 'base_rate_parity'"):
        eq.Question("base_rate_parity")


def test_the_page_of_notation_lists_the_registry() -> None:
    trends = {-1: "falls", 1: "rises", 0: "constant: free"}
    page = NOTATION.read_text()
    rows = re.findall(r"^\| ([\w ]+) \| `([^`]+)` \| (falls|rises|constant: free) \|$", page, re.M)
    formulas = {words: (formula, trend) for words, formula, trend in rows}
    shares = {"p1": 0.3, "p0": 0.2, "s": 0.5, "r": 0.7}
    for rate in RATES.values():
        formula, trend = formulas.pop(rate.words)
        curve = rate.curve(0.3, 0.2, 0.5)
        assert curve is not None
        assert eval(re.sub(r"s (?=[r(])", "s * ", formula), shares) == pytest.approx(
            curve.value_at(0.7)
        )
        assert trend == trends[rate.trend]
    assert not formulas
    for name, metric in METRICS.items():
        assert f"| `{name}` | {' and '.join(rate.words for rate in metric.rates)} |" in page
