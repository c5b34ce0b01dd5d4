"""Sweeps: a tidy table of several audits over the values of one number."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import equipoise as eq
from equipoise.errors import InvalidInput, UnknownName
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld

WORLD = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
QUESTION = Question("equal_opportunity", gamma=0.1, epsilon=0.3, delta=0.1)
COSTS = Costs(0.1, 1.0)


def test_a_row_is_what_simulate_gives() -> None:
    result = eq.sweep(
        ["rs", "adaptive"], WORLD, QUESTION, COSTS, epsilon=[0.4, 0.3], repeats=8, seed=3
    )
    assert [(row["audit"], row["epsilon"]) for row in result.rows] == [
        ("rs", 0.4),
        ("rs", 0.3),
        ("adaptive", 0.4),
        ("adaptive", 0.3),
    ]
    alone = eq.simulate("rs", WORLD, QUESTION, COSTS, repeats=8, seed=3)
    row = result.rows[1]
    assert row["cost"] == alone.cost.mean()
    assert row["cost_sd"] == alone.cost.std(ddof=1)
    assert row["estimate"] == alone.estimate.mean()
    assert list(result.to_frame().columns[:4]) == ["audit", "epsilon", "runs", "cost"]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("gamma", [0.05, 0.1]),
        ("delta", [0.1, 0.05]),
        ("feature_cost", [0.0, 0.5]),
        ("label_cost", [1.0, 3.0]),
        ("tau", [50, 100]),
    ],
)
def test_every_number_can_be_swept(name: str, values: list[float]) -> None:
    result = eq.sweep(["rs"], WORLD, QUESTION, COSTS, repeats=5, **{name: values})
    assert result.swept == name
    assert [row[name] for row in result.rows] == values
    if name in ("delta", "feature_cost", "label_cost", "tau"):  # dearer or stricter costs more
        assert result.rows[1]["cost"] > result.rows[0]["cost"]  # type: ignore[operator]


def test_audits_without_a_threshold_ignore_tau_and_options_reach_their_audit() -> None:
    result = eq.sweep(
        ["adaptive", "rs"],
        WORLD,
        QUESTION,
        COSTS,
        tau=[50, 100],
        repeats=3,
        options={"rs": {"reuse_labels": True}},
    )
    assert result.rows[0]["cost"] == result.rows[1]["cost"]
    kept = eq.simulate("rs", WORLD, QUESTION, COSTS, repeats=3, tau=50, reuse_labels=True)
    assert result.rows[2]["cost"] == kept.cost.mean()


def test_the_plot_has_a_line_per_audit() -> None:
    result = eq.sweep(["rs", "baseline"], WORLD, QUESTION, COSTS, tau=[50, 100], repeats=3)
    cost, estimate = Figure().subplots(1, 2)
    result.plot(cost)
    result.draw(estimate, "estimate")
    assert [line.get_label() for line in cost.get_lines()] == ["rs", "baseline"]
    assert [line.get_label() for line in estimate.get_lines()] == ["rs", "baseline", "true gap"]
    assert cost.get_xlabel() == "tau"
    assert "sweep over tau" in str(result)


def test_one_number_is_swept_at_a_time() -> None:
    for swept in ({}, {"epsilon": [0.1], "gamma": [0.0]}):
        with pytest.raises(InvalidInput, match="exactly one of epsilon, gamma"):
            eq.sweep(["rs"], WORLD, QUESTION, COSTS, **swept)
    with pytest.raises(InvalidInput, match="it is empty"):
        eq.sweep(["rs"], WORLD, QUESTION, COSTS, epsilon=[])
    with pytest.raises(UnknownName, match="unknown audit"):
        eq.sweep(["rss"], WORLD, QUESTION, COSTS, epsilon=[0.1], repeats=1)


def test_one_audit_and_one_value_need_no_list() -> None:
    for one in (
        eq.sweep("rs", WORLD, QUESTION, COSTS, epsilon=0.3, repeats=2),
        eq.sweep(["rs"], WORLD, QUESTION, COSTS, epsilon=np.array([0.3]), repeats=2),
    ):
        assert [(row["audit"], row["epsilon"]) for row in one.rows] == [("rs", 0.3)]


def test_the_exact_threshold_may_be_among_the_values() -> None:
    result = eq.sweep("rs", WORLD, QUESTION, COSTS, tau=[50, "exact"], repeats=2)
    ax = Figure().subplots()
    result.plot(ax)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["50", "exact"]
    assert "rs, tau = exact: mean cost" in str(result)
