"""What costs much to start is started once per run: a browser, a PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import duckdb
import pytest

from tests.support.postgres import postgres

if TYPE_CHECKING:
    from playwright.sync_api import Browser

READER = duckdb.connect(f":memory:{os.getpid()}")  # while it is open others need not start
CHROMIUM = "/usr/bin/chromium"
STARTED_ONCE = ("browser", "postgres_server")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let all tests that need the same one run in the same process (``--dist loadgroup``)."""
    for item in items:
        needed = set(getattr(item, "fixturenames", ()))
        if "either" in needed and "postgresql" in item.name:
            needed.add("postgres_server")
        for fixture in STARTED_ONCE:
            if fixture in needed:
                item.add_marker(pytest.mark.xdist_group(fixture))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with postgres() as address:
        yield address
