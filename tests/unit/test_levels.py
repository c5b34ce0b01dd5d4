"""How delta is divided: every way to err adds up to what the question allows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from equipoise.levels import (
    CHECK_RANGE_SHARE,
    PAST_SHARE,
    ErrorBudget,
    exp_level,
    range_level,
    shares_of_audit,
)
from equipoise.metrics import METRICS
from equipoise.question import Question

GUARANTEES = (Path(__file__).parents[2] / "docs" / "understand" / "guarantees.md").read_text(
    encoding="utf-8"
)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("fair", "unfair"), [(None, None), (0.01, 0.1), (0.1, 0.002)])
@pytest.mark.parametrize("groups", [2, 7])
@pytest.mark.parametrize("metric", ["equal_opportunity", "equalized_odds"])
def test_error_levels_of_an_audit_add_up(
    exact: bool, fair: float | None, unfair: float | None, groups: int, metric: str
) -> None:
    """Every way to err, verdict and intervals together, within the level of each wrong answer."""
    question = Question(metric, delta_wrong_fair=fair, delta_wrong_unfair=unfair)
    budget = ErrorBudget.of_audit(question, groups, exact=exact)
    rates = len(METRICS[metric].rates)
    all_bounds = 2 * rates * groups
    labels = groups * budget.label_interval + 4 * groups * budget.past_table
    wrong_fair = (
        budget.evidence_fair + 2 * budget.past_fair + all_bounds * budget.past_intervals + labels
    )
    # Bounds at two levels miss together: those at the smaller level are wider.
    past = all_bounds * max(budget.past_unfair, budget.past_intervals)
    wrong_unfair = budget.evidence_unfair + past + labels
    assert wrong_fair <= question.level_wrong_fair * (1 + 1e-12)
    assert wrong_unfair <= question.level_wrong_unfair * (1 + 1e-12)
    least = min(budget.evidence_fair, budget.evidence_unfair)
    assert least > 0.5 * (1 - PAST_SHARE) * question.strictest_level
    if fair is None:
        assert wrong_fair == pytest.approx(question.delta)
        assert wrong_unfair == pytest.approx(question.delta)


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("precisions", [False, True])
@pytest.mark.parametrize("metric", ["equal_opportunity", "equalized_odds"])
def test_every_bound_of_a_check_is_paid_for(labels: bool, precisions: bool, metric: str) -> None:
    """For FAIR two of a rate, of r and of a precision; else all of all groups, on both sides.

    Verdict and ranges together stay within the level of each wrong answer.
    """
    question = Question(metric, delta=0.06, delta_wrong_fair=0.1, delta_wrong_unfair=0.02)
    budget = ErrorBudget.of_check(
        question, 3, uses_random_accepts=labels, uses_precisions=precisions
    )
    bounds = 3 * (2 * len(METRICS[metric].rates) + 2 * labels + precisions)
    wrong_fair = budget.past_fair * (2 + 2 * labels + 2 * precisions)
    wrong_unfair = budget.past_unfair * bounds
    ranges = budget.past_intervals * bounds
    assert wrong_fair == pytest.approx(0.1 * (1 - CHECK_RANGE_SHARE))
    assert wrong_unfair + ranges == pytest.approx(0.02)
    assert wrong_fair + ranges <= 0.1
    assert range_level(question) == 0.1
    assert budget.past_table * 3 * (4 + 2 * labels + precisions) == pytest.approx(0.1)


def test_the_table_in_the_guarantees_is_the_code_s() -> None:
    rows = dict(re.findall(r"^\| (past data, [\w ]+|evidence|labels, [\w ]+) \| ([\d. |]+) \|$",
                           GUARANTEES, re.MULTILINE))  # fmt: skip
    by_rows = shares_of_audit(PAST_SHARE, by_rows=True)
    bands, unlimited = shares_of_audit(PAST_SHARE), shares_of_audit(0.0)
    assert list(rows) == list(bands)
    for part, row in rows.items():
        shares_in_table = [float(cell) for cell in row.split(" | ")]
        assert shares_in_table == pytest.approx(
            [
                *(shares[part].fair for shares in (by_rows, bands, unlimited)),
                *(shares[part].unfair for shares in (by_rows, bands, unlimited)),
            ]
        )


@pytest.mark.parametrize("past_share", [0.0, 0.05, PAST_SHARE, 0.5])
def test_the_parts_of_an_audit_add_up_whatever_the_past_uses(past_share: float) -> None:
    for by_rows in (False, True) if past_share else (False,):
        parts = shares_of_audit(past_share, by_rows=by_rows).values()
        for shares in zip(*parts, strict=True):
            assert sum(shares) == pytest.approx(1.0)


def test_endings_share_the_level() -> None:
    assert exp_level(Question(delta_wrong_fair=0.01)) == 0.005
