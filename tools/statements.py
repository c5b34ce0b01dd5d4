"""Count the package by room: ``python tools/statements.py [REVISION …]``.

Per revision and room: files, lines, statements and lines of docstrings. Statements are nodes of the
syntax tree, docstrings left out: neither layout nor prose counts. Below: other files in ``src`` and
the other trees, in lines. Without a revision, or for an empty one, the working tree is counted.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TypeGuard

PACKAGE = PurePosixPath("src/equipoise")
TREES = ("paper", "tests", "study", "bench", "tools", "docs")
TEXT = (".py", ".md", ".j2", ".html", ".css", ".js", ".svg", ".toml", ".json", ".csv", ".txt")
COLUMNS = ("files", "lines", "statements", "docstrings")


@dataclass
class Count:
    """What one revision holds: per column and room, and lines of everything beside."""

    rooms: dict[str, Counter[str]] = field(default_factory=lambda: {c: Counter() for c in COLUMNS})
    beside: Counter[str] = field(default_factory=Counter)


def main(revisions: list[str]) -> None:
    """Print a table: a row per room, four columns per revision."""
    revisions = revisions or [""]
    counts = [count(revision) for revision in revisions]
    print(f"{'':<22}" + "".join(f"{(revision or 'here')[:12]:>48}" for revision in revisions))
    print(f"{'room':<22}" + "".join(f"{column:>12}" for column in COLUMNS) * len(counts))
    for room in sorted({room for one in counts for room in one.rooms["files"]}):
        print(
            f"{room:<22}" + "".join(f"{one.rooms[c][room]:>12,}" for one in counts for c in COLUMNS)
        )
    print(
        f"{'all':<22}" + "".join(f"{one.rooms[c].total():>12,}" for one in counts for c in COLUMNS)
    )
    print("\nlines elsewhere")
    for place in sorted({place for one in counts for place in one.beside}):
        print(f"{place:<22}" + "".join(f"{one.beside[place]:>24,}{'':>24}" for one in counts))


def count(revision: str) -> Count:
    """Count a revision, the working tree if it is empty."""
    out = Count()
    for name in files(revision):
        path = PurePosixPath(name)
        if path.is_relative_to(PACKAGE) and path.suffix == ".py":
            inner = path.relative_to(PACKAGE)
            room = inner.parts[0] if len(inner.parts) > 1 else "(top)"
            for column, number in measure(read(revision, name)).items():
                out.rooms[column][room] += number
        elif path.suffix in TEXT:
            tree = "other files in src" if path.parts[0] == "src" else path.parts[0]
            kind = "" if tree == "other files in src" else f", {path.suffix}"
            out.beside[tree + kind] += len(read(revision, name).splitlines())
    return out


def measure(text: str) -> dict[str, int]:
    """Return what one Python file holds, by column."""
    nodes = list(ast.walk(ast.parse(text)))
    docstrings = [node for node in nodes if is_docstring(node)]
    return {
        "files": 1,
        "lines": len(text.splitlines()),
        "statements": sum(isinstance(node, ast.stmt) for node in nodes) - len(docstrings),
        "docstrings": sum((node.end_lineno or 0) - node.lineno + 1 for node in docstrings),
    }


def is_docstring(node: ast.AST) -> TypeGuard[ast.Expr]:
    """Say whether a statement is nothing but a string."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def files(revision: str) -> list[str]:
    """Return the names of all files in the package and beside it."""
    where = ("src", *TREES)
    if revision:
        return git("ls-tree", "-r", "--name-only", revision, *where).splitlines()
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", *where).splitlines()
    return [name for name in listed if Path(name).exists()]


def read(revision: str, path: str) -> str:
    """Return a file's text."""
    return git("show", f"{revision}:{path}") if revision else Path(path).read_text("utf-8")


def git(*arguments: str) -> str:
    """Return what git prints."""
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main(sys.argv[1:])
