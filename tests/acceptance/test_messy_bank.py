"""A bank's own messy table, from reading to proof: on the command line, in Python, in a browser."""

from __future__ import annotations

import csv
import json
import random
import re
import shlex
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, expect

import equipoise as eq
from equipoise.errors import BadData
from equipoise.history import History
from equipoise.ledger import LiveAudit
from equipoise.protocol import Want
from equipoise.report.content import forecast_similar_audit
from equipoise.report.sentences import describe_expected_cost
from tests.acceptance.shell import equipoise
from tests.profiles import only_in_full, quick
from tests.service.attacking import clicked, form_key, log_in
from tests.support import messy_bank
from tests.support.messy_bank import TRUE_GAP, Applicant, applicants
from tests.support.postgres import in_memory
from tests.support.serving import PAST, serving

ASKED = eq.Question("equal_opportunity", gamma=0.05, epsilon=0.05)
ROWS = quick(12_000, full=50_000)
MONTHS, A_MONTH = 30, 1_000  # at most


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a table of past applications."""
    return messy_bank.write_past(tmp_path_factory.mktemp("bank"), ROWS).parent


def recounted(bank: Path) -> dict[str, dict[str, int]]:
    """Count the table as a person would, in pandas."""
    table = pd.read_csv(bank / "applications.csv", dtype=str, keep_default_na=False)
    assert len(table) == ROWS
    table = table.drop_duplicates("application")
    assert len(table) == ROWS - 120
    table = table[table.decision != "Withdrawn"]
    names = {"": "not stated", "white": "White", "black": "Black"}
    counts = {}
    for name, own in table.groupby(table.race.str.strip().str.casefold().map(names)):
        approved = own[own.decision == "Approved"]
        counts[str(name)] = {
            "approved_positive": int(approved.status.eq("Paid").sum()),
            "approved_negative": int(approved.status.eq("Default").sum()),
            "denied": int(own.decision.eq("Declined").sum()),
            "approved_unknown": int(approved.status.isin(["Open", ""]).sum()),
        }
    return counts


def month_of(number: int) -> dict[str, Applicant]:
    """Return the people of a month of the audit, by their names."""
    people = islice(applicants(random.Random(1_000 + number)), A_MONTH)
    return {f"M{number}-{at}": person for at, person in enumerate(people)}


def write_rows(path: Path, header: str, rows: list[tuple[str, ...]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=";").writerows([header.split(";"), *rows])
    return path


@only_in_full  # a lender's two files go this way in every run
def test_on_the_command_line_in_two_tries(
    bank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table as it is, advice followed to the letter, files with the bank's own words."""
    monkeypatch.chdir(bank)
    monkeypatch.setenv("EQUIPOISE_LEDGER", str(tmp_path / "ledger.db"))
    columns = ("--group", "race", "--decision", "decision", "--outcome", "status")
    metric = ("--metric", "equal_opportunity")
    saved = tmp_path / "bank.toml"
    first = equipoise(
        "check", "applications.csv", *columns, *metric, "--id", "application", "--save", saved
    )
    assert first.returncode == 2
    assert "error: 5 problems:" in first.stderr
    second = equipoise(*shlex.split(first.stderr.splitlines()[-1])[1:])
    assert (second.returncode, second.stderr) == (0, "")
    assert "INCONCLUSIVE" in second.stdout
    assert re.search(r"approved rows only +0\.0", second.stdout)
    assert ASKED.threshold < TRUE_GAP  # what this table cannot show

    def right(*command: object) -> str:
        done = equipoise(*command)
        assert (done.returncode, done.stderr) == (0, ""), command
        return done.stdout

    free = json.loads(right("check", saved, *metric, "--json"))
    counts = free["history"]["cells"]
    for group, cells in recounted(bank).items():
        assert {cell: counts[group][cell] for cell in cells} == cells
    assert free["lower"] <= TRUE_GAP <= free["upper"]
    assert "run the adaptive audit" in right("plan", saved, *metric)
    left_out = ("--leave-out", "not stated")  # as the note of the missing races says
    assert " ".join(left_out).replace("not stated", "'not stated'") in " ".join(
        second.stdout.split()
    )
    right("audit", "new", "loans", saved, *metric, *left_out, "--budget", 5_000)
    asks, wanted, outcomes = (tmp_path / f"{name}.csv" for name in ("asks", "wanted", "outcomes"))
    for month in range(MONTHS):
        people = month_of(month)
        rows = [(n, p.race, "Approved" if p.approved else "Declined") for n, p in people.items()]
        write_rows(asks, "application;race;decision", rows)
        by_file = ("audit", "ask", "loans", "--file", asks, "--results", wanted)
        right(*by_file)  # the reading of the past knows which column identifies people
        overridden = pd.read_csv(wanted).query("want == 'LABEL'").person
        status = [(n, "Paid" if people[n].good else "Default") for n in overridden]
        write_rows(outcomes, "application;status", status)
        right("audit", "tell", "loans", "--file", outcomes, "--column", "person=application")
        if json.loads(right("audit", "status", "loans", "--json"))["finding"] is not None:
            break
    assert "UNFAIR" in right("audit", "status", "loans")
    right("audit", "report", "loans", "--to", tmp_path / "loans.html")
    assert "UNFAIR" in (tmp_path / "loans.html").read_text("utf-8")
    assert "every decision made anew" in right("audit", "verify", "loans")


def test_in_python_from_table_to_verdict(bank: Path, tmp_path: Path) -> None:
    path = bank / "applications.csv"
    with pytest.raises(BadData, match="5 problems"):
        eq.check(path, "equal_opportunity", **messy_bank.COLUMNS, id="application")
    reading = {
        **messy_bank.COLUMNS, "id": "application", "repeated": "count_once",
        "positive": {"decision": "Approved", "outcome": "Paid"},
        "negative": {"decision": "Declined", "outcome": "Default"},
        "missing_values": ["Withdrawn", "Open"], "undecided": "leave_out",
        "missing_group": "not stated", "unknown": "bounds",
    }  # fmt: skip
    past = History.read(path, **reading)
    assert past.cells == eq.History.from_cells(recounted(bank)).cells
    found = eq.check(past, ASKED)
    assert found.verdict == "INCONCLUSIVE"
    assert found.lower <= TRUE_GAP <= found.upper
    assert any(case.is_decidable for case in eq.plan(past, ASKED).cases)
    stated = eq.Question("equal_opportunity", compare=eq.Compare(leave_out=("not stated",)))
    memory = eq.AdaptiveAudit(past, stated, eq.Costs(), budget=5_000)
    for person in islice(applicants(random.Random(1)), MONTHS * A_MONTH):
        ticket = memory.ask(person.race.upper(), "Approved" if person.approved else "declined ")
        if ticket.want is Want.LABEL:
            memory.tell(ticket, "Paid" if person.good else "Default")
        if memory.finding is not None:
            break
    finding = memory.conclude()
    assert finding.verdict == "UNFAIR"
    assert finding.lower <= TRUE_GAP <= finding.upper
    assert "UNFAIR" in eq.write_report(memory, tmp_path / "loans.html").read_text("utf-8")


@only_in_full  # the dashboard goes from a table to a verdict in every run
def test_in_a_browser_and_over_http(bank: Path, browser: Browser) -> None:
    """The form fills itself in; the table stays chosen; a program asks and tells; all is proved."""
    with TemporaryDirectory(dir=in_memory()) as folder, serving(folder) as served:
        served.as_("auditor")
        context = browser.new_context()
        page = context.new_page()
        page.goto(served.url)
        page.get_by_label("Token").fill(served.tokens["auditor of all"])
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("link", name="New audit").click()
        page.locator("input[name=table]").set_input_files(bank / "applications.csv")
        page.get_by_role("button", name="Read the columns").click()
        for role, column in (("group", "race"), ("decision", "decision"), ("outcome", "status")):
            expect(page.locator(f"select[name={role}]")).to_have_value(column)
        page.get_by_text("More: person, dates").click()
        page.get_by_label("Column that tells people apart").select_option("application")
        page.get_by_role("button", name="Count the rows").click()
        expect(page.get_by_role("alert")).to_contain_text(
            "people are there more than once (120 rows too many)"
        )
        page.get_by_role("button", name="Count the rows").click()  # as it is filled in
        expect(page.locator("#result")).to_contain_text("left out as never decided: 'Withdrawn'")
        page.locator("select[name=metric]").select_option("equal_opportunity")
        page.get_by_role("button", name="Check the data").click()
        expect(page.locator(".answer .word")).to_have_text("INCONCLUSIVE")
        page.get_by_role("button", name="Plan an audit").click()
        page.locator("#begin").get_by_label("Name").fill("loans")
        page.locator("#begin input[name=budget]").fill("5,000")
        page.get_by_role("button", name="Begin the audit").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("loans")
        context.close()
        live = LiveAudit.open(served.settings.ledger, "loans")
        assert live.settings.past.cells == History.from_cells(recounted(bank)).cells
        live.close_ledger()
        for month in range(MONTHS):
            people = month_of(month)
            asks = [
                {
                    "command": "ask",
                    "person": name,
                    "group": p.race or "not stated",
                    "decision": int(p.approved),
                }
                for name, p in people.items()
            ]
            commands = served.as_("writer")
            replies = commands.post("/v1/audits/loans/commands", json={"commands": asks}).json()
            tells = [
                {"command": "tell", "person": r["person"], "outcome": int(people[r["person"]].good)}
                for r in replies["results"]
                if r["want"] == "LABEL"
            ]
            commands.post("/v1/audits/loans/commands", json={"commands": tells})
            status = served.as_("auditor").get("/v1/audits/loans/status").json()
            if status["finding"] is not None:
                break
        assert status["finding"]["verdict"] == "UNFAIR"
        report = served.as_("auditor").get("/v1/audits/loans/report")
        assert report.status_code == 200, report.text
        assert "UNFAIR" in report.text
        assert served.verify("loans")["kind"] == "verified"


# -- loans that still run, read in both ways -------------------------------------------------------

COLUMNS = {
    "group": "race", "decision": "status", "outcome": "loan",
    "positive": {"decision": "Approved", "outcome": "Paid"},
    "undecided": "leave_out", "missing_values": ["Withdrawn", "Open"], "missing_group": "unsaid",
}  # fmt: skip
FLAGS = (
    *("-g", "race", "-d", "status", "-o", "loan", "--positive", "decision=Approved"),
    *("--positive", "outcome=Paid", "--missing-value", "Withdrawn", "--missing-value", "Open"),
    *("--undecided", "leave_out", "--missing-group", "unsaid", "--metric", "equal_opportunity"),
    *("--epsilon", "0.1"),
)
QUESTION = eq.Question("equal_opportunity", gamma=0.05, epsilon=0.1)

Unknown = Literal["bounds", "like_known"]
in_the_shell = pytest.mark.parametrize("unknown", ["bounds", "like_known"])
in_python = pytest.mark.parametrize("unknown", quick(["like_known"], full=["bounds", "like_known"]))


@pytest.fixture(scope="module")
def book() -> pd.DataFrame:
    """Words, blanks, withdrawn applications; of every tenth loan nobody knows yet how it ends."""
    rng, size = np.random.default_rng(27), 4000
    race = rng.choice(["a", "b", ""], size, p=[0.5, 0.4, 0.1])
    granted = rng.random(size) < np.where(race == "a", 0.7, 0.5)
    status = np.where(granted, "Approved", "Declined ")
    loan = np.where(rng.random(size) < 0.8, "Paid", "default")
    loan = np.where(rng.random(size) < 0.9, loan, rng.choice(["Open", ""], size))
    withdrawn = rng.random(size) < 0.03
    return pd.DataFrame(
        {
            "race": race,
            "status": np.where(withdrawn, "Withdrawn", status),
            "loan": np.where(granted & ~withdrawn, loan, ""),
        }
    )


@only_in_full
@in_the_shell
def test_on_the_command_line(book: pd.DataFrame, unknown: Unknown, tmp_path: Path) -> None:
    table, ledger = tmp_path / "past.csv", tmp_path / "ledger.db"
    book.to_csv(table, index=False)
    read = (table, *FLAGS, "--unknown", unknown)
    for command in (
        ("check", *read, "--report", tmp_path / "check.html"),
        ("plan", *read),
        ("audit", "new", "loans", *read, "-l", ledger, "--yes"),
        ("audit", "ask", "loans", "p1", "b", "declined", "-l", ledger),
        ("audit", "tell", "loans", "p1", "Paid", "-l", ledger),
        ("audit", "report", "loans", "-l", ledger, "--to", tmp_path / "report.html"),
        ("audit", "verify", "loans", "-l", ledger),
    ):
        done = equipoise(*command)
        assert (done.returncode, done.stderr) == (0, ""), command
    assert "Fairness audit" in (tmp_path / "report.html").read_text("utf-8")
    made = json.loads(equipoise("audit", "report", "loans", "-l", ledger, "--json").stdout)
    running = int((book.status.eq("Approved") & book.loan.isin(["Open", ""])).sum())
    assert made["sensitivity"]["unknown"] == (running if unknown == "bounds" else 0)
    assert made["sensitivity"]["lower"] < made["sensitivity"]["upper"] or unknown == "like_known"


@in_python
def test_in_python(book: pd.DataFrame, unknown: Unknown, tmp_path: Path) -> None:
    reading = {**COLUMNS, "unknown": unknown}
    assert eq.check(book, QUESTION, **reading).verdict == "INCONCLUSIVE"
    assert eq.plan(book, QUESTION, **reading).cases
    past = History.read(book, **reading)
    costs = eq.Costs(label=100)
    live = LiveAudit.create("sqlite://", "loans", past, QUESTION, costs, confirm=True)
    memory = eq.AdaptiveAudit(past, QUESTION, eq.Costs(label=100))
    assert live.ask("p1", "b", 0).want is Want.LABEL
    live.tell("p1", 1)
    memory.tell(memory.ask("b", "Declined"), "Paid")
    for name, audit in {"live": live, "memory": memory}.items():
        page = eq.write_report(audit, tmp_path / f"{name}.html").read_text("utf-8")
        assert "NO VERDICT YET" in page
        assert "1 override" in page
    assert live.verify().seq == live.status().events


def test_over_http(book: pd.DataFrame, tmp_path: Path) -> None:
    past = History.read(book, **COLUMNS, unknown="bounds")
    with serving(str(tmp_path)) as served:
        given = {"past": past.cells.to_dict(), "audit": "adaptive", "options": {}}
        served.create("loans", **given, confirm=True)
        served.result("loans", "ask", "p1", group="b", decision=0)
        answer = served.as_("auditor").get("/v1/audits/loans/report")
        assert answer.status_code == 200, answer.text
        assert "Fairness audit" in answer.text
        assert served.verify("loans")["kind"] == "verified"


def test_a_group_that_never_comes_is_named() -> None:
    """An audit waits for labels of every group that it compares, and says for which."""
    past = History.from_cells({**PAST, "not stated": PAST["B"]})
    live = LiveAudit.create("sqlite://", "loans", past, QUESTION, eq.Costs(label=1))
    live.ask_many((f"p{at}", "AB"[at % 2], 0) for at in range(100))
    forecast = forecast_similar_audit(live, live.status())
    assert forecast is not None
    waits = "Of not stated no denied person has come yet, among 100 people."
    assert waits in describe_expected_cost(forecast, live.status())
    live.ask("somebody", "not stated", 0)
    assert "has come yet" not in describe_expected_cost(forecast, live.status())


def test_a_form_leaves_open_what_only_a_person_can_know(book: pd.DataFrame) -> None:
    """0 and 1 beside a word: which of the two is good must be filled in, the word is proposed."""
    table = book.assign(loan=book.loan.replace({"Paid": "0", "default": "1"})).to_csv(index=False)
    with TemporaryDirectory(dir=in_memory()) as folder, serving(folder) as served:
        browser = log_in(served, "auditor")
        form = {"form_key": form_key(browser.get("/check").text), "group": "race"}
        form |= {"decision": "status", "outcome": "loan"}
        answer = browser.post("/check", data=form, files={"table": ("our loans.csv", table)})
        assert answer.status_code == 422
        assert clicked(answer.text, "outcome") == {"Open": "not known", "": "not known"}
        decisions = clicked(answer.text, "decision")
        assert decisions["Approved"] == "approved"
        assert decisions["Withdrawn"] == "no decision"
        assert 'name="missing_group" value="not stated"' in answer.text
        form |= {"positive_decision": "Approved", "missing_values": "Withdrawn; Open"}
        form |= {"positive_outcome": "0", "negative_outcome": "1", "missing_group": "unsaid"}
        form |= {"undecided": "leave_out", "unknown": "bounds", "epsilon": "0.2"}
        answer = browser.post("/check", data=form, files={"table": ("our loans.csv", table)})
        assert answer.status_code == 200, answer.text
        assert "<b>our loans.csv</b>: 3 groups" in answer.text
        assert "are read as &#39;declined&#39;" in answer.text.casefold()
        turned = {**form, "positive_outcome": "1", "negative_outcome": "0"}
        answer = browser.post("/check", data=turned, files={"table": ("our loans.csv", table)})
        assert "fewer approved people had the good outcome than the bad one" in answer.text
