"""Spark, native and through ibis: counted there, only counts travel. Run by ``make matrix``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import ibis
import pandas as pd
import pytest

import equipoise as eq
from tests.unit.history.test_counting import (
    COLUMNS,
    PEOPLE,
    cells_of,
    require_same_answers,
    table_of,
    tuples,
)

pyspark = pytest.importorskip("pyspark")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def spark() -> Iterator[object]:
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def past(tmp_path: Path) -> str:
    pd.DataFrame(table_of(PEOPLE)).to_parquet(tmp_path / "past.parquet")
    return str(tmp_path / "past.parquet")


def require_the_same(source: object) -> None:
    history = eq.History.read(source, **COLUMNS)
    assert tuples(history) == cells_of(PEOPLE)
    assert history.summary is not None
    assert "spark" in history.summary.engine.lower()
    require_same_answers(history)


def test_a_native_frame(spark: object, past: str) -> None:
    require_the_same(spark.read.parquet(past))  # type: ignore[attr-defined]


def test_an_ibis_table(spark: object, past: str) -> None:
    spark.read.parquet(past).createOrReplaceTempView("loans")  # type: ignore[attr-defined]
    require_the_same(ibis.pyspark.connect(spark).table("loans"))
