"""How much a test does: a little in `make test`, all of it in `make test-full`."""

from __future__ import annotations

import os
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

__all__ = ["FULL", "examples", "only_in_full", "quick"]

T = TypeVar("T")

FULL = os.environ.get("EQUIPOISE_TESTS") == "full"

only_in_full = pytest.mark.skipif(not FULL, reason="seconds: make test-full runs it")
"""Mark a test of what a cheaper one of ``make test`` protects as well."""


def quick(value: T, *, full: T) -> T:
    """Return the first value in `make test`, the other one in `make test-full`."""
    return full if FULL else value


def examples(count: int) -> settings:
    """Return hypothesis settings: a third as many examples, ten times as many in the full profile.

    The quick ones are the same in every run; the full profile draws new ones each time.
    """
    return settings(
        max_examples=quick(max(count // 3, 3), full=10 * count),
        deadline=None,
        derandomize=not FULL,
        suppress_health_check=[HealthCheck.too_slow],
    )
