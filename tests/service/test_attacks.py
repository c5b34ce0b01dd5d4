"""Attacks on the service, one test each; ``docs/service.md`` lists them by name."""

from __future__ import annotations

import hmac
import json
import logging
import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
from study.postgres import in_memory
from study.serving import Served, serving
from typer.testing import CliRunner

from equipoise.cli import app as command_line
from equipoise.ledger import LiveAudit
from equipoise.service import access, tokens

HOSTILE = "<script>window.pwned=1</script>'\"; DROP TABLE people;-- {{7*7}}"
ROLES = ("writer", "auditor", "approver", "regulator")
ASK = {"group": "B", "decision": 0}


def kind(answer: httpx.Response) -> str:
    return str(answer.json()["type"]).removeprefix("urn:equipoise:")


def log_in(served: Served, role: str = "auditor") -> httpx.Client:
    """Return a browser that logged in."""
    served.as_(role)
    browser = served.client({"origin": served.url})
    answer = browser.post("/login", data={"token": served.tokens[f"{role} of all"]})
    assert answer.status_code == 303, answer.text
    return browser


def form_key(page: str) -> str:
    return page.partition('name="form_key" value="')[2].partition('"')[0]


# -- tokens ---------------------------------------------------------------------------------------


def test_a_token_of_another_audit_opens_nothing_and_shows_nothing(served: Served) -> None:
    served.create("mine")
    served.create("theirs")
    bank = served.as_("writer", "mine")
    assert bank.put("/v1/audits/mine/people/p", json=ASK).status_code == 200
    there = bank.put("/v1/audits/theirs/people/p", json=ASK)
    nowhere = bank.put("/v1/audits/no-such-audit/people/p", json=ASK)
    odd = bank.put("/v1/audits/%00/people/p", json=ASK)
    assert there.status_code == 403
    assert there.json() == nowhere.json() == odd.json()
    reader = served.as_("regulator", "mine")
    assert [a["name"] for a in reader.get("/v1/audits").json()["audits"]] == ["mine"]
    assert reader.get("/v1/audits/theirs/status").status_code == 403
    auditor = served.as_("auditor", "mine")
    past = {"A": {"approved_positive": 9, "approved_negative": 9, "denied": 9}}
    body = {"past": past | {"B": past["A"]}}
    assert auditor.put("/v1/audits/another", json=body).status_code == 403


def test_expired_revoked_and_malformed_tokens_are_no_tokens(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = served.store.new("short-lived", tokens.Role.AUDITOR)
    good = {"authorization": f"Bearer {text}"}
    assert served.client(good).get("/v1/audits").status_code == 200
    for bad in ("", "Bearer", "Bearer x", f"Basic {text}", f"Bearer {text}x", f"Bearer {text} ",
                f"Bearer {text[:-1]}", "Bearer eqp__", "Bearer " + "x" * 500):  # fmt: skip
        answer = served.client({"authorization": bad.strip()}).get("/v1/audits")
        assert answer.status_code in (200, 401)
        assert (answer.status_code == 200) == (bad.strip() == good["authorization"]), bad
    assert served.client().get(f"/v1/audits?token={text}").status_code == 401
    served.store.revoke("short-lived")
    time.sleep(access.REMEMBERED)
    refused = served.client(good).get("/v1/audits")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    other = served.store.new("ends", tokens.Role.AUDITOR, days=1)
    later = datetime.now(UTC) + timedelta(days=2)
    (token,) = [t for t in served.store.all() if t.name == "ends"]
    assert token.lives(datetime.now(UTC))
    assert not token.lives(later)
    assert served.store.find(other) is not None


def test_only_hashes_are_stored_and_secrets_are_compared_in_constant_time(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = served.store.new("watched", tokens.Role.REGULATOR)
    secret = text.split("_", 2)[2]
    for path in Path(served.settings.tokens).parent.glob("tokens*"):
        assert secret.encode() not in path.read_bytes()
    compared: list[tuple[int, int]] = []
    compare = hmac.compare_digest

    def spy(one: str, other: str) -> bool:
        compared.append((len(one), len(other)))
        return compare(one, other)

    monkeypatch.setattr(tokens.hmac, "compare_digest", spy)
    assert served.store.find(text) is not None
    assert served.store.find(text[:-1] + "~") is None  # a wrong secret
    assert served.store.find("eqp_0000_" + secret) is None  # nobody's id
    # Whoever it is, one comparison of two hashes of the same length decides.
    assert compared == [(64, 64)] * 3


def test_failed_attempts_are_limited() -> None:
    with TemporaryDirectory(dir=in_memory()) as directory, serving(directory) as served:
        served.as_("auditor")
        browser = served.client({"origin": served.url})
        for _ in range(access.FAILURES):
            assert browser.post("/login", data={"token": "eqp_1_guess"}).status_code == 401
        right = {"token": served.tokens["auditor of all"]}
        answer = browser.post("/login", data=right)
        assert answer.status_code == 429
        assert 0 < int(answer.headers["retry-after"]) <= access.WINDOW + 1
        guess = {"authorization": "Bearer eqp_1_guess"}
        assert served.client(guess).get("/v1/audits").status_code == 429
        # a neighbour's guesses do not lock out a program whose token is right
        assert served.as_("auditor").get("/v1/audits").status_code == 200


def test_tokens_and_pseudonyms_are_in_no_log(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    served.create("logged")
    bank = served.as_("writer")
    with caplog.at_level(logging.INFO, "equipoise.service"):
        bank.put("/v1/audits/logged/people/pseudonym-4711", json=ASK)
        served.client({"authorization": "Bearer eqp_1_secretword"}).get("/v1/audits")
    lines = [json.dumps(getattr(record, "fields", {})) for record in caplog.records]
    assert any('"route": "/v1/audits/{audit}/people/{person}"' in line for line in lines), lines
    assert any('"actor": "writer of all"' in line for line in lines)
    for word in ("pseudonym-4711", "secretword", served.tokens["writer of all"]):
        assert not any(word in line for line in lines)


def test_others_may_not_reach_a_server_without_tokens(tmp_path: Path) -> None:
    run = ["serve", "--host", "0.0.0.0", "--ledger", str(tmp_path / "ledger.db")]
    done = CliRunner().invoke(command_line, run)
    assert done.exit_code == 2
    assert "equipoise token new" in done.output


# -- roles ----------------------------------------------------------------------------------------

WRITES = {"ask", "tell", "executed", "withdraw", "ask_many", "tell_many", "executed_many",
          "withdraw_many"}  # fmt: skip
AUDITS = {"create", "correct", "overdue", "write_off", "erase", "set_budget", "set_limits",
          "pause", "resume", "mark_overdue", "conclude", "verify"}  # fmt: skip


def allowed(operation: str) -> tuple[str, ...]:
    """Return who may do something; what is not named is for readers."""
    if operation in WRITES:
        return ("writer", "auditor")
    if operation in AUDITS:
        return ("auditor",)
    return {"approve": ("approver",), "reject": ("approver", "auditor")}.get(
        operation, ("auditor", "approver", "regulator")
    )


def operations(served: Served) -> Iterator[tuple[str, str, str]]:
    """Yield method, path and name of everything behind a token."""
    schema = served.client().get("/openapi.json").json()
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            if path not in ("/livez", "/readyz"):
                filled = path.replace("{audit}", "roles").replace("{person}", "p")
                name = operation["operationId"].partition("_v1_")[0].rstrip("_")
                yield method, filled.replace("{proposal}", "1"), name


def test_the_wrong_role_is_refused_and_learns_nothing(served: Served) -> None:
    served.create("roles")
    served.as_("auditor").put("/v1/audits/roles/people/p", json=ASK)
    seen = set()
    for method, path, name in operations(served):
        for role in ROLES:
            if role in allowed(name):
                continue
            seen.add(name)
            answers = [
                served.as_(role).request(
                    method, path.replace("roles", audit), json={"any": "thing"}
                )
                for audit in ("roles", "no-such-audit")
            ]
            assert [a.status_code for a in answers] == [403, 403], (role, method, path)
            assert answers[0].json() == answers[1].json()
    assert len(seen) > 30


def test_a_writer_learns_nothing_beyond_replies(served: Served) -> None:
    """Two audits, the same people, opposite outcomes: to a writer they look the same."""
    told: dict[str, list[Any]] = {}
    bank = served.as_("writer")
    for name, outcome in (("good", 1), ("bad", 0)):
        served.create(name)
        path, shown = f"/v1/audits/{name}", []
        people = [{"person": str(i), **ASK, "group": "AB"[i % 2]} for i in range(12)]
        shown += bank.post(f"{path}/people", json={"people": people}).json()["results"]
        for i in range(12):
            shown.append(bank.put(f"{path}/people/{i}/outcome", json={"outcome": outcome}).json())
            other = bank.put(f"{path}/people/{i}/outcome", json={"outcome": 1 - outcome})
            shown.append(other.json())
        shown.append(bank.put(f"{path}/people/0", json={**ASK, "decision": 1}).json())
        shown.append(bank.put(f"{path}/people/0/withdrawal").json())
        served.as_("auditor").post(f"{path}/conclude", json={"why": "done"})
        shown.append(bank.put(f"{path}/people/late", json=ASK).json())
        told[name] = shown
    assert told["good"] == told["bad"]
    reply, problem = {"person", "state", "want", "repeated"}, {"type", "title", "status"}
    assert {frozenset(one) for one in told["good"]} == {frozenset(reply), frozenset(problem)}
    assert served.client({"origin": served.url}).post(
        "/login", data={"token": served.tokens["writer of all"]}
    ).status_code == 401  # fmt: skip


# -- browsers -------------------------------------------------------------------------------------


def test_a_forged_cookie_is_no_session(served: Served) -> None:
    served.as_("auditor")
    for value in ("x", served.tokens["auditor of all"], "a" * 500, "' OR 1=1 --"):
        browser = served.client({"cookie": f"{access.COOKIE}={value}"})
        assert browser.get("/").headers["location"] == "/login"
    browser = log_in(served)
    cookie = browser.cookies[access.COOKIE]
    assert browser.get("/").status_code == 200
    assert served.client({"cookie": f"{access.COOKIE}={cookie[:-1]}"}).get("/").status_code == 303
    # A session opens pages and no program's door; a token opens no page.
    assert browser.get("/v1/audits").status_code == 401
    assert served.as_("auditor").get("/").status_code == 303
    browser.post("/logout", data={"form_key": form_key(browser.get("/").text)})
    assert served.client({"cookie": f"{access.COOKIE}={cookie}"}).get("/").status_code == 303


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(served: Served) -> None:
    served.as_("auditor")
    answer = served.client({"origin": served.url}).post(
        "/login", data={"token": served.tokens["auditor of all"]}
    )
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_another_site_cannot_act_for_somebody(served: Served) -> None:
    served.create("csrf")
    browser = log_in(served)
    key = form_key(browser.get("/audits/csrf").text)
    assert len(key) == 64
    pause = "/audits/csrf/do/pause"
    good = {"form_key": key, "why": "holidays"}
    evil = {"origin": "https://evil.example"}
    assert browser.post(pause, data=good, headers=evil).status_code == 403
    assert browser.post(pause, data=good, headers={"origin": "null"}).status_code == 403
    without = served.client({"cookie": f"{access.COOKIE}={browser.cookies[access.COOKIE]}"})
    assert without.post(pause, data=good).status_code == 403  # no origin at all
    for wrong in ("", "0" * 64, form_key(log_in(served).get("/audits/csrf").text)):
        assert browser.post(pause, data={**good, "form_key": wrong}).status_code == 403
    auditor = served.as_("auditor")
    assert auditor.get("/v1/audits/csrf/status").json()["paused"] is None
    assert browser.post(pause, data=good).status_code == 303
    assert auditor.get("/v1/audits/csrf/status").json()["paused"] == "holidays"


def test_an_open_server_answers_this_machine_alone() -> None:
    with TemporaryDirectory(dir=in_memory()) as directory, serving(directory, open=True) as served:
        anybody = served.client()
        assert anybody.get("/").status_code == 200
        # A name that somebody else points at this machine, and a page of another site.
        assert anybody.get("/", headers={"host": "evil.example"}).status_code == 403
        body = {"why": "x"}
        evil = {"origin": "https://evil.example"}
        assert anybody.post("/v1/audits/a/pause", json=body, headers=evil).status_code == 403
        served.as_("auditor")  # the first token closes the door
        time.sleep(access.REMEMBERED)
        assert anybody.get("/v1/audits").status_code == 401


def test_pages_run_no_inline_script_and_cannot_be_framed(served: Served) -> None:
    browser = log_in(served)
    for path in ("/", "/check", "/login", "/nothing", "/static/dashboard.js", "/livez"):
        headers = browser.get(path).headers
        policy = headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
    for path in ("/", "/check"):
        page = browser.get(path).text
        assert page.count("<script") == page.count('<script src="/static/dashboard.js"') == 1
        assert " onclick" not in page
        assert "style=" not in page


# -- input ----------------------------------------------------------------------------------------


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
    pages = ("/", here, f"{here}/people", f"{here}/people?conflicted=true", f"{here}/report/html")
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
        assert _raw(served, b"PUT", raw, served.tokens["writer of all"]) in (400, 403)
    for raw in (b"/static/../app.py", b"/static/%2e%2e/app.py", b"/static/..%2fapp.py",
                b"/static//etc/passwd", b"//etc/passwd", b"/v1/../livez", b"/V1/audits",
                b"/" + b"a" * 5000):  # fmt: skip
        assert _raw(served, b"GET", raw, served.tokens["auditor of all"]) in (303, 400, 401, 404)
    two = [bank.put(f"/v1/audits/paths/people/{p}", json=ASK).json()["person"]
           for p in ("a%252Fb", "a%2Fb", "..%2F..")]  # fmt: skip
    assert two == ["a%2Fb", "a/b", "../.."]
    assert auditor.get("/v1/audits/paths/people").json()["people"][2]["person"] == "../.."
    assert bank.put("/v1/audits/paths/people/%00", json=ASK).status_code == 422
    assert bank.put("/v1/audits/paths/people/%20%20", json=ASK).status_code == 422


def _raw(served: Served, method: bytes, path: bytes, token: str) -> int:
    """Send a path that no client library would."""
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10.0) as connection:
        head = b"%s %s HTTP/1.1\r\nhost: %s\r\nauthorization: Bearer %s\r\nconnection: close\r\n"
        body = b'{"group":"B","decision":0}'
        more = b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
        connection.sendall(head % (method, path, host.encode(), token.encode()))
        connection.sendall(more % (len(body), body))
        answer = b""
        while data := connection.recv(65536):
            answer += data
    return int(answer.split(b" ", 2)[1])


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


def test_the_table_of_attacks_names_these_tests() -> None:
    page = Path(__file__).parents[2] / "docs" / "service.md"
    named = set(re.findall(r"`(test_[a-z_]+)`", page.read_text(encoding="utf-8")))
    here = {name for name in globals() if name.startswith("test_")}
    assert named == here - {"test_the_table_of_attacks_names_these_tests"}
