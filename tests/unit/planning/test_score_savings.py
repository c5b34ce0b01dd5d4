"""Plans of audits that look: what a score is taken to say, from whom, and what that would save."""

from __future__ import annotations

import numpy as np
import pytest

import equipoise as eq
from equipoise.errors import BadData, InvalidInput
from equipoise.planning import Plan
from equipoise.planning.trials import _rates

COLUMNS = {"group": "race", "decision": "approved", "outcome": "repaid"}


def rows(slope: float = 2.0, labels: int = 0, sign: float = 1.0) -> dict[str, np.ndarray]:
    """Return past people whose score tells about repaying; the first denied have labels."""
    rng, n = np.random.default_rng(0), 6_000
    repaid = rng.random(n) < 0.4
    approved = rng.random(n) < np.where(repaid, 0.6, 0.3)
    told = approved | (np.cumsum(~approved) <= labels)
    score = rng.normal(size=n) + slope * repaid * np.where(approved, 1.0, sign)
    return {
        "race": np.array(["A", "B"], dtype=object)[rng.integers(2, size=n)],
        "approved": approved.astype(int),
        "repaid": np.where(told, repaid.astype(float), np.nan),
        "score": score,
    }


def test_scores_of_the_denied_follow_the_approved_until_there_are_labels() -> None:
    history = eq.History.read(rows(), **COLUMNS, score="score")
    assert history.scores is not None
    scores = history.scores["A"]
    assert len(scores.denied) == history.cells["A"].denied
    assert len(scores.outcomes) == history.cells["A"].approved
    x, rates, words = _rates(scores, 0.2)
    assert "approved people, carried over" in words
    assert rates.mean() == pytest.approx(0.2)
    assert np.corrcoef(x, rates)[0, 1] > 0.5
    turned = rows(labels=400, sign=-1.0)
    told = eq.History.read(turned, **COLUMNS, score="score", denied_outcomes="ignore")
    assert told.scores is not None
    x, rates, words = _rates(told.scores["A"], 0.2)
    assert "labels of" in words
    assert np.corrcoef(x, rates)[0, 1] < -0.5


def test_a_plan_says_whether_a_score_helps_and_what_that_rests_on() -> None:
    question = eq.Question("false_omission_parity", gamma=0.05, epsilon=0.15)
    history = eq.History.read(rows(slope=3.0), **COLUMNS, score="score")
    made = eq.plan(history, question, eq.Costs(), trial_runs=2, assist=eq.Assist())
    assert made.score_savings is not None
    assert made.score_savings.extrapolated
    assert made.score_savings.ratio < 0.8
    assert made.score_savings.people_per_label > 1.5
    assert "people are looked at per label" in str(made)
    assert any("extrapolation" in note for note in made.notes)
    assert Plan.from_dict(made.to_dict()).score_savings == made.score_savings


def test_a_score_of_noise_saves_nothing() -> None:
    history = eq.History.read(rows(slope=0.0), **COLUMNS, score="score")
    assert history.scores is not None
    _, rates, _ = _rates(history.scores["B"], 0.3)
    assert rates.std() < 0.03


def test_what_is_missing_is_named() -> None:
    question = eq.Question("false_omission_parity")
    plain = eq.History.read(rows(), **COLUMNS)
    with pytest.raises(InvalidInput, match=r"History.read\(..., score=COLUMN\)"):
        eq.plan(plain, question, eq.Costs(), assist=eq.Assist())
    with pytest.raises(BadData, match="skore"):
        eq.History.read(rows(), **COLUMNS, score="skore")
    with pytest.raises(BadData, match=r"column 'race' must hold numbers, or dates .*; found 'A'"):
        eq.History.read(rows(), **COLUMNS, score="race")


def test_people_of_a_test_programme_are_denied_people_with_a_label() -> None:
    table, rng = rows(), np.random.default_rng(1)
    tested = (table["approved"] == 0) & (rng.random(len(table["score"])) < 0.1)
    table |= {
        "tested": tested.astype(int),
        "repaid": np.where(tested, 1.0 * (table["score"] > 1.0), table["repaid"]),
        "score": np.where(rng.random(len(tested)) < 0.3, np.nan, table["score"]),
    }
    history = eq.History.read(table, **COLUMNS, random_accepts="tested", score="score")
    assert history.scores is not None
    known = ~np.isnan(table["score"])
    assert sum(len(s.labels) for s in history.scores.values()) == (tested & known).sum()
    denied = (table["approved"] == 0) & known
    assert sum(len(s.denied) for s in history.scores.values()) == denied.sum()
