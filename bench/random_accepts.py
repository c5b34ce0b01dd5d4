"""Random accepts tested against a score of few values and a continuous one: CPU and memory."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from rich.table import Table
from tests.support.tables import CACHE, table

from bench.measure import measure

SCORES = {"61 values": "h % 61", "continuous": "h / 18446744073709551616.0"}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=1_000_000)


def run(options: argparse.Namespace) -> Table:
    """Read a table with a test programme, which is compared with the other denied by a score."""
    out = table("Random accepts against a score, Parquet", "score", "rows", "CPU s", "peak MB")
    for name, score in SCORES.items():
        found = measure(read_programme, generated(options.rows, name, score), runs=1)
        out.add_row(name, f"{options.rows:,}", f"{found.cpu:.2f}", f"{found.megabytes:,.0f}")
    return out


def generated(rows: int, name: str, score: str) -> str:
    """Return a Parquet file of past decisions, made once: one denial in fifty is overridden."""
    import duckdb

    path = CACHE / f"programme-{rows}-{name.replace(' ', '-')}.parquet"
    CACHE.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        duckdb.connect().execute(
            f"""
            COPY (
                SELECT
                    CASE WHEN h % 2 = 0 THEN 'A' ELSE 'B' END AS race,
                    denial % 50 = 0 AS test,
                    CAST(h // 100 % 100 >= 40 OR denial % 50 = 0 AS TINYINT) AS approved,
                    CASE WHEN h // 100 % 100 >= 40 OR denial % 50 = 0
                         THEN CAST(h // 10000 % 100 < 85 AS TINYINT) END AS repaid,
                    {score} AS score
                FROM (
                    SELECT *, CASE WHEN h // 100 % 100 < 40 THEN h // 1000000 END AS denial
                    FROM (SELECT hash(i) AS h FROM range({rows}) AS numbers(i))
                )
            ) TO '{path}' (FORMAT parquet)
            """
        )
    return str(path)


def read_programme(path: str) -> Callable[[], object]:
    from equipoise.history import History

    def read() -> object:
        return History.read(
            path,
            group="race",
            decision="approved",
            outcome="repaid",
            random_accepts="test",
            random_accepts_against="score",
        ).cells

    return read
