"""The embedded data against the numbers published for them."""

from __future__ import annotations

import numpy as np
import pytest

import equipoise as eq
from equipoise.errors import InvalidInput, UnknownName
from equipoise.metrics import rates_given_r


def test_it_reproduces_the_published_rates() -> None:
    world = eq.data.fico_lender().world
    found = rates_given_r(world.cells, world.r, "equalized_odds")
    order = ("White", "Black", "Hispanic", "Asian")
    tpr, fpr = found["true_positive_rate"], found["false_positive_rate"]
    assert [round(tpr[g], 2) for g in order] == [0.92, 0.75, 0.83, 0.93]
    assert [round(fpr[g], 2) for g in order] == [0.23, 0.11, 0.19, 0.31]
    assert round(world.gap("equalized_odds"), 3) == 0.206
    approved = {g: c.approved / c.total for g, c in world.cells.items()}
    assert (round(approved["White"], 2), round(approved["Black"], 2)) == (0.75, 0.32)
    assert round(world.cells.total) == 133165 + 18274 + 14702 + 7906


def test_the_past_is_a_sample_of_the_world() -> None:
    """Each cell lies within 5 standard deviations: false alarm below 1e-5 for all twelve."""
    lender = eq.data.fico_lender()
    history = lender.history(seed=1)
    for group, expected in lender.world.cells.items():
        counts, total = history.cells[group], expected.total
        assert counts.total == round(total)
        for cell, number in counts.to_dict().items():
            share = expected.counts[cell] / total
            assert abs(number - expected.counts[cell]) < 5 * np.sqrt(total * share * (1 - share))


def test_the_past_hides_the_outcomes_of_the_denied() -> None:
    past = eq.data.fico_lender(threshold=50, groups=["White", "Asian"]).past()
    assert past.columns == ["race", "score", "approved", "repaid"]
    assert past.filter("approved <> CAST(score >= 50 AS TINYINT)").fetchall() == []
    assert past.filter("(approved = 1) <> (repaid IS NOT NULL)").fetchall() == []
    assert past.aggregate("count(*)").fetchall() == [(133165 + 7906,)]


def test_a_seed_gives_the_same_rows() -> None:
    lender = eq.data.fico_lender(groups=["Hispanic", "Asian"])
    assert lender.past(3).limit(50).fetchall() == lender.past(3).limit(50).fetchall()
    assert lender.past(3).limit(50).fetchall() != lender.past(4).limit(50).fetchall()


@pytest.mark.parametrize("threshold", [-1, 100.5, float("nan")])
def test_a_threshold_is_a_score(threshold: float) -> None:
    with pytest.raises(InvalidInput, match=r"'threshold' must be a score in \[0, 100\]"):
        eq.data.fico_lender(threshold)


def test_groups_are_checked() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'Hispanic'"):
        eq.data.fico_lender(groups=["White", "Hispanics"])
    with pytest.raises(InvalidInput, match="at least two groups"):
        _ = eq.data.fico_lender(groups=["White"]).world


def test_adult_is_complete() -> None:
    """The counts are those of the data set's own description."""
    table = eq.data.adult()
    assert len(table.columns) == 16
    parts = table.aggregate("part, count(*)", "part").order("part").fetchall()
    assert parts == [("test", 16281), ("train", 32561)]
    known = table.filter("workclass <> '?' AND occupation <> '?' AND native_country <> '?'")
    assert known.aggregate("count(*)").fetchall() == [(45222,)]


def test_encoded_features_are_standard_numbers_and_indicators() -> None:
    features = eq.data.encode(eq.data.adult(), ["age", "sex", "hours_per_week", "race"])
    assert features.shape == (48842, 1 + 2 + 1 + 5)
    np.testing.assert_allclose(features[:, [0, 3]].mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(features[:, [0, 3]].std(axis=0), 1.0)
    assert set(np.unique(features[:, 4:])) == {0.0, 1.0}
    np.testing.assert_array_equal(features[:, 1:3].sum(axis=1), 1.0)
    with pytest.raises(UnknownName, match="Did you mean 'age'"):
        eq.data.encode(eq.data.adult(), ["aged"])
