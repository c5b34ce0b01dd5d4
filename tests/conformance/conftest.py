from __future__ import annotations

from collections.abc import Iterator
from tempfile import TemporaryDirectory

import pytest

from tests.support.postgres import in_memory, new_database


@pytest.fixture
def ledger() -> Iterator[str]:
    """An empty place for a ledger: a file."""
    with TemporaryDirectory(dir=in_memory()) as directory:
        yield f"{directory}/ledger.db"


@pytest.fixture
def on_postgres(postgres_server: str) -> str:
    """The same in PostgreSQL."""
    return new_database(postgres_server)


@pytest.fixture(params=["sqlite", "postgresql"])
def either(request: pytest.FixtureRequest) -> str:
    """The same, once in each database, for what they do each in their own way."""
    name = "ledger" if request.param == "sqlite" else "on_postgres"
    place: str = request.getfixturevalue(name)
    return place
