"""A file of checks over time, one row per group and rate, so that a nightly check has a trend."""

from __future__ import annotations

import glob
import os
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.errors import BadData, InvalidInput

if TYPE_CHECKING:
    from equipoise.free_check import Check

COLUMNS = {
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
"""The columns of the file, with their types in DuckDB."""


def append_checks(path: Path, findings: Sequence[Check], people: float) -> None:
    """Add checks to a Parquet file, which is replaced only once everything is on disk."""
    import duckdb

    require_parquet(path)
    rows = _rows_of(findings, people)
    # In the same folder: only within one file system is a file replaced in one step.
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    marks = ", ".join("?" for _ in COLUMNS)
    try:
        with duckdb.connect() as connection:
            connection.execute(f"CREATE TABLE checks ({columns})")
            if path.exists():
                connection.executemany(f"INSERT INTO checks VALUES ({marks})", read_checks(path))
            connection.executemany(f"INSERT INTO checks VALUES ({marks})", rows)
            connection.execute(f"COPY checks TO {_quoted(part)} (FORMAT parquet)")
        os.replace(part, path)
    except (OSError, duckdb.Error) as error:
        raise InvalidInput(f"'--append' cannot write {str(path)!r}: {error}") from None
    finally:
        part.unlink(missing_ok=True)


def read_checks(path: Path) -> list[tuple[Any, ...]]:
    """Return the rows of a file of checks, in order of time."""
    import duckdb

    require_parquet(path)
    if not path.exists():
        raise InvalidInput(f"File not found: {path}")
    pattern = Path(glob.escape(str(path)))  # DuckDB would take a star in the name for a pattern
    query = f"SELECT {', '.join(COLUMNS)} FROM read_parquet({_quoted(pattern)})"
    try:
        with duckdb.connect() as connection:
            return connection.execute(f"{query} ORDER BY time").fetchall()
    except duckdb.Error:
        raise BadData(f"{str(path)!r} is no file that check --append has written") from None


def require_parquet(path: Path) -> None:
    """Refuse a file of another kind."""
    if path.suffix != ".parquet":
        raise InvalidInput(f"the file of checks must end in .parquet; got {path.name!r}")


def _rows_of(findings: Sequence[Check], people: float) -> list[tuple[Any, ...]]:
    # DuckDB's TIMESTAMP has no time zone, and the column is in UTC.
    check_time = datetime.now(UTC).replace(tzinfo=None)
    rows = []
    for finding in findings:
        question = finding.question
        question_values = (question.metric, question.gamma, question.epsilon, question.delta)
        answer_values = (finding.verdict.value, finding.lower, finding.upper)
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
                    )
                )
    return rows


def _quoted(path: Path) -> str:
    text = str(path).replace("'", "''")
    return f"'{text}'"
