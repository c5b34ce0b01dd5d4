"""What the documents show is run, and what they claim about the code is compared with it."""

from __future__ import annotations

import re
import shlex
import shutil
from importlib import import_module
from pathlib import Path

import pytest

from equipoise.audits.tau_audits import paper_tau
from equipoise.levels import exp_level
from equipoise.mixture.exp_model import ExpConstants
from equipoise.question import Question
from tests.acceptance.documents import ROOT, blocks, in_shell, run_shell_blocks
from tests.acceptance.shell import equipoise
from tests.profiles import quick

DOCS = ROOT / "docs"
PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"] + [
    str(path.relative_to(ROOT))
    for path in sorted(DOCS.rglob("*.md"))
    if DOCS / "generated" not in path.parents
]
GUIDES = [
    "docs/how-to/ask-tell.md",
    "docs/how-to/choose-a-question.md",
    "docs/how-to/papers-audits.md",
    "docs/start/court.md",
    "docs/understand/legal.md",
]
SLOW_GUIDES = ["docs/how-to/look-first.md", "docs/how-to/read-data.md", "docs/start/classifier.md"]


def test_the_readme_runs_as_it_is_copied(tmp_path: Path) -> None:
    """Shell and Python blocks, from top to bottom, in an empty folder."""
    done = run_shell_blocks((ROOT / "README.md").read_text(encoding="utf-8"), tmp_path)
    assert not done.failure
    assert "recommended: run the adaptive audit" in "".join(done.outputs)
    assert (tmp_path / "loans.csv").exists()


@pytest.mark.parametrize("page", quick(GUIDES, full=GUIDES + SLOW_GUIDES))
def test_a_guide_runs_from_top_to_bottom(page: str, tmp_path: Path) -> None:
    code = "".join(block.text for block in blocks(page, "python"))
    assert code
    done = in_shell(f"python - <<'END_OF_PYTHON'\n{code}END_OF_PYTHON\n", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_messy_file_ends_with_a_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tutorial's own blocks, in one process; building the site runs them in a shell."""
    page = "docs/start/messy-bank.md"
    shutil.copy(DOCS / "start" / "messy_bank.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    said = ""
    for block in blocks(page, "bash", "python"):
        if block.language == "python":
            exec(compile(block.text, page, "exec"), {"print": lambda *words: None})
            continue
        for line in block.text.replace("\\\n", " ").splitlines():
            program, *words = shlex.split(line)
            if program == "python":
                monkeypatch.setattr("sys.argv", words)
                import_module("runpy").run_path(words[0], run_name="__main__")
            elif program == "equipoise":
                may_fail = words[-3:] == ["2>&1", "||", "true"]
                done = equipoise(*(words[:-3] if may_fail else words))
                assert done.returncode == (2 if may_fail else 0), done.stderr
                said += done.stdout
    assert "verdict: UNFAIR" in said
    assert (tmp_path / "loans.html").exists()


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not target.startswith(("http://", "https://")) and "generated/" not in target:
            assert (ROOT / page).parent.joinpath(target).exists(), f"{page}: {target}"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_finished_and_listed(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert not re.search(r"\b(TODO|FIXME|TBD|XXX|lorem ipsum|coming soon)\b", text, re.IGNORECASE)
    if page.startswith("docs/") and page != "docs/index.md":
        listed = re.findall(r"```\{toctree\}(.*?)```", _all_pages(), re.DOTALL)
        assert Path(page).stem in re.findall(r"[\w-]+$", "".join(listed), re.MULTILINE)


def _all_pages() -> str:
    return "".join(path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md"))


def test_constants_in_the_guarantees_are_the_code_s() -> None:
    text = (ROOT / "docs" / "understand" / "guarantees.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w.]+)\.([A-Z_]+)` \| ([\d.]+) \|", text, re.MULTILINE)
    assert len(rows) == 18
    for module, name, value in rows:
        assert getattr(import_module(f"equipoise.{module}"), name) == float(value), name


def test_the_past_that_the_paper_s_audits_need_is_the_code_s() -> None:
    text = (DOCS / "how-to" / "papers-audits.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (0[\d.]+) \|" + r" ([\d,]+) \|" * 4 + "$", text, re.MULTILINE)
    assert len(rows) == 5
    for epsilon, *numbers in rows:
        question = Question(gamma=0.0, epsilon=float(epsilon), delta=0.05)
        rs, exp = paper_tau(question, 2), ExpConstants(question.epsilon, exp_level(question), 2).tau
        assert [int(n.replace(",", "")) for n in numbers] == [rs, 4 * rs, exp, 4 * exp]


def test_every_file_that_the_architecture_names_exists() -> None:
    text = (DOCS / "contributing" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w./-]+(?:\.(?:py|md|txt)|/))`", text)
    assert len(named) > 40
    homes = (ROOT, ROOT / "src" / "equipoise")
    assert [name for name in named if not any((home / name).exists() for home in homes)] == []
