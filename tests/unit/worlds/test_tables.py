"""The shipped and the unshipped tables."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import equipoise as eq
from equipoise.errors import InvalidInput, UnknownName

BESIDE = Path(__file__).parents[4] / "shared" / "data" / "law_school" / "law_school_clean.csv"
LAW_SCHOOL = Path(os.environ.get("EQUIPOISE_LAW_SCHOOL", BESIDE))


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


def test_law_school_is_not_shipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("EQUIPOISE_LAW_SCHOOL", raising=False)
    with pytest.raises(InvalidInput, match=r"not shipped.*EQUIPOISE_LAW_SCHOOL"):
        eq.data.law_school()
    with pytest.raises(InvalidInput, match="no file"):
        eq.data.law_school(tmp_path / "law.csv")
    (tmp_path / "other.csv").write_text("race,ugpa\nWhite,3.1\n")
    with pytest.raises(UnknownName, match="column of the Law School table 'pass_bar'"):
        eq.data.law_school(tmp_path / "other.csv")


@pytest.mark.skipif(not LAW_SCHOOL.is_file(), reason=f"no copy of Law School at {LAW_SCHOOL}")
def test_law_school_from_a_path_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    table = eq.data.law_school(LAW_SCHOOL)
    assert table.shape == (20798, 12)
    monkeypatch.setenv("EQUIPOISE_LAW_SCHOOL", str(LAW_SCHOOL))
    assert eq.data.law_school().columns == table.columns
    assert np.isfinite(eq.data.encode(table, table.columns)).all()
