from __future__ import annotations

from collections.abc import Iterator
from tempfile import TemporaryDirectory

import pytest
from study.postgres import in_memory, new_database, postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with postgres() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger(request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty place for a ledger, once in each database."""
    if request.param == "sqlite":
        with TemporaryDirectory(dir=in_memory()) as directory:
            yield f"{directory}/ledger.db"
    else:
        yield new_database(request.getfixturevalue("postgres_server"))
