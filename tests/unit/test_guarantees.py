"""Every statement of the guarantees names a test that is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "understand" / "guarantees.md").read_text()
NAMED = re.compile(r"`([\w/]*test_\w+\.py)::(test_\w+)`")
WITHOUT = ("3.14",)  # a table of constants, compared with the code by itself


def statements() -> dict[str, str]:
    """Return the sections of the proof, and the numbered promises, by their numbers."""
    parts = re.split(r"^### (3\.\d+) ", TEXT.partition("## 4.")[0], flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert list(found) == [f"3.{n}" for n in range(1, len(found) + 1)] == parts[1::2]
    promise = TEXT.partition("## 1.")[2].partition("## 2.")[0]
    items = re.split(r"^(\d)\. ", promise, flags=re.MULTILINE)
    return found | {f"1.{n}": text for n, text in zip(items[1::2], items[2::2], strict=True)}


@pytest.mark.parametrize("number", [n for n in statements() if n not in WITHOUT])
def test_a_statement_names_the_test_that_would_fail(number: str) -> None:
    named = NAMED.findall(statements()[number])
    same = "the same test" in statements()[number]
    assert named or same, number


@pytest.mark.parametrize(("file", "test"), sorted(set(NAMED.findall(TEXT))))
def test_a_test_that_is_named_is_there(file: str, test: str) -> None:
    found = [path for path in ROOT.glob(f"tests/**/{Path(file).name}") if str(path).endswith(file)]
    assert any(re.search(rf"^ *def {test}\(", path.read_text(), re.MULTILINE) for path in found)
