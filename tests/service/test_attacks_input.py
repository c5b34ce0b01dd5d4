"""Attacks by what is sent to the API, and how; ``docs/service.md`` lists them by name."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from tempfile import TemporaryDirectory

from study.postgres import in_memory
from study.serving import ASK, PAST, Served, serving

from equipoise.ledger import LiveAudit
from equipoise.service import tokens
from tests.service.attacking import HOSTILE, kind, log_in, send_raw


def test_sql_and_script_in_every_string_stay_words(served: Served) -> None:
    group, past = HOSTILE[:60], {"approved_positive": 900, "approved_negative": 90, "denied": 900}
    served.create(
        "%3Cscript%3E", past={group: past, "B": {**past, "denied": 400}}, currency=HOSTILE[:50],
        approvals=["concluded"], audit="adaptive", options={},
    )  # fmt: skip
    text = served.store.new(HOSTILE, tokens.Role.AUDITOR)
    auditor = served.client({"authorization": f"Bearer {text}"})
    path, why = "/v1/audits/%3Cscript%3E", {"why": HOSTILE}
    person = {"person": HOSTILE, "group": group, "decision": 0}
    (asked,) = auditor.post(f"{path}/people", json={"people": [person]}).json()["results"]
    assert asked["person"] == HOSTILE
    for outcome in (0, 1):  # the second is a conflict, which the page lists
        told = {"outcomes": [{"person": HOSTILE, "outcome": outcome}]}
        auditor.post(f"{path}/outcomes", json=told)
    auditor.post(f"{path}/pause", json=why)
    auditor.post(f"{path}/conclude", json=why)  # a proposal, which the page lists
    browser = served.client({"origin": served.url})
    assert browser.post("/login", data={"token": text}).status_code == 303
    here = "/audits/%3Cscript%3E"
    pages = ("/", here, f"{here}/people", f"{here}/people?conflicted=true", f"{here}/report/html",
             f"{here}/report/md")  # fmt: skip
    for page in pages:
        shown = browser.get(page)
        assert shown.status_code == 200, page
        assert "<script>window" not in shown.text
        assert "&lt;script&gt;" in shown.text
        assert "{{7*7}}" in shown.text or "7*7" not in shown.text
    assert auditor.post(f"{path}/verifications").status_code == 200


def test_paths_cannot_climb_or_be_confused(served: Served) -> None:
    served.create("paths")
    bank, auditor = served.as_("writer"), served.as_("auditor")
    for raw in (b"/v1/audits/paths/people/%ff", b"/v1/audits/%ff%fe/people/x"):
        assert send_raw(served, b"PUT", raw, served.tokens["writer of all"]) in (400, 403)
    for raw in (b"/static/../app.py", b"/static/%2e%2e/app.py", b"/static/..%2fapp.py",
                b"/static//etc/passwd", b"//etc/passwd", b"/v1/../livez", b"/V1/audits",
                b"/" + b"a" * 5000):  # fmt: skip
        status = send_raw(served, b"GET", raw, served.tokens["auditor of all"])
        assert status in (303, 400, 401, 404)
    for raw in (b"/%761/audits/paths/people/a%2525", b"/v1%2Faudits/paths/people/a%2525"):
        assert send_raw(served, b"PUT", raw, served.tokens["writer of all"]) == 400
    two = [bank.put(f"/v1/audits/paths/people/{p}", json=ASK).json()["person"]
           for p in ("a%252Fb", "a%2Fb", "..%2F..")]  # fmt: skip
    assert two == ["a%2Fb", "a/b", "../.."]
    assert auditor.get("/v1/audits/paths/people").json()["people"][2]["person"] == "../.."
    assert bank.put("/v1/audits/paths/people/%00", json=ASK).status_code == 422
    assert bank.put("/v1/audits/paths/people/q?decision=1", json=ASK).status_code == 422
    assert auditor.get("/v1/audits/paths/people?limt=5").status_code == 422
    assert auditor.get("/v1/audits/paths/people?limit=5&after=0&state=SKIPPED").status_code == 200
    assert bank.put("/v1/audits/paths/people/%20%20", json=ASK).status_code == 422


def test_large_deep_and_garbled_bodies_are_refused(served: Served) -> None:
    served.create("bodies")
    bank, path = served.as_("writer"), "/v1/audits/bodies/people/p"
    json_ = {"content-type": "application/json"}
    large = b'{"group":"' + b"x" * (2 << 20) + b'","decision":0}'
    assert bank.put(path, content=large, headers=json_).status_code == 413

    def chunks() -> Iterator[bytes]:  # no length is announced
        for _ in range(40):
            yield b"x" * 65536

    assert bank.put(path, content=chunks(), headers=json_).status_code == 413
    for bad in (
        b"[" * 200_000,
        b'{"a":' * 50_000,
        b"\xff\xfe{",
        b'{"group":"\xff","decision":0}',
        b'{"group":"\\ud800","decision":0}',
        b"",
        b"null",
        b"NaN",
        b"{",
        b'{"group":1e999}',
        b'{"group":"B","decision":0,"decision":7}',
        b'{"group":"B","decision":true}',
        b'{"group":"B","decision":0,"more":1}',
        '{"group":"B"}'.encode("utf-16"),
    ):
        answer = bank.put(path, content=bad, headers=json_)
        assert answer.status_code in (400, 422), bad[:40]
        assert answer.headers["content-type"] == "application/problem+json"
    many = {"people": [{"person": str(i), **ASK} for i in range(1001)]}
    assert bank.post("/v1/audits/bodies/people", json=many).status_code == 422
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
                b"PUT /v1/audits/slow/people/p HTTP/1.1\r\nhost: x\r\nauthorization: Bearer "
                + token + b"\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{"
            )  # fmt: skip
            assert b" 408 " in connection.recv(65536).split(b"\r\n")[0]


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
    bank, path = served.as_("writer"), "/v1/audits/replay"
    for _ in range(3):
        bank.put(f"{path}/people/p", json=ASK)
        bank.put(f"{path}/people/p/outcome", json={"outcome": 0})
    money = served.as_("auditor").get(f"{path}/budget").json()
    assert (money["spent"], money["reserved"]) == (105, 0)
    assert served.as_("auditor").get(f"{path}/status").json()["events"] == 3


def test_decisions_may_be_repeated(served: Served) -> None:
    """Whoever lost the answer asks again and gets it; nothing is decided twice."""
    served.create("twice", budget=1000, approvals=["budget", "erased"])
    auditor, approver, path = served.as_("auditor"), served.as_("approver"), "/v1/audits/twice"
    auditor.put(f"{path}/people/p", json={**ASK, "decision": 1})
    auditor.put(f"{path}/people/p/outcome", json={"outcome": 1})
    proposed = [
        auditor.put(f"{path}/budget", json={"budget": 5000, "why": "more"}).json()["number"],
        auditor.put(f"{path}/budget", json={"budget": 9000, "why": "more"}).json()["number"],
        auditor.delete(f"{path}/people/p").json()["number"],
    ]
    ends = [f"{path}/proposals/{n}/{how}" for n, how in
            zip(proposed, ("approval", "rejection", "approval"), strict=True)]  # fmt: skip
    why = {"why": "too much"}
    first = [approver.post(end, json=why).json() for end in ends]
    events = auditor.get(f"{path}/status").json()["events"]
    again = [approver.post(end, json=why).json() for end in ends]
    assert again == [{**one, "repeated": True} for one in first]
    assert [one["state"] for one in first] == ["BUDGET", "REJECTED", "ERASED"]
    assert kind(approver.post(ends[0].replace("approval", "rejection"), json=why)) == "wrong-state"
    gone = auditor.delete(f"{path}/people/p")  # nobody could tell that it is not a repetition
    assert (gone.status_code, gone.json()["repeated"]) == (200, True)
    assert auditor.get(f"{path}/status").json()["events"] == events
    assert auditor.post(f"{path}/verifications").status_code == 200


def test_an_audit_cannot_take_the_id_of_another(served: Served) -> None:
    served.create("first")
    auditor = served.as_("auditor")
    number = auditor.get("/v1/audits/first").json()["id"]
    body = {"past": PAST, "question": {"gamma": 0.1, "epsilon": 0.2}}
    assert kind(auditor.put(f"/v1/audits/{number}", json=body)) == "invalid-input"
    assert auditor.get(f"/v1/audits/{number}").json()["name"] == "first"


def test_a_slow_reader_holds_up_nobody(served: Served) -> None:
    served.create("slow")
    bank, auditor = served.as_("writer"), served.as_("auditor")
    people = {"people": [{"person": str(i), **ASK} for i in range(1000)]}
    bank.post("/v1/audits/slow/people", json=people)
    browser = log_in(served)
    with (
        auditor.stream("GET", "/v1/audits/slow/export") as export,
        browser.stream("GET", "/audits/slow/stream") as stream,
    ):
        assert export.status_code == stream.status_code == 200
        for i in range(20):  # neither is read from
            assert bank.put(f"/v1/audits/slow/people/x{i}", json=ASK).status_code == 200
        assert len(list(export.iter_lines())) == 1001
        assert json.loads(next(stream.iter_lines()).removeprefix("data: "))["seq"] >= 1001


def test_changed_rows_are_found(served: Served) -> None:
    served.create("forged")
    bank, auditor = served.as_("writer"), served.as_("auditor")
    bank.put("/v1/audits/forged/people/p", json=ASK)
    assert served.client().get("/readyz").status_code == 200
    live = LiveAudit.open(served.settings.ledger, "forged")
    with live._store.transaction() as connection:
        connection.run("UPDATE people SET hold = 1 WHERE audit_id = ?", (live.row.id,))
    answer = auditor.post("/v1/audits/forged/verifications")
    assert kind(answer) == "ledger-broken"
    assert "broken" in log_in(served).get("/audits/forged").text
    live.close_ledger()
