"""What costs much to start is started once per run: a browser, a PostgreSQL."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import duckdb
import pytest

from equipoise.evidence import row_answers, wrong_answers
from tests.support.postgres import postgres

if TYPE_CHECKING:
    from playwright.sync_api import Browser

READER = duckdb.connect(f":memory:{os.getpid()}")  # while it is open others need not start
CHROMIUM = "/usr/bin/chromium"
CHROMIUM_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    # Suggestions below the address, for which every window would load two pages of its own.
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup",
)
KEPT_COVERS = 64  # of as many questions about as many pasts; an audit keeps those of two


def pytest_configure() -> None:
    """Keep the null cells of more audits: many tests begin with one past and question."""
    # Tests make much and keep little: a search for cycles after every 700 objects is waste.
    gc.set_threshold(50_000, 20, 50)
    for module, names in (
        (row_answers, ("_unfair_covers", "_fair_covers")),
        (wrong_answers, ("unfair_covers", "fair_covers")),
    ):
        for name in names:
            cached = getattr(module, name)
            setattr(module, name, lru_cache(KEPT_COVERS)(cached.__wrapped__))


def pytest_collection_finish() -> None:
    """Spare what is imported by now the search for cycles, which would go through all of it."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # libraries look at the end for what was never freed


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS)
        yield made
        made.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with postgres() as address:
        yield address
