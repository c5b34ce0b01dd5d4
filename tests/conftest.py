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


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield made
        made.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with postgres() as address:
        yield address
