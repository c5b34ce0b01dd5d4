"""Documents hold no placeholder that somebody meant to fill in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
PLACEHOLDER = re.compile(
    r"^\s*[A-Z]+(_[A-Z]+)+\s*$|\b(TODO|TBD|FIXME|XXX)\b|lorem ipsum|\{\{|<insert|\?\?\?",
    re.MULTILINE,
)


def test_the_search_finds_what_it_is_for() -> None:
    for text in ("a\n\nERROR_TABLES\n\nb", "TODO: measure", "{{ value }}", "is ??? percent"):
        assert PLACEHOLDER.search(text)
    assert not PLACEHOLDER.search("set EQUIPOISE_LAW_SCHOOL to your copy; f(X) = {a: {b: 1}}")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_placeholder_is_left(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = PLACEHOLDER.search(text)
    assert found is None, f"{page.name}: {found.group(0)!r}"


COMMAND = re.compile(r"\bequipoise (?:check|plan|audit new)\b[^`\n]*")
HELP = sorted((ROOT / "src" / "equipoise" / "cli").glob("*.py"))


def commands_that_name_columns(text: str) -> list[str]:
    """Return the commands of a text that say how a table is read; a kept file has its question."""
    joined = re.sub(r"\\\n *", " ", text)  # a command goes on behind a backslash
    return [found for found in COMMAND.findall(joined) if re.search(r" (-d|--decision) ", found)]


@pytest.mark.parametrize("page", [*PAGES, *HELP], ids=lambda p: str(p.relative_to(ROOT)))
def test_every_example_names_its_metric(page: Path) -> None:
    """Without it the reader gets the paper's equalized odds, and may not know."""
    text = page.read_text(encoding="utf-8")
    if page in HELP:
        examples = re.findall(r"Example: .*?\n\s*(?=\n|\"\"\")", text, re.DOTALL)
        text = "\n".join(" ".join(example.split()) for example in examples)
    commands = commands_that_name_columns(text)
    assert all("--metric" in command for command in commands), (page.name, commands)
    assert not re.search(r"\bQuestion\((\)|gamma|epsilon)", text) or page in HELP


def test_the_search_finds_examples() -> None:
    text = "    equipoise check a.csv -g x \\\n        -d y -o z\n    equipoise plan a.toml\n"
    assert commands_that_name_columns(text) == ["equipoise check a.csv -g x  -d y -o z"]
