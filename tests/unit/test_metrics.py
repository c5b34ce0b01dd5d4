"""Fully labelled tables: gaps are fairlearn's, against a reference and within control features."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.comparison import Compare
from equipoise.worlds import CellWorld, read_world
from tests.profiles import quick

fairlearn = pytest.importorskip("fairlearn.metrics")
METRICS = {
    "equal_opportunity": ["true_positive_rate"],
    "predictive_equality": ["false_positive_rate"],
    "demographic_parity": ["selection_rate"],
    "equalized_odds": ["true_positive_rate", "false_positive_rate"],
}


def table(seed: int, rows: int = 3000) -> dict[str, NDArray[np.generic]]:
    rng = np.random.default_rng(seed)
    race, product = rng.choice(["A", "B", "C"], rows), rng.choice(["car", "home"], rows)
    repaid = rng.random(rows) < 0.6 + 0.1 * (race == "A")
    granted = rng.random(rows) < 0.3 + 0.3 * repaid + 0.1 * (race == "B") - 0.2 * (product == "car")
    return {
        "race": race,
        "product": product,
        "granted": granted.astype(int),
        "repaid": repaid.astype(int),
    }


def world(rows: dict[str, NDArray[np.generic]], within: str | tuple[()] = ()) -> CellWorld:
    return read_world(rows, group="race", within=within, decision="granted", outcome="repaid")


def frames(rows: dict[str, NDArray[np.generic]], metric: str, control: bool) -> list[object]:
    """Return fairlearn's frame of every rate of a metric."""
    return [
        fairlearn.MetricFrame(
            metrics=getattr(fairlearn, rate),
            y_true=rows["repaid"],
            y_pred=rows["granted"],
            sensitive_features=rows["race"],
            control_features=rows["product"] if control else None,
        )
        for rate in METRICS[metric]
    ]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(quick(1, full=3)))
def test_all_pairs(metric: str, seed: int) -> None:
    rows = table(seed)
    seen = frames(rows, metric, control=False)
    difference = max(frame.difference() for frame in seen)  # type: ignore[attr-defined]
    ratio = 1.0 - min(frame.ratio() for frame in seen)  # type: ignore[attr-defined]
    assert world(rows).gap(metric) == pytest.approx(difference, abs=1e-12)
    assert world(rows).gap(metric, "ratio") == pytest.approx(ratio, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(quick(1, full=3)))
def test_within_control_features(metric: str, seed: int) -> None:
    rows = table(seed)
    seen = frames(rows, metric, control=True)
    difference = max(frame.difference().max() for frame in seen)  # type: ignore[attr-defined]
    ratio = 1.0 - min(frame.ratio().min() for frame in seen)  # type: ignore[attr-defined]
    ours = world(rows, "product")
    assert ours.gap(metric, Compare(within=True)) == pytest.approx(difference, abs=1e-12)
    assert ours.gap(metric, Compare("ratio", within=True)) == pytest.approx(ratio, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("control", [False, True])
def test_against_a_reference(metric: str, control: bool) -> None:
    rows = table(7)
    ours = world(rows, "product" if control else ())
    below, above, least, largest = [], [], [], []
    for frame in frames(rows, metric, control):
        by_group = frame.by_group  # type: ignore[attr-defined]
        strata = by_group.groupby(level=0) if control else [("", by_group)]
        for _, own in strata:
            own = own.droplevel(0) if control else own
            below.append((own["A"] - own).max())
            above.append((own - own["A"]).max())
            least.append((own / own["A"]).min())
            largest.append((own["A"] / own).min())
    for direction, difference, ratio in (
        ("both", max(*below, *above), 1.0 - min(*least, *largest)),
        ("below", max(below), 1.0 - min(least)),
        ("above", max(above), 1.0 - min(largest)),
    ):
        for by, expected in (("difference", difference), ("ratio", ratio)):
            compare = Compare(by, "A", direction, control)  # type: ignore[arg-type]
            assert ours.gap(metric, compare) == pytest.approx(expected, abs=1e-12)
