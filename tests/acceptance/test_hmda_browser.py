"""A lender's two files in a real browser: reading, a question with all its parts, the gate."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from playwright.sync_api import Browser, Page, expect

import equipoise as eq
from equipoise.ledger import LiveAudit
from equipoise.protocol import Want
from tests.acceptance.test_dashboard import OVERFLOW, logged_in, require_accessible
from tests.profiles import only_in_full
from tests.support.hmda import applicants, write_files
from tests.support.postgres import in_memory
from tests.support.serving import Served, serving

BLACK = "Black or African American"


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with TemporaryDirectory(dir=in_memory()) as directory, serving(directory) as server:
        yield server


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_files(tmp_path_factory.mktemp("hmda"))


def read_two_files(page: Page, files: tuple[Path, Path]) -> None:
    """Lead a page from two files to the counts of their rows."""
    lar, performance = files
    page.get_by_role("link", name="Check data").first.click()
    page.locator("input[name=table]").set_input_files(lar)
    page.locator("input[name=outcomes_table]").set_input_files(performance)
    page.locator("select[name=preset]").select_option("hmda")
    page.get_by_role("button", name="Read the columns").click()
    proposed = {"group": "derived_race", "decision": "action_taken", "outcome": "loan_status"}
    for role, column in {**proposed, "on": "uli"}.items():
        expect(page.locator(f"select[name={role}]")).to_have_value(column, timeout=30_000)


@pytest.fixture(scope="module")
def few_rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_files(tmp_path_factory.mktemp("hmda"), rows=6_000)


def figures_of(lar: Path) -> tuple[str, ...]:
    """Return how many rows of a file are read, have no decision, and count."""
    with lar.open(encoding="utf-8", newline="") as file:
        actions = [row["action_taken"] for row in csv.DictReader(file)]
    n_undecided = sum(action not in ("1", "3") for action in actions)
    numbers = (len(actions), n_undecided, len(actions) - n_undecided)
    return tuple(f"{number:,}" for number in numbers)


def count_rows(page: Page, figures: tuple[str, ...]) -> None:
    page.locator("input[name=missing_group]").fill("not stated")
    page.get_by_role("button", name="Count the rows").click()
    counted = page.locator("#result .waterfall")
    expect(counted).to_contain_text("Rows counted", timeout=30_000)
    # Read, without a decision, counted: before anything is checked.
    for figure in figures:
        expect(counted).to_contain_text(figure)
    expect(page.locator(".answer")).to_have_count(0)


@only_in_full  # in every run a table goes this way in a browser, two files in a shell
def test_from_two_files_to_a_verdict_with_every_part_of_a_question(
    served: Served, files: tuple[Path, Path], browser: Browser
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = logged_in(context, served, "auditor")
    read_two_files(page, files)
    meaning = page.get_by_role("radiogroup", name="Meaning of 4 in action_taken")
    expect(meaning.get_by_label("no decision")).to_be_checked()
    # Another column brings its own values, without the file.
    page.locator("select[name=group]").select_option("derived_sex")
    expect(page.get_by_label("Group Joint")).to_be_visible(timeout=30_000)
    page.locator("select[name=group]").select_option("derived_race")
    expect(page.get_by_label("Group Asian")).to_be_visible(timeout=30_000)
    require_accessible(page)
    count_rows(page, ("60,000", "3,083", "56,917"))

    page.locator("select[name=metric]").select_option("equal_opportunity")
    page.locator("input[name=margin]").fill("10")
    page.get_by_text("Reference group, direction").click()
    page.locator("select[name=against]").select_option("White")
    page.locator("select[name=direction]").select_option("below")
    page.get_by_role("button", name="Check the data").click()
    expect(page.locator(".answer .word")).to_have_text("INCONCLUSIVE", timeout=30_000)
    expect(page.locator(".naive .tag")).to_have_text(["Not supported", "Not supported"])
    expect(page.locator("input[name=table]")).to_have_count(1)
    assert page.locator("input[name=table]").input_value().endswith("lar.csv")  # still chosen
    require_accessible(page)

    page.get_by_role("button", name="Plan an audit").click()
    expect(page.locator("#plan table")).to_be_visible(timeout=60_000)
    require_accessible(page)
    page.locator("#begin input[name=name]").fill("loans")
    page.locator("#begin input[name=no_cap]").check()
    page.get_by_role("button", name="Begin the audit").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("'not stated' would keep this audit", timeout=60_000)
    require_accessible(page)
    page.get_by_role("button", name="Leave out not stated").click()
    expect(page.locator("#result")).to_contain_text("Not compared: not stated", timeout=60_000)
    expect(page.locator("#begin input[name=name]")).to_have_value("loans")
    page.get_by_role("button", name="Begin the audit").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("loans", timeout=60_000)

    live = LiveAudit.open(served.settings.ledger, "loans", actor="bank")
    compare = eq.Compare(against="White", direction="below", leave_out=["not stated"])
    assert live.settings.question == eq.Question("equal_opportunity", 0.05, 0.1, compare=compare)
    chance = random.Random(12)
    people = applicants(chance)
    for start in range(0, 40_000, 500):
        part = [next(people) for _ in range(500)]
        replies = live.ask_many(
            (f"{start}-{at}", person.race or "not stated", int(person.approved))
            for at, person in enumerate(part)
        )
        live.tell_many(
            (reply.person, int(person.good))
            for reply, person in zip(replies, part, strict=True)
            if reply.want is Want.LABEL
        )
        if live.finding is not None:
            break
    assert live.finding is not None
    assert live.finding.verdict is eq.Verdict.UNFAIR
    live.close_ledger()
    page.goto(f"{served.url}/audits/loans")
    page.get_by_role("link", name="Report", exact=True).first.click()
    expect(page.locator("body")).to_contain_text("UNFAIR", timeout=30_000)
    expect(page.locator("body")).to_contain_text(BLACK)
    context.close()


@only_in_full
def test_a_check_fits_a_phone_and_offers_no_audit_that_is_not_needed(
    served: Served, few_rows: tuple[Path, Path], browser: Browser
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 900}, color_scheme="dark")
    page = logged_in(context, served, "regulator")
    read_two_files(page, few_rows)
    assert page.evaluate(OVERFLOW) <= 0
    count_rows(page, figures_of(few_rows[0]))
    page.locator("select[name=metric]").select_option("demographic_parity")
    page.get_by_role("button", name="Check the data").click()
    expect(page.locator(".answer .word")).to_have_text("UNFAIR", timeout=30_000)
    expect(page.get_by_role("button", name="Save this result")).to_be_visible()
    expect(page.get_by_role("button", name="Plan an audit")).to_have_count(0)
    assert page.evaluate(OVERFLOW) <= 0
    require_accessible(page)
    context.close()
