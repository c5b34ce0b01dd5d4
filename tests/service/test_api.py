"""The API as programs use it."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from equipoise.ledger import LiveAudit, Reply
from equipoise.ledger.live import Driver
from equipoise.protocol import Want
from tests.service.attacking import form_key, kind, log_in, refusal
from tests.support.serving import ASK, PAST, WORLD, Served


def test_asking_and_telling_again_changes_nothing(served: Served) -> None:
    served.create("again")
    one = partial(served.result, "again", person="p-17")
    assert one("ask", **ASK) == Reply("p-17", "RESERVED", Want.LABEL, 105).to_dict()
    assert one("ask", **ASK)["repeated"]
    assert refusal(one("ask", **ASK | {"group": "A"})) == "person-conflict"
    assert one("execute")["state"] == "EXECUTED"
    assert one("tell", outcome=1)["state"] == "REVEALED"
    assert one("tell", outcome=1)["repeated"]
    assert refusal(one("tell", outcome=0)) == "outcome-conflict"
    assert refusal(one("withdraw")) == "wrong-state"
    auditor, path = served.as_("auditor"), "/v1/audits/again/people"
    conflicted = auditor.get(f"{path}?conflicted=true").json()["people"]
    assert [p["person"] for p in conflicted] == ["p-17"]
    mended = one("correct", outcome=0, why="a typo", role="auditor")
    assert mended["state"] == "CORRECTED"
    assert auditor.get(f"{path}?conflicted=true").json()["people"] == []
    (stored,) = auditor.post(path, json={"people": ["p-17", "nobody"]}).json()["people"]
    assert (stored["person"], stored["outcome"]) == ("p-17", 0)
    assert not {"salt", "seed", "who"} & set(stored)


def test_a_refusal_has_its_code_and_facts_and_a_command_to_send(served: Served) -> None:
    served.create("reasons")
    served.result("reasons", "ask", "p-17", **ASK)
    served.result("reasons", "tell", "p-17", outcome=1)
    problem = served.result("reasons", "tell", "p-17", outcome=0, role="auditor")["problem"]
    assert problem["code"] == "outcome-conflict"
    assert problem["facts"] == {"person": "p-17", "stored_outcome": 1, "outcome": 0}
    fix = problem["detail"].partition("is right: ")[2].replace("reason", '"a typo"')
    command = json.loads(fix)
    answer = served.as_("auditor").post("/v1/audits/reasons/commands", json={"commands": [command]})
    assert answer.json()["results"][0]["state"] == "CORRECTED"
    for_writers = served.result("reasons", "tell", "p-17", outcome=1)["problem"]
    assert not {"detail", "code", "facts"} & for_writers.keys()


def test_creating_again_finds_the_same_audit(served: Served) -> None:
    served.create("twice", budget=1000)
    served.create("twice", budget=1000)
    auditor = served.as_("auditor")
    before = auditor.get("/v1/audits/twice").json()
    with pytest.raises(AssertionError, match="audit-exists"):
        served.create("twice", budget=2000)
    assert auditor.get("/v1/audits/twice").json() == before


def test_a_batch_says_what_came_of_each(served: Served) -> None:
    served.create("batch")
    asks = [{"command": "ask", "person": f"p{i}", **ASK} for i in range(5)]
    asks[2]["group"] = "nobody"
    tells = [{"command": "tell", "person": f"p{i}", "outcome": 1} for i in range(3)]
    others = [{"command": "execute", "person": "p3"}, {"command": "withdraw", "person": "p4"}]
    body = {"commands": [*asks, *tells, *others]}  # of any kind, in their order
    results = served.as_("writer").post("/v1/audits/batch/commands", json=body).json()["results"]
    states = [one.get("state") for one in results]
    reserved, revealed = ["RESERVED"] * 2, ["REVEALED"] * 2
    assert states == [*reserved, None, *reserved, *revealed, None, "EXECUTED", "WITHDRAWN"]
    assert results[2]["person"] == results[7]["person"] == "p2"
    assert refusal(results[2]) == "invalid-input"
    assert refusal(results[7]) == "unknown-person"


def test_a_command_of_another_role_refuses_all(served: Served) -> None:
    served.create("mixed")
    commands = [{"command": "ask", "person": "p", **ASK}, {"command": "pause", "why": "x"}]
    answer = served.as_("writer").post("/v1/audits/mixed/commands", json={"commands": commands})
    assert kind(answer) == "forbidden"
    assert served.as_("auditor").get("/v1/audits/mixed/status").json()["events"] == 1


def test_pages_of_people_and_events_hold_everything_once(served: Served) -> None:
    served.create("pages")
    auditor, path = served.as_("auditor"), "/v1/audits/pages"
    served.send("pages", "ask", *(f"p{i}" for i in range(30)), **ASK)
    served.send("pages", "tell", *(f"p{i}" for i in range(1, 30, 2)), outcome=0)
    seen: list[str] = []
    after: int | None = 0
    while after is not None:
        query = {"state": ["RESERVED"], "after": after, "limit": 4}
        page = auditor.get(f"{path}/people", params=query).json()
        seen += [p["person"] for p in page["people"]]
        after = page["next"]
    assert seen == [f"p{i}" for i in range(0, 30, 2)]
    numbers, at, head = [], 0, 1
    while at < head:
        page = auditor.get(f"{path}/events", params={"after": at, "limit": 7}).json()
        numbers += [event["seq"] for event in page["events"]]
        at, head = page["next"], page["head"]
    assert numbers == list(range(1, head + 1))
    lines = auditor.get(f"{path}/export").text.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == numbers


def test_a_second_person_must_approve(served: Served) -> None:
    served.create("two", budget=1000, approvals=["budget", "concluded", "corrected"])
    audits, approves = (partial(served.result, "two", role=r) for r in ("auditor", "approver"))
    auditor, path = served.as_("auditor"), "/v1/audits/two"
    proposed = audits("set_budget", budget=5000, why="more")
    assert proposed["state"] == "PROPOSED"
    assert auditor.get(f"{path}/status").json()["cap"] == 1000
    number = proposed["number"]
    assert kind(served.send("two", "approve", role="auditor", proposal=number)) == "forbidden"
    assert approves("approve", proposal=number)["state"] == "BUDGET"
    assert auditor.get(f"{path}/status").json()["cap"] == 5000
    assert refusal(approves("approve", proposal=999)) == "unknown-proposal"
    number = audits("conclude", why="enough")["number"]
    assert approves("reject", proposal=number, why="not yet")["state"] == "REJECTED"
    status = auditor.get(f"{path}/status").json()
    assert status["concluded"] is None
    assert {"auditor of all", "approver of all"} <= set(status["actors"])


def test_what_is_granted_is_checked_and_shown(served: Served) -> None:
    browser = log_in(served)
    form = {"cells": json.dumps(PAST), "no_better": "1", "limits": "at-most:B=0.4\n",
            "form_key": form_key(browser.get("/check").text)}  # fmt: skip
    shown = browser.post("/check", data=form).text
    assert "the denied of every group would do no better than its approved (granted)" in shown
    assert "at most 0.4 of the denied of B would do well (granted)" in shown
    wrong = browser.post("/check", data={**form, "limits": "at-most:nobody=0.4"})
    assert wrong.status_code == 422
    assert "unknown group" in wrong.text


def test_decisions_about_an_audit(served: Served) -> None:
    served.create("decide", budget=10_000, audit="adaptive", options={})
    one = partial(served.result, "decide", role="auditor")
    auditor, path = served.as_("auditor"), "/v1/audits/decide"
    assert one("pause", why="holidays")["state"] == "PAUSED"
    assert served.result("decide", "ask", "p1", **ASK)["want"] == "NOTHING"
    (person,) = auditor.post(f"{path}/people", json={"people": ["p1"]}).json()["people"]
    assert person["why"] == "paused"
    assert one("resume", why="back")["state"] == "RESUMED"
    served.result("decide", "ask", "p2", **ASK)
    assert refusal(one("set_budget", budget=1, why="less")) == "budget-committed"
    assert one("set_limits", max_in_flight=5, why="few")["state"] == "LIMITS"
    assert one("overdue", "p2")["state"] == "OVERDUE"
    assert one("write_off", "p2")["state"] == "WRITTEN_OFF"
    assert one("conclude", why="enough")["state"] == "CONCLUDED"
    assert auditor.get(f"{path}/finding").json()["finding"]["verdict"] == "INCONCLUSIVE"
    assert one("erase", "p2")["state"] == "UNLINKED"
    assert auditor.post(f"{path}/people", json={"people": ["p2"]}).json()["people"] == []


def test_proof(served: Served) -> None:
    served.create("proof", audit="adaptive", options={})
    auditor, path = served.as_("auditor"), "/v1/audits/proof"
    for i, person in enumerate(WORLD.draw(30, 0)):
        said = {"group": person.group, "decision": person.decision}
        if served.result("proof", "ask", str(i), **said)["want"] == "LABEL":
            served.result("proof", "tell", str(i), outcome=person.outcome)
    point = served.as_("regulator").post(f"{path}/checkpoints").json()
    assert auditor.get(f"{path}/checkpoints").json()["marks"] == [point]
    found = served.verify("proof")
    assert (found["kind"], found["note"]) == ("verified", "against 1 checkpoints")
    assert found["hash"] == auditor.get(f"{path}/status").json()["head"]
    assert kind(auditor.get(f"{path}/verifications/{point['id']}")) == "not-found"
    plan = auditor.get(f"{path}/plan").json()
    (case,) = plan["cases"]
    assert case["cost"]["0.1"] <= case["cost"]["0.5"] <= case["cost"]["0.9"]
    assert set(case["scenario"]["r"]) == {"A", "B"}
    for form, begin in (("html", "<!doctype html>"), ("json", "{")):
        text = auditor.get(f"{path}/report", params={"form": form})
        assert text.text.lstrip().startswith(begin)
        assert "attachment" in text.headers["content-disposition"]


def test_names_with_slashes_and_signs_are_names(served: Served) -> None:
    served.create("a%2Fb%20%C3%A9")
    bank = served.as_("writer", "a/b é")
    body = {"commands": [{"command": "ask", "person": "x/..?%#", "group": "A", "decision": 1}]}
    answer = bank.post("/v1/audits/a%2Fb%20%C3%A9/commands", json=body)
    assert answer.json()["results"][0]["person"] == "x/..?%#"


def test_asks_that_arrive_together_share_a_commit(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.create("together")
    clients = [served.as_(role) for role in ("writer", "auditor") for _ in range(10)]
    serve, served_together = Driver._serve, []

    def spy(self: Driver, jobs: Any) -> None:
        served_together.append(len(jobs))
        time.sleep(0.05)  # the others come meanwhile
        serve(self, jobs)

    monkeypatch.setattr(Driver, "_serve", spy)

    def ask(number: int) -> int:
        body = {"commands": [{"command": "ask", "person": str(number), **ASK}]}
        return clients[number].post("/v1/audits/together/commands", json=body).status_code

    with ThreadPoolExecutor(20) as threads:
        assert set(threads.map(ask, range(20))) == {200}
    assert max(served_together) > 1
    assert len(served_together) < 20
    live = LiveAudit.open(served.settings.ledger, "together")
    actors = {e["actor"] for e in live.events() if e["type"] == "asked"}
    assert actors == {"writer of all", "auditor of all"}
    live.close_ledger()


def test_a_key_of_another_command_is_a_problem_of_its_own(served: Served) -> None:
    served.create("keys")
    served.result("keys", "ask", "p", **ASK, key="k-1")
    refused = served.result("keys", "execute", "p", key="k-1")
    assert refused["problem"]["type"] == "urn:equipoise:key-reused"
    assert refused["problem"]["status"] == 409


def test_metrics_have_what_to_alarm_on(served: Served) -> None:
    served.create("measured", budget=10_000)
    served.result("measured", "ask", "p", **ASK)
    assert served.verify("measured")["kind"] == "verified"
    text = served.as_("regulator").get("/metrics").text
    for name, value in (("open_requests", 1), ("held", 105), ("left", 9895), ("conflicts", 0)):
        assert f'equipoise_audit_{name}{{audit="measured"}} {value:.1f}' in text
    assert 'equipoise_audit_last_verification_time{audit="measured"}' in text


def test_it_lives_and_is_ready(served: Served) -> None:
    anybody = served.client()
    assert anybody.get("/livez").json() == {"status": "ok"}
    assert anybody.get("/readyz").json() == {"status": "ok"}
    assert anybody.get("/openapi.json").json()["info"]["title"] == "Equipoise"
    text = served.as_("regulator").get("/metrics").text
    assert 'equipoise_request_seconds_count{method="GET",route="/livez",status="200"}' in text


def test_the_same_on_postgresql(on_postgres: Served) -> None:
    test_asking_and_telling_again_changes_nothing(on_postgres)
    test_pages_of_people_and_events_hold_everything_once(on_postgres)
    assert on_postgres.client().get("/readyz").status_code == 200
