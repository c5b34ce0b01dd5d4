"""The same table, offered by every kind of source that History.read takes."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

Table = dict[str, list[Any]]
"""Columns of Python values, None where one is missing."""


def offer(kind: str, table: Table, folder: Path) -> object:
    """Return the table as a source of the kind; files go into the folder."""
    return BACKENDS[kind](table, folder)


def _csv(table: Table, folder: Path) -> object:
    path = folder / "past.csv"
    pd.DataFrame(table, dtype=object).to_csv(path, index=False)
    return path


def _csv_gz(table: Table, folder: Path) -> object:
    path = folder / "past.csv.gz"
    pd.DataFrame(table, dtype=object).to_csv(path, index=False, sep=";")
    return str(path)


def _parquet(table: Table, folder: Path) -> object:
    path = folder / "past.parquet"
    pyarrow.parquet.write_table(pa.table(table), path)
    return path


def _parquet_list(table: Table, folder: Path) -> object:
    whole, rows = pa.table(table), len(next(iter(table.values())))
    cut = rows // 3
    paths = [folder / "z.parquet", folder / "a.parquet"]  # read as listed, not by name
    pyarrow.parquet.write_table(whole.slice(0, cut), paths[0])
    pyarrow.parquet.write_table(whole.slice(cut), paths[1])
    return paths


def _parquet_glob(table: Table, folder: Path) -> object:
    whole, rows = pa.table(table), len(next(iter(table.values())))
    cut = rows // 2
    pyarrow.parquet.write_table(whole.slice(0, cut), folder / "part-0.parquet")
    shuffled = list(reversed(whole.column_names))  # columns are matched by name
    pyarrow.parquet.write_table(whole.slice(cut).select(shuffled), folder / "part-1.parquet")
    return str(folder / "part-*.parquet")


def _pandas(table: Table, folder: Path) -> object:
    return pd.DataFrame(table)


def _pandas_object(table: Table, folder: Path) -> object:
    return pd.DataFrame(table, dtype=object)


def _polars(table: Table, folder: Path) -> object:
    return pl.DataFrame(table)


def _polars_lazy(table: Table, folder: Path) -> object:
    return pl.LazyFrame(table)


def _pyarrow(table: Table, folder: Path) -> object:
    return pa.table(table)


def _pyarrow_dataset(table: Table, folder: Path) -> object:
    return pyarrow.dataset.dataset(_parquet(table, folder))


def _arrays(table: Table, folder: Path) -> object:
    return {name: np.array(column, dtype=object) for name, column in table.items()}


def _duckdb(table: Table, folder: Path) -> object:
    return duckdb.connect().from_arrow(pa.table(table))


def _ibis(table: Table, folder: Path) -> object:
    path = _parquet(table, folder)
    with warnings.catch_warnings():  # ibis calls a method that DuckDB has renamed
        warnings.simplefilter("ignore", DeprecationWarning)
        return ibis.duckdb.connect().read_parquet(path)


def _ibis_sqlite(table: Table, folder: Path) -> object:
    columns = ", ".join(f"{name} {_sqlite_type(column)}" for name, column in table.items())
    marks = ", ".join("?" for _ in table)
    path = folder / "past.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE loans ({columns})")
        rows = zip(*table.values(), strict=True)
        connection.executemany(f"INSERT INTO loans VALUES ({marks})", rows)
    connection.close()
    return ibis.sqlite.connect(path).table("loans")


def _sqlite_type(column: list[Any]) -> str:
    kinds = {bool: "BOOLEAN", int: "INTEGER", float: "REAL"}
    return kinds.get(type(next((v for v in column if v is not None), None)), "TEXT")


BACKENDS: dict[str, Callable[[Table, Path], object]] = {
    "csv": _csv,
    "csv.gz": _csv_gz,
    "parquet": _parquet,
    "parquet list": _parquet_list,
    "parquet glob": _parquet_glob,
    "pandas": _pandas,
    "pandas objects": _pandas_object,
    "polars": _polars,
    "polars lazy": _polars_lazy,
    "pyarrow": _pyarrow,
    "pyarrow dataset": _pyarrow_dataset,
    "arrays": _arrays,
    "duckdb": _duckdb,
    "ibis": _ibis,
    "ibis sqlite": _ibis_sqlite,
}
