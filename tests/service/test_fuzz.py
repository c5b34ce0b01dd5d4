"""Schemathesis with every role, a few examples each; many in ``python -m study service_fuzz``."""

from __future__ import annotations

from collections.abc import Iterator
from tempfile import TemporaryDirectory

import pytest
from study.postgres import in_memory
from study.service_fuzz import ROLES, fuzz, walk
from study.serving import Served, serving


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[Served]:
    with TemporaryDirectory(dir=in_memory()) as directory, serving(directory) as server:
        yield server


@pytest.mark.parametrize("role", ROLES)
def test_no_request_breaks_the_server_or_its_schema(fuzzed: Served, role: str) -> None:
    seen = fuzz(fuzzed, role, 1, brief=True)
    assert sum(seen.values()) > 10
    assert not [status for status in seen if status >= 500]
    assert role != "nobody" or set(seen) <= {200, 401, 429}


def test_no_sequence_of_requests_does(fuzzed: Served) -> None:
    walk(fuzzed, "auditor", 3)
