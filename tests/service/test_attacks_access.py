"""Attacks on tokens and roles; ``docs/service.md`` lists them by name."""

from __future__ import annotations

import hmac
import json
import logging
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from study.postgres import in_memory
from study.serving import ASK, Served, serving
from typer.testing import CliRunner

from equipoise.cli import app as command_line
from equipoise.service import access, tokens
from tests.service.attacking import kind

ROLES = ("writer", "auditor", "approver", "regulator")


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
        answer = browser.post("/login", data={"token": "eqp_1_guess"})
        assert answer.status_code == 429
        assert 0 < int(answer.headers["retry-after"]) <= access.WINDOW + 1
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


def test_what_must_be_refused_does_not_tell_why_nothing_is_wanted(served: Served) -> None:
    """A score for an audit that has no use for it, a price beyond the declared one."""
    bank = served.as_("writer")
    served.create("lottery", lottery=0.5)
    assist = {"audit": "adaptive", "options": {"assist": {"max_price": 300}}}
    served.create("dear", **assist, max_in_flight=1)
    probes = {"lottery": {"score": 1.0}, "dear": {"price": 301}}

    def probe(audit: str) -> set[int]:
        ask = {**ASK, **probes[audit]}
        put = (bank.put(f"/v1/audits/{audit}/people/probe{i}", json=ask) for i in range(8))
        return {answer.status_code for answer in put}

    assert probe("lottery") == probe("dear") == {422}
    bank.put("/v1/audits/dear/people/p", json=ASK)  # nobody else may be in flight
    assert probe("dear") == {422}
    for change in ("pause", "conclude"):
        for audit in probes:
            served.as_("auditor").post(f"/v1/audits/{audit}/{change}", json={"why": "so"})
            assert probe(audit) == {422}


def test_a_writer_is_not_told_where_the_ledger_is(served: Served) -> None:
    served.create("hidden")
    bank, place = served.as_("writer"), Path(served.settings.ledger)
    place.rename(place.with_suffix(".away"))
    try:
        for audit in ("hidden", "never opened"):
            answer = bank.put(f"/v1/audits/{audit}/people/p", json=ASK)
            assert kind(answer) == "storage-unavailable"
            assert "detail" not in answer.json()
    finally:
        place.with_suffix(".away").rename(place)
    assert bank.put("/v1/audits/hidden/people/p", json=ASK).status_code == 200


def test_the_table_of_attacks_names_these_tests() -> None:
    page = Path(__file__).parents[2] / "docs" / "service.md"
    named = set(re.findall(r"`(test_[a-z_]+)`", page.read_text(encoding="utf-8")))
    files = [file.read_text() for file in Path(__file__).parent.glob("test_attacks_*.py")]
    here = {name for text in files for name in re.findall(r"^def (test_\w+)", text, re.M)}
    assert named == here - {"test_the_table_of_attacks_names_these_tests"}
