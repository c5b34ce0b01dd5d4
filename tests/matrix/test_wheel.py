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
    [("messy-bank.md", "verdict: UNFAIR"), ("five-minutes.md", "verdict: UNFAIR")],
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


USER = """
import equipoise as eq
from equipoise.finding import Finding

question = eq.Question("equal_opportunity", gamma=0.05, epsilon=0.05)
history = eq.History.read("loans.csv", group="race", decision="approved", outcome="repaid")
finding: Finding = eq.check(history, question)
audit = eq.AdaptiveAudit(history, question, eq.Costs(label=100.0))
ticket = audit.ask("A", 0)
if ticket.want is eq.Want.LABEL:
    audit.tell(ticket, 1)
reveal_type(audit.conclude().lower)
"""


def test_a_user_s_types_are_checked(programs: Path, tmp_path: Path) -> None:
    """The wheel says that it is typed, and strict mypy of a user finds no fault in rightful use."""
    subprocess.run([str(programs / "pip"), "install", "--quiet", "mypy"], check=True)
    (tmp_path / "user.py").write_text(USER)
    mypy = [str(programs / "mypy"), "--strict", "user.py"]
    right = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert right.returncode == 0, right.stdout
    assert '"float"' in right.stdout
    (tmp_path / "user.py").write_text(USER.replace("gamma=0.05", 'gamma="little"'))
    wrong = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert '"gamma"' in wrong.stdout
