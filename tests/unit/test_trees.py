"""Tests, studies and benchmarks share tests/support; none imports another."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAY_IMPORT = {
    "src": (),
    "paper": ("paper",),
    "tests": ("tests", "paper", "tools"),
    "study": ("study", "tests.support", "paper", "tools"),
    "bench": ("bench", "tests.support", "paper", "tools"),
    "tools": ("tools",),
}


@cache
def imported(path: Path) -> list[str]:
    """Return every module that a file imports, wherever it does so."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found += [f"{node.module}.{name.name}" for name in node.names]
    return found


@pytest.mark.parametrize("tree", MAY_IMPORT)
def test_imports_point_one_way(tree: str) -> None:
    ours = {name.partition(".")[0] for name in imported_trees()}
    suspects = "|".join(sorted(ours - set(MAY_IMPORT[tree])))
    # Reading the few lines that may be wrong is quicker than parsing every file.
    may_be_wrong = re.compile(rf"^\s*(?:from|import)\b.*\b(?:{suspects})\b", re.MULTILINE)
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / tree).rglob("*.py"))
        if may_be_wrong.search(path.read_text(encoding="utf-8"))
        for name in imported(path)
        if name.partition(".")[0] in ours
        and not any(f"{name}.".startswith(f"{own}.") for own in MAY_IMPORT[tree])
    ]
    assert wrong == []


def imported_trees() -> list[str]:
    return [tree for tree in MAY_IMPORT if tree != "src"]
