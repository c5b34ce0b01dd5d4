"""The tables of the experiments."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from paper import tables
from paper.__main__ import main
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


# -- data sets and classifiers of one's own --------------------------------------------------------


@pytest.fixture
def own_table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    age = rng.normal(40.0, 10.0, 600)
    group = rng.choice(["left", "right"], 600)
    outcome = (age + rng.normal(0.0, 5.0, 600) > 40.0).astype(int)
    rows = [f"{g},{a:.2f},{y}" for g, a, y in zip(group, age, outcome, strict=True)]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(["side,age,repaid", *rows]) + "\n")
    return path


def test_a_data_set_and_a_classifier_are_one_entry_each(
    own_table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sklearn.tree import DecisionTreeClassifier

    monkeypatch.setattr(tables, "DATASETS", dict(tables.DATASETS))
    monkeypatch.setattr(tables, "CLASSIFIERS", dict(tables.CLASSIFIERS))
    tables.register_csv("mine", own_table, group="side", outcome="repaid", training_rows=200)
    tables.register_classifier("tree", lambda: DecisionTreeClassifier(max_depth=2))
    people = tables.read_people("mine")
    world = tables.classify(people, "tree")
    assert world.groups == ("left", "right")
    assert (world.decision == people.outcome).mean() > 0.8


def test_own_tables_are_checked(own_table: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="'group'"):
        tables.register_csv("mine", own_table)
    with pytest.raises(InvalidInput, match="must hold two groups"):
        tables.register_csv("mine", own_table, group="age", outcome="repaid")
    with pytest.raises(InvalidInput, match="no file"):
        tables.register_csv("mine", tmp_path / "other.csv")
    for values, found in (("1 2", "1, 2"), ("bad good", "'bad', 'good'"), ("1 1", "it holds 1;")):
        first, second = values.split()
        path = tmp_path / "coded.csv"
        path.write_text(f"group,age,repaid\na,1,{first}\nb,2,{second}\n")
        with pytest.raises(InvalidInput, match=f"column 'repaid' must hold.*{found}.*recode"):
            tables.register_csv("mine", path, outcome="repaid")
    with pytest.raises(InvalidInput, match="MODULE:FUNCTION"):
        tables.load_classifier("tree")
    with pytest.raises(InvalidInput, match="cannot be imported"):
        tables.load_classifier("no_such_module:make")
    with pytest.raises(UnknownName, match="data set"):
        tables.read_people("nobody")


def test_booleans_are_outcomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "DATASETS", dict(tables.DATASETS))
    path = tmp_path / "mine.csv"
    path.write_text("group,age,repaid\na,1,true\nb,2,false\nb,3,true\n")
    tables.register_csv("mine", path, outcome="repaid")
    assert tables.read_people("mine").outcome.tolist() == [1, 0, 1]


def test_a_table_of_ones_own_has_the_black_box_figure_alone(
    own_table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(tables.DATASETS, "mine", None)  # gone again at the end
    own = ["--dataset", str(own_table), "--group", "side", "--outcome", "repaid"]
    own += ["--classifier", "all_LR", "--out", str(tmp_path), "--quick"]
    with pytest.raises(SystemExit):
        main([*own, "--only", "theorems"])
    assert "got --only theorems" in capsys.readouterr().err
    main([*own, "--only", "blackbox"])
    assert "Caution: --quick has few runs" in capsys.readouterr().out
