"""Which files, folders and columns are meant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest

import equipoise as eq
from equipoise.cells import Cells, GroupCells
from equipoise.errors import BadData, InvalidInput
from tests.support.messages import refused

COLUMNS = {"group": "g", "decision": "d", "outcome": "y"}
GOOD = "g,d,y\na,1,1\na,0,\nb,1,0\nb,0,\n"
CELLS = Cells({"a": GroupCells(1, 0, 1), "b": GroupCells(0, 1, 1)})


def read(source: object, **options: Any) -> eq.History:
    return eq.History.read(source, **(COLUMNS | options))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("folder", ["d=1", "D=1", "g=all"])
def test_columns_of_files_go_before_names_of_folders(folder: str, tmp_path: Path) -> None:
    path = write(tmp_path / folder / "past.csv", GOOD)
    for source in (path, path.parent, str(path.parent / "*.csv"), tmp_path):
        assert read(source).cells == CELLS


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_folders_of_a_lake_are_columns(kind: str, tmp_path: Path) -> None:
    """``g=a%20b/d=1`` as Spark writes it: a blank is escaped, and values are text."""
    for group, decision, outcome in (("a%20b", 1, "1"), ("a%20b", 0, ""), ("c", 1, "0")):
        path = write(tmp_path / f"g={group}" / f"d={decision}" / "0.csv", f"id,y\n7,{outcome}\n")
        if kind == "parquet":
            pd.read_csv(path).to_parquet(path.with_suffix(".parquet"))
            path.unlink()
    for source in (tmp_path, str(tmp_path / "*" / "*" / f"0.{kind}")):
        cells = read(source).cells
        assert cells == Cells({"a b": GroupCells(1, 0, 1), "c": GroupCells(0, 1, 0)})
    # Where only some files are in such folders, these are names like any other.
    write(tmp_path / "h=1" / "past.csv", GOOD)
    assert read([tmp_path / "h=1" / "past.csv", write(tmp_path / "x.csv", GOOD)]).cells.total == 8


def test_folders_are_columns_beside_a_column_of_the_files(tmp_path: Path) -> None:
    text = "g,d,y\na b,1,1\na b,0,\n"
    write(tmp_path / "g=z" / "d=7" / "month=1" / "0.csv", text)
    write(tmp_path / "g=z" / "d=7" / "month=2" / "0.csv", text.replace("a b", "c"))
    cells = read(tmp_path, group="month").cells
    assert cells == Cells({"1": GroupCells(1, 0, 1), "2": GroupCells(1, 0, 1)})
    assert list(read(tmp_path).cells) == ["a b", "c"]


@pytest.mark.parametrize("others", [(), ("a=b", "", "__HIVE_DEFAULT_PARTITION__")])
def test_folders_of_a_lake_may_be_spelled_in_any_way(others: Sequence[str], tmp_path: Path) -> None:
    for folder in ("G=a%20b", "g=c", *(f"g={value}" for value in others)):
        write(tmp_path / folder / "0.csv", "d,y\n1,1\n0,\n")
    cells = read(tmp_path, missing_group="none").cells
    expected = {"a b": GroupCells(1, 0, 1), "c": GroupCells(1, 0, 1)}
    if others:
        expected |= {"a=b": GroupCells(1, 0, 1), "none": GroupCells(2, 0, 2)}
    assert dict(cells) == expected


def test_files_beside_the_folders_of_a_lake_are_named(tmp_path: Path) -> None:
    inside = write(tmp_path / "g=a" / "0.csv", "d,y\n1,1\n0,\n")
    for number in range(2):
        outside = write(tmp_path / f"{number}.csv", "d,y\n1,1\n0,\n")
        with pytest.raises(InvalidInput, match=r"the column 'g' is a folder of .* as g=\.\.\."):
            read(tmp_path)
    write(tmp_path / "g=b" / "h=1" / "0.csv", "d,y\n1,1\n0,\n")
    assert len(read([inside, tmp_path / "g=b"]).cells) == 2
    assert outside.exists()


def twice(kind: str, folder: Path) -> object:
    """Return a table with two columns ``g``, of which the first names other groups."""
    names, rows = ["g", "d", "y", "g"], [["x", "1", "1", "a"], ["z", "1", "0", "b"]]
    if kind == "csv":
        text = "\n".join(",".join(row) for row in [names, *rows])
        return [write(folder / "0.csv", GOOD), write(folder / "1.csv", text)]
    if kind == "excel":
        book = openpyxl.Workbook()
        for row in (names, *rows):
            book.active.append(row)
        book.save(folder / "past.xlsx")
        return folder / "past.xlsx"
    if kind == "pandas":
        return pd.DataFrame(rows, columns=names)
    if kind == "pyarrow":
        return pa.table([list(column) for column in zip(*rows, strict=True)], names=names)
    return duckdb.connect().from_query("SELECT 'x' AS g, 1 AS d, 1 AS y, 'a' AS g")


@pytest.mark.parametrize("kind", ["csv", "excel", "pandas", "pyarrow", "duckdb"])
def test_a_column_that_is_there_twice_is_refused(kind: str, tmp_path: Path) -> None:
    with pytest.raises(BadData, match="column 'g' must be there once; 2 columns have that name"):
        read(twice(kind, tmp_path))


def test_a_column_that_is_not_used_may_be_there_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "past.csv", "g,x,d,y,x,g_1\na,,1,1,,\na,,0,,,\nb,,1,0,,\nb,,0,,,\n")
    assert read(path).cells == CELLS


def test_a_file_counts_once(tmp_path: Path) -> None:
    path = write(tmp_path / "past.csv", GOOD)
    (tmp_path / "latest.csv").symlink_to(path)
    for source in ([path, path], [path, str(tmp_path / "p*.csv")], tmp_path):
        with pytest.raises(InvalidInput, match=r"holds the file '.*' twice.* name every file once"):
            read(source)


def test_files_of_a_folder_that_are_left_out_are_counted(tmp_path: Path) -> None:
    write(tmp_path / "jan.csv", GOOD.replace("\n", ",2024-01-31\n").replace("2024-01-31", "day", 1))
    assert "without" not in str(read(tmp_path))
    for name in ("feb.xlsx", "mar.csv.bz2", "more/may.xlsx", "_apr.csv", ".jun.csv"):
        write(tmp_path / name, GOOD)
    note = f"source    {str(tmp_path / 'jan.csv')!r} (without 3 that are neither CSV nor Parquet)"
    dated = {"date": "day", "since": "2024-01-01"}
    for more in ({}, dated):
        history = eq.History.read(tmp_path, **COLUMNS, **more)
        assert note in str(history)
        assert history.cells == CELLS


@pytest.mark.parametrize(
    ("bad", "remedied"), [('"odd" bank', '"""odd"" bank"'), ("\r\na,1,1", "\na,1,1")]
)
def test_a_file_that_is_no_csv_is_explained(bad: str, remedied: str, tmp_path: Path) -> None:
    text = f"g,d,y\n{bad},1,1\nb,1,0\n" if bad[0] == '"' else f"g,d,y\nb,1,0{bad}\nb,1,0\r\n"
    path = write(tmp_path / "past.csv", "")
    path.write_bytes(text.encode())
    with refused("csv-not-understood"):
        read(path)
    path.write_bytes(text.replace(bad, remedied).replace("\r\n", "\n").encode())
    assert len(read(path).cells) == 2
