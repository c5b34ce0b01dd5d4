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
