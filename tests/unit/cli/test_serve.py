"""``equipoise token`` and ``equipoise serve``: who is let in, and what a first start shows."""

from __future__ import annotations

import json
import re
import socket
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import uvicorn
from typer.testing import CliRunner

from equipoise.cli import app
from equipoise.history import History
from equipoise.ledger import LiveAudit, Status
from equipoise.ledger.live import list_audits
from equipoise.question import Costs, Question, Verdict
from equipoise.service import Role, TokenStore, demonstration
from equipoise.worlds.data import fico_lender
from tests.profiles import FULL


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("EQUIPOISE_LEDGER", "EQUIPOISE_TOKENS", "EQUIPOISE_DEMO"):
        monkeypatch.delenv(name, raising=False)
    return str(tmp_path / "audits.db")


def token(ledger: str, *words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["token", *words, "--ledger", ledger])
    return done.exit_code, done.stdout, done.stderr


def test_a_token_is_shown_once_listed_without_its_secret_and_ended(ledger: str) -> None:
    assert json.loads(token(ledger, "list", "--json")[1]) == []
    code, shown, _ = token(ledger, "new", "bank", "--role", "writer", "--audit", "loans")
    assert (code, shown[:4]) == (0, "eqp_")
    store = TokenStore(f"{ledger}.tokens")
    found = store.find(shown.strip())
    assert found is not None
    assert (found.name, found.role, found.audit) == ("bank", "writer", "loans")
    made = json.loads(token(ledger, "new", "anna", "--role", "auditor", "--days", "1", "--json")[1])
    assert (made["name"], made["role"], made["audit"]) == ("anna", "auditor", None)
    for words in (("list",), ("list", "--json")):
        listed = token(ledger, *words)[1]
        assert "bank" in listed
        assert shown.strip().split("_", 2)[2] not in listed
        assert made["token"].split("_", 2)[2] not in listed
    code, said, _ = token(ledger, "revoke", "bank")
    assert (code, said[:15]) == (0, "bank: revoked 2")
    assert token(ledger, "revoke", "bank")[1] == said  # again, as it was
    assert store.find(shown.strip()) is None
    assert store.find(made["token"]) is not None
    store.close()


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("new bank --role writer", "a token named 'bank' exists or existed"),
        ("new anna --role boss", "Invalid value for '--role'"),
        ("new anna --role auditor --days 0", "'days' must be more than 0"),
        ("new anna --role auditor --days nan", "'days' must be more than 0"),
        ("revoke nobody", "unknown token 'nobody'. Known: bank"),
    ],
)
def test_tokens_that_cannot_be_are_refused(ledger: str, words: str, refusal: str) -> None:
    token(ledger, "new", "bank", "--role", "writer")
    token(ledger, "revoke", "bank")  # the name is the actor in events, so it is never given again
    code, shown, error = token(ledger, *words.split())
    assert (code, shown) == (2, "")
    assert error.startswith(f"error: {refusal}")


# -- serve ----------------------------------------------------------------------------------------


def test_the_demonstration_lives_and_its_link_logs_in(
    ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
    servers: list[uvicorn.Server] = []

    def serve(made: Any, **options: Any) -> None:
        servers.append(uvicorn.Server(uvicorn.Config(made, **options | {"log_config": None})))
        servers[0].run()

    monkeypatch.setattr("uvicorn.run", serve)
    monkeypatch.setattr(demonstration, "ARRIVAL_PAUSE_SECONDS", 0.01)
    few = {demonstration.DEMONSTRATION_AUDIT: 100, demonstration.WAITING_AUDIT: 100}
    at_start = demonstration.PEOPLE_AT_START | few
    monkeypatch.setattr(demonstration, "PEOPLE_AT_START", at_start)
    if not FULL:  # a lender with fewer groups to compare
        two = partial(fico_lender, groups=("White", "Black"))
        monkeypatch.setattr(demonstration, "fico_lender", two)
    words = ["serve", "--demo", "--ledger", ledger, "--port", str(port)]
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(CliRunner().invoke, app, words)
        try:
            people = _wait_for_people(servers, ledger, done)
        finally:
            for server in servers:
                server.should_exit = True
        said = done.result().stdout
    assert people > at_start[demonstration.DEMONSTRATION_AUDIT]  # they keep arriving
    link = re.search(rf"log in, today: http://127.0.0.1:{port}/login#token=(\S+)", said)
    assert link is not None, said
    store = TokenStore(f"{ledger}.tokens")
    approver_link = re.search(r"as an approver: \S+#token=(\S+)", said)
    assert approver_link is not None, said
    for token_text, role in ((link[1], "auditor"), (approver_link[1], "approver")):
        found = store.find(token_text)
        assert found is not None
        assert (found.role, found.audit) == (role, None)
    store.close()
    LiveAudit.open(ledger, demonstration.DEMONSTRATION_AUDIT).verify()
    waiting = LiveAudit.open(ledger, demonstration.WAITING_AUDIT).status()
    (proposal,) = waiting.proposals
    assert (waiting.finding, proposal.actor) == (None, demonstration.PROPOSER)
    ended = LiveAudit.open(ledger, demonstration.ENDED_AUDIT).status()
    assert ended.finding is not None
    assert ended.finding.verdict is Verdict.UNFAIR


def test_a_demonstration_is_not_put_beside_other_audits(ledger: str) -> None:
    counts = {"approved_positive": 60, "approved_negative": 20, "denied": 20}
    history = History.from_cells({"A": counts, "B": counts})
    costs = Costs(label=100)
    LiveAudit.create(ledger, "loans", history, Question(), costs, confirm=True).close_ledger()
    done = CliRunner().invoke(app, ["serve", "--demo", "--ledger", ledger])
    assert done.exit_code == 2
    assert "holds other audits: loans" in " ".join(done.stderr.split())
    assert [row.name for row in list_audits(ledger)] == ["loans"]


def _wait_for_people(servers: list[uvicorn.Server], ledger: str, command: Future[Any]) -> int:
    """Return how many arrived, as a page of the running server says."""
    while not servers or not servers[0].started:
        assert not command.done(), command.result().output
        time.sleep(0.01)
    secret = TokenStore(f"{ledger}.tokens")
    held = {"authorization": f"Bearer {secret.new('reader', Role.REGULATOR)}"}
    secret.close()
    config = servers[0].config
    with httpx.Client(base_url=f"http://{config.host}:{config.port}", headers=held) as client:
        while True:
            status = client.get(f"/v1/audits/{quote(demonstration.DEMONSTRATION_AUDIT)}/status")
            if status.is_success:
                people = Status.from_dict(status.json()).people
                if people > demonstration.PEOPLE_AT_START[demonstration.DEMONSTRATION_AUDIT]:
                    return people
            time.sleep(0.25)  # each answer costs the server about as much as a few people


def test_no_link_is_printed_once_somebody_made_a_token(
    ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uvicorn.run", lambda made, **options: None)
    serve = ["serve", "--ledger", ledger]
    assert "#token=" in CliRunner().invoke(app, serve).stdout
    assert "#token=" in CliRunner().invoke(app, serve).stdout  # its own links do not count
    token(ledger, "new", "anna", "--role", "auditor")
    assert "#token=" not in CliRunner().invoke(app, serve).stdout


def test_a_restart_gives_no_access_after_the_last_token_ended(
    ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uvicorn.run", lambda made, **options: None)
    token(ledger, "new", "anna", "--role", "auditor")
    token(ledger, "revoke", "anna")
    token(ledger, "new", "bank", "--role", "writer")  # which opens no page
    shown = CliRunner().invoke(app, ["serve", "--ledger", ledger]).stdout
    assert "#token=" not in shown
    assert f"equipoise token new NAME --role auditor --ledger {ledger}" in shown
    assert token(ledger, "new", "login link of mine", "--role", "auditor")[0] == 2
    tokens = json.loads(token(ledger, "list", "--json")[1])
    assert [made["name"] for made in tokens] == ["anna", "bank"]
    token(ledger, "new", "ben", "--role", "regulator")
    assert "token" not in CliRunner().invoke(app, ["serve", "--ledger", ledger]).stdout
