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


def test_what_is_not_law_school_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no file"):
        law_school(tmp_path / "law.csv")
    (tmp_path / "other.csv").write_text("race,ugpa\nWhite,3.1\n")
    with pytest.raises(UnknownName, match="column of the Law School table 'pass_bar'"):
        law_school(tmp_path / "other.csv")


@pytest.mark.skipif(not LAW_SCHOOL.is_file(), reason=f"no copy of Law School at {LAW_SCHOOL}")
def test_law_school_is_the_table_of_the_paper() -> None:
    table = law_school(LAW_SCHOOL)
    assert table.shape == (20798, 12)
    assert np.isfinite(encode(table, table.columns)).all()
