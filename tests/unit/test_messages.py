"""Options and commands of the command line are named where the shell is spoken only."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import equipoise

SOURCES = Path(equipoise.__file__).parent
SPEAK_SHELL = ("messages/shell.py", "ledger/verify.py")  # the verifier stands alone
FLAG = re.compile(r"(?<![\w-])(?<!var\()--[a-z][\w-]*")  # var(--ink) is a colour of a page

COMMAND = re.compile(r"\bequipoise audit [a-z]")


def options_named(path: Path) -> list[str]:
    """Return the options in the string literals of a module, docstrings included."""
    literals = [
        node
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return [
        f"line {literal.lineno}: {option}"
        for literal in literals
        for option in FLAG.findall(literal.value)
    ]


def commands_named(path: Path) -> list[str]:
    """Return the commands of an audit in the string literals of a module, without docstrings."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    docstrings = [node.value for node in nodes if isinstance(node, ast.Expr)]
    return [
        f"line {node.lineno}: {node.value}"
        for node in nodes
        if isinstance(node, ast.Constant) and node not in docstrings
        if isinstance(node.value, str) and COMMAND.search(node.value)
    ]


def modules() -> list[str]:
    paths = sorted(SOURCES.rglob("*.py"))
    names = [path.relative_to(SOURCES).as_posix() for path in paths]
    return [name for name in names if not name.startswith("cli/") and name not in SPEAK_SHELL]


@pytest.mark.parametrize("module", modules())
def test_options_are_named_in_the_shell_only(module: str) -> None:
    assert options_named(SOURCES / module) == []
    assert commands_named(SOURCES / module) == []


def test_options_are_found_where_they_are() -> None:
    assert options_named(SOURCES / "cli" / "options.py")
    assert commands_named(SOURCES / "cli" / "replies.py")
