"""Fully labelled tables that the literature uses."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyRelation

__all__ = ["adult", "encode", "law_school"]

LAW_SCHOOL = "EQUIPOISE_LAW_SCHOOL"


def adult() -> DuckDBPyRelation:
    """Return the UCI Adult census table, 48,842 rows by 16 columns.

    ``income`` is ``>50K`` or ``<=50K``, ``part`` tells the original training rows from the test
    rows, an unknown value is ``?``. It is a DuckDB relation: ``.df()``, ``.pl()`` and
    ``.to_arrow_table()`` turn it into other tables.

    Becker, B. and Kohavi, R. (1996), UCI Machine Learning Repository, CC BY 4.0.

    Examples
    --------
    >>> adult().aggregate("income, count(*)", "income").order("income").fetchall()
    [('<=50K', 37155), ('>50K', 11687)]
    """
    import duckdb

    return duckdb.connect().read_parquet(str(files("equipoise.data") / "adult" / "adult.parquet"))


def law_school(path: str | os.PathLike[str] | None = None) -> DuckDBPyRelation:
    """Return the Law School admission table (20,798 rows by 12 columns), which is not shipped.

    Parameters
    ----------
    path
        The file ``law_school_clean.csv``; what the environment variable ``EQUIPOISE_LAW_SCHOOL``
        names if left out.

    Examples
    --------
    >>> law_school("no-such-file.csv")
    Traceback (most recent call last):
    equipoise.errors.InvalidInput: the Law School table: no file 'no-such-file.csv'
    """
    import duckdb

    place = path if path is not None else os.environ.get(LAW_SCHOOL)
    if place is None:
        raise InvalidInput(
            "the Law School table is not shipped, its licence being unclear: pass 'path' or set "
            f"{LAW_SCHOOL} to your copy of law_school_clean.csv"
        )
    if not Path(place).is_file():
        raise InvalidInput(f"the Law School table: no file {os.fspath(place)!r}")
    try:
        table = duckdb.connect().read_csv(os.fspath(place), header=True)
    except duckdb.Error as error:
        raise InvalidInput(f"the Law School table: {str(error).splitlines()[0]}") from None
    for column in ("race", "pass_bar"):
        if column not in table.columns:
            raise UnknownName("column of the Law School table", column, table.columns)
    return table


def encode(table: DuckDBPyRelation, columns: Sequence[str]) -> NDArray[np.float64]:
    """Return columns as features for a classifier, a row per person.

    Numbers are brought to mean 0 and variance 1, every word of a text column becomes an indicator.

    Examples
    --------
    >>> encode(adult(), ["age", "sex"]).shape
    (48842, 3)
    """
    for column in columns:
        if column not in table.columns:
            raise UnknownName("column", column, table.columns)
    quoted = ['"' + column.replace('"', '""') + '"' for column in columns]
    values = table.project(", ".join(quoted)).fetchnumpy()
    return np.column_stack([part for c in columns for part in _features(values[c])])


def _features(column: NDArray[np.generic]) -> list[NDArray[np.float64]]:
    if column.dtype.kind in "biuf":
        numbers = column.astype(np.float64)
        return [(numbers - numbers.mean()) / (numbers.std() or 1.0)]
    return [(column == word).astype(np.float64) for word in np.unique(column.astype(str))]
