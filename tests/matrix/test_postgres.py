"""PostgreSQL: an address, an engine and an ibis table. Run by ``make matrix``."""

from __future__ import annotations

from collections.abc import Iterator

import ibis
import pandas as pd
import pytest
import sqlalchemy

import equipoise as eq
from tests.support.postgres import new_database, postgres
from tests.unit.history.test_counting import (
    COLUMNS,
    PEOPLE,
    cells_of,
    require_same_answers,
    table_of,
    tuples,
)

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with postgres() as server:
        url = new_database(server)
        engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
        pd.DataFrame(table_of(PEOPLE)).to_sql("loans", engine, index=False)
        engine.dispose()
        yield url


@pytest.mark.parametrize("kind", ["address", "query", "engine", "ibis"])
def test_it_is_counted_there(address: str, kind: str) -> None:
    engine = sqlalchemy.create_engine(address.replace("postgresql://", "postgresql+psycopg://", 1))
    source: object = engine if kind == "engine" else address
    options = (
        {"query": "SELECT *, ':x'::text AS mark FROM loans"}
        if kind == "query"
        else {"table": "loans"}
    )
    if kind == "ibis":
        source, options = ibis.connect(address).table("loans"), {}
    history = eq.History.read(source, **COLUMNS, **options)
    assert tuples(history) == cells_of(PEOPLE)
    assert history.summary is not None
    assert "postgres" in history.summary.engine.lower()
    require_same_answers(history)
    engine.dispose()
