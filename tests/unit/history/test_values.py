"""Values as people write them: understood, or refused with the values shown, never guessed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import equipoise as eq
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.history.coding import Coding
from equipoise.history.guided_reading import ColumnProfile, ask_for_values
from equipoise.history.saved_readings import save_reading
from equipoise.messages import OpenChoice, form, shell
from equipoise.messages.shell import describe_error
from tests.support.messages import codes_of, fixes_of, note_of, problem_of, problems_of, refused

PLAIN = {"group": "race", "decision": "approved", "outcome": "repaid"}
COLUMNS = {"group": "race", "decision": "decision", "outcome": "status"}


def frame(size: int = 2_000) -> pd.DataFrame:
    """Return loans of which 80% are repaid, spelled as several clerks would."""
    rng = np.random.default_rng(0)
    approved = rng.random(size) < 0.5
    repaid = rng.random(size) < 0.8
    return pd.DataFrame(
        {
            "race": rng.choice(["White", "white", "  white", "Black", "Black", "BLACK "], size),
            "decision": np.where(
                approved, rng.choice(["approved", "Approved ", "APPROVED"], size), "denied"
            ),
            "status": np.where(
                approved,
                np.where(
                    repaid, rng.choice(["repaid", "Repaid", "repaid ", "REPAID"], size), "lost"
                ),
                None,
            ),
        }
    )


def test_spellings_of_one_value_are_one_value() -> None:
    """Three in four of those who repaid used to be counted as failures, and as denied."""
    history = eq.History.read(frame(), **COLUMNS, positive=["approved", "repaid"])
    assert history.cells.groups == ("Black", "white")
    approved = sum(c.approved for c in history.cells.values())
    good = sum(c.approved_positive for c in history.cells.values())
    assert approved == frame().decision.str.strip().str.lower().eq("approved").sum()
    assert good == frame().status.str.strip().str.lower().eq("repaid").sum()
    assert 0.75 < good / approved < 0.85
    spellings = [note for note in history.notes if note.code == "spellings"]
    assert [note.fields["column"] for note in spellings] == ["race", "decision", "status"]
    assert "are read as" in str(spellings[0])


def test_a_list_of_values_means_one() -> None:
    data = frame().replace({"status": {"Repaid": "settled"}})
    read = eq.History.read(
        data, **COLUMNS, positive={"decision": "approved", "outcome": ["repaid", "settled"]}
    )
    assert read.cells == eq.History.read(frame(), **COLUMNS, positive=["approved", "repaid"]).cells


def test_what_nobody_explained_is_refused_with_its_numbers() -> None:
    """A loan that is still running is no failure, and a withdrawn application is no denial."""
    data = frame()
    data.loc[data.status == "REPAID", "status"] = "current"
    count = (data.status == "current").sum()
    with refused("outcome-partly-explained", column="status") as caught:
        eq.History.read(data, **COLUMNS, positive=["approved", "repaid"])
    problem = problem_of(caught.value, "outcome-partly-explained")
    assert problem.fields["written"]["current"] == count
    assert f"has values without a meaning: 'current' ({count:,})" in str(caught.value)
    said = {"positive": ["approved", "repaid"], "negative": {"outcome": ["lost", "current"]}}
    counted = eq.History.read(data, **COLUMNS, **said)
    assert sum(c.approved_negative for c in counted.cells.values()) > count


@pytest.mark.parametrize(
    ("decisions", "value"),
    [(["Y", "N"], "Y"), (["denied", "Approved"], "Approved"), (["no", "yes "], "yes")],
)
def test_the_hint_names_the_value_that_means_one(decisions: list[str], value: str) -> None:
    data = pd.DataFrame({"race": ["a", "b"] * 4, "decision": decisions * 4, "status": [None] * 8})
    data.loc[data.decision.str.strip() == value, "status"] = 1
    with refused("decision-unexplained") as caught:
        eq.History.read(data, **COLUMNS)
    problem = problem_of(caught.value, "decision-unexplained")
    assert fixes_of(problem)["positive"] == {"decision": value}
    assert f"positive={{'decision': {value!r}}}" in str(caught.value)
    assert f"--positive decision={value} " in describe_error(caught.value)
    followed = eq.History.read(data, **COLUMNS, positive={"decision": value})
    assert sum(c.approved for c in followed.cells.values()) == 4


def test_values_beside_those_that_were_said_are_refused() -> None:
    data = pd.DataFrame(
        {"race": ["a", "b", "a"], "decision": [1, "yes", True], "status": [1, 0, 1]}
    )
    with refused("decision-unexplained") as caught:
        eq.History.read(data, **COLUMNS)
    problem = problem_of(caught.value, "decision-unexplained")
    assert fixes_of(problem) == {"positive": {"decision": ["1", "yes"]}}
    with refused("decision-partly-explained", written={"1": 1, "True": 1}):
        eq.History.read(data, **COLUMNS, positive={"decision": "yes"})
    everybody = eq.History.read(data, **COLUMNS, positive={"decision": ["yes", 1, True]})
    assert all(c.denied == 0 for c in everybody.cells.values())


def test_a_value_for_columns_that_lack_it_is_refused() -> None:
    data = pd.DataFrame({"race": ["a", "b"], "decision": [1, 1], "status": [1, 0]})
    with refused("unknown-value", argument="positive", value="repaid"):
        eq.History.read(data, **COLUMNS, positive="repaid")
    with refused("unknown-value", column="status", value="repaid"):
        eq.History.read(data, **COLUMNS, positive={"outcome": "repaid"})
    with pytest.raises(InvalidInput, match="cannot be both"):
        eq.History.read(data, **COLUMNS, positive={"outcome": 0}, negative={"outcome": 0})


def test_people_without_a_group_need_a_name() -> None:
    data = pd.DataFrame(
        {
            "race": ["a", "b", "N/A", "", None, "n/a "] * 10,
            "decision": [1, 0] * 30,
            "status": [1, None] * 30,
        }
    )
    with refused("group-missing", column="race", rows=40) as caught:
        eq.History.read(data, **COLUMNS)
    problem = problem_of(caught.value, "group-missing")
    assert problem.fields["written"]["N/A"] == 10
    assert fixes_of(problem) == {"missing_group": "not stated"}
    named = eq.History.read(data, **COLUMNS, missing_group="not stated")
    assert named.cells["not stated"].total == 40
    note = note_of(named, "missing-group-named")
    assert note.fields["rows"] == 40
    assert "40 rows without a group are called 'not stated'" in str(note)
    assert "comparing them: Compare(leave_out=('not stated',))." in str(note)
    assert "comparing them: --leave-out 'not stated'." in shell.describe(note)
    assert form.describe(note).endswith("“Groups that are counted and not compared”: not stated.")
    both = eq.History.read(
        data.assign(sex=["f", "m"] * 30),
        **COLUMNS | {"group": ["race", "sex"]},
        missing_group="not stated",
    )
    assert "not stated & f" in both.cells.groups
    assert "--leave-out GROUP." in shell.describe(note_of(both, "missing-group-named"))
    joined = eq.History.read(data, **COLUMNS, missing_group="A")
    assert joined.cells["a"].total == 50


def test_a_score_is_no_group() -> None:
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"race": rng.integers(300, 360, 500), "decision": 1, "status": 1})
    with refused("too-many-groups", column="race", groups=60) as caught:
        eq.History.read(data, **COLUMNS)
    assert fixes_of(problem_of(caught.value, "too-many-groups")) == {"max_groups": 60}
    assert len(eq.History.read(data, **COLUMNS, max_groups=60).cells) == 60


def test_other_encodings_are_named_and_read(tmp_path: Path) -> None:
    text = "race,decision,status\nGrün,1,1\nblau,0,\nblau,1,0\nGrün,0,\n"
    for code in ("utf-16", "latin-1"):
        path = tmp_path / f"{code}.csv"
        path.write_bytes(text.encode(code))
        with refused("not-utf8") as caught:
            eq.History.read(path, **COLUMNS)
        assert f"encoding='{code}'" in str(caught.value)
        assert f"--encoding {code}" in describe_error(caught.value)
        assert eq.History.read(path, **COLUMNS, encoding=code).cells.groups == ("Grün", "blau")
    path = tmp_path / "long.csv"  # DuckDB takes a long one for a CSV file with odd separators
    path.write_bytes((text * 900).encode("utf-16"))
    with refused("csv-not-understood") as caught:
        eq.History.read(path, **COLUMNS)
    assert "--encoding utf-16" in describe_error(caught.value)


def test_it_says_what_it_understood() -> None:
    history = eq.History.read(frame(), **COLUMNS, positive=["approved", "repaid"])
    said = str(history)
    assert "2,000 rows counted by DuckDB" in said
    assert "decision  decision: 1 = " in said
    assert "0 = 'denied' (" in said
    assert history.summary is not None
    assert history.summary.outcome["0"] == {"lost": (frame().status == "lost").sum()}


def test_the_coding_reads_later_rows() -> None:
    history = eq.History.read(frame(), **COLUMNS, positive=["approved", "repaid"])
    assert history.coding is not None
    coding = Coding.from_dict(history.coding.to_dict())
    assert coding.grouping.group_name([" WHITE"]) == "white"
    assert coding.read_bit("decision", "Approved") == 1
    assert coding.read_bit("outcome", "LOST ") == 0
    with pytest.raises(UnknownName, match="unknown outcome"):
        coding.read_bit("outcome", "current")
    with pytest.raises(UnknownName, match="unknown group"):
        coding.grouping.group_name(["green"])


def test_predictions_come_as_fairlearn_has_them() -> None:
    data = frame()
    truth = data.status.str.strip().str.lower().map({"repaid": 1.0, "lost": 0.0})
    decided = data.decision.str.strip().str.lower().eq("approved")
    history = eq.History.from_predictions(truth, decided, data.race)
    assert history.cells == eq.History.read(data, **COLUMNS, positive=["approved", "repaid"]).cells
    both = eq.History.from_predictions(
        truth.to_numpy(), decided.to_numpy(), data[["race", "decision"]].replace("denied", "x")
    )
    assert "Black & x" in both.cells.groups
    with pytest.raises(InvalidInput, match="that are equally long"):
        eq.History.from_predictions(truth[:5], decided, data.race)


def test_advice_does_not_call_open_loans_failures() -> None:
    """The most frequent value of which nobody spoke is often that of loans still running."""
    table = {
        "g": np.array(["a", "b"] * 30),
        "d": np.array([1] * 60),
        "y": np.array(["repaid"] * 20 + ["current"] * 30 + ["lost"] * 10),
    }
    asked = {"group": "g", "decision": "d", "outcome": "y", "positive": {"outcome": "repaid"}}
    with refused("outcome-partly-explained", written={"current": 30, "lost": 10}) as caught:
        eq.History.read(table, **asked)
    assert codes_of(problems_of(caught.value)) == ["outcome-partly-explained", "outcome-unknown"]
    assert "--negative outcome=lost --missing-value outcome=current" in describe_error(caught.value)
    told = {**asked, "negative": {"outcome": "lost"}, "missing_values": ["current"]}
    cells = eq.History.read(table, **told, unknown="bounds").cells["a"]
    assert (cells.approved_positive, cells.approved_unknown, cells.approved_negative) == (10, 15, 5)


def test_without_a_good_outcome_loans_that_are_current_may_be_it() -> None:
    """Beside defaults alone, only a person can know what a current loan is."""
    table = {"g": ["a", "b"] * 30, "d": [1] * 60, "y": ["current"] * 40 + ["default"] * 20}
    with refused("outcome-unexplained") as caught:
        eq.History.read(table, group="g", decision="d", outcome="y")
    fixes = fixes_of(problem_of(caught.value, "outcome-unexplained"))
    assert fixes["positive"] == {"outcome": OpenChoice(("current",))}
    assert "missing_values" not in fixes
    (profile,) = [ColumnProfile("loans.csv", "y", {"current": 40, "default": 20})]
    questions = ask_for_values("outcome", "y", [profile])
    assert {question.value: question.proposal for question in questions} == {
        "current": "",
        "default": "bad",
    }


def test_withdrawn_applications_follow_the_advice() -> None:
    """What a message advises leads on: a value without meaning, no decision, left out."""
    data = frame()
    gone = data.index % 20 == 0
    messy = data.assign(
        decision=data.decision.mask(gone, "Withdrawn"), status=data.status.mask(gone)
    )
    coded: dict[str, object] = {**COLUMNS, "positive": ["approved", "repaid"]}
    with refused("decision-partly-explained") as caught:
        eq.History.read(messy, **coded)  # type: ignore[arg-type]
    proposed = fixes_of(problem_of(caught.value, "decision-partly-explained"))
    assert proposed["missing_values"] == {"decision": ["Withdrawn"]}
    assert proposed["undecided"] == "leave_out"
    coded["missing_values"] = "withdrawn"
    with refused("decision-missing", column="decision", rows=100) as caught:
        eq.History.read(messy, **coded)  # type: ignore[arg-type]
    assert fixes_of(problem_of(caught.value, "decision-missing")) == {"undecided": "leave_out"}
    read = eq.History.read(messy, **coded, undecided="leave_out")  # type: ignore[arg-type]
    rest = eq.History.read(data[~gone], **COLUMNS, positive=["approved", "repaid"])
    assert read.cells == rest.cells
    assert note_of(read, "undecided-left-out").fields["written"] == {"Withdrawn": 100}
    late = messy.status.mask(data.index % 400 == 0, "repaid")
    with refused("outcome-without-decision", labelled=5, outcome_column="status"):
        eq.History.read(messy.assign(status=late), **coded, undecided="leave_out")  # type: ignore[arg-type]
    late = messy.status.mask(data.index == 0, "repaid")
    with pytest.raises(BadData, match="1 of them has an outcome in column 'status'"):
        eq.History.read(messy.assign(status=late), **coded, undecided="leave_out")  # type: ignore[arg-type]


def test_groups_are_as_large_as_the_people_decided_about() -> None:
    """c has 40 people of whom one did not withdraw, d 40 who all did."""
    table = {
        "g": np.array(["a", "b", "c", "d"] * 40, dtype=object),
        "d": np.array([1, 0, "gone", "gone"] * 40, dtype=object).astype(str),
        "y": np.array([1, None, None, None] * 40, dtype=object),
    }
    table["d"][2] = "0"
    said: Any = {"group": "g", "decision": "d", "outcome": "y", "missing_values": "gone"}
    read = eq.History.read(table, **said, undecided="leave_out")
    assert sorted(read.cells) == ["a", "b", "c"]
    assert note_of(read, "groups-without-decisions").fields == {"groups": ["d"]}


def test_swapped_columns_are_named() -> None:
    plain = frame().assign(decision=lambda d: d.decision.ne("denied") * 1)
    plain["status"] = plain.status.str.strip().str.lower().eq("repaid").where(plain.decision == 1)
    eq.History.read(plain, **COLUMNS)
    with pytest.raises(BadData, match="are the two columns swapped"):
        eq.History.read(plain, group="race", decision="status", outcome="decision")


def test_short_forms_are_never_joined() -> None:
    data = frame().assign(sex=["F", "female", "m ", "M", "f"] * 400)
    read = eq.History.read(
        data, group="sex", decision="decision", outcome="status", positive=["approved", "repaid"]
    )
    assert read.cells.groups == ("F", "M", "female")
    text = "Column 'sex': 'f' (400) are read as 'F'; 'm ' (400) are read as 'M'."
    assert str(note_of(read, "spellings")) == text


def test_bytes_that_no_encoding_reads_are_to_be_converted(tmp_path: Path) -> None:
    rows = "race,approved,repaid\nMüller,1,1\nMüller,0,\nb €,1,0\nb €,0,\n"
    path, converted = tmp_path / "past.csv", tmp_path / "new.csv"
    path.write_bytes(rows.encode("cp1252"))
    with pytest.raises(BadData, match="iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW") as refused:
        eq.History.read(path, **PLAIN)
    with pytest.raises(BadData, match=r"it is not latin-1\. .*iconv -f WINDOWS-1252"):
        eq.History.read(path, **PLAIN, encoding="latin-1")
    words = str(refused.value).partition("iconv ")[2].split()[:4]
    done = subprocess.run(["iconv", *words, path], capture_output=True, check=True)
    converted.write_bytes(done.stdout)
    assert eq.History.read(converted, **PLAIN).cells.groups == ("Müller", "b €")


def test_values_are_merged_into_new_groups(tmp_path: Path) -> None:
    races = ["Samoan", "samoan ", "Tongan", "White", None, "White"] * 4
    data = {"race": races, "approved": [1, 0] * 12, "repaid": [1, None] * 12}
    reading: dict[str, Any] = {"group": "race", "decision": "approved", "outcome": "repaid"}
    merged = eq.History.read(
        data, **reading, missing_group="?", merge_groups={"Pacific": ["Samoan", "tongan"]}
    )
    assert {group: c.total for group, c in merged.cells.items()} == {
        "?": 4.0,
        "Pacific": 12.0,
        "White": 8.0,
    }
    assert merged.coding is not None
    assert merged.coding.grouping.group_name(["TONGAN"]) == "Pacific"
    texts = ["not white=Samoan", "not white=Tongan", "not white=?"]
    typed = eq.History.read(data, **reading, missing_group="?", merge_groups=texts)
    assert set(typed.cells) == {"White", "not white"}
    assert typed.coding is not None
    assert typed.coding.grouping.group_name([None]) == "not white"
    note_of(typed, "groups-merged")
    path = tmp_path / "past.csv"
    pd.DataFrame(data).to_csv(path, index=False)
    kept = tmp_path / "kept.toml"
    save_reading(kept, path, {**reading, "missing_group": "?", "merge_groups": texts})
    assert eq.History.read(kept).cells == typed.cells
    with refused("unknown-value", value="Fijian"):
        eq.History.read(data, **reading, missing_group="?", merge_groups={"x": "Fijian"})
    for wrong in ("Samoan", ["a=Samoan", "b=Samoan"]):
        with pytest.raises(InvalidInput, match="'merge_groups'"):
            eq.History.read(data, **reading, missing_group="?", merge_groups=wrong)
