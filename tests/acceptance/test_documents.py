"""What the documents show is run, and what they claim about the code is compared with it."""

from __future__ import annotations

import re
import shutil
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from docs import figures, pictures

from equipoise.audits.estimated_rates import paper_tau
from equipoise.levels import exp_level
from equipoise.mixture.map_weights import ExpConstants
from equipoise.question import Question
from tests.acceptance.documents import ROOT, run_in_process
from tests.profiles import only_in_full, quick

DOCS = ROOT / "docs"
PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"] + [
    str(path.relative_to(ROOT))
    for path in sorted(DOCS.rglob("*.md"))
    if DOCS / "generated" not in path.parents
]
GUIDES = [
    "docs/how-to/choose-a-question.md",
    "docs/start/court.md",
]
SLOW_GUIDES = [
    "docs/how-to/ask-tell.md",
    "docs/how-to/look-first.md",
    "docs/how-to/papers-audits.md",
    "docs/how-to/read-data.md",
    "docs/understand/legal.md",
]


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_the_readme_s_commands_are_in_the_makefile() -> None:
    """They are not run here: test_demo compares the demonstration with what the README shows."""
    readme, makefile = (
        (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "Makefile")
    )
    commands = re.findall(r"^make (\S+)", readme, re.MULTILINE)
    assert commands == ["demo", "test"]
    assert all(re.search(rf"^{command}:", makefile, re.MULTILINE) for command in commands)


@pytest.mark.usefixtures("in_a_folder")
@pytest.mark.parametrize("page", quick(GUIDES, full=GUIDES + SLOW_GUIDES))
def test_a_guide_runs_from_top_to_bottom(page: str) -> None:
    assert run_in_process(page)


@only_in_full
def test_the_messy_file_ends_with_a_verdict(in_a_folder: Path) -> None:
    shutil.copy(DOCS / "start" / "messy_bank.py", in_a_folder)
    assert "verdict: UNFAIR" in run_in_process("docs/start/messy-bank.md")
    assert (in_a_folder / "loans.html").exists()


@only_in_full
def test_the_worked_example_ends_with_a_verdict(in_a_folder: Path) -> None:
    shown = run_in_process(figures.WORKED_EXAMPLE)
    assert "verdict: UNFAIR" in shown
    assert (in_a_folder / "loans.html").exists()
    finding = figures.result_of_worked_example()
    assert f"(outcome known: {finding.labels:,}, no outcome requested: " in shown
    assert "because     a difference of at most 5 points is ruled out" in shown
    text = (ROOT / figures.WORKED_EXAMPLE).read_text(encoding="utf-8")
    filled = figures.fill(text, figures.worked_example_blocks(finding))
    assert filled == text  # else run python -m docs.figures


@only_in_full
def test_the_comparison_shows_what_equipoise_answers() -> None:
    text = (DOCS / "understand" / "comparison.md").read_text(encoding="utf-8")
    assert figures.fill(text, figures.comparison_blocks()) == text


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
        assert Path(page).stem in re.findall(r"[\w-]+(?=>?$)", "".join(listed), re.MULTILINE)


@cache
def _all_pages() -> str:
    return "".join(path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md"))


def test_constants_in_the_guarantees_are_the_code_s() -> None:
    text = (ROOT / "docs" / "understand" / "guarantees.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w.]+)\.([A-Z_]+)` \| ([\d.]+) \|", text, re.MULTILINE)
    assert len(rows) == 41
    for module, name, value in rows:
        assert getattr(import_module(f"equipoise.{module}"), name) == float(value), name


@only_in_full
def test_the_pictures_of_evidence_show_an_audit_to_its_verdict() -> None:
    *earlier, last = pictures.staircase().axes
    assert all(axis.patches for axis in earlier)  # boxes that stand
    assert last.get_title().endswith("labels: UNFAIR")
    assert len(pictures.evidence().axes[0].lines) == 6 * 2 + 1  # audits, their ends and the bar


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
