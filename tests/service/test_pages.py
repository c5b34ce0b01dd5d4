"""What people do on the dashboard, form by form; ``tests/acceptance`` has it in a real browser."""

from __future__ import annotations

import html
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import httpx
import openpyxl
import pytest

import equipoise as eq
from equipoise.history import History
from equipoise.ledger import LiveAudit
from equipoise.ledger.commands import Correct
from equipoise.ledger.proof import read_checkpoints
from equipoise.planning.case_rows import case_rows
from equipoise.service import pages_check
from tests.conformance.ledgers import create, run
from tests.profiles import quick
from tests.service.attacking import clicked, form_key, log_in
from tests.support.serving import ASK, PAST, Served


def key_of(browser: httpx.Client, audit: str) -> dict[str, str]:
    return {"form_key": form_key(browser.get(f"/audits/{audit}").text)}


def test_a_proposal_needs_a_choice(served: Served) -> None:
    """d3163f9: the first button of the form was Approve, so Enter in 'Why not' approved."""
    served.create("choice", budget=1000, approvals=["budget"])
    number = served.result("choice", "set_budget", budget=5000, why="x", role="auditor")["number"]
    browser = log_in(served, "approver")
    page = browser.get("/audits/choice").text
    task = page.partition('class="task"')[2].partition("</li>")[0]
    approval, rejection = task.split("<form")[1:]
    for one_form in (approval, rejection):
        assert one_form.count("<button") == 1  # Enter can press no other
        assert 'action="/audits/choice/do/decide"' in one_form
    assert 'value="approve"' not in rejection  # which has the field to write in
    assert 'name="why"' not in approval
    form = {"form_key": form_key(page), "proposal": str(number), "why": "far too much"}
    act, cap = "/audits/choice/do/decide", partial(served.as_("auditor").get, "/v1/audits/choice")
    for choice in ({}, {"choice": ""}, {"choice": "maybe"}):
        refused = browser.post(act, data={**form, **choice})
        assert refused.status_code == 422
        assert "choose whether to approve or to reject" in refused.text
    assert cap().json()["cap"] == 1000
    assert browser.post(act, data={**form, "choice": "reject"}).status_code == 303
    assert cap().json()["cap"] == 1000
    other = served.result("choice", "set_budget", budget=6000, why="x", role="auditor")["number"]
    approved = browser.post(act, data={**form, "proposal": str(other), "choice": "approve"})
    assert approved.status_code == 303
    assert cap().json()["cap"] == 6000


def test_a_verdict_that_a_correction_took_back_is_named(served: Served) -> None:
    live = create(served.settings.ledger, "reread")
    run(live, 600)
    first = live.finding
    assert first is not None
    live.run(
        Correct(row.person, 1 - row.outcome, "columns were swapped")
        for row in live.people(states=("REVEALED",))
        if row.group_name == "B" and row.decision == 0
    )
    page = log_in(served, "auditor").get("/audits/reread").text
    assert f"{first.verdict} was reached before and taken back" in page


def test_a_refusal_names_the_form_that_helps(served: Served) -> None:
    served.create("named")
    served.result("named", "ask", "p", **ASK)
    served.result("named", "tell", "p", outcome=1)
    browser = log_in(served)
    form = {**key_of(browser, "named"), "person": "p"}
    page = browser.post("/audits/named/do/tell", data={**form, "outcome": "0"})
    assert page.status_code == 409
    assert "if 0 (bad) is right: “Correct an outcome” under “Enter data”" in page.text
    assert '<h3 id="correct">Correct an outcome</h3>' in page.text
    assert '"/audits/named/enter" aria-current="page">Enter data</a>' in page.text
    table = {"table": ("people.csv", b"person,outcome\np,0\n", "text/csv")}
    batch = browser.post("/audits/named/upload", data={**form, "what": "outcomes"}, files=table)
    assert "“Correct an outcome” under “Enter data”" in batch.text


def test_an_approver_sees_what_is_to_be_approved(served: Served) -> None:
    kinds = ["limits", "random_accepts"]
    served.create("seen", audit="adaptive", options={}, approvals=kinds)
    served.result("seen", "set_limits", max_in_flight=None, max_in_flight_groups={"A": 7},
                  why="slower", role="auditor")  # fmt: skip
    served.result("seen", "set_random_accepts", random_accepts={"A": [1200, 30, 4]},
                  why="the first quarter", role="auditor")  # fmt: skip
    page = log_in(served, "approver").get("/audits/seen").text
    assert "to change the limits: 7 of A; slower" in page
    assert "test programme: A 1,200 good, 30 bad, 4 unknown; B 0 good" in page


def test_what_cannot_be_undone_is_asked_twice(served: Served) -> None:
    """d3163f9: Conclude was one of three buttons, and one click ended the audit for ever."""
    served.create("final", approvals=["erased"], audit="adaptive", options={})
    for person in ("late", "gone"):
        served.result("final", "ask", person, **ASK)
    served.result("final", "overdue", "late", role="auditor")
    browser, act = log_in(served), "/audits/final/do"
    form, events = key_of(browser, "final"), served.as_("auditor")

    def last() -> str:
        every = events.get("/v1/audits/final/events", params={"limit": 1000}).json()["events"]
        return str(every[-1]["type"])

    cases = {
        "write_off": ({"person": "late"}, "highest cost is booked", "written_off"),
        "erase": ({"person": "late"}, "cannot tell who it was", "proposed"),
        "conclude": ({"why": "enough"}, "cannot be begun again", "verdict"),
    }
    for what, (said, words, event) in cases.items():
        before = last()
        asked = browser.post(f"{act}/{what}", data={**form, **said})
        assert asked.status_code == 200
        assert words in asked.text
        assert last() == before
        answer = browser.post(f"{act}/{what}", data={**form, **said, "sure": "yes"})
        assert answer.status_code == 303, answer.text
        assert last() == event
        if what == "erase":  # the second person is asked twice as well
            number = events.get("/v1/audits/final/status").json()["proposals"][0]["number"]
            second = log_in(served, "approver")
            choice = {"proposal": str(number), "choice": "approve", **key_of(second, "final")}
            assert "cannot tell who it was" in second.post(f"{act}/decide", data=choice).text
            assert last() == event
            done = second.post(f"{act}/decide", data={**choice, "sure": "yes"})
            assert done.status_code == 303
            assert last() == "erased"


def test_a_checkpoint_is_a_file_that_verify_reads(served: Served, tmp_path: Path) -> None:
    """d3163f9: the page said 'Done.'; the hash was in the server's tables and nowhere else."""
    served.create("handed")
    browser = log_in(served, "regulator")
    answer = browser.post("/audits/handed/do/checkpoint", data=key_of(browser, "handed"))
    assert "attachment" in answer.headers["content-disposition"]
    file = tmp_path / "checkpoint.jsonl"
    file.write_bytes(answer.content)
    live = LiveAudit.open(served.settings.ledger, "handed")
    assert read_checkpoints(file, live.row.uid) == [(1, live.checkpoint().hash)]
    live.verify(read_checkpoints(file))
    live.close_ledger()


def test_a_verification_is_seen_on_the_page_when_it_is_done(served: Served) -> None:
    """d3163f9: the request took as long as the verification; proxies gave up after a minute."""
    served.create("checked")
    browser = log_in(served)
    answer = browser.post("/audits/checked/do/verify", data=key_of(browser, "checked"))
    assert answer.status_code == 303
    while "under way" in (page := browser.get("/audits/checked/live").text):
        time.sleep(0.05)
    assert "nothing was changed, up to event 1" in page


def test_overrides_are_a_list_to_confirm(served: Served) -> None:
    served.create("work")
    people = [f"person {i}" for i in range(4)]
    served.send("work", "ask", *people, **ASK)
    browser, path = log_in(served), "/audits/work/work"
    page = browser.get(path).text
    assert "Today: 4" in page
    form = {"form_key": form_key(page)}
    ticked = {"execute": people[:2], "withdraw": people[2:3]}
    answer = browser.post(path, data={**form, **ticked})
    assert "3 rows: 3 new, 0 known before, 0 refused" in answer.text
    states = served.as_("auditor").get("/v1/audits/work/status").json()["groups"]["B"]["states"]
    assert states == {"EXECUTED": 2, "WITHDRAWN": 1, "RESERVED": 1}
    both = browser.post(path, data={**form, "execute": people[3:], "withdraw": people[3:]})
    assert both.status_code == 422
    assert "Today: 1" in browser.get(path).text
    other = log_in(served, "regulator")
    mine = {"form_key": form_key(other.get(path).text), "execute": people[3:]}
    assert other.post(path, data=mine).status_code == 403


def test_tables_of_arrivals_and_outcomes(served: Served) -> None:
    served.create("tables")
    browser, path = log_in(served), "/audits/tables/upload"
    form = key_of(browser, "tables")
    table = "group,person,decision\nB,p1,denied\nB,p2,0\nnobody,p3,0\nA,p4,approved\nB,p5,maybe\n"
    files = {"table": ("arrivals.csv", table.encode())}
    shown = browser.post(path, data={**form, "what": "arrivals"}, files=files).text
    assert "5 rows: 3 new, 0 known before, 2 refused" in shown
    assert "Outcomes wanted: 2" in shown
    assert "p3" in shown
    files = {"table": ("outcomes.csv", b"person,outcome\np1,good\np2,0\np9,1\n")}
    shown = browser.post(path, data={**form, "what": "outcomes"}, files=files).text
    assert "3 rows: 2 new, 0 known before, 1 refused" in shown
    again = browser.post(path, data={**form, "what": "outcomes"}, files=files).text
    assert "3 rows: 0 new, 2 known before, 1 refused" in again
    files = {"table": ("outcomes.csv", b"who,outcome\np1,1\n")}
    refused = browser.post(path, data={**form, "what": "outcomes"}, files=files)
    assert refused.status_code == 422
    assert "no column &#39;person&#39;; it has who, outcome. Give the one that" in refused.text
    assert browser.post(path, data={**form, "what": "outcomes"}).status_code == 422


def test_people_are_found_by_pseudonym_and_deeds_by_time(served: Served) -> None:
    served.create("found", budget=10_000, currency="EUR", decimals=2)
    served.result("found", "ask", "sought/after", **ASK)
    served.result("found", "set_budget", budget=20_000, why="more came", role="auditor")
    browser = log_in(served)
    form = {"form_key": form_key(browser.get("/audits/found/people").text)}
    shown = browser.post("/audits/found/people", data={**form, "person": "sought/after"}).text
    assert "<code>sought/after</code>" in shown
    nobody = browser.post("/audits/found/people", data={**form, "person": "nobody"})
    assert (nobody.status_code, "never asked about" in nobody.text) == (200, True)
    log = browser.get("/audits/found/log").text
    first, second = log.index("changed the budget"), log.index("reported an arrival")
    assert first < second  # the latest first
    assert "200.00 EUR; more came" in log
    assert "auditor of all" in log
    served.send("found", "ask", *map(str, range(120)), **ASK)
    page = browser.get("/audits/found/log").text
    assert "Earlier" in page
    assert "began the audit" not in page
    assert "began the audit" in browser.get("/audits/found/log?before=20").text


def test_a_budget_is_asked_for(served: Served) -> None:
    browser = log_in(served)
    form = {"cells": json.dumps(PAST), "form_key": form_key(browser.get("/check").text)}
    form |= {"name": "by page", "label": "100", "cents": "1", "currency": "EUR"}
    refused = browser.post("/audits", data=form)
    assert refused.status_code == 422
    assert "&#39;budget&#39; is needed" in refused.text
    assert 'value="by page"' in refused.text  # what was filled in is still there
    for bad in ("-1", "1.234", "20.000", "nan", "1e400", "inf", "many", "9" * 19, "9" * 5000):
        assert browser.post("/audits", data={**form, "budget": bad}).status_code == 422
    for comma in ("12,34", "20000,50", "20.000,50", "1,0000", ",500", "1,,000", "5,000,"):
        refused = browser.post("/audits", data={**form, "budget": comma})
        assert refused.status_code == 422, comma
        assert "as in 12,345.00: at most 2 decimals after a point, and commas" in refused.text
    assert browser.post("/audits", data={**form, "budget": "5,000.50"}).status_code == 303
    free = {**form, "name": "without limit", "no_cap": "1"}
    assert browser.post("/audits", data=free).status_code == 303
    caps = {a["name"]: a["cap"] for a in served.as_("auditor").get("/v1/audits").json()["audits"]}
    assert (caps["by page"], caps["without limit"]) == (500_050, None)


def test_money_is_in_one_unit_and_no_digit_of_it_is_lost(served: Served) -> None:
    browser = log_in(served)
    form = {"cells": json.dumps(PAST), "form_key": form_key(browser.get("/check").text)}
    form |= {"label": "12345.67", "metric": "equal_opportunity"}
    page = browser.post("/check", data={**form, "step": "plan"}).text
    assert page.count('name="label" value="12345.67"') >= 2  # in what is asked and what is begun
    form |= {"name": "dear", "cents": "1", "currency": "EUR", "tolerance": "40"}
    refused = browser.post("/audits", data={**form, "budget": "12,345.66"})
    assert refused.status_code == 422
    assert "at its worst, 12,345.67 EUR; 12,345.66 EUR does not" in refused.text
    assert "--budget" not in refused.text
    assert browser.post("/audits", data={**form, "budget": "12,345.67"}).status_code == 303


def test_a_plan_takes_what_sliders_say_and_trial_runs(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between 3acd69ad and 1de47181 the browser had neither slider nor a place for trial runs."""
    browser = log_in(served)
    form = {"cells": json.dumps(PAST), "form_key": form_key(browser.get("/check").text)}
    form |= {"metric": "equal_opportunity", "tolerance": "10", "margin": "20"}
    runs = quick(3, full=pages_check.TRIAL_RUNS)
    monkeypatch.setattr(pages_check, "TRIAL_RUNS", runs)

    def plan(**fields: str) -> str:
        return browser.post("/check", data={**form, "step": "plan", **fields}).text

    several = plan()
    for position, group in enumerate(PAST):
        slider = f'name="denied_rate_{position}" min="0" max="100"'
        assert slider in several
        assert f'aria-label="{group}: of 100 denied people' in several
    assert case_table(several).count('<th scope="row">') > 2  # several cases
    # What nobody ticked changes nothing.
    assert case_table(plan(denied_rate_0="77")) == case_table(several)
    known = dict.fromkeys((f"known_{position}" for position in range(len(PAST))), "1")
    low = plan(**known, denied_rate_0="20", denied_rate_1="20")
    assert "as you say" in case_table(low)
    assert case_table(low) != case_table(plan(**known, denied_rate_0="20", denied_rate_1="90"))
    assert 'value="20" aria-label' in low  # the slider stays where it was put
    asked = eq.Question("equal_opportunity", 0.1, 0.2)
    made = eq.plan(
        eq.History.from_cells(PAST), asked, denied_rate=dict.fromkeys(PAST, 0.2), trial_runs=runs
    )
    trials = plan(**known, denied_rate_0="20", denied_rate_1="20", step="trials")
    assert "Trial runs</h3>" in trials
    assert f"{runs} trial runs a case" in trials
    (row,) = case_rows(made)
    assert "Runs with a verdict" in row
    for name, figure in row.items():
        shown = f"{figure:,}" if isinstance(figure, int) else str(figure)
        assert shown in case_table(trials), name
    assert "Trial runs</h3>" not in low
    for percent in ("-1", "101", "nan", "many"):
        assert browser.post(
            "/check", data={**form, "step": "plan", "known_0": "1", "denied_rate_0": percent}
        ).status_code == 422  # fmt: skip


def case_table(page: str) -> str:
    """Return the figures of the plan on a page."""
    return page.partition('<div id="forecast"')[2].partition("</div>")[0]


WORDS = {"group": "cover", "decision": "icu", "outcome": "result"}
MEANING = {"positive_decision": "Y", "negative_decision": "N", "positive_outcome": "benefit",
           "negative_outcome": "no use", "epsilon": "0.3"}  # fmt: skip
KINDS = (
    ("public", "Y", "benefit", 60),
    ("public", "Y", "no use", 40),
    ("public", "N", "", 80),
    ("Private ", "Y", "benefit", 70),
    ("Private ", "Y", "no use", 20),
    ("Private ", "N", "", 50),
)
TABLE = "cover,icu,result\n" + "".join(f"{g},{d},{o}\n" * n for g, d, o, n in KINDS)


def hidden(page: str) -> dict[str, str]:
    """Return what a page sends along with its form."""
    found = re.findall(r'name="(cells|coding|notes|source)" value="([^"]*)"', page)
    return {name: html.unescape(value) for name, value in found}


def test_an_audit_that_is_begun_from_a_table_keeps_its_words(
    served: Served, tmp_path: Path
) -> None:
    browser = log_in(served)
    key = {"form_key": form_key(browser.get("/check").text)}
    files = {"table": ("beds.csv", TABLE.encode())}
    page = browser.post("/check", data={**key, **WORDS, **MEANING}, files=files)
    assert page.status_code == 200, page.text
    priced = browser.post("/check", data={**key, **hidden(page.text), "tolerance": "10"}).text
    begun = {**key, **hidden(priced), "name": "beds", "label": "100", "no_cap": "1"}
    planned = browser.post("/check", data={**key, **hidden(priced), "step": "plan"}).text
    assert "would probably not reach a verdict" in planned  # beside the advice, before it begins
    assert 'name="confirm"' in planned
    refused = browser.post("/audits", data=begun)
    assert refused.status_code == 422
    assert "would probably not reach a verdict" in refused.text
    assert 'name="confirm"' in refused.text
    assert browser.post("/audits", data={**begun, "confirm": "1"}).status_code == 303
    live = LiveAudit.open(served.settings.ledger, "beds")
    file = tmp_path / "beds.csv"
    file.write_text(TABLE)
    meaning = {"decision": "Y", "outcome": "benefit"}
    by_python = History.read(file, **WORDS, positive=meaning).coding
    assert live.settings.values.coding == by_python
    live.close_ledger()
    table = b"person,group,decision\np1,PUBLIC,N\np2,private,n\np3,public,Y\np4,public,maybe\n"
    arrivals = {"table": ("arrivals.csv", table)}
    said = browser.post("/audits/beds/upload", data={**key, "what": "arrivals"}, files=arrivals)
    assert "4 rows: 3 new, 0 known before, 1 refused" in said.text
    assert "unknown decision (column &#39;icu&#39;) &#39;maybe&#39;" in said.text
    table = b"person,outcome\np1,Benefit\np2,no use\np3,good\n"
    outcomes = {"table": ("outcomes.csv", table)}
    said = browser.post("/audits/beds/upload", data={**key, "what": "outcomes"}, files=outcomes)
    assert "3 rows: 3 new, 0 known before, 0 refused" in said.text


def test_a_coding_that_no_table_gave_is_refused(served: Served) -> None:
    browser = log_in(served)
    key = {"form_key": form_key(browser.get("/check").text)}
    files = {"table": ("beds.csv", TABLE.encode())}
    page = browser.post("/check", data={**key, **WORDS, **MEANING}, files=files).text
    sent = {**key, **hidden(page), "name": "coded", "label": "100", "no_cap": "1"}
    coding = json.loads(sent["coding"])
    wrong = (
        "[]", "{", "null", '"x"', "1" * 5000, "[" * 5000,
        *(json.dumps({**coding, name: value}) for name, value in (
            ("columns", {}), ("columns", {"group": ["g"], "decision": ["d"]}),
            ("columns", {**coding["columns"], "group": ["a", "b"]}),
            ("columns", {**coding["columns"], "decision": 5}),
            ("decision", {"ones": [1], "zeros": ["0"]}), ("decision", None),
            ("grouping", {"labels": [{"a": 5}], "missing": None, "strata": 0}),
            ("missing_values", "x"),
        )),
        json.dumps({**coding, "missing_values": ["\ud800"]}),
    )  # fmt: skip
    for one in wrong:
        answer = browser.post("/audits", data={**sent, "coding": one})
        assert answer.status_code == 422, one[:200]


def test_problems_of_a_table_are_said_in_the_words_of_the_form(served: Served) -> None:
    browser = log_in(served)
    key = {"form_key": form_key(browser.get("/check").text)}

    def sent(table: str, **more: str) -> str:
        files = {"table": ("beds.csv", table.encode())}
        answer = browser.post("/check", data={**key, **WORDS, **more}, files=files)
        page = html.unescape(answer.text)
        for word in ("--", "positive=", "negative=", "until=", "date=", "unknown=", "(positive)"):
            assert word not in page.replace("<!--", "").replace("var(--", ""), (word, page)
        return page

    page = sent(TABLE)
    assert "Column 'icu' must be 0/1 or true/false; found 'Y' (190), 'N' (130). Say which" in page
    assert "“approved” for Y; “denied” for N." in page
    assert clicked(page, "decision") == {"Y": "approved", "N": "denied"}
    running = TABLE.replace("\n", ",2024-01-01\n").replace("result,2024-01-01", "result,day")
    running = running.replace("Y,benefit,2024-01-01", "Y,,2024-01-02", 5)
    page = sent(running, **MEANING)
    for title in ("assume that they are like the known", "Column of dates", "Only people before"):
        assert f"“{title}" in page
        assert page.count(title) > 1  # there is such a field
    assert "2 groups, 315 people" in sent(running, **MEANING, date="day", until="2024-01-02")
    many = "".join(f"group {i},1,1\ngroup {i},0,\n" for i in range(60))
    page = sent("cover,icu,result\n" + many)
    assert 'name="max_groups" value="60"' in page
    many = many.replace(",1,1", ",maybe,1")  # so that nothing is priced, which takes long
    assert "If these are groups" not in sent("cover,icu,result\n" + many, max_groups="60")
    tested = TABLE.replace("\n", ",0\n").replace("result,0", "result,cell")
    tested = tested.replace(",N,,0", ",N,no use,1", 9)
    page = sent(tested, **MEANING, random_accepts="cell")
    assert "or a date: “Columns that show whether they were random" in page
    turned = {**MEANING, "positive_outcome": "no use", "negative_outcome": "benefit"}
    assert "If column 'result' says what went wrong, turn it: “" in sent(TABLE, **turned)


def test_a_sheet_may_be_named(served: Served) -> None:
    book = openpyxl.Workbook()
    book.active.append(["nothing"])
    sheet = book.create_sheet("beds")
    for line in TABLE.splitlines():
        sheet.append(line.split(","))
    file = io.BytesIO()
    book.save(file)
    browser = log_in(served)
    form = {"form_key": form_key(browser.get("/check").text), **WORDS, **MEANING}
    files = {"table": ("beds.xlsx", file.getvalue())}
    page = browser.post("/check", data=form, files=files).text
    assert "has several sheets. Name one: “Sheet of an Excel file, if it has several”." in page
    assert browser.post("/check", data={**form, "sheet": "beds"}, files=files).status_code == 200


def test_a_file_is_taken_where_tables_are_read_and_nowhere_else(served: Served) -> None:
    served.create("check")
    browser = log_in(served)
    form = {**key_of(browser, "check"), "what": "pause", "why": "x"}
    for path in ("check", "upload", "pause"):
        files = {"table": ("t.csv", b"person,outcome\n")}
        answer = browser.post(f"/audits/check/do/{path}", data=form, files=files)
        assert answer.status_code == 400, path
        assert "Maximum number of files is 0" in answer.text
    assert browser.post("/audits/check/do/upload", data={**form, "what": ""}).status_code == 404
    assert served.as_("auditor").get("/v1/audits/check/status").json()["paused"] is None


def test_only_auditors_enter_data_and_an_address_puts_no_words_on_a_page(served: Served) -> None:
    served.create("entry", audit="adaptive", options={})
    auditor = log_in(served)
    assert "Enter data" in auditor.get("/audits/entry").text
    assert auditor.get("/audits/entry/enter").status_code == 200
    for role in ("approver", "regulator"):
        other = log_in(served, role)
        assert "Enter data" not in other.get("/audits/entry").text
        assert other.get("/audits/entry/enter").status_code == 403
        # The report is shown where no script can run in it.
        shown = other.get("/audits/entry/report/view")
        assert "NO VERDICT YET" in shown.text
        assert "sandbox" in shown.headers["content-security-policy"]
    for page in ("/audits/entry", "/audits/entry/enter"):
        assert "Call this number" not in auditor.get(f"{page}?done=Call+this+number.").text
    served.result("entry", "ask", "p1", **ASK)
    assert "<b>1 override</b>" in auditor.get("/audits/entry").text


def test_pause_of_what_has_ended_says_so(served: Served) -> None:
    served.create("ended")
    served.result("ended", "conclude", why="enough", role="auditor")
    browser = log_in(served)
    form = {**key_of(browser, "ended"), "why": "a holiday"}
    for what in ("pause", "resume"):
        answer = browser.post(f"/audits/ended/do/{what}", data=form)
        page = browser.get(answer.headers["location"]).text
        assert "The audit has ended, so it requests no overrides." in page


def test_the_words_are_plain(served: Served) -> None:
    served.create("words", audit="adaptive", options={})
    browser = log_in(served)
    first, page = browser.get("/").text, browser.get("/audits/words").text
    assert "New audit" in first
    assert "in progress" in first
    assert "NO VERDICT YET" in page
    for word in ("GO ON", "OPEN", "Take it along", "By hand", "Delta", "rehearse", "weighed"):
        assert word not in first + page
    served.result("words", "conclude", why="enough", role="auditor")
    assert "INCONCLUSIVE" in browser.get("/").text
    assert "New audit" not in log_in(served, "regulator").get("/").text


def test_a_server_that_is_told_to_end_while_it_starts_ends(tmp_path: Path) -> None:
    """d3163f9: a worker killed while starting left its supervisor deaf to SIGTERM for a minute."""
    program = "from equipoise.cli import app; app()"
    line = [sys.executable, "-c", program, "serve", "--ledger", str(tmp_path / "l.db")]
    for wait in (0.3, 1.5):
        process = subprocess.Popen(
            [*line, "--port", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(wait)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        assert not children.exists() or children.read_text() == ""  # there is no supervisor
        os.kill(process.pid, signal.SIGTERM)
        process.wait(60)


def pairs_named_together(page: str, groups: set[str]) -> list[set[str]]:
    """Return the groups of every paragraph, item or cell of a page that names two of them."""
    # Inline elements belong to the text around them; all others end it.
    texts = re.split(r"<(?!/?(?:b|code|span)\b)[^>]*>", page)
    named = [groups.intersection(re.findall(r"\w+", re.sub("<.*?>", "", text))) for text in texts]
    return [names for names in named if len(names) == 2]


def test_only_groups_that_are_compared_are_said_to_differ(served: Served) -> None:
    """The dashboard paired all groups whose ranges do not meet.

    It paired groups that the question leaves out, and groups that are each compared with a third
    one, the reference.
    """
    counts = {"approved_positive": 6000, "approved_negative": 1000, "denied": 3000}
    past = {
        "Amber": counts,
        "Blue": {**counts, "denied": 9000},
        "Cyan": {**counts, "denied": 40_000},
        "Drab": {**counts, "denied": 200_000},
        "Ecru": {**counts, "denied": 100_000},
    }
    compare = {"by": "difference", "against": "Amber", "leave_out": ["Drab", "Ecru"]}
    question = {"metric": "demographic_parity", "compare": compare}
    served.create("pairs", past=past, question=question, audit="adaptive", options={})
    page = log_in(served).get("/audits/pairs").text
    pairs = pairs_named_together(page, set(past))
    api = served.as_("auditor")
    for path, name in (("finding", "finding"), ("finding", "so_far"), ("status", "finding")):
        finding = api.get(f"/v1/audits/pairs/{path}").json()[name]
        for by_group in finding["rates"].values():
            assert set(by_group) == {"Amber", "Blue", "Cyan"}
        pairs.append({finding["decided_by"]["higher"], finding["decided_by"]["lower"]})
    assert len(pairs) > 3, "the page names a pair, too"
    assert [pair for pair in pairs if "Amber" not in pair or pair & {"Drab", "Ecru"}] == []
