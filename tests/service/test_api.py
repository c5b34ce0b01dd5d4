"""The API as programs use it."""

from __future__ import annotations

import asyncio
import json

import pytest
from study.serving import PAST, WORLD, Served

from equipoise.errors import UnknownName
from equipoise.ledger import LiveAudit, Reply
from equipoise.ledger.commands import Ask
from equipoise.service.desk import Desk
from tests.service.attacking import form_key, kind, log_in


def test_asking_and_telling_again_changes_nothing(served: Served) -> None:
    served.create("again")
    bank, path = served.as_("writer"), "/v1/audits/again/people/p-17"
    first = bank.put(path, json={"group": "B", "decision": 0})
    assert first.json() == {
        "person": "p-17", "state": "RESERVED", "want": "LABEL", "repeated": False,
    }  # fmt: skip
    assert bank.put(path, json={"group": "B", "decision": 0}).json()["repeated"]
    assert kind(bank.put(path, json={"group": "A", "decision": 0})) == "person-conflict"
    assert bank.put(f"{path}/execution").json()["state"] == "EXECUTED"
    told = bank.put(f"{path}/outcome", json={"outcome": 1})
    assert told.json()["state"] == "REVEALED"
    assert bank.put(f"{path}/outcome", json={"outcome": 1}).json()["repeated"]
    assert kind(bank.put(f"{path}/outcome", json={"outcome": 0})) == "outcome-conflict"
    assert kind(bank.put(f"{path}/withdrawal")) == "wrong-state"
    auditor = served.as_("auditor")
    mended = auditor.put(f"{path}/correction", json={"outcome": 0, "why": "a typo"})
    assert mended.json()["state"] == "CORRECTED"
    assert auditor.get(path).json()["outcome"] == 0
    assert [p["person"] for p in auditor.get("/v1/audits/again/people?conflicted=true").json()
            ["people"]] == ["p-17"]  # fmt: skip


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
    bank = served.as_("writer")
    people = [{"person": f"p{i}", "group": "B", "decision": 0} for i in range(5)]
    people[2]["group"] = "nobody"
    path = "/v1/audits/batch"
    results = bank.post(f"{path}/people", json={"people": people}).json()["results"]
    assert [r.get("state") for r in results] == ["RESERVED", "RESERVED", None] + ["RESERVED"] * 2
    assert results[2]["problem"]["type"] == "urn:equipoise:invalid-input"
    told = {"outcomes": [{"person": p["person"], "outcome": 1} for p in people[:3]]}
    results = bank.post(f"{path}/outcomes", json=told).json()["results"]
    assert [r.get("state") for r in results] == ["REVEALED", "REVEALED", None]
    assert results[2]["problem"]["type"] == "urn:equipoise:unknown-person"
    for way, state in (("executions", "EXECUTED"), ("withdrawals", "WITHDRAWN")):
        person = people[3 if way == "executions" else 4]["person"]
        (result,) = bank.post(f"{path}/{way}", json={"people": [person]}).json()["results"]
        assert result["state"] == state


def test_pages_of_people_and_events_hold_everything_once(served: Served) -> None:
    served.create("pages")
    bank, auditor, path = served.as_("writer"), served.as_("auditor"), "/v1/audits/pages"
    people = [{"person": f"p{i}", "group": "B", "decision": 0} for i in range(30)]
    bank.post(f"{path}/people", json={"people": people})
    told = [{"person": f"p{i}", "outcome": 0} for i in range(1, 30, 2)]
    bank.post(f"{path}/outcomes", json={"outcomes": told})
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
    auditor, approver, path = served.as_("auditor"), served.as_("approver"), "/v1/audits/two"
    proposed = auditor.put(f"{path}/budget", json={"budget": 5000, "why": "more"}).json()
    assert proposed["state"] == "PROPOSED"
    assert auditor.get(f"{path}/budget").json()["cap"] == 1000
    own = f"{path}/proposals/{proposed['number']}/approval"
    assert kind(auditor.post(own)) == "forbidden"
    assert approver.post(own).json()["state"] == "BUDGET"
    assert auditor.get(f"{path}/budget").json()["cap"] == 5000
    assert kind(approver.post(f"{path}/proposals/999/approval")) == "unknown-proposal"
    number = auditor.post(f"{path}/conclude", json={"why": "enough"}).json()["number"]
    dropped = approver.post(f"{path}/proposals/{number}/rejection", json={"why": "not yet"})
    assert dropped.json()["state"] == "REJECTED"
    assert auditor.get(f"{path}/status").json()["concluded"] is None
    actors = auditor.get(f"{path}/status").json()["actors"]
    assert {"auditor of all", "approver of all"} <= set(actors)


def test_what_is_granted_is_checked_and_shown(served: Served) -> None:
    browser = log_in(served)
    form = {"cells": json.dumps(PAST), "no_better": "1", "limits": "at-most:B=0.4\n",
            "form_key": form_key(browser.get("/check").text)}  # fmt: skip
    shown = browser.post("/check", data=form).text
    assert "if the denied of every group would do no better than its approved; at most 0.4" in shown
    wrong = browser.post("/check", data={**form, "limits": "at-most:nobody=0.4"})
    assert wrong.status_code == 422
    assert "unknown group" in wrong.text


def test_decisions_about_an_audit(served: Served) -> None:
    served.create("decide", budget=10_000, audit="adaptive", options={})
    bank, auditor, path = served.as_("writer"), served.as_("auditor"), "/v1/audits/decide"
    why = {"why": "holidays"}
    assert auditor.post(f"{path}/pause", json=why).json()["state"] == "PAUSED"
    asked = bank.put(f"{path}/people/p1", json={"group": "A", "decision": 0})
    assert asked.json()["want"] == "NOTHING"
    assert auditor.get(f"{path}/people/p1").json()["why"] == "paused"
    assert auditor.post(f"{path}/resume", json=why).json()["state"] == "RESUMED"
    bank.put(f"{path}/people/p2", json={"group": "A", "decision": 0})
    low = auditor.put(f"{path}/budget", json={"budget": 1, **why})
    assert kind(low) == "budget-committed"
    limits = auditor.put(f"{path}/limits", json={"max_in_flight": 5, **why})
    assert limits.json()["state"] == "LIMITS"
    assert auditor.put(f"{path}/people/p2/overdue").json()["state"] == "OVERDUE"
    assert auditor.put(f"{path}/people/p2/write-off").json()["state"] == "WRITTEN_OFF"
    assert auditor.post(f"{path}/conclude", json=why).json()["state"] == "CONCLUDED"
    assert auditor.get(f"{path}/finding").json()["finding"]["verdict"] == "INCONCLUSIVE"
    assert kind(auditor.post(f"{path}/pause", json=why)) == "audit-concluded"
    assert auditor.delete(f"{path}/people/p2").json()["state"] == "ERASED"
    assert kind(auditor.get(f"{path}/people/p2")) == "unknown-person"


def test_proof(served: Served) -> None:
    served.create("proof", audit="adaptive", options={})
    bank, auditor, path = served.as_("writer"), served.as_("auditor"), "/v1/audits/proof"
    for i, person in enumerate(WORLD.draw(30, 0)):
        reply = bank.put(f"{path}/people/{i}", json=vars_of(person)).json()
        if reply["want"] == "LABEL":
            bank.put(f"{path}/people/{i}/outcome", json={"outcome": person.outcome})
    point = served.as_("regulator").post(f"{path}/checkpoints").json()
    assert auditor.get(f"{path}/checkpoints").json()["checkpoints"] == [point]
    assert auditor.post(f"{path}/verifications").json()["checkpoints"] == 1
    plan = auditor.get(f"{path}/plan").json()
    assert plan["least"] <= plan["low"] <= plan["expected"] <= plan["high"]
    assert set(plan["assumes"]) == {"A", "B"}
    assert {"tests", "alarm"} == set(auditor.get(f"{path}/drift").json())
    for form, begin in (("html", "<!doctype html>"), ("md", "# "), ("json", "{")):
        text = auditor.get(f"{path}/report", params={"form": form})
        assert text.text.lstrip().startswith(begin)
        assert "attachment" in text.headers["content-disposition"]


def vars_of(person: object) -> dict[str, object]:
    return {name: getattr(person, name) for name in ("group", "decision")}


def test_names_with_slashes_and_signs_are_names(served: Served) -> None:
    served.create("a%2Fb%20%C3%A9")
    bank = served.as_("writer", "a/b é")
    path = "/v1/audits/a%2Fb%20%C3%A9/people/x%2F..%3F%25%23"
    assert bank.put(path, json={"group": "A", "decision": 1}).json()["person"] == "x/..?%#"


def test_asks_that_arrive_together_share_a_commit(served: Served) -> None:
    served.create("together")

    async def arrive() -> None:
        desk = Desk(served.settings)
        audit = await desk.audit("together")
        asks = [audit.do(f"bank {i % 2}", Ask(str(i), "A", 0)) for i in range(20)]
        replies = await asyncio.gather(*asks, audit.do("bank 0", Ask("x", "nobody", 0)))
        assert [type(reply) for reply in replies] == [Reply] * 20 + [UnknownName]
        desk.close()

    asyncio.run(arrive())
    live = LiveAudit.open(served.settings.ledger, "together")
    asked = [e for e in live.events() if e["type"] == "asked"]
    assert {e["actor"] for e in asked} == {"bank 0", "bank 1"}
    assert len({e["time"] for e in asked}) == 1
    live.close_ledger()


def test_it_lives_and_is_ready(served: Served) -> None:
    anybody = served.client()
    assert anybody.get("/livez").json() == {"status": "ok"}
    assert anybody.get("/readyz").json() == {"status": "ok"}
    assert anybody.get("/openapi.json").json()["info"]["title"] == "Equipoise"
    text = served.as_("regulator").get("/metrics").text
    assert 'equipoise_requests_total{method="GET",route="/livez",status="200"}' in text


def test_the_same_on_postgresql(on_postgres: Served) -> None:
    test_asking_and_telling_again_changes_nothing(on_postgres)
    test_pages_of_people_and_events_hold_everything_once(on_postgres)
    assert on_postgres.client().get("/readyz").status_code == 200
