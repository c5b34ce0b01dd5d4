"""The client: a live audit's methods over HTTP, through failures."""

from __future__ import annotations

import runpy
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np
import pytest

from equipoise.audits.scores import Assist
from equipoise.cells import Cells
from equipoise.client import AccessDenied, RemoteAudit
from equipoise.comparison import Compare
from equipoise.errors import Conflict, InvalidInput, LedgerError, ProtocolError, UnknownPerson
from equipoise.history import Past
from equipoise.ledger import LiveAudit
from equipoise.protocol import Want
from equipoise.question import Costs, Question
from tests.profiles import quick
from tests.support.postgres import in_memory
from tests.support.serving import WORLD, Served, serving


def remote(served: Served, name: str, role: str = "auditor") -> RemoteAudit:
    served.as_(role)
    made = RemoteAudit(served.url, name, token=served.tokens[f"{role} of all"], patience=5.0)
    served.clients.append(made)
    return made


def test_question_and_past_arrive_whole(served: Served) -> None:
    """Whatever a question or a past holds travels as it is stored: nothing is named on the way."""
    served.as_("auditor")
    against = Compare(against="A", direction="below")
    question = Question("equal_opportunity", 0.1, 0.2, 0.1, 0.05, 0.02, compare=against)
    cells = {
        "A": {"approved_positive": 50, "approved_negative": 20, "approved_unknown": 30,
              "cohorts": [[50, 20, 30]], "denied": 100},
        "B": {"approved_positive": 40, "approved_negative": 20, "denied": 90,
              "random_accepts": [5, 4, 1]},
    }  # fmt: skip
    past = Past(Cells.from_dict(cells))
    token = served.tokens["auditor of all"]
    given = (served.url, "whole", past, question, Costs(2, 100))
    RemoteAudit.create(*given, token=token, confirm=True).close()
    live = LiveAudit.open(served.settings.ledger, "whole")
    assert live.settings.question == question
    assert live.settings.past.cells.to_dict() == cells
    live.close_ledger()
    body: dict[str, Any] = {"past": cells, "costs": {"feature": 2, "label": 100}}
    for compare in ([1], 7, None, {"leave_out": 5}, {"by": []}, {"against": {}}, {"more": 1}):
        wrong = {**body, "question": {"compare": compare}}
        assert served.as_("auditor").put("/v1/audits/wrong", json=wrong).status_code == 422, compare


def test_an_audit_from_beginning_to_end(served: Served) -> None:
    served.as_("auditor")
    token = served.tokens["auditor of all"]
    question = Question(gamma=0.1, epsilon=0.2, delta=0.1)
    audit = RemoteAudit.create(
        served.url, "remote é/1", WORLD.past(4000, 0), question,
        Costs(feature=5, label=100, groups={"B": Costs(10, 200)}), token=token, budget=100_000,
    )  # fmt: skip
    served.clients.append(audit)
    bank = remote(served, "remote é/1", "writer")
    people = list(WORLD.draw(3000, 0))
    first = bank.ask("0", people[0].group, people[0].decision)
    assert bank.ask("0", people[0].group, people[0].decision).repeated
    assert first.number is None  # a writer is not told
    for start in range(1, len(people), 300):
        part = people[start : start + 300]
        replies = bank.ask_many((f"{start + i}", p.group, p.decision) for i, p in enumerate(part))
        wanted = [
            (r.person, p.outcome)
            for r, p in zip(replies, part, strict=True)
            if r.want is Want.LABEL
        ]
        assert not [r.problem for r in bank.tell_many(wanted) if r.problem]
        if audit.status().finding is not None:
            break
    finding, live = audit.finding, LiveAudit.open(served.settings.ledger, "remote é/1")
    assert finding == live.finding is not None
    assert live.settings.question == question
    assert audit.status().to_dict() == live.status().to_dict()
    assert audit.checkpoint().hash == live.checkpoint().hash
    assert audit.verify()["hash"] == live.checkpoint().hash
    assert list(audit.events(after=3)) == list(live.events(after=3))
    shown = [p["person"] for p in audit.people(states=("REVEALED",))]
    assert shown == [p.person for p in live.people(states=("REVEALED",))]
    live.close_ledger()


def test_an_audit_that_looks_takes_scores_and_prices(served: Served) -> None:
    served.as_("auditor")
    audit = RemoteAudit.create(
        served.url, "looks", WORLD.past(4000, 0), Question(gamma=0.1, epsilon=0.2), Costs(0, 100),
        token=served.tokens["auditor of all"], options={"assist": Assist(max_price=300)},
    )  # fmt: skip
    served.clients.append(audit)
    bank = remote(served, "looks", "writer")
    people = [p for p in WORLD.draw(600, 0) if p.decision == 0]
    rows = [(f"{i}", p.group, 0, p.outcome + 0.1, 300 * i % 301) for i, p in enumerate(people)]
    reply = bank.ask(*rows[0][:3], score=rows[0][3], price=rows[0][4], version="2026-11")
    assert reply.want is Want.LABEL  # as are the first of every group
    for start in range(1, len(rows), 50):
        replies = bank.ask_many((*row, "2026-11") for row in rows[start : start + 50])
        told = [(r.person, people[int(r.person)].outcome) for r in replies if r.want is Want.LABEL]
        assert not [r.problem for r in (*replies, *bank.tell_many(told)) if r.problem]
    seen = [e["data"]["observation"] for e in audit.events() if "observation" in e["data"]]
    assert {one["version"] for one in seen} == {"2026-11"}
    assert audit.status().states["SCORE_ONLY"] > 0
    assert audit.verify()["hash"] == audit.checkpoint().hash
    with pytest.raises(InvalidInput, match="between 0 and the declared 'max_price', 300"):
        bank.ask("dear", "A", 0, price=301)
    served.create("plain")
    with pytest.raises(InvalidInput, match="'score' is for audits that look before they ask"):
        remote(served, "plain", "writer").ask("p", "A", 0, score=0.5)


@pytest.mark.parametrize(
    "seen",
    [
        {"score": "0.5"}, {"score": True}, {"score": float("nan")}, {"score": "abc"},
        {"price": ""}, {"price": -1}, {"price": 0.5}, {"version": 7},
    ],
    ids=str,
)  # fmt: skip
def test_what_a_ledger_refuses_is_refused_before_it_is_sent(
    served: Served, seen: dict[str, Any]
) -> None:
    served.create("strict", audit="adaptive", options={"assist": {"max_price": 300}})
    bank = remote(served, "strict", "writer")
    (name,) = seen
    with pytest.raises(InvalidInput, match=name):
        bank.ask("p", "A", 0, **seen)
    full = {"score": None, "price": None, "version": "", **seen}
    bad, good = bank.ask_many([("p", "A", 0, *full.values()), ("q", "A", 0, 0.5, np.int64(5))])
    assert name in str(bad.problem)
    assert good.problem is None


def test_errors_are_the_ledgers(served: Served) -> None:
    served.create("errors")
    audit, bank = remote(served, "errors"), remote(served, "errors", "writer")
    bank.ask("p", "A", 0)
    with pytest.raises(Conflict):
        bank.ask("p", "B", 0)
    with pytest.raises(UnknownPerson):
        bank.tell("q", 1)
    with pytest.raises(InvalidInput, match="nobody"):
        bank.ask("q", "nobody", 0)
    with pytest.raises(AccessDenied):
        bank.status()
    with pytest.raises(ProtocolError):
        audit.write_off("p")
    with pytest.raises(InvalidInput, match="unknown-audit"):
        remote(served, "nowhere").status()
    assert bank.ask_many([("r", "nobody", 0)])[0].problem is not None
    assert audit.pause("now").state == "PAUSED"
    assert audit.set_limits(7, {"A": 3}, why="x").state == "LIMITS"


def test_it_waits_for_a_server_that_starts_again() -> None:
    with TemporaryDirectory(dir=in_memory()) as directory:
        with serving(directory) as served:
            served.create("again")
            audit = remote(served, "again")
            audit.ask("p", "A", 0)
            served.clients.remove(audit)
            port = int(served.url.rpartition(":")[2])
        done: list[bool] = []
        thread = threading.Thread(target=lambda: done.append(audit.ask("p", "A", 0).repeated))
        thread.start()
        time.sleep(0.3)
        with serving(directory, port=port):
            thread.join()
        assert done == [True]
        impatient = RemoteAudit(served.url, "again", patience=0.1)
        with pytest.raises(LedgerError, match="repeating the call is safe"):
            impatient.status()
        impatient.close()
        audit.close()


def test_an_address_or_a_token_that_is_none_is_refused_at_once(served: Served) -> None:
    for url in ("127.0.0.1:8100", "localhost", "ftp://localhost", ""):
        with pytest.raises(InvalidInput, match="'url' must begin with http"):
            RemoteAudit(url, "loans")
    for token in ("eqp_1_sec\nret", "eqp_1_secr\u00e9t"):
        with pytest.raises(InvalidInput, match="'token' must be what") as refusal:
            RemoteAudit(served.url, "loans", token=token)
        assert "sec" not in str(refusal.value)
    served.create("newline")
    served.as_("writer")
    with RemoteAudit(served.url, "newline", token=served.tokens["writer of all"] + "\n") as bank:
        assert bank.ask("p", "A", 0).state == "RESERVED"  # as a file has it


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(200, text="<html>log in</html>"), "is not the service"),
        (httpx.Response(200, json=[1]), "is not the service"),
        (httpx.Response(200, json={"fine": True}), "0 of 1 commands were answered"),
        (httpx.Response(503, headers={"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}), "503"),
        (httpx.DecodingError("incorrect header check"), "no answer from http://x"),
    ],
    ids=["a page", "a list", "something else", "a date", "no gzip"],
)
def test_whatever_a_proxy_answers_is_a_clear_error(
    answer: httpx.Response | Exception, words: str
) -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    bank = RemoteAudit("http://x", "loans", token="eqp_1_2", patience=0.0)
    bank._http = httpx.Client(transport=httpx.MockTransport(handle), base_url="http://x")
    with bank, pytest.raises(LedgerError, match=words):
        bank.ask("p", "A", 0)


@pytest.mark.parametrize("name", quick([], full=["lender_by_service.py"]))
def test_the_lender_of_the_documents_is_audited(served: Served, name: str) -> None:
    place = Path(__file__).parents[2] / "docs" / "start" / name
    program = runpy.run_path(str(place))
    served.as_("auditor")
    finding = program["main"](served.url, served.tokens["auditor of all"])
    assert finding.verdict == "UNFAIR"
    assert finding.decided_by is not None
