"""The hint of a missing extra installs what ``pyproject.toml`` lists for it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from equipoise.errors import MissingExtra

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def required_packages(extra: str) -> set[str]:
    """Return what an extra requires, those of extras within it included."""
    extras = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    packages: set[str] = set()
    for requirement in extras[extra]:
        if within := re.fullmatch(r"equipoise\[(\w+)\]", requirement):
            packages |= required_packages(within[1])
        else:
            packages.add(re.split(r"[>=;]", requirement)[0])
    return packages


@pytest.mark.parametrize("extra", ["client", "excel", "lake", "postgres", "report", "serve"])
def test_the_hint_installs_the_extra_s_packages(extra: str) -> None:
    required = required_packages(extra) - {"uvloop"}  # the server runs without it
    hint = str(MissingExtra(min(required), extra=extra, purpose="files"))
    named = hint.partition("pip install ")[2].replace("'", "").split()
    assert set(named) == required


def test_tables_need_pandas_alone() -> None:
    hint = str(MissingExtra("pandas", extra="frames", purpose="tables"))
    assert hint == "tables need 'pandas': pip install pandas"
