"""From the built wheel in an empty environment to a verdict, with the tutorials' own commands."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.acceptance.documents import ROOT, run_shell_blocks

TUTORIALS = ROOT / "docs" / "start"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel, and nothing else, where nothing is; return where its programs are."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    subprocess.run([*build, str(folder), str(ROOT)], check=True)
    (wheel,) = folder.glob("equipoise-*.whl")
    venv.create(folder / "empty", with_pip=True)
    found = folder / "empty" / "bin"
    subprocess.run([str(found / "pip"), "install", "--quiet", str(wheel)], check=True)
    return found


@pytest.mark.parametrize(
    ("page", "ends"),
    [("messy-bank.md", "verdict: UNFAIR"), ("five-minutes.md", "C* = ")],
)
def test_a_first_walk_ends_with_an_answer(
    page: str, ends: str, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    shutil.copy(TUTORIALS / "messy_bank.py", tmp_path)
    text = (TUTORIALS / page).read_text(encoding="utf-8")
    done = run_shell_blocks(text, tmp_path, programs)
    assert not done.failure
    assert ends in "".join(done.outputs)
