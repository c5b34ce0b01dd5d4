"""What only one kind of source can get wrong."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sqlalchemy
from sqlalchemy import NullPool
from sqlalchemy.orm import Session

import equipoise as eq
from equipoise.cells import Cells, GroupCells
from equipoise.errors import BadData, InvalidInput
from tests.support.messages import refused

COLUMNS = {"group": "g", "decision": "d", "outcome": "y"}
GOOD = "g,d,y\na,1,1\na,0,\nb,1,0\nb,0,\n"


def read(source: object) -> eq.History:
    return eq.History.read(source, **COLUMNS)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"File not found: .*nothing\.csv$"):
        read(tmp_path / "nothing.csv")
    with pytest.raises(InvalidInput, match=r"File not found: .*\*\.parquet$"):
        read(str(tmp_path / "*.parquet"))


def test_a_folder_without_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no CSV or Parquet file in the folder"):
        read(tmp_path)


@pytest.mark.parametrize(("name", "words"), [("past.csv", "is empty"), ("past.pq", "too small")])
def test_an_empty_file_is_refused(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    with pytest.raises(BadData, match=words):
        read(tmp_path / name)


def test_polars_counts_its_own_frames() -> None:
    """DuckDB would need pyarrow for them, which polars does not bring."""
    frame = pl.DataFrame({"g": ["a", "a", "b", "b"], "d": [1, 0, 1, 0], "y": [1, None, 0, None]})
    for source in (frame, frame.lazy()):
        assert "4 rows counted by polars" in str(read(source))


def test_a_sheet_that_begins_with_an_empty_row_is_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"g": ["a", "b"], "d": [1, 1], "y": [1, 0]})
    frame.to_excel(tmp_path / "past.xlsx", index=False, startrow=1)
    with pytest.raises(BadData, match="the sheet's first row must name the columns"):
        read(tmp_path / "past.xlsx")


def test_a_header_alone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "past.csv").write_text("g,d,y\n")
    with pytest.raises(BadData, match="has no rows"):
        read(tmp_path / "past.csv")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("past.parquet", b"this is not parquet"),
        ("past.csv", b"g,d,y\n\xff\xfe\xfa,1,1\n" * 3),
        ("past.csv", GOOD.encode() + b'a,1,1,"' + b"x" * 50 + b'"'),
    ],
)
def test_an_unreadable_file_is_named(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadData) as caught:
        read(tmp_path / name)
    message = str(caught.value)
    assert f"cannot read '{tmp_path / name}': " in " ".join(message.splitlines()[:2])


@pytest.mark.parametrize("names", [["past.json"], ["past"], ["a.csv", "b.parquet"]])
def test_other_kinds_of_file_are_refused(names: list[str], tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).write_text(GOOD)
    with pytest.raises(
        InvalidInput, match=r"must be CSV .* or Parquet files .* one kind at a time"
    ):
        read([tmp_path / name for name in names])


@pytest.mark.parametrize("source", [[], [1, 2], 7, None])
def test_other_things_are_refused(source: object) -> None:
    with pytest.raises(InvalidInput, match="'source'"):
        read(source)


def test_a_late_change_of_type_is_explained(tmp_path: Path) -> None:
    """No type is guessed from the first rows, so row 30,001 is read as it is written."""
    path = tmp_path / "past.csv"
    path.write_text("g,d,y\n" + "a,1,1\nb,1,0\n" * 15_000 + "a,maybe,1\n")
    with pytest.raises(
        BadData, match=r"'d' must be 0/1 or true/false; found '1' \(30,000\), 'maybe' \(1\)"
    ):
        read(path)
    objects = [1] * 30_000 + ["maybe"]
    frame = pd.DataFrame({"g": ["a", "b"] * 15_000 + ["a"], "d": objects, "y": [1] * 30_001})
    with pytest.raises(
        BadData, match=r"'d' must be 0/1 or true/false; found '1' \(30,000\), 'maybe' \(1\)"
    ):
        read(frame)


def test_mixed_values_are_listed() -> None:
    frame = pd.DataFrame({"g": ["a", "b", "a"], "d": [1, "yes", True], "y": [1, 0, 1]})
    with pytest.raises(
        BadData, match=r"'d' must be 0/1 or true/false; found '1' \(1\), 'True' \(1\), 'yes' \(1\)"
    ):
        read(frame)


def test_nan_is_missing() -> None:
    columns = {
        "g": ["a", "a", "b", "b"],
        "d": [1.0, 0.0, 1.0, 0.0],
        "y": [1.0, np.nan, 0.0, np.nan],
    }
    for frame in (pl.DataFrame(columns), pd.DataFrame(columns)):
        assert read(frame).cells["a"] == GroupCells(1, 0, 1)
    frame = pl.DataFrame({"g": [1.0, np.nan], "d": [1, 1], "y": [1, 1]})
    with refused("group-missing", column="g", rows=1):
        read(frame)


def test_two_files_with_columns_in_another_order(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text(GOOD)
    (tmp_path / "2.csv").write_text("y,d,g\n1,1,b\n,0,a\n")
    history = read([tmp_path / "1.csv", tmp_path / "2.csv"])
    assert history.cells == Cells({"a": GroupCells(1, 0, 2), "b": GroupCells(1, 1, 1)})


def test_a_column_may_have_any_name(tmp_path: Path) -> None:
    path = tmp_path / "past.csv"
    path.write_text('"the ""group""",select,y\'s\na,1,1\nb,1,0\n')
    history = eq.History.read(path, group='the "group"', decision="select", outcome="y's")
    assert history.cells["b"] == GroupCells(0, 1, 0)


@pytest.mark.parametrize("name", ["n", "N", "count", "len", "equipoise_past", "equipoise count"])
def test_a_column_may_have_a_name_that_queries_use(name: str) -> None:
    """Rows are counted, never read from a column, used or not, that is called like a count."""
    rows = range(60)
    frame = pd.DataFrame(
        {
            name: [900_000 + i for i in rows],
            "g": ["ab"[i % 2] for i in rows],
            "d": 1,
            "y": [int(i % 3 > 0) for i in rows],
        }
    )
    assert read(frame).cells["a"] == GroupCells(20, 10, 0)
    marked = frame.drop(columns=name).rename(columns={"y": name})
    history = eq.History.read(marked, group="g", decision="d", outcome=name)
    assert history.cells["a"] == GroupCells(20, 10, 0)
    with refused("group-missing", column="g", rows=1, written={"": 1}):
        read(frame.assign(g=frame["g"].where(frame.index != 6)))


@pytest.mark.parametrize("name", ["a%20b.sqlite", "a#b.sqlite", "a?b.sqlite", "a?mode=rwc"])
def test_a_database_file_may_have_any_name(name: str, tmp_path: Path) -> None:
    """Neither another file is read nor a new one made."""
    people = pd.DataFrame({"g": ["a", "b"], "d": [1, 1], "y": [1, 0]})
    for own, frame in (("past", people), ("a b.sqlite", people[:1]), ("a", people[:1])):
        with closing(sqlite3.connect(tmp_path / own)) as connection:
            frame.to_sql("t", connection)
    (tmp_path / "past").rename(tmp_path / name)
    before = sorted(tmp_path.iterdir())
    assert eq.History.read(tmp_path / name, table="t", **COLUMNS).cells.total == 2
    assert sorted(tmp_path.iterdir()) == before


def test_a_csv_file_may_have_any_name(tmp_path: Path) -> None:
    (tmp_path / "what?.csv").write_text(GOOD)
    (tmp_path / "whatx.csv").write_text(GOOD * 2)
    assert read(tmp_path / "what?.csv").cells.total == 4


def test_quotes_that_come_late_are_no_part_of_values(tmp_path: Path) -> None:
    path = tmp_path / "past.csv"
    late = '"a",1,1\n' * 300 + '"b",0,\n' * 300 + '"say ""x"", y",1,1\n'
    path.write_text("g,d,y\n" + "a,1,1\nb,1,0\n" * 15_000 + late)
    assert read(path).cells == Cells(
        {
            "a": GroupCells(15_300, 0, 0),
            "b": GroupCells(0, 15_000, 300),
            'say "x", y': GroupCells(1, 0, 0),
        }
    )


@pytest.mark.parametrize(
    "text",
    [
        'g,note,d,y\n"a","he said \\"x, y\\"",1,1\n"b","q",1,0\n',
        'g,note,d,y\n"a","C:\\x\\",1,1\n"b","q\\",1,0\n',
        "g,note,d,y\na,5\" pipe,1,1\nb,'tis,1,0\n",
    ],
)
def test_other_ways_to_quote_are_recognised(text: str, tmp_path: Path) -> None:
    (tmp_path / "past.csv").write_text(text)
    assert read(tmp_path / "past.csv").cells.groups == ("a", "b")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"g": ["a", "b"], "d": 1, "y": [1, 0]}, r"equally long; got shapes .* \(\) in 'd'"),
        (
            {"g": ["a", "b"], "d": [1], "y": [1, 0]},
            r"equally long; got shapes \(2,\) in 'g', \(1,\) in 'd'",
        ),
        ({}, "equally long; got shapes no column"),
    ],
)
def test_a_mapping_must_hold_columns(columns: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read(columns)


def test_a_query_may_hold_colons(tmp_path: Path) -> None:
    """``::`` casts, ``:`` in texts; a name of several parts reaches an attached database."""
    query = "SELECT CASE WHEN g = ':x' THEN 'a' ELSE 'b' END AS g, d::INT AS d, y FROM t"
    frame = pd.DataFrame({"g": [":x", "b"], "d": ["1", "1"], "y": [1, 0]})
    connection = duckdb.connect()
    connection.execute("ATTACH ':memory:' AS bank")
    connection.register("frame", frame)
    connection.execute("CREATE TABLE bank.main.t AS FROM frame")
    assert eq.History.read(connection, table="bank.main.t", **COLUMNS).cells.total == 2
    connection.execute("USE bank")
    assert eq.History.read(connection, query=query, **COLUMNS).cells.groups == ("a", "b")
    with pytest.raises(BadData, match=r"cannot read the DuckDB connection: .* loan does not exist"):
        eq.History.read(connection, table="loan", **COLUMNS)


def test_a_closed_connection_is_named() -> None:
    connection = duckdb.connect()
    relation = connection.sql("SELECT 'a' AS g, 1 AS d, 1 AS y")
    connection.close()
    for source in (connection, relation):
        with pytest.raises(BadData, match=r"cannot read the DuckDB .* closed"):
            eq.History.read(source, table="t" if source is connection else None, **COLUMNS)


def test_a_session_is_refused(tmp_path: Path) -> None:
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path / 'past'}", poolclass=NullPool)
    pd.DataFrame({"g": ["a", "b"], "d": [1, 1], "y": [1, 0]}).to_sql("t", engine)
    with Session(engine) as session:
        with pytest.raises(InvalidInput, match=r"of a session: session\.get_bind\(\)"):
            read(session)
        assert eq.History.read(session.get_bind(), table="t", **COLUMNS).cells.total == 2


def test_a_missing_value_of_pandas_is_one() -> None:
    outcomes = pd.Series(["1", pd.NA, "0"], dtype="string")
    decisions = pd.Series([1, 0, 1], dtype="Int64")
    history = eq.History.from_predictions(outcomes, decisions, pd.Series(["a", "a", "b"]))
    assert history.cells["a"] == GroupCells(1, 0, 1)


def test_a_stranger_may_not_reach_the_database() -> None:
    """Values and names are quoted: nothing in a table is run as SQL."""
    nasty = "x'; DROP TABLE equipoise_past; --"
    frame = pd.DataFrame({"g": [nasty, "b"], "d": [1, 1], "y": [1, 0]})
    assert read(frame).cells[nasty] == GroupCells(1, 0, 0)


@pytest.mark.parametrize(
    ("kind", "mark"), [("Hudi", ".hoodie/a"), ("Iceberg", "metadata/v1.metadata.json")]
)
def test_a_lake_that_cannot_be_read_rightly_is_refused(
    kind: str, mark: str, tmp_path: Path
) -> None:
    """Which rows are still there is written elsewhere."""
    for path in (tmp_path / mark, tmp_path / "data" / "part.csv"):
        path.parent.mkdir()
        path.write_text(GOOD)
    for source in (tmp_path, tmp_path / "data" / "part.csv"):
        with pytest.raises(InvalidInput, match=f"files of the {kind} table .* deleted rows"):
            read(source)


def test_a_file_of_a_delta_table_is_refused(tmp_path: Path) -> None:
    people = pd.DataFrame({"g": ["a", "a", "b"], "d": [1, 0, 1], "y": [1.0, None, 0.0]})
    deltalake.write_deltalake(tmp_path, people)
    deltalake.DeltaTable(tmp_path).delete("d = 0")
    assert read(tmp_path).cells.total == 2
    for source in (next(tmp_path.glob("*.parquet")), str(tmp_path / "*.parquet")):
        with pytest.raises(InvalidInput, match=r"files of the Delta table .* name the folder"):
            read(source)


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("lists", [[["a"], ["b"], ["a"]], [["a"], ["b", "c"], ["a"]]])
def test_lists_in_a_column_are_refused_by_name(kind: Any, lists: list[list[str]]) -> None:
    """Not read as groups named "['a']"; plain lists as columns of a mapping are read."""
    plain = {"g": ["a", "b", "a"], "d": [1, 0, 1], "y": [1, None, 0]}
    assert read(kind(plain)).cells["b"].denied == 1
    with pytest.raises(BadData, match="column 'g' must hold one value per person"):
        read(kind({**plain, "g": lists}))
    known = {**plain, "y": [1, 1, 0], "x": lists}
    with pytest.raises(BadData, match="column 'x' must hold one value per person"):
        eq.worlds.TableWorld.from_frame(
            kind(known), group="g", decision="d", outcome="y", features=["x"]
        )


def test_a_stream_that_cannot_be_read_is_named() -> None:
    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise ImportError("pyarrow is not there")

    with pytest.raises(BadData, match=r"cannot read the tests Stream: .*"):
        read(Stream())
