"""``equipoise demo``: one question in four beats, in words and in numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from docs import figures, preview

import equipoise as eq
from equipoise.cli import demo
from equipoise.simulation import run
from tests.acceptance.documents import ROOT
from tests.acceptance.shell import equipoise

MAX_LINES = 45


@pytest.fixture(autouse=True, scope="module")
def story() -> Iterator[demo.Story]:
    """Return the demonstration, which is lived through once for all tests."""
    story = demo._live_through(lambda share: None)
    with patch.object(demo, "_live_through", lambda progress: story):
        yield story


def test_it_tells_four_beats_on_one_screen() -> None:
    done = equipoise("demo")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= 80
    text = " ".join(done.stdout.split())
    beats = [
        "1. What the data seem to say",
        "2. What the data prove",
        "3. What an answer costs",
        "4. The audit, and the truth",
        "Next: equipoise check",
    ]
    places = [text.index(beat) for beat in beats]
    assert places == sorted(places)
    assert "174,047 people applied" in text
    assert "True gap: 17.8 points." in text


def test_its_numbers_are_computed() -> None:
    done = equipoise("demo", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    story = json.loads(done.stdout)
    lender = eq.data.fico_lender()
    world, history = lender.world, lender.history()
    question = eq.Question.from_dict(story["check"]["question"])
    assert question == demo.QUESTION
    truth = world.gap(question.metric)
    assert story["truth"] == truth
    assert story["history"] == history.cells.to_dict()
    assert story["check"]["approved_only"] == 0.0
    assert story["check"]["verdict"] == "INCONCLUSIVE"
    assert story["check"]["lower"] <= truth <= story["check"]["upper"]
    printed = eq.bounds.expectation("rs", world, question, eq.Costs()).cost
    assert story["printed_cost"] == printed
    assert story["exact_cost"] < printed / 10.0
    assert story["least_cost"] == eq.lower_bound(world, question, eq.Costs()).cost


def test_the_run_that_is_shown_is_the_recorded_median() -> None:
    """It fails if audits change: then ``python tools/typical_run.py`` is to be run again."""
    typical = demo._typical_run()
    lender = eq.data.fico_lender()
    finding = run(
        eq.AdaptiveAudit(lender.history(), demo.QUESTION, demo.COSTS), lender.world, typical["seed"]
    )
    assert finding.cost == pytest.approx(typical["cost"]["50%"], rel=0.02)
    assert finding.verdict in demo.QUESTION.truth(lender.world.gap(demo.QUESTION.metric))
    assert typical["verdicts"]["FAIR"] <= 0.05 * typical["seeds"]


def test_documents_show_its_figures(story: demo.Story) -> None:
    """It fails if audits change: then ``python -m docs.figures`` is to be run."""
    blocks = figures.story_blocks(story)
    shown: set[str] = set()
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = page.read_text(encoding="utf-8")
        assert figures.fill(text, blocks) == text, page.name
        shown |= {name for _, name, _ in figures.BLOCK.findall(text)}
    assert blocks.keys() <= shown
    assert blocks["demo"].splitlines()[1] in equipoise("demo").stdout


def test_pictures_show_its_figures(story: demo.Story) -> None:
    for name, picture in preview.pictures(story).items():
        assert (preview.HERE / name).read_text(encoding="utf-8") == picture, name
