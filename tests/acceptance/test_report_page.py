"""The report in a real browser with the network off."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.ledger import LiveAudit
from equipoise.question import Costs, Question
from equipoise.report import Report, simulate_live, write_report
from equipoise.worlds import CellWorld
from tests.acceptance.browser import opened

WORLD = CellWorld.from_shares(
    {"Alpha": (0.45, 0.15, 0.40, 0.5), "<b>Beta</b>": (0.15, 0.15, 0.70, 0.3)},
    shares={"Alpha": 0.7, "<b>Beta</b>": 0.3},
)


@pytest.fixture(scope="module")
def finished() -> LiveAudit:
    return simulate_live(
        WORLD,
        Question("equal_opportunity", gamma=0.05, epsilon=0.1),
        Costs(feature=500, label=100_000),
        budget=90_000_000,
        currency="EUR",
        decimals=2,
    )


@pytest.fixture(scope="module")
def page(finished: LiveAudit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(Report.of(finished), path)
    return path


@pytest.mark.parametrize("width", [1000, 390])
def test_it_opens_without_network_or_complaint(page: Path, width: int) -> None:
    with opened(page, width=width) as view:
        assert view.complaints == []
        assert [url for url in view.requests if not url.startswith(("file:", "data:"))] == []
        wide = view.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, "the page must not scroll sideways"


def test_it_shows_what_the_ledger_says(page: Path, finished: LiveAudit) -> None:
    status = finished.status()
    assert status.finding is not None
    with opened(page) as view:
        text = view.page.inner_text("main")
        assert view.page.inner_text(".verdict strong") == status.finding.verdict
        assert "simulated, no real people" in text
        assert status.head in text
        assert finished.seed in text
        assert finished.settings.money(status.spent) in text
        assert view.page.locator("svg").count() >= 5
        # A group's name is text, whatever it looks like.
        assert "<b>Beta</b>" in text


def test_its_pictures_hold_their_words(page: Path) -> None:
    overflowing = """() => [...document.querySelectorAll('svg')].flatMap(svg => {
        const box = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('text')].filter(t => {
            const b = t.getBoundingClientRect();
            return b.left < box.left - 1 || b.right > box.right + 1
                || b.top < box.top - 1 || b.bottom > box.bottom + 1;
        }).map(t => t.textContent);
    })"""
    with opened(page) as view:
        assert view.page.evaluate(overflowing) == []


def test_an_audit_that_goes_on_keeps_its_seed(tmp_path: Path) -> None:
    live = LiveAudit.create(
        "sqlite://", "going on", WORLD.past(2000, 0), Question(), Costs(label=100), audit="rs",
        options={"tau": 20},
    )  # fmt: skip
    live.ask("a", "Alpha", 0)
    path = tmp_path / "report.html"
    write_report(Report.of(live), path)
    with opened(path) as view:
        assert view.complaints == []
        text = view.page.inner_text("main")
        assert "NO VERDICT YET" in text
        assert "secret until the verdict" in text
        assert live.seed not in text
