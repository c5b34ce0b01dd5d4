"""Attacks on tokens and roles; ``docs/security.md`` lists them by name."""

from __future__ import annotations

import hmac
import json
import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from typer.testing import CliRunner

from equipoise.cli import app as command_line
from equipoise.errors import InvalidInput, LedgerError
from equipoise.ledger import Reply, commands
from equipoise.service import access, load_settings, tokens
from tests.service.attacking import form_key, kind, log_in, refusal
from tests.support.postgres import in_memory
from tests.support.serving import ASK, Served, serving

ROLES = ("writer", "auditor", "approver", "regulator")


def test_a_token_of_another_audit_opens_nothing_and_shows_nothing(served: Served) -> None:
    served.create("mine")
    served.create("theirs")
    bank, body = (
        served.as_("writer", "mine"),
        {"commands": [{"command": "ask", "person": "p", **ASK}]},
    )
    assert bank.post("/v1/audits/mine/commands", json=body).status_code == 200
    there = bank.post("/v1/audits/theirs/commands", json=body)
    nowhere = bank.post("/v1/audits/no-such-audit/commands", json=body)
    odd = bank.post("/v1/audits/%00/commands", json=body)
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
    for path in Path(served.settings.token_store).parent.glob("tokens*"):
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
        for _ in range(access.MAX_FAILURES):
            assert browser.post("/login", data={"token": "eqp_1_guess"}).status_code == 401
        answer = browser.post("/login", data={"token": "eqp_1_guess"})
        assert answer.status_code == 429
        assert 0 < int(answer.headers["retry-after"]) <= access.FAILURE_WINDOW_SECONDS + 1
        guess = {"authorization": "Bearer eqp_1_guess"}
        assert served.client(guess).get("/v1/audits").status_code == 429
        # a neighbour's guesses lock out nobody whose token is right
        assert served.as_("auditor").get("/v1/audits").status_code == 200
        right = {"token": served.tokens["auditor of all"]}
        assert browser.post("/login", data=right).status_code == 303


def test_tokens_and_pseudonyms_are_in_no_log(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    served.create("logged")
    with caplog.at_level(logging.INFO, "equipoise.service"):
        served.result("logged", "ask", "pseudonym-4711", **ASK)
        browser = log_in(served)
        key = {"form_key": form_key(browser.get("/audits/logged/people").text)}
        found = browser.post("/audits/logged/people", data={**key, "person": "pseudonym-4711"})
        assert "pseudonym-4711" in found.text
        served.client({"authorization": "Bearer eqp_1_secretword"}).get("/v1/audits")
    lines = [json.dumps(getattr(record, "fields", {})) for record in caplog.records]
    assert any('"route": "/v1/audits/{audit}/commands"' in line for line in lines), lines
    assert any('"actor": "writer of all"' in line for line in lines)
    for word in ("pseudonym-4711", "secretword", served.tokens["writer of all"]):
        assert not any(word in line for line in lines)


def test_without_tokens_a_login_link_is_printed_and_nobody_else_is_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """d3163f9 was open to every program of the machine until somebody made a token."""
    ledger = str(tmp_path / "ledger.db")
    served_with: list[Any] = []
    monkeypatch.setattr("uvicorn.run", lambda app, **_: served_with.append(app))
    done = CliRunner().invoke(command_line, ["serve", "--ledger", ledger])
    assert done.exit_code == 0, done.output
    secret = done.output.partition("/login#token=")[2].strip()
    store = tokens.TokenStore(f"{ledger}.tokens")
    found = store.find(secret)
    assert found is not None
    assert (found.role, found.audit) == (tokens.Role.AUDITOR, None)
    assert not found.lives(datetime.now(UTC) + timedelta(days=1))
    # As Jupyter does, every start prints a link of its own, until somebody makes a token by hand.
    again = CliRunner().invoke(command_line, ["serve", "--ledger", ledger])
    assert "/login#token=" in again.output
    store.new("anna", tokens.Role.AUDITOR)
    assert "#token" not in CliRunner().invoke(command_line, ["serve", "--ledger", ledger]).output
    store.close()
    assert len(served_with) == 3
    with serving(str(tmp_path)) as served:  # nothing is open, whoever asks
        anybody = served.client()
        assert anybody.get("/").headers["location"] == "/login"
        assert anybody.get("/v1/audits").status_code == 401
        forged = served.client({"authorization": "Bearer eqp_0000000000000000_forged"})
        assert forged.get("/v1/audits").status_code == 401
        served.as_("auditor")  # the first token changes nothing for browsers: no redirect loop
        assert anybody.get("/login").status_code == 200


def test_passwords_of_databases_are_in_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """d3163f9 printed 'serving postgresql://anna:hunter2@…' and '?password=hunter2' as they are."""
    monkeypatch.setattr("uvicorn.run", lambda app, **_: None)
    tokens_at = ["--tokens", str(tmp_path / "tokens")]
    for url in (
        "postgresql://anna:hunter2@db/audits",
        "postgresql://anna:hun%40hunter2@db/audits",
        "postgresql://db/audits?user=anna&password=hunter2",
        "postgresql://db/audits?sslpassword=hunter2&PASSWORD=hunter2",
    ):
        done = CliRunner().invoke(command_line, ["serve", "--ledger", url, *tokens_at])
        assert done.exit_code == 0, done.output
        assert "serving postgresql://" in done.output
        assert "hunter2" not in done.output
        with pytest.raises((InvalidInput, LedgerError)) as refused:
            tokens.TokenStore(
                url.replace("@db/", "@127.0.0.1:1/").replace("//db/", "//127.0.0.1:1/")
            ).all()
        assert "hunter2" not in str(refused.value)


def test_every_setting_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"LEDGER": "audits.db", "BODY_LIMIT": "1000", "HTTPS": "1", "SECRET_KEY": "k" * 20}
    for name, value in values.items():
        monkeypatch.setenv(f"EQUIPOISE_{name}", value)
    found = load_settings()
    assert (found.ledger, found.body_limit, found.https) == ("audits.db", 1000, True)
    assert "k" * 20 not in repr(found)
    for name, value, words in (
        ("BODY_LIMIT", "many", "EQUIPOISE_BODY_LIMIT"),
        ("SECRET_KEY", "short", "at least 16"),
        ("PROXY_SECRET", "p" * 20, "needed together"),
        ("LEDGER", ":memory:", "a file"),
    ):
        with monkeypatch.context() as changed:
            changed.setenv(f"EQUIPOISE_{name}", value)
            with pytest.raises(InvalidInput, match=words):
                load_settings()


def allowed(operation: str) -> tuple[str, ...]:
    """Return who may do something; what is not named is for readers."""
    if operation in ("create", "mark_overdue", "verify"):
        return ("auditor",)
    if operation == "commands":
        return ("writer", "auditor", "approver")  # by command: see below
    return ("auditor", "approver", "regulator")


def operations(served: Served) -> Iterator[tuple[str, str, str]]:
    """Yield method, path and name of everything behind a token."""
    schema = served.client().get("/openapi.json").json()
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            if path not in ("/livez", "/readyz"):
                filled = path.replace("{audit}", "roles").replace("{number}", "1")
                yield method, filled, operation["operationId"].partition("_v1_")[0].rstrip("_")


def test_the_wrong_role_is_refused_and_learns_nothing(served: Served) -> None:
    served.create("roles")
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
    assert len(seen) > 14
    status = served.as_("auditor").get("/v1/audits/roles/status").json()
    assert status["events"] == 1


COMMANDS = {
    "ask": {"person": "p", **ASK}, "tell": {"person": "p", "outcome": 1},
    "execute": {"person": "p"},
    "withdraw": {"person": "p"}, "overdue": {"person": "p"}, "write_off": {"person": "p"},
    "erase": {"person": "p"}, "correct": {"person": "p", "outcome": 1, "why": "x"},
    "pause": {"why": "x"}, "resume": {"why": "x"}, "conclude": {"why": "x"},
    "set_budget": {"budget": 1, "why": "x"}, "set_limits": {"max_in_flight": 1, "why": "x"},
    "set_random_accepts": {"random_accepts": {"A": [1, 1, 1]}, "why": "x"},
    "approve": {"proposal": 1}, "reject": {"proposal": 1, "why": "x"}, "upgrade": {"why": "x"},
}  # fmt: skip
MAY: dict[str, set[str]] = {
    "writer": {"ask", "tell", "execute", "withdraw"},
    "auditor": set(COMMANDS) - {"approve", "upgrade"},
    "approver": {"approve", "reject", "upgrade"},
    "regulator": set(),
}


@pytest.mark.parametrize("role", ROLES)
def test_every_command_is_for_its_roles(served: Served, role: str) -> None:
    assert set(COMMANDS) == set(commands.COMMANDS)
    for command, said in COMMANDS.items():
        served.create(f"{command}-{role}")
        answer = served.send(f"{command}-{role}", command, role=role, **said)
        wanted = 200 if command in MAY[role] else 403
        assert answer.status_code == wanted, (role, command, answer.text)


def test_a_writer_learns_nothing_beyond_replies(served: Served) -> None:
    """Two audits, the same people, opposite outcomes: to a writer they look the same."""
    told: dict[str, list[Any]] = {}
    for name, outcome in (("good", 1), ("bad", 0)):
        served.create(name)
        send = partial(served.result, name)
        shown = [send("ask", str(i), **ASK | {"group": "AB"[i % 2]}) for i in range(12)]
        for i in range(12):
            shown.append(send("tell", str(i), outcome=outcome))
            shown.append(send("tell", str(i), outcome=1 - outcome))
        shown.append(send("ask", "0", **ASK | {"decision": 1}))
        shown.append(send("withdraw", "0"))
        send("conclude", why="done", role="auditor")
        shown.append(send("ask", "late", **ASK))
        told[name] = shown
    assert told["good"] == told["bad"]
    for one in told["good"]:
        if one.get("problem"):
            assert set(one["problem"]) == {"type", "title", "status"}  # and no detail
        else:  # everything else in a reply is empty
            own = {name: one[name] for name in ("person", "state", "want", "hold", "repeated")}
            assert one == Reply.from_dict(own).to_dict()
    assert served.client({"origin": served.url}).post(
        "/login", data={"token": served.tokens["writer of all"]}
    ).status_code == 401  # fmt: skip


def test_what_must_be_refused_does_not_tell_why_nothing_is_wanted(served: Served) -> None:
    """A score for an audit that has no use for it, a price beyond the declared one."""
    served.create("lottery", lottery=0.5)
    assist = {"audit": "adaptive", "options": {"assist": {"max_price": 300}}}
    served.create("dear", **assist, max_in_flight=1)
    probes = {"lottery": {"score": 1.0}, "dear": {"price": 301}}

    def probe(audit: str) -> set[str]:
        asked = (served.result(audit, "ask", f"probe{i}", **ASK, **probes[audit]) for i in range(8))
        return {refusal(one) for one in asked}

    assert probe("lottery") == probe("dear") == {"invalid-input"}
    served.result("dear", "ask", "p", **ASK)  # nobody else may be in flight
    assert probe("dear") == {"invalid-input"}
    for change in ("pause", "conclude"):
        for audit in probes:
            served.result(audit, change, why="so", role="auditor")
            assert probe(audit) == {"invalid-input"}


def test_a_writer_is_not_told_where_the_ledger_is(served: Served) -> None:
    served.create("hidden")
    place = Path(served.settings.ledger)
    place.rename(place.with_suffix(".away"))
    try:
        for audit in ("hidden", "never opened"):
            answer = served.send(audit, "ask", "p", **ASK)
            assert kind(answer) == "storage-unavailable"
            assert "detail" not in answer.json()
    finally:
        place.with_suffix(".away").rename(place)
    assert served.send("hidden", "ask", "p", **ASK).status_code == 200


def test_the_table_of_attacks_names_these_tests() -> None:
    page = Path(__file__).parents[2] / "docs" / "security.md"
    named = set(re.findall(r"`(test_[a-z_]+)`", page.read_text(encoding="utf-8")))
    files = [file.read_text() for file in Path(__file__).parent.glob("test_attacks_*.py")]
    here = {name for text in files for name in re.findall(r"^def (test_\w+)", text, re.M)}
    assert named == here - {"test_the_table_of_attacks_names_these_tests"}
