"""Count lines and statements of the package by room: ``python tools/statements.py [REVISION …]``.

Statements are nodes of the syntax tree, docstrings left out: neither layout nor prose counts.
Without a revision the working tree is counted.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

PACKAGE = "src/equipoise"


def main(revisions: list[str]) -> None:
    """Print a table: a row per room, lines and statements per revision."""
    counts = [count(revision) for revision in revisions or [""]]
    rooms = sorted({room for lines, _ in counts for room in lines})
    heads = "".join(f"{(revision or 'here')[:12]:>24}" for revision in revisions or [""])
    print(f"{'room':<14}{heads}")
    for room in rooms:
        print(f"{room:<14}" + "".join(f"{x[room]:>12,}{y[room]:>12,}" for x, y in counts))
    print(f"{'all':<14}" + "".join(f"{x.total():>12,}{y.total():>12,}" for x, y in counts))


def count(revision: str) -> tuple[Counter[str], Counter[str]]:
    """Return lines and statements per room of a revision, of the working tree if it is empty."""
    lines: Counter[str] = Counter()
    statements: Counter[str] = Counter()
    for path in files(revision):
        inner = Path(path).relative_to(PACKAGE)
        room = inner.parts[0] if len(inner.parts) > 1 else "(top)"
        text = read(revision, path)
        lines[room] += len(text.splitlines())
        statements[room] += sum(
            isinstance(node, ast.stmt) and not is_docstring(node)
            for node in ast.walk(ast.parse(text))
        )
    return lines, statements


def files(revision: str) -> list[str]:
    """Return the package's Python files."""
    if revision:
        listed = git("ls-tree", "-r", "--name-only", revision, PACKAGE)
    else:
        listed = git("ls-files", "--cached", "--others", "--exclude-standard", PACKAGE)
    return [p for p in listed.splitlines() if p.endswith(".py") and (revision or Path(p).exists())]


def read(revision: str, path: str) -> str:
    """Return a file's text."""
    return git("show", f"{revision}:{path}") if revision else Path(path).read_text("utf-8")


def is_docstring(node: ast.AST) -> bool:
    """Say whether a statement is nothing but a string."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def git(*arguments: str) -> str:
    """Return what git prints."""
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main(sys.argv[1:])
