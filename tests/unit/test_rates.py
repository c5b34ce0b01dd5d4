"""A rate is one object: made wrongly it is refused, made in one place it works everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.cells import GroupCells
from equipoise.errors import InvalidInput, UnknownName
from equipoise.question import Want
from equipoise.rates import (
    CONSTANT,
    FALLING,
    METRICS,
    RATES,
    RISING,
    Band,
    Curve,
    Metric,
    Rate,
    ShareBounds,
    clopper_pearson,
    register,
)
from equipoise.worlds import CellWorld
from tests.unit.bounds.brute_force import brute_force, deltas

NOTATION = Path(__file__).parents[2] / "docs" / "notation.md"


def base_rate_band(counts: GroupCells, share: ShareBounds) -> Band:
    """Two shares, so each of their bounds gets half of the level."""
    p1 = share(counts.approved_positive, counts.total, parts=2)
    s = share(counts.denied, counts.total, parts=2)
    return Band(Curve(p1[0], s[0]), Curve(p1[1], s[1]))


PARTS: dict[str, Any] = {
    "name": "base_rate",
    "fraction": lambda tp, fp, fn, tn: (tp + fn, tp + fp + fn + tn),
    "curve": lambda p1, p0, s: Curve(p1, s),
    "trend": RISING,
    "band": base_rate_band,
    "phrase": "share of outcome 1 among everybody",
    "probability": "P[Y=1 | A=a]",
    "formula": "p1 + s r",
}


@pytest.fixture
def metric() -> Iterator[str]:
    """Register a throw-away rate: nothing else in the tree knows it."""
    rates, metrics = dict(RATES), dict(METRICS)
    register(Metric("base_rate_parity", (Rate(**PARTS),), "Would equally many turn out well?"))
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
        found = eq.check(world.past(), question)
        reached = deltas(world, metric, lam)
        assert (found.lower, found.upper) == pytest.approx((reached.min(), reached.max()), abs=0.01)
        bound = eq.lower_bound(world, question, costs)
        assert bound == pytest.approx(brute_force(world, question, costs), rel=0.02)
        for size in (None, 20_000):
            sim = eq.simulate(
                "adaptive", world, question, costs, repeats=15, seed=1, history_size=size
            )
            least, _ = clopper_pearson(int(sim.wrong.sum()), len(sim), 1e-4)
            assert least <= question.delta
            assert np.mean(sim.verdict == truth) > 0.5
            delta = world.difference(metric)
            missed = int(((delta < sim.lower) | (delta > sim.upper)).sum())
            assert clopper_pearson(missed, len(sim), 1e-4)[0] <= question.delta
        if truth == "UNFAIR":
            assert sim.cost.mean() > 0.5 * bound


def test_a_new_rate_is_planned_and_lives_in_a_ledger(metric: str, tmp_path: Path) -> None:
    question, costs = eq.Question(metric, gamma=0.1, epsilon=0.2, delta=0.1), eq.Costs(5, 100)
    made = eq.plan(UNFAIR.past(), question, costs, audits=4)
    assert [row.audit for row in made.rows] == ["adaptive"]
    assert made.rows[0].possible
    live = eq.LiveAudit.create(
        str(tmp_path / "ledger.db"), "base", UNFAIR.past(50_000, 0), question, costs
    )
    for number, person in enumerate(UNFAIR.draw(4_000, 1)):
        if live.status().finding is not None:
            break
        if live.ask(f"p{number}", person.group, person.decision).want is Want.LABEL:
            live.tell(f"p{number}", person.outcome)
    finding = live.status().finding
    assert finding is not None
    assert finding.verdict == "UNFAIR"
    assert UNFAIR.difference(metric) in eq.Interval(finding.lower, finding.upper)
    live.close_ledger()


@pytest.mark.parametrize("left_out", PARTS)
def test_an_unfinished_rate_is_refused(left_out: str) -> None:
    with pytest.raises(TypeError, match=left_out):
        Rate(**{name: part for name, part in PARTS.items() if name != left_out})
    with pytest.raises(InvalidInput, match=left_out):
        Rate(**(PARTS | {left_out: None}))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"trend": FALLING}, "'trend' must be that of 'curve'; got falling, and the curve is"),
        ({"trend": CONSTANT}, "'trend' must be that of 'curve'; got constant"),
        ({"trend": 7}, "'trend' must be FALLING, CONSTANT or RISING; got 7"),
        ({"curve": lambda p1, p0, s: Curve(p1, s / 2)}, "'curve' must equal 'fraction'"),
        ({"curve": lambda p1, p0, s: None}, "'curve' must be None where the rate is of nobody"),
        ({"fraction": lambda tp, fp, fn, tn: (tp, tp + fp)}, "'curve' must"),
        ({"band": RATES["accuracy"].band}, "'band' must not have a curve that is falling"),
        ({"band": RATES["false_positive_rate"].band}, "'band' must hold the curve"),
        (
            {"band": lambda n, share: Band.exact(Curve(*n.shares[::2]))},
            "'band' must miss the truth with probability at most its level",
        ),
        ({"phrase": ""}, "'phrase' of a rate must be some words"),
    ],
)
def test_a_wrong_rate_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Rate(**(PARTS | wrong))


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
    trends = {FALLING: "falls", RISING: "rises", CONSTANT: "constant: free"}
    page = NOTATION.read_text()
    for rate in RATES.values():
        assert f"| {rate.words} | `{rate.formula}` | {trends[rate.trend]} |" in page
    for name, metric in METRICS.items():
        assert f"| `{name}` | {' and '.join(rate.words for rate in metric.rates)} |" in page
