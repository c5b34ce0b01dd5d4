"""The report in a real browser with the network off."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser

from equipoise.free_check import check
from equipoise.history import History
from equipoise.ledger import LiveAudit
from equipoise.question import Costs, Question
from equipoise.report import Report, write_check, write_report
from equipoise.worlds import CellWorld
from tests.acceptance.browser import opened
from tests.support.simulated import simulate_live

WORLD = CellWorld.from_shares(
    {"Alpha": (0.45, 0.15, 0.40, 0.5), "<b>Beta</b>": (0.15, 0.15, 0.70, 0.3)},
    shares={"Alpha": 0.7, "<b>Beta</b>": 0.3},
)

OVERFLOWING = """() => [...document.querySelectorAll('svg')]
        .filter(svg => svg.getBoundingClientRect().width > 0).flatMap(svg => {
        const box = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('text')].filter(t => {
            const b = t.getBoundingClientRect();
            return b.left < box.left - 1 || b.right > box.right + 1
                || b.top < box.top - 1 || b.bottom > box.bottom + 1;
        }).map(t => t.textContent);
    })"""


@pytest.fixture(scope="module")
def finished() -> LiveAudit:
    live = simulate_live(
        WORLD,
        Question("equal_opportunity", gamma=0.05, epsilon=0.1),
        Costs(feature=500, label=100_000),
        budget=90_000_000,
        currency="EUR",
        decimals=2,
    )
    live.conclude()
    return live


@pytest.fixture(scope="module")
def page(finished: LiveAudit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(Report.of(finished), path)
    return path


@pytest.fixture(scope="module")
def check_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("check") / "check.html"
    history = History.from_cells(WORLD.past(20_000, 0).cells)
    asked = [Question(name) for name in ("equalized_odds", "demographic_parity")]
    write_check(history, [check(history, question) for question in asked], path)
    return path


@pytest.mark.parametrize(
    ("which", "width", "scheme"),
    [("page", 1000, "light"), ("page", 390, "dark"), ("check_page", 390, "light")],
)
def test_it_opens_without_network_or_complaint(
    which: str,
    width: int,
    scheme: Literal["light", "dark"],
    request: pytest.FixtureRequest,
    browser: Browser,
) -> None:
    with opened(browser, request.getfixturevalue(which), width=width, scheme=scheme) as view:
        assert view.grave_faults == []
        assert view.complaints == []
        assert view.to_the_network == []
        wide = view.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, "the page must not scroll sideways"
        assert view.page.evaluate(OVERFLOWING) == [], "words must stay inside their picture"
        night = view.page.evaluate("getComputedStyle(document.querySelector('main')).color")
        assert (night == "rgb(27, 36, 48)") == (scheme == "light")


def test_a_check_page_says_what_the_check_says(check_page: Path) -> None:
    text = check_page.read_text(encoding="utf-8")
    assert "&lt;b&gt;Beta&lt;/b&gt;" in text
    assert "<b>Beta" not in text
    assert text.count('class="answer ') == 2


def test_it_shows_what_the_ledger_says(page: Path, finished: LiveAudit, browser: Browser) -> None:
    status = finished.status()
    assert status.finding is not None
    with opened(browser, page) as view:
        text = view.page.inner_text("main")
        assert view.page.inner_text(".answer .word") == status.finding.verdict
        assert "simulated, no real people" in text
        assert status.head in text
        assert finished.seed in text
        assert status.short_money(status.spent) in text
        assert view.page.locator("svg").count() >= 5
        # A group's name is text, whatever it looks like.
        assert "<b>Beta</b>" in text


def test_an_audit_that_goes_on_keeps_its_seed(tmp_path: Path, browser: Browser) -> None:
    live = LiveAudit.create(
        "sqlite://", "going on", WORLD.past(2000, 0), Question(), Costs(label=100), audit="rs",
        options={"tau": 20},
    )  # fmt: skip
    live.ask("a", "Alpha", 0)
    path = tmp_path / "report.html"
    write_report(Report.of(live), path)
    with opened(browser, path) as view:
        assert view.complaints == []
        text = view.page.inner_text("main")
        assert "NO VERDICT YET" in text
        assert "secret until the audit is concluded" in text
        assert live.seed not in text
