from __future__ import annotations

from collections.abc import Iterator
from tempfile import TemporaryDirectory

import pytest

from tests.support.postgres import in_memory, new_database
from tests.support.serving import Served, serving


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A server on SQLite with tokens; audits have names of their own in each test."""
    with TemporaryDirectory(dir=in_memory()) as directory, serving(directory) as server:
        yield server


@pytest.fixture
def on_postgres(postgres_server: str) -> Iterator[Served]:
    """The same on PostgreSQL."""
    with (
        TemporaryDirectory(dir=in_memory()) as directory,
        serving(directory, ledger=new_database(postgres_server)) as server,
    ):
        yield server
