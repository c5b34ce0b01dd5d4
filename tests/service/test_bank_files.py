"""A lender's files over HTTP and in forms: the gate, waiting, and the words of the files."""

from __future__ import annotations

import random

import pytest

import equipoise as eq
from equipoise.client import RemoteAudit
from equipoise.history import History
from tests.service.attacking import form_key, log_in
from tests.support.hmda import applicants, write_files
from tests.support.serving import Served
from tests.unit.planning.test_feasibility import PAST, QUESTION

READING = {
    "preset": "hmda",
    "on": "uli",
    "outcome": "loan_status",
    "positive": {"outcome": "Repaid"},
    "missing_group": "not stated",
}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    lar, performance = write_files(tmp_path_factory.mktemp("hmda"), rows=2000)
    return History.read(lar, outcomes=performance, **READING)


def test_the_gate_over_http_names_the_group_and_the_fix(served: Served) -> None:
    auditor = served.as_("auditor")
    body = {
        "past": PAST.cells.to_dict(),
        "question": QUESTION.to_dict(),
        "costs": {"label": 100},
    }
    refused = auditor.put("/v1/audits/gate", json=body)
    assert refused.status_code == 422
    problem = refused.json()
    assert problem["type"] == "urn:equipoise:not-feasible"
    assert problem["leave_out"] == ["not stated"]
    assert "'not stated' would keep this audit from ending" in problem["detail"]
    assert '"compare": {"leave_out": ["not stated"]}' in problem["detail"]
    assert '"confirm": true' in problem["detail"]
    advised = {**body["question"], "compare": {"leave_out": problem["leave_out"]}}
    assert auditor.put("/v1/audits/gate", json={**body, "question": advised}).status_code == 200
    assert auditor.put("/v1/audits/all", json={**body, "confirm": True}).status_code == 200


def test_waiting_is_in_status_page_and_replies(served: Served) -> None:
    body = {"past": PAST.cells.to_dict(), "question": QUESTION.to_dict(), "costs": {"label": 100}}
    created = served.as_("auditor").put("/v1/audits/waits", json={**body, "confirm": True})
    assert created.status_code == 200, created.text
    chance = random.Random(3)
    stated = (person for person in applicants(chance) if person.race and not person.approved)
    path = "/v1/audits/waits/commands"
    answer = {"results": [], "waiting": []}
    number = 0
    while not answer["waiting"] and number < 2000:
        asks = []
        for _ in range(200):
            asks.append({"command": "ask", "person": f"p-{number}", "group": next(stated).race})
            asks[-1]["decision"] = 0
            number += 1
        answer = served.as_("auditor").post(path, json={"commands": asks}).json()
        wanted = [reply["person"] for reply in answer["results"] if reply["want"] == "LABEL"]
        # Repaid or not: evenly, so that no verdict comes of these groups alone.
        tells = [
            {"command": "tell", "person": person, "outcome": at % 2}
            for at, person in enumerate(wanted)
        ]
        if tells and not answer["waiting"]:
            served.as_("writer").post(path, json={"commands": tells})
    (waiting,) = answer["waiting"]
    assert waiting["group"] == "not stated"
    assert "leaves the group out" in waiting["text"]
    status = served.as_("auditor").get("/v1/audits/waits/status").json()
    assert status["waiting"][0]["group"] == "not stated"
    assert "only denied people of group" in log_in(served).get("/audits/waits").text.casefold()
    as_writer = served.send("waits", "ask", "one more", group="White", decision=0).json()
    assert "waiting" not in as_writer  # a writer learns what is wanted and no more


def test_words_of_the_files_are_understood_over_http_and_in_uploads(
    served: Served, history: History
) -> None:
    question = eq.Question("equal_opportunity", 0.05, 0.2)
    served.as_("auditor")
    remote = RemoteAudit.create(
        *(served.url, "words", history, question, eq.Costs(label=100)),
        token=served.tokens["auditor of all"],
        confirm=True,
    )
    remote.close()
    denied = served.result("words", "ask", "p-1", group="asian", decision="3")
    assert denied["want"] == "LABEL"
    approved = served.result("words", "ask", "p-2", group="WHITE", decision="1")
    assert approved["want"] != "LABEL"
    withdrawn = served.result("words", "ask", "p-3", group="White", decision="4")
    assert withdrawn["problem"]["type"] == "urn:equipoise:invalid-input"
    assert "there is no decision yet" in withdrawn["problem"]["detail"]
    unknown = served.result("words", "ask", "p-4", group="White", decision="maybe")
    assert "unknown decision" in unknown["problem"]["detail"]
    told = served.result("words", "tell", "p-1", outcome="Defaulted", role="auditor")
    assert told["outcome"] == 0
    people = served.as_("auditor").get("/v1/audits/words/people").json()["people"]
    assert [(p["person"], p["group_name"], p["decision"]) for p in people] == [
        ("p-1", "Asian", 0),
        ("p-2", "White", 1),
    ]
    browser = log_in(served)
    key = {"form_key": form_key(browser.get("/check").text)}
    rows = b"uli,derived_race,action_taken\nu-1,asian,3\nu-2,White,4\nu-3,,3\n"
    files = {"table": ("arrivals.csv", rows)}
    page = browser.post("/audits/words/upload", data={**key, "what": "arrivals"}, files=files).text
    assert "2 new" in page
    assert "0 refused" in page
    people = served.as_("auditor").get("/v1/audits/words/people").json()["people"]
    assert [(p["person"], p["group_name"]) for p in people[2:]] == [
        ("u-1", "Asian"),
        ("u-3", "not stated"),
    ]


def test_an_audit_begun_without_words_is_found_again_with_them(
    served: Served, history: History
) -> None:
    auditor = served.as_("auditor")
    body = {"past": history.cells.to_dict(), "costs": {"label": 100}, "confirm": True}
    body["question"] = eq.Question("equal_opportunity", 0.05, 0.2).to_dict()
    first = auditor.put("/v1/audits/older", json=body)
    assert first.status_code == 200, first.text
    assert history.coding is not None
    again = auditor.put("/v1/audits/older", json={**body, "coding": history.coding.to_dict()})
    assert again.json()["uid"] == first.json()["uid"]
    for wrong in ({}, {"columns": {}}, "x", [1], {**history.coding.to_dict(), "columns": {}}):
        answer = auditor.put("/v1/audits/wrong", json={**body, "coding": wrong})
        assert answer.status_code == 422, wrong
