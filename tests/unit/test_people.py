"""People in files: how rows become commands, and what came of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from equipoise.errors import BadData, InvalidInput
from equipoise.history import History
from equipoise.history.coding import ValueReader
from equipoise.ledger import LiveAudit
from equipoise.ledger.commands import Ask, Reply, Tell
from equipoise.people import (
    BatchResult,
    MissingColumn,
    NumberedRow,
    RowReader,
    carry_out,
    read_number,
    read_people,
    understand_command,
)
from equipoise.question import Costs, Question

PAST = pd.DataFrame(
    {"g": ["A", "B"] * 3, "d": [1, 1, 0, 0, 1, 1], "y": ["1", "0", "?", "?", "0", "-1"]}
)
WORDS = pd.DataFrame(
    {
        "race": ["White", "Black"] * 40,
        "approved": ["Y", "Y", "N", "N"] * 20,
        "repaid": ["paid", "default", None, None] * 20,
    }
)


@pytest.mark.parametrize("value", [None, "", " ", "NA", "NaN", "nan", "null", float("nan"), "?"])
def test_what_is_missing_is_none(value: object) -> None:
    assert read_number("score", value, values()) is None


def test_what_is_a_number_is_never_missing() -> None:
    """Though -1 stands for no outcome in the past: as a score it is one like any other."""
    assert [read_number("score", value, values()) for value in ("-1", -1.0, "0.5")] == [-1, -1, 0.5]
    with pytest.raises(InvalidInput, match="must be a number; got 'high'"):
        read_number("score", "high", values())


def test_a_past_read_the_other_way_round_makes_bare_bits_ambiguous() -> None:
    frame = PAST.assign(y=["0", "1", None, None, "0", "1"])
    past = History.read(frame, group="g", decision="d", outcome="y", positive={"outcome": 0})
    assert past.coding is not None
    live = begin(past)
    turned = live.settings.values
    with pytest.raises(InvalidInput, match=r"may mean either.*say 'good' or 'bad'"):
        turned.read_bit("outcome", "0")
    assert (turned.read_bit("outcome", "Good "), turned.read_bit("outcome", "bad")) == (1, 0)
    assert (turned.read_bit("decision", "1"), turned.read_bit("decision", "denied")) == (1, 0)
    named = RowReader(live.settings, "tell", ("person", "y"), {"outcome": "y"})
    assert named.read_value("outcome", {"y": "0"}) == 1  # as the past's own column
    other = RowReader(live.settings, "tell", ("person", "result"), {"outcome": "result"})
    assert other.read_value("outcome", {"result": "good"}) == 1
    typed = RowReader(live.settings, "tell", None)
    with pytest.raises(InvalidInput, match="may mean either"):
        typed.build_command({"person": "p", "outcome": "0"})


def values() -> ValueReader:
    past = History.read(
        PAST, group="g", decision="d", outcome="y", missing_values=["?", "-1"], unknown="bounds"
    )
    assert past.coding is not None
    return ValueReader(past.cells.groups, past.coding)


def begin(past: History, **settings: Any) -> LiveAudit:
    question = Question("equal_opportunity")
    settings["confirm"] = True
    return LiveAudit.create("sqlite://", "loans", past, question, Costs(label=1), **settings)


@pytest.fixture
def live() -> LiveAudit:
    """An audit whose past has words of its own."""
    past = History.read(
        WORDS,
        group="race",
        decision="approved",
        outcome="repaid",
        positive={"decision": "Y", "outcome": "paid"},
    )
    return begin(past)


def write_table(folder: Path, kind: str, frame: pd.DataFrame) -> Path:
    path = folder / f"people.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path)
    elif kind == "xlsx":
        frame.to_excel(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True)
    return path


def store(live: LiveAudit, verb: str, path: Path) -> BatchResult:
    table = read_people(path)
    reader = RowReader(live.settings, verb, table.header)
    total = BatchResult()
    for row_result in carry_out(table.rows, reader, live.attempt):
        total.add(row_result)
    return total


@pytest.mark.parametrize("kind", ["csv", "parquet", "xlsx", "jsonl"])
def test_every_kind_of_file_is_read_alike(live: LiveAudit, tmp_path: Path, kind: str) -> None:
    names = ["person", "race", "approved"]
    rows = [("1", "white", "n"), ("2", "BLACK ", "N"), ("3", "Black", "Y"), ("4", "Red", "N")]
    asked = store(live, "ask", write_table(tmp_path, kind, pd.DataFrame(rows, columns=names)))
    assert (asked.rows, asked.new, asked.silent) == (4, 3, 0)
    assert [refused["person"] for refused in asked.refused] == ["4"]
    outcomes = [("1", "paid"), ("2", None), ("2", "NA"), ("3", "Default")]
    frame = pd.DataFrame(outcomes, columns=["person", "repaid"])
    told = store(live, "tell", write_table(tmp_path, kind, frame))
    assert (told.rows, told.new, told.silent, told.refused) == (4, 2, 2, [])


def test_rows_that_cannot_be_read_are_named(live: LiveAudit, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(
        "person;group;decision\np1;White;0\n\np2;White\np\xff;White;0\n".encode("latin-1")
    )
    total = store(live, "ask", path)
    problems = {refused["line"]: refused["problem"] for refused in total.refused}
    assert problems[4] == "its number of cells is not the header's"
    assert "printable" in problems[5]
    assert (total.rows, total.new) == (3, 1)


def test_a_missing_column_is_data(live: LiveAudit) -> None:
    with pytest.raises(MissingColumn) as refused:
        RowReader(live.settings, "ask", ("who", "race", "approved"))
    assert (refused.value.role, refused.value.column) == ("person", "person")
    assert refused.value.header == ("who", "race", "approved")


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("person,group,group,decision\np1,White,Black,0\n")
    with pytest.raises(BadData, match="column 'group' must be there once"):
        read_people(path)


def test_scores_are_read_if_the_audit_uses_them(live: LiveAudit) -> None:
    header = ("person", "group", "decision", "score", "price", "version")
    cells = dict(zip(header, ("p1", "White", "0", "0.7", "3", "v2"), strict=True))
    without = RowReader(live.settings, "ask", header)
    assert without.build_command(cells) == Ask("p1", "White", 0)
    past = live.settings.past
    scored = LiveAudit.create(
        "sqlite://", "scored", past, Question("equal_opportunity"), Costs(label=1),
        options={"assist": {"max_price": 5}}, confirm=True,
    )  # fmt: skip
    assert RowReader(scored.settings, "ask", header).build_command(cells) == Ask(
        "p1", "White", 0, 0.7, 3, "v2"
    )
    fixed = RowReader(scored.settings, "ask", header, constants={"version": "v9"})
    assert fixed.build_command(cells).to_dict()["version"] == "v9"


def test_results_keep_the_order_of_the_rows(live: LiveAudit) -> None:
    rows = [
        NumberedRow(1, {"person": "p1", "outcome": None}),
        NumberedRow(2, {}, "torn"),
        NumberedRow(3, {"person": "p3", "outcome": "paid"}),
    ]

    def attempt(commands: Any) -> list[Any]:
        return [c if isinstance(c, InvalidInput) else Reply(c.person) for c in commands]

    silent, torn, told = carry_out(rows, RowReader(live.settings, "tell", None), attempt)
    assert (silent.person, silent.command, silent.result) == ("p1", None, None)
    assert (torn.person, str(torn.result)) == ("", "torn")
    assert (told.command, told.result) == (Tell("p3", 1), Reply("p3"))


def test_a_group_may_be_spelled_in_any_case(live: LiveAudit) -> None:
    values = live.settings.values
    assert understand_command(Ask("p", "BLACK", 0), values) == Ask("p", "Black", 0)
    assert understand_command(Ask("p", "Red", 0), values) == Ask("p", "Red", 0)
    assert understand_command(Tell("p", 1), values) == Tell("p", 1)
