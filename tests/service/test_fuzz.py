"""Schemathesis with every role, a few examples; more: ``python -m tests.torture service_fuzz``."""

from __future__ import annotations

from collections.abc import Iterator
from tempfile import TemporaryDirectory

import pytest

from tests.profiles import quick
from tests.support.postgres import in_memory
from tests.support.serving import Served, serving
from tests.torture.service_fuzz import ROLES, fuzz, walk


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[Served]:
    with TemporaryDirectory(dir=in_memory()) as directory, serving(directory) as server:
        yield server


@pytest.mark.parametrize("role", quick(("writer", "auditor", "nobody"), full=ROLES))
def test_no_request_breaks_the_server_or_its_schema(fuzzed: Served, role: str) -> None:
    seen = fuzz(fuzzed, role, 1, brief=True)
    assert sum(seen.values()) > 10
    assert not [status for status in seen if status >= 500]
    assert role != "nobody" or set(seen) <= {200, 401, 429}


def test_no_sequence_of_requests_does(fuzzed: Served) -> None:
    walk(fuzzed, "auditor", 3)
