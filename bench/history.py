"""Counting past decisions: History.read against the bare query, pandas and fairlearn."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from tests.support.tables import CACHE, table

from bench.measure import Measurement, measure

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

COLUMNS = {"group": "race", "decision": "approved", "outcome": "repaid"}
COUNT = "SELECT race, approved, repaid, count(*) FROM '{path}' GROUP BY ALL"
WORDS = "SELECT race, sex, decision, status, count(*) FROM '{path}' GROUP BY ALL"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=100_000_000, help="rows of the large table")
    parser.add_argument("--frame-rows", type=int, default=10_000_000, help="rows of the frame")


def run(options: argparse.Namespace) -> Table:
    large, small = generated(options.rows), generated(options.frame_rows)
    out = table(
        "Counts per group, decision and outcome",
        "task",
        "rows",
        "seconds",
        "CPU",
        "peak MB",
        "× CPU of first",
    )
    _add(
        out,
        options.rows,
        {
            "bare DuckDB count, Parquet": measure(bare_count, large),
            "History.read().cells, Parquet": measure(history_cells, large),
        },
    )
    _add(
        out,
        options.rows,
        {
            "bare count, words and two groups": measure(bare_words, large),
            "History.read(), words and two groups": measure(history_words, large),
        },
    )
    _add(
        out,
        options.frame_rows,
        {
            "pandas groupby": measure(pandas_groupby, small),
            "fairlearn MetricFrame": measure(fairlearn_frame, small, runs=1),
            "History.read().cells, pandas": measure(history_of_frame, small),
            "History.read().cells, Parquet": measure(history_cells, small),
        },
    )
    return out


def generated(rows: int) -> str:
    """Return a Parquet file of so many past decisions, made once."""
    path = CACHE / f"past-{rows}-words.parquet"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        _connect().execute(
            f"""
            COPY (
                SELECT
                    i AS id,
                    CASE WHEN h % 100 < 70 THEN 'White' WHEN h % 100 < 85 THEN 'Black'
                         WHEN h % 100 < 95 THEN 'Hispanic' ELSE 'Asian' END AS race,
                    CASE WHEN (h // 1000000) % 2 = 0 THEN 'female' ELSE 'male' END AS sex,
                    CAST((h // 100) % 100 AS UTINYINT) AS score,
                    CASE WHEN (h // 100) % 100 >= 40 THEN 'approved' ELSE 'denied' END AS decision,
                    CASE WHEN (h // 100) % 100 < 40 THEN NULL
                         WHEN (h // 10000) % 100 < 85 THEN 'repaid' ELSE 'lost' END AS status,
                    CAST((h // 100) % 100 >= 40 AS TINYINT) AS approved,
                    CASE WHEN (h // 100) % 100 >= 40
                         THEN CAST((h // 10000) % 100 < 85 AS TINYINT) END AS repaid
                FROM (SELECT i, hash(i) AS h FROM range({rows}) AS numbers(i))
            ) TO '{unfinished}' (FORMAT parquet)
            """
        )
        unfinished.rename(path)
    return str(path)


def bare_count(path: str) -> Callable[[], object]:
    return lambda: sorted(_connect().execute(COUNT.format(path=path)).fetchall(), key=str)


def history_cells(path: str) -> Callable[[], object]:
    from equipoise.history import History

    return lambda: History.read(path, **COLUMNS).cells


def bare_words(path: str) -> Callable[[], object]:
    return lambda: len(_connect().execute(WORDS.format(path=path)).fetchall())


def history_words(path: str) -> Callable[[], object]:
    from equipoise.history import History

    def read() -> object:
        return History.read(
            path,
            group=["race", "sex"],
            decision="decision",
            outcome="status",
            positive=["approved", "repaid"],
        ).cells

    return read


def pandas_groupby(path: str) -> Callable[[], object]:
    frame = _frame(path)
    keys = ["race", "approved", "repaid"]
    return lambda: len(frame.groupby(keys, dropna=False, observed=True).size())


def fairlearn_frame(path: str) -> Callable[[], object]:
    from fairlearn.metrics import MetricFrame, count, false_positive_rate, true_positive_rate

    frame = _frame(path)
    # Denials as failures, and plain arrays, the quickest it takes.
    truth = frame.repaid.fillna(0).astype("int8").to_numpy()
    decision, race = frame.approved.to_numpy(), frame.race.to_numpy(dtype=object)
    metrics = {"tpr": true_positive_rate, "fpr": false_positive_rate, "count": count}
    return lambda: len(
        MetricFrame(
            metrics=metrics,
            y_true=truth,
            y_pred=decision,
            sensitive_features=race,
        ).by_group
    )


def history_of_frame(path: str) -> Callable[[], object]:
    from equipoise.history import History

    frame = _frame(path)
    return lambda: History.read(frame, **COLUMNS).cells


def _connect() -> duckdb.DuckDBPyConnection:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    return connection


def _frame(path: str) -> pd.DataFrame:
    import pandas as pd

    return pd.read_parquet(Path(path), columns=["race", "approved", "repaid"])


def _add(out: Table, rows: int, tasks: dict[str, Measurement]) -> None:
    first = next(iter(tasks.values()))
    for name, m in tasks.items():
        out.add_row(
            name,
            f"{rows / 1e6:g} M",
            f"{m.seconds:.2f}",
            f"{m.cpu:.2f}",
            f"{m.megabytes:,.0f}",
            f"{m.cpu / first.cpu:.2f}",
        )
    out.add_section()
