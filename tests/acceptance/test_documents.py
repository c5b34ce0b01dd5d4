"""What the documents show is run, and what they claim about the code is compared with it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.acceptance.documents import ROOT, blocks

PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"] + [
    str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").glob("*.md"))
]


def test_the_readme_runs_as_it_is_copied(tmp_path: Path) -> None:
    """Shell and Python blocks, from top to bottom, in an empty folder."""
    steps = []
    for block in blocks("README.md", "bash", "python"):
        if block.language == "bash":
            steps.append(block.text)
        else:
            steps.append(f"python - <<'END_OF_PYTHON'\n{block.text}END_OF_PYTHON\n")
    done = _shell("\n".join(steps), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "recommended: adaptive" in done.stdout
    assert (tmp_path / "loans.csv").exists()


@pytest.mark.parametrize("page", ["docs/ask-tell.md"])
def test_a_guide_runs_from_top_to_bottom(page: str, tmp_path: Path) -> None:
    code = "".join(block.text for block in blocks(page, "python"))
    assert code
    done = _shell(f"python - <<'END_OF_PYTHON'\n{code}END_OF_PYTHON\n", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "UNFAIR" in done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not target.startswith(("http://", "https://")):
            assert (ROOT / page).parent.joinpath(target).exists(), f"{page}: {target}"


def test_constants_in_the_guarantees_are_the_code_s() -> None:
    text = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w.]+)\.([A-Z_]+)` \| ([\d.]+) \|", text, re.MULTILINE)
    assert len(rows) == 15
    for module, name, value in rows:
        assert getattr(import_module(f"equipoise.{module}"), name) == float(value), name


def _shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "80", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
