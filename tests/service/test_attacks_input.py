"""Attacks by what is sent to the API, and how; ``docs/security.md`` lists them by name."""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from equipoise.history import History
from equipoise.ledger import LiveAudit
from equipoise.question import Costs, Question
from equipoise.service import tokens
from tests.service.attacking import HOSTILE, form_key, kind, log_in, refusal, send_raw
from tests.support.postgres import in_memory
from tests.support.serving import ASK, PAST, Served, serving


def test_sql_and_script_in_every_string_stay_words(served: Served) -> None:
    group, past = HOSTILE[:60], {"approved_positive": 900, "approved_negative": 90, "denied": 900}
    served.create(
        "%3Cscript%3E", past={group: past, "B": {**past, "denied": 400}}, currency=HOSTILE[:50],
        approvals=["concluded"], audit="adaptive", options={},
    )  # fmt: skip
    text = served.store.new(HOSTILE, tokens.Role.AUDITOR)
    auditor = served.client({"authorization": f"Bearer {text}"})
    path, why = "/v1/audits/%3Cscript%3E", {"why": HOSTILE}
    commands: list[dict[str, object]] = [
        {"command": "ask", "person": HOSTILE, "group": group, "decision": 0},
        {"command": "ask", "person": f"{HOSTILE} 2", "group": group, "decision": 0},
        {"command": "tell", "person": HOSTILE, "outcome": 0},
        {"command": "tell", "person": HOSTILE, "outcome": 1},  # a conflict, which the page lists
        {"command": "pause", **why},
        {"command": "conclude", **why},  # a proposal, which the page lists
    ]
    asked = auditor.post(f"{path}/commands", json={"commands": commands}).json()["results"][0]
    assert asked["person"] == HOSTILE
    browser = served.client({"origin": served.url})
    assert browser.post("/login", data={"token": text}).status_code == 303
    here = "/audits/%3Cscript%3E"
    pages = ("/", here, f"{here}/people", f"{here}/people?conflicted=true",
             f"{here}/report?form=html", f"{here}/work", f"{here}/log")  # fmt: skip
    for page in pages:
        shown = browser.get(page)
        assert shown.status_code == 200, page
        assert "<script>window" not in shown.text
        assert "&lt;script&gt;" in shown.text
        assert "{{7*7}}" in shown.text or "7*7" not in shown.text
    assert served.verify("%3Cscript%3E")["kind"] == "verified"


def test_paths_cannot_climb_or_be_confused(served: Served) -> None:
    served.create("paths")
    served.as_("writer")
    auditor, token = served.as_("auditor"), served.tokens["writer of all"]
    for raw in (b"/v1/audits/%ff/commands", b"/v1/audits/%ff%fe/commands"):
        assert send_raw(served, b"POST", raw, token) in (400, 403)
    for raw in (b"/static/../app.py", b"/static/%2e%2e/app.py", b"/static/..%2fapp.py",
                b"/static//etc/passwd", b"//etc/passwd", b"/v1/../livez", b"/V1/audits",
                b"/" + b"a" * 5000):  # fmt: skip
        status = send_raw(served, b"GET", raw, served.tokens["auditor of all"])
        assert status in (303, 400, 401, 404)
    for raw in (b"/%761/audits/paths/commands", b"/v1%2Faudits/paths/commands"):
        assert send_raw(served, b"POST", raw, token) == 400
    two = [served.result("paths", "ask", p, **ASK)["person"] for p in ("a%2Fb", "a/b", "../..")]
    assert two == ["a%2Fb", "a/b", "../.."]
    assert auditor.get("/v1/audits/paths/people").json()["people"][2]["person"] == "../.."
    for name in ("\x00", "  "):
        assert refusal(served.result("paths", "ask", name, **ASK)) == "invalid-input"


def test_large_deep_and_garbled_bodies_are_refused(served: Served) -> None:
    served.create("bodies")
    bank, path = served.as_("writer"), "/v1/audits/bodies/commands"
    json_ = {"content-type": "application/json"}
    large = b'{"commands":"' + b"x" * (5 << 20) + b'"}'
    assert bank.post(path, content=large, headers=json_).status_code == 413

    def chunks() -> Iterator[bytes]:  # no length is announced
        for _ in range(80):
            yield b"x" * 65536

    assert bank.post(path, content=chunks(), headers=json_).status_code == 413
    one = b'{"commands":[%s]}'
    for bad in (
        b"[" * 200_000,
        b'{"a":' * 50_000,
        b"\xff\xfe{",
        b'{"commands":[]}',
        one % b'{"command":"ask","person":"p","group":"\xff","decision":0}',
        b"",
        b"null",
        b"NaN",
        b"{",
        one % b'{"command":"tell","person":"p","outcome":1e999}',
        one % b'{"command":"ask","person":"p","group":"B","decision":true}',
        one % b'{"command":"ask","person":"p","group":"B","decision":0,"more":1}',
        one % b'{"command":"dance","person":"p"}',
        one % b'{"person":"p","group":"B","decision":0}',
        '{"commands":[]}'.encode("utf-16"),
    ):
        answer = bank.post(path, content=bad, headers=json_)
        assert answer.status_code in (400, 422), bad[:80]
        assert answer.headers["content-type"] == "application/problem+json"
    for wrong in (  # the shape is right, and what is wrong with the value holds up no other
        b'{"command":"ask","person":"p","group":"\\ud800","decision":0}',
        b'{"command":"ask","person":"\\ud800","group":"B","decision":0}',
        b'{"command":"ask","person":"p","group":"B","decision":0,"decision":7}',
        b'{"command":"tell","person":"p","outcome":-1}',
        b'{"command":"ask","person":"p","group":"B","decision":0,"score":1e999}',
    ):
        answer = bank.post(path, content=one % wrong, headers=json_)
        assert refusal(answer.json()["results"][0]) == "invalid-input", wrong
    many = {"commands": [{"command": "ask", "person": str(i), **ASK} for i in range(1001)]}
    assert bank.post(path, json=many).status_code == 422
    assert served.as_("auditor").get("/v1/audits/bodies/status").json()["events"] == 1
    question = {"gamma": 0.1, "epsilon": 0.2}
    for tau in (10**4000, 2**53, 0, -1, 0.5, "many", True, None, [], {}):
        body = {"past": PAST, "question": question, "audit": "rs", "options": {"tau": tau}}
        answer = served.as_("auditor").put("/v1/audits/tau", json=body)
        assert answer.status_code == (200 if tau is None else 422), answer.text
    for name in ("people_per_label", "gate", "max_price"):
        options = {"assist": {name: 10**4000}}
        body = {"past": PAST, "question": question, "options": options}
        assert served.as_("auditor").put("/v1/audits/a", json=body).status_code == 422


def test_a_body_that_never_arrives_is_given_up() -> None:
    with (
        TemporaryDirectory(dir=in_memory()) as directory,
        serving(directory, body_seconds=0.3) as served,
    ):
        served.create("slow")
        served.as_("writer")
        host, port = served.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 10.0) as connection:
            token = served.tokens["writer of all"].encode()
            connection.sendall(
                b"POST /v1/audits/slow/commands HTTP/1.1\r\nhost: x\r\nauthorization: Bearer "
                + token + b"\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{"
            )  # fmt: skip
            assert b" 408 " in connection.recv(65536).split(b"\r\n")[0]


def test_whoever_leaves_amid_a_form_is_no_mistake_of_the_server(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = served.url.removeprefix("http://").split(":")
    with caplog.at_level(logging.INFO, "equipoise.service"):
        with socket.create_connection((host, int(port)), 10.0) as connection:
            connection.sendall(
                b"POST /login HTTP/1.1\r\nhost: x\r\norigin: http://x\r\ncontent-length: 50\r\n"
                b"content-type: application/x-www-form-urlencoded\r\n\r\ntoken="
            )
        while not caplog.records:
            time.sleep(0.01)
    assert [(r.getMessage(), r.fields["status"]) for r in caplog.records] == [("request", 499)]


def test_a_head_without_end_is_cut_off(served: Served) -> None:
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10.0) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nhost: x\r\nx: ")
        sent = 0
        with suppress(OSError):
            for _ in range(1000):
                sent += connection.send(b"y" * 65536)
        assert sent < 60_000_000
    assert served.client().get("/livez").status_code == 200


def test_a_replayed_request_is_paid_once(served: Served) -> None:
    served.create("replay")
    for _ in range(3):
        served.result("replay", "ask", "p", **ASK)
        served.result("replay", "tell", "p", outcome=0)
    status = served.as_("auditor").get("/v1/audits/replay/status").json()
    assert (status["spent"], status["reserved"], status["events"]) == (105, 0, 3)


def test_decisions_may_be_repeated(served: Served) -> None:
    """Whoever lost the answer asks again and gets it; nothing is decided twice."""
    served.create("twice", budget=1000, approvals=["budget", "erased"])
    audits, approves = (partial(served.result, "twice", role=r) for r in ("auditor", "approver"))
    auditor, path = served.as_("auditor"), "/v1/audits/twice"
    audits("ask", "p", **ASK | {"decision": 1})
    audits("tell", "p", outcome=1)
    numbers = [
        audits("set_budget", budget=5000, why="more")["number"],
        audits("set_budget", budget=9000, why="more")["number"],
        audits("erase", "p")["number"],
    ]

    def decide() -> list[dict[str, Any]]:
        return [
            approves("approve", proposal=numbers[0]),
            approves("reject", proposal=numbers[1], why="too much"),
            approves("approve", proposal=numbers[2]),
        ]

    first = decide()
    events = auditor.get(f"{path}/status").json()["events"]
    assert decide() == [{**one, "repeated": True} for one in first]
    assert [one["state"] for one in first] == ["BUDGET", "REJECTED", "UNLINKED"]
    other = approves("reject", proposal=numbers[0], why="after all")
    assert refusal(other) == "wrong-state"
    assert audits("erase", "p")["repeated"]  # nobody could tell that it is not a repetition
    assert auditor.get(f"{path}/status").json()["events"] == events
    assert served.verify("twice")["kind"] == "verified"


def test_an_audit_cannot_take_the_id_of_another(served: Served) -> None:
    served.create("first")
    auditor = served.as_("auditor")
    number = auditor.get("/v1/audits/first").json()["uid"]
    body = {"past": PAST, "question": {"gamma": 0.1, "epsilon": 0.2}}
    assert kind(auditor.put(f"/v1/audits/{number}", json=body)) == "invalid-input"
    assert auditor.get(f"/v1/audits/{number}").json()["name"] == "first"


def test_a_slow_reader_holds_up_nobody(served: Served) -> None:
    served.create("slow")
    auditor = served.as_("auditor")
    served.send("slow", "ask", *map(str, range(1000)), **ASK)
    with auditor.stream("GET", "/v1/audits/slow/export") as export:
        assert export.status_code == 200
        for i in range(20):  # it is not read from
            assert served.send("slow", "ask", f"x{i}", **ASK).status_code == 200
        assert len(list(export.iter_lines())) == 1001


def test_changed_rows_are_found(served: Served) -> None:
    served.create("forged")
    served.result("forged", "ask", "p", **ASK)
    assert served.client().get("/readyz").status_code == 200
    live = LiveAudit.open(served.settings.ledger, "forged")
    with live._store.transaction() as connection:
        connection.run("UPDATE people SET hold = 1 WHERE audit_id = ?", (live.row.id,))
    found = served.verify("forged")
    assert found["kind"] == "broken"
    assert found["note"]
    assert "broken" in log_in(served).get("/audits/forged").text
    live.close_ledger()


def test_many_groups_cannot_take_the_memory_of_the_server(limited_server: Served) -> None:
    counts = {"approved_positive": 600, "approved_negative": 50, "denied": 250}
    past = {f"g{number}": counts for number in range(180)}
    body = {"past": past, "costs": {"feature": 5, "label": 100}}
    answer = limited_server.as_("auditor").put("/v1/audits/many", json=body)
    assert answer.status_code == 413, answer.text
    assert answer.json()["type"] == "urn:equipoise:too-large"
    assert "180 groups take more than the 256 MB or 1 s" in answer.json()["detail"]
    LiveAudit.create(  # by the shell, which has no limits
        *(limited_server.settings.ledger, "many", History.from_cells(dict(list(past.items())[:5]))),
        *(Question("equal_opportunity"), Costs(5, 100)),
        confirm=True,
    ).close_ledger()
    answer = limited_server.as_("regulator").get("/v1/audits/many/plan?trial_runs=40")
    assert answer.status_code == 413, answer.text
    assert answer.json()["type"] == "urn:equipoise:too-large"
    assert limited_server.client().get("/readyz").status_code == 200


def test_a_narrow_margin_of_few_groups_cannot_either(limited_server: Served) -> None:
    """9b40245d made such a plan in the server, which took and kept 2.9 GB."""
    browser = log_in(limited_server, "regulator")
    counts = {"approved_positive": 600, "approved_negative": 50, "denied": 250}
    form = {
        "form_key": form_key(browser.get("/check").text),
        "cells": json.dumps({f"g{number}": counts for number in range(4)}),
        "step": "plan",
        "tolerance": "20",
        "margin": "1",
    }
    answer = browser.post("/check", data=form)
    assert answer.status_code == 413
    assert "4 groups take more than the 256 MB or 1 s" in answer.text
    assert "wider margin" in answer.text


@pytest.fixture
def limited_server() -> Iterator[Served]:
    with (
        TemporaryDirectory(dir=in_memory()) as directory,
        serving(directory, read_memory=256 << 20, read_seconds=1) as served,
    ):
        yield served
