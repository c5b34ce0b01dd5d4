"""The tables of the experiments."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from paper.tables import law_school

from equipoise.errors import InvalidInput, UnknownName
from equipoise.worlds.data import encode

BESIDE = Path(__file__).parents[4] / "shared" / "data" / "law_school" / "law_school_clean.csv"
LAW_SCHOOL = Path(os.environ.get("EQUIPOISE_LAW_SCHOOL", BESIDE))


def test_law_school_is_not_shipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("EQUIPOISE_LAW_SCHOOL", raising=False)
    with pytest.raises(InvalidInput, match=r"not shipped.*EQUIPOISE_LAW_SCHOOL"):
        law_school()
    with pytest.raises(InvalidInput, match="no file"):
        law_school(tmp_path / "law.csv")
    (tmp_path / "other.csv").write_text("race,ugpa\nWhite,3.1\n")
    with pytest.raises(UnknownName, match="column of the Law School table 'pass_bar'"):
        law_school(tmp_path / "other.csv")


@pytest.mark.skipif(not LAW_SCHOOL.is_file(), reason=f"no copy of Law School at {LAW_SCHOOL}")
def test_law_school_from_a_path_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    table = law_school(LAW_SCHOOL)
    assert table.shape == (20798, 12)
    monkeypatch.setenv("EQUIPOISE_LAW_SCHOOL", str(LAW_SCHOOL))
    assert law_school().columns == table.columns
    assert np.isfinite(encode(table, table.columns)).all()
