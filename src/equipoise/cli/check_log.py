"""A file of checks over time, one row per group and rate, so that a nightly check has a trend."""

from __future__ import annotations

import glob
import math
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.errors import BadData, InvalidInput

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from equipoise.free_check import Check

FIRST_COLUMNS = {
    "time": "TIMESTAMP",
    "metric": "VARCHAR",
    "gamma": "DOUBLE",
    "epsilon": "DOUBLE",
    "delta": "DOUBLE",
    "verdict": "VARCHAR",
    "gap_lower": "DOUBLE",
    "gap_upper": "DOUBLE",
    "rate": "VARCHAR",
    "group_name": "VARCHAR",
    "rate_lower": "DOUBLE",
    "rate_upper": "DOUBLE",
    "people": "DOUBLE",
}
"""The columns of the first version, with their types in DuckDB; every value is there."""

LATER_COLUMNS = {
    "question": "VARCHAR",
    "compare": "VARCHAR",
    "against": "VARCHAR",
    "direction": "VARCHAR",
    "source": "VARCHAR",
    "assumptions": "VARCHAR",
}
"""Columns that were added. Rows of older files have NULL there."""

COLUMNS = FIRST_COLUMNS | LATER_COLUMNS
SHARES = ("gap_lower", "gap_upper", "rate_lower", "rate_upper")  # columns of numbers in [0, 1]


def append_checks(
    path: Path,
    findings: Sequence[Check],
    people: float,
    *,
    source: str = "",
    assumptions: Sequence[str] = (),
) -> None:
    """Add checks to a Parquet file, which is replaced only once everything is on disk.

    Programs that add at the same time wait for each other. A symbolic link is followed.
    """
    import duckdb

    require_parquet(path)
    target = Path(os.path.realpath(path))
    # In the same folder: only within one file system is a file replaced in one step.
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    marks = ", ".join("?" for _ in COLUMNS)
    try:
        # From reading to replacing, or one of two programs would store over what the other added.
        with _locked(target), duckdb.connect() as connection:
            connection.execute(f"CREATE TABLE checks ({columns})")
            rows = [tuple(row.values()) for row in read_checks(target)] if target.exists() else []
            rows += _rows_of(findings, people, source, ", ".join(assumptions))
            connection.executemany(f"INSERT INTO checks VALUES ({marks})", rows)
            connection.execute(f"COPY checks TO {_quoted(part)} (FORMAT parquet)")
            if target.exists():
                part.chmod(target.stat().st_mode)  # whoever may read the old file may read this one
            _write_to_disk(part)
            part.replace(target)
    except (OSError, duckdb.Error) as error:
        raise InvalidInput(f"'--append' cannot write {str(path)!r}: {error}") from None
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other programs from adding to a file; a program that ends lets go."""
    import fcntl

    # A file beside it that stays, because the file itself is replaced while it is locked.
    lock_file = os.open(path.with_name(f".{path.name}.lock"), os.O_CREAT | os.O_RDWR, 0o666)
    try:
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock_file)


def _write_to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def read_checks(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of checks, in order of time, with the columns of ``COLUMNS``.

    Raises
    ------
    BadData
        If a column is missing or of another type, or a value is missing or no share.
    """
    import duckdb

    require_parquet(path)
    if not path.exists():
        raise InvalidInput(f"File not found: {path}")
    pattern = Path(glob.escape(str(path)))  # DuckDB would take a star in the name for a pattern
    table = f"read_parquet({_quoted(pattern)})"
    try:
        with duckdb.connect() as connection:
            kinds = _column_types(connection, table)
            _require_columns(path, kinds)
            names = [name if name in kinds else f"NULL AS {name}" for name in COLUMNS]
            query = f"SELECT {', '.join(names)} FROM {table} ORDER BY time"
            rows = connection.execute(query).fetchall()
    except duckdb.Error:
        raise BadData(f"{str(path)!r} is no file that check --append has written") from None
    checks = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    for number, check in enumerate(checks, start=1):
        _require_values(path, number, check)
    return checks


def _column_types(connection: DuckDBPyConnection, table: str) -> dict[str, str]:
    """Return the columns of a table with their types in DuckDB."""
    described = connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()
    return {name: kind for name, kind, *_ in described}


def _require_columns(path: Path, kinds: Mapping[str, str]) -> None:
    for name, kind in COLUMNS.items():
        if name not in kinds:
            if name in LATER_COLUMNS:
                continue
            raise BadData(
                f"{str(path)!r} is no file that check --append has written: it has no column "
                f"{name!r}"
            )
        if kinds[name] != kind:
            raise BadData(
                f"column {name!r} of {str(path)!r} must be {kind}, as check --append writes it; "
                f"got {kinds[name]}. Another program has changed the file"
            )


def _require_values(path: Path, number: int, check: Mapping[str, Any]) -> None:
    """Refuse a row in which a value is missing, or is a number that no check gives."""
    for name, kind in FIRST_COLUMNS.items():
        value = check[name]
        rule = ""
        if value is None:
            rule = "must not be empty"
        elif name in SHARES and not 0.0 <= value <= 1.0:
            rule = "must lie between 0 and 1"
        elif kind == "DOUBLE" and not math.isfinite(value):
            rule = "must be a number"
        if rule:
            raise BadData(
                f"column {name!r} of {str(path)!r} {rule}; got {value!r} in row {number} by time. "
                "Another program has changed the file"
            )


def require_parquet(path: Path) -> None:
    """Refuse a file of another kind."""
    if path.suffix != ".parquet":
        raise InvalidInput(f"the file of checks must end in .parquet; got {path.name!r}")


def _rows_of(
    findings: Sequence[Check], people: float, source: str, assumptions: str
) -> list[tuple[Any, ...]]:
    # DuckDB's TIMESTAMP has no time zone, and the column is in UTC.
    check_time = datetime.now(UTC).replace(tzinfo=None)
    rows = []
    for finding in findings:
        question = finding.question
        comparison = question.comparison
        question_values = (question.metric, question.gamma, question.epsilon, question.delta)
        answer_values = (finding.verdict.value, finding.lower, finding.upper)
        comparison_values = (comparison.by, comparison.against, comparison.direction)
        for rate, intervals in finding.rates.items():
            for group, interval in intervals.items():
                rows.append(
                    (
                        check_time,
                        *question_values,
                        *answer_values,
                        rate,
                        group,
                        interval.lower,
                        interval.upper,
                        people,
                        str(question),
                        *comparison_values,
                        source,
                        assumptions,
                    )
                )
    return rows


def _quoted(path: Path) -> str:
    text = str(path).replace("'", "''")
    return f"'{text}'"
