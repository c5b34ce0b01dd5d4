"""The same table, offered by every kind of source that History.read takes."""

from __future__ import annotations

import sqlite3
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import ibis
import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import sqlalchemy

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


def _lists(table: Table, folder: Path) -> object:
    return table


def _duckdb(table: Table, folder: Path) -> object:
    return duckdb.connect().from_arrow(pa.table(table))


def _ibis(table: Table, folder: Path) -> object:
    path = _parquet(table, folder)
    with warnings.catch_warnings():  # ibis calls a method that DuckDB has renamed
        warnings.simplefilter("ignore", DeprecationWarning)
        return ibis.duckdb.connect().read_parquet(path)


def _ibis_sqlite(table: Table, folder: Path) -> object:
    backend = ibis.sqlite.connect(_sqlite(table, folder))
    weakref.finalize(backend, backend.con.close)  # ibis leaves it to its user to close
    return backend.table("loans")


def _ibis_polars(table: Table, folder: Path) -> object:
    return ibis.polars.connect({"loans": pl.DataFrame(table)}).table("loans")


def _sqlite(table: Table, folder: Path) -> Path:
    columns = ", ".join(f"{name} {_sqlite_type(column)}" for name, column in table.items())
    marks = ", ".join("?" for _ in table)
    path = folder / "past.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE loans ({columns})")
        rows = zip(*table.values(), strict=True)
        connection.executemany(f"INSERT INTO loans VALUES ({marks})", rows)
    connection.close()
    return path


def _address(table: Table, folder: Path) -> object:
    return f"sqlite:///{_sqlite(table, folder)}"


def _engine(table: Table, folder: Path) -> object:
    return sqlalchemy.create_engine(
        f"sqlite:///{_sqlite(table, folder)}", poolclass=sqlalchemy.NullPool
    )


def _duckdb_file(table: Table, folder: Path) -> Path:
    path, arrow = folder / "past.duckdb", pa.table(table)
    with duckdb.connect(str(path)) as connection:
        connection.register("given", arrow)
        connection.execute("CREATE TABLE loans AS FROM given")
    return path


def _duckdb_connection(table: Table, folder: Path) -> object:
    return duckdb.connect(str(_duckdb_file(table, folder)), read_only=True)


def _folder(table: Table, folder: Path) -> object:
    own = folder / "loans"
    (own / "2024").mkdir(parents=True)
    (own / "_SUCCESS").touch()
    whole, rows = pa.table(table), len(next(iter(table.values())))
    pyarrow.parquet.write_table(whole.slice(0, rows // 2), own / "2024" / "a.parquet")
    pyarrow.parquet.write_table(whole.slice(rows // 2), own / "2024" / "b.parquet")
    return own


def _excel(table: Table, folder: Path) -> object:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("loans")
    sheet.append(list(table))
    for row in zip(*table.values(), strict=True):
        sheet.append(list(row))
    book.save(folder / "past.xlsx")
    return folder / "past.xlsx"


def _batches(table: Table, folder: Path) -> object:
    return pa.table(table).to_reader()


def _delta(table: Table, folder: Path) -> object:
    """Write a Delta table of which a row was deleted again; its file is still there."""
    own, arrow = folder / "delta", _typed(table)
    deltalake.write_deltalake(own, arrow)
    if arrow.num_rows:
        at = arrow.column_names.index("id")
        twice = arrow.slice(0, 1).set_column(at, "id", pa.array([-1], type=arrow.schema[at].type))
        deltalake.write_deltalake(own, twice, mode="append")
        deltalake.DeltaTable(own).delete("id = -1")
    return own


def _delta_table(table: Table, folder: Path) -> object:
    return deltalake.DeltaTable(str(_delta(table, folder)))


def _typed(table: Table) -> pa.Table:
    """Give a column without values a type, which Delta wants."""
    arrow = pa.table(table)
    fields = [f.with_type(pa.string()) if pa.types.is_null(f.type) else f for f in arrow.schema]
    return arrow.cast(pa.schema(fields))


def _sqlite_type(column: list[Any]) -> str:
    kinds = {bool: "BOOLEAN", int: "INTEGER", float: "REAL"}
    return kinds.get(type(next((v for v in column if v is not None), None)), "TEXT")


BACKENDS: dict[str, Callable[[Table, Path], object]] = {
    "csv": _csv,
    "csv.gz": _csv_gz,
    "parquet": _parquet,
    "parquet list": _parquet_list,
    "parquet glob": _parquet_glob,
    "folder": _folder,
    "excel": _excel,
    "delta folder": _delta,
    "delta table": _delta_table,
    "sqlite file": _sqlite,
    "sqlalchemy address": _address,
    "sqlalchemy engine": _engine,
    "duckdb file": _duckdb_file,
    "duckdb connection": _duckdb_connection,
    "duckdb": _duckdb,
    "pandas": _pandas,
    "pandas objects": _pandas_object,
    "polars": _polars,
    "polars lazy": _polars_lazy,
    "pyarrow": _pyarrow,
    "pyarrow dataset": _pyarrow_dataset,
    "record batches": _batches,
    "arrays": _arrays,
    "lists": _lists,
    "ibis": _ibis,
    "ibis sqlite": _ibis_sqlite,
    "ibis polars": _ibis_polars,
}

TABLES = (
    "sqlite file",
    "sqlalchemy address",
    "sqlalchemy engine",
    "duckdb file",
    "duckdb connection",
)
UNORDERED = (
    *TABLES,
    "duckdb",
    "polars lazy",
    "record batches",
    *(k for k in BACKENDS if "ibis" in k),
)


def options(kind: str) -> dict[str, Any]:
    """Return what has to be said beside the source."""
    return {"table": "loans"} if kind in TABLES else {}
