"""Differences and ratios: what a gap is, which questions and audits take one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import equipoise as eq
from equipoise.comparison import GapScale
from equipoise.errors import InvalidInput, UnknownName
from equipoise.finding import Interval
from equipoise.metrics import METRICS
from equipoise.protocol import Want
from equipoise.worlds import CellWorld, MixtureWorld
from tests.profiles import quick

WORLD = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)})
RATIO = eq.Question("equal_opportunity", gamma=0.2, epsilon=0.1, delta=0.1, compare="ratio")


@pytest.mark.parametrize("compare", GapScale)
def test_above_and_below_are_where_the_gap_is(compare: GapScale) -> None:
    rates = np.linspace(0.05, 0.6, 23)
    for gap in (0.0, 0.04, 0.3):
        assert compare.gap(rates, compare.above(rates, gap)) == pytest.approx(gap, abs=1e-12)
        assert compare.gap(compare.below(rates, gap), rates) == pytest.approx(
            np.minimum(gap, 1.0), abs=1e-12
        )


def test_nothing_beside_nothing_and_beside_something() -> None:
    gap = GapScale.RATIO.gap
    assert [float(x) for x in gap([0.0, 0.0, 0.3], [0.0, 0.2, 0.3])] == [0.0, 1.0, 0.0]


def test_a_ratio_s_line_lies_below_one() -> None:
    assert eq.Question(gamma=0.5, epsilon=0.5).threshold == 1.0
    with pytest.raises(InvalidInput, match="of a ratio must be below 1"):
        eq.Question(gamma=0.5, epsilon=0.5, compare="ratio")
    with pytest.raises(UnknownName, match="unknown way to 'compare' 'quotient'"):
        eq.Question(compare="quotient")  # type: ignore[arg-type]
    assert eq.Question.from_json(RATIO.to_json()) == RATIO
    old = {key: value for key, value in eq.Question().to_dict().items() if key != "compare"}
    assert eq.Question.from_dict(old) == eq.Question()


@pytest.mark.parametrize("metric", METRICS)
def test_complements_differ_in_ratios_alone(metric: str) -> None:
    twins = {
        "false_negative_parity": "equal_opportunity",
        "true_negative_parity": "predictive_equality",
        "error_rate_balance": "equalized_odds",
        "negative_predictive_parity": "false_omission_parity",
        "error_rate_parity": "accuracy_parity",
    }
    if metric in twins:
        other = twins[metric]
        assert WORLD.gap(metric) == pytest.approx(WORLD.gap(other), abs=1e-12)
        assert WORLD.gap(metric, "ratio") != pytest.approx(WORLD.gap(other, "ratio"))
        found = [eq.check(WORLD.past(900, 0), eq.Question(name)) for name in (metric, other)]
        assert found[0].lower == pytest.approx(found[1].lower, abs=1e-9)
        assert found[0].upper == pytest.approx(found[1].upper, abs=1e-9)


def test_audits_without_a_proof_for_ratios_refuse_them() -> None:
    features = MixtureWorld.synthetic(14.0, approval={"1": 0.5, "0": 0.5}).past()
    with pytest.raises(
        InvalidInput, match="Exp-Audit is proven for differences between all groups, not for"
    ):
        eq.ExpAudit(features, RATIO, eq.Costs())
    with pytest.raises(InvalidInput, match="Exp-Audit is proven for differences"):
        eq.bounds.upper_bound("exp", WORLD, RATIO, eq.Costs())
    missed = eq.Question("false_negative_parity", compare="ratio")
    for audit in (eq.RSAudit, eq.BaselineAudit):
        assert audit(WORLD.past(), RATIO, eq.Costs()).finding is None
        with pytest.raises(InvalidInput, match="cannot answer 'metric' 'false_negative_parity'"):
            audit(WORLD.past(), missed, eq.Costs())


def test_a_ratio_lives_in_a_ledger(tmp_path: Path) -> None:
    live = eq.LiveAudit.create(
        str(tmp_path / "ledger.db"),
        "ratio",
        WORLD.past(quick(None, full=30_000), 0),
        RATIO,
        eq.Costs(5, 100),
    )
    for number, person in enumerate(WORLD.draw(3_000, 1)):
        if live.ask(f"p{number}", person.group, person.decision).want is Want.LABEL:
            live.tell(f"p{number}", person.outcome)
            if live.finding is not None:
                break
    finding = live.status().finding
    assert finding is not None
    assert finding.verdict == "UNFAIR"
    assert "a shortfall of at most 20% of the highest rate is ruled out" in finding.reason
    assert WORLD.gap(RATIO.metric, "ratio") in Interval(finding.lower, finding.upper)
    assert json.loads(finding.to_json())["question"]["compare"] == "ratio"
    live.close_ledger()
