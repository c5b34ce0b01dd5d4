"""One suite of verbs that an audit in a ledger and an audit on a server both pass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from tempfile import TemporaryDirectory

import pytest

from equipoise.client import RemoteAudit
from equipoise.errors import Conflict, InvalidInput, LedgerError, ProtocolError, UnknownPerson
from equipoise.ledger import LiveAudit, Reply
from equipoise.ledger.commands import Ask, Pause, Tell
from equipoise.messages.refusals import SuggestedCommand
from equipoise.protocol import Want
from equipoise.question import Costs, Question, Verdict
from tests.support.postgres import in_memory
from tests.support.serving import WORLD, Served, serving

Audit = LiveAudit | RemoteAudit
Begin = Callable[..., Audit]

QUESTION, COSTS = Question(gamma=0.1, epsilon=0.2, delta=0.1), Costs(feature=5, label=100)
ELSEWHERE = {
    "open",
    "begin",
    "refuse_overwriting",
    "acting_as",
    "close_ledger",
    "confirm",
    "catch_up",
    "look_in_memory",
    "let_go",
    "export",
    "lines",
    "evidence_history",
    "spending_history",
    "waiting",  # status() carries it over HTTP
    "replay",
    "settle",
    "pending_by_day",
    "scrub",
    "good_shares",
}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with TemporaryDirectory(dir=in_memory()) as directory, serving(directory) as server:
        yield server


@pytest.fixture(params=["in a ledger", "on a server"])
def begin(request: pytest.FixtureRequest, served: Served) -> Iterator[Begin]:
    """Begin an audit of this test's own; the same arguments for both."""
    made: list[Audit] = []
    name = f"{request.node.name}"

    def create(**more: object) -> Audit:
        given = (name, WORLD.past(4000, 0), QUESTION, COSTS)
        options: dict[str, object] = {"audit": "rs", "options": {"tau": 20}, **more}
        if request.param == "in a ledger":
            live = LiveAudit.create(served.settings.ledger, *given, actor="anna", **options)  # type: ignore[arg-type]
            made.append(live)
        else:
            served.as_("auditor")
            token = served.tokens["auditor of all"]
            made.append(RemoteAudit.create(served.url, *given, token=token, **options))
        return made[-1]

    yield create
    for audit in made:
        (audit.close if isinstance(audit, RemoteAudit) else audit.close_ledger)()


def test_what_is_carried_out_is_answered_as_it_was(begin: Begin) -> None:
    audit = begin()
    first = audit.ask("p", "B", 0)
    assert (first.state, first.want, first.hold, first.number) == ("RESERVED", Want.LABEL, 105, 1)
    assert audit.ask("p", "B", 0) == Reply(**{**vars(first), "repeated": True})
    assert audit.executed("p").state == "EXECUTED"
    assert audit.tell("p", 1).state == "REVEALED"
    assert audit.tell("p", 1).repeated
    assert audit.correct("p", 0, "a typo").state == "CORRECTED"
    assert audit.ask("q", "B", 0).want is Want.LABEL
    assert audit.withdraw("q").state == "WITHDRAWN"
    status = audit.status()
    assert (status.spent, status.reserved, status.people) == (105, 0, 2)
    assert audit.erase("q").state == "UNLINKED"  # until the files are scrubbed
    assert audit.person("q") is None
    assert audit.person("p") is not None


def test_refusals_are_the_same_errors(begin: Begin) -> None:
    audit = begin(budget=1000)
    audit.ask("p", "A", 0)
    for error, call in (
        (Conflict, lambda: audit.ask("p", "B", 0)),
        (UnknownPerson, lambda: audit.tell("nobody", 1)),
        (InvalidInput, lambda: audit.ask("q", "nobody", 0)),
        (InvalidInput, lambda: audit.ask("q", "A", 2)),
        (InvalidInput, lambda: audit.ask("", "A", 0)),
        (ProtocolError, lambda: audit.write_off("p")),
        (ProtocolError, lambda: audit.set_budget(1, "less")),
        (InvalidInput, lambda: audit.reject(999, "no")),
    ):
        with pytest.raises(error) as found:
            call()
        assert not isinstance(found.value, LedgerError)


def test_a_refusal_comes_with_its_code_and_facts(begin: Begin) -> None:
    audit = begin(budget=1000, currency="EUR", decimals=2)
    audit.ask("p", "A", 0)
    with pytest.raises(ProtocolError) as refused:
        audit.write_off("p")
    facts = {"person": "p", "state": "RESERVED", "states": ["OVERDUE"], "action": "written_off"}
    assert refused.value.refusal is not None
    assert (refused.value.refusal.code, refused.value.refusal.facts) == ("wrong-state", facts)
    with pytest.raises(ProtocolError, match=r"at least .* 1\.05 EUR; got 0\.01 EUR") as refused:
        audit.set_budget(1, "less")
    assert refused.value.refusal is not None
    assert refused.value.refusal.facts["least"] == 105
    audit.tell("p", 1)
    with pytest.raises(Conflict, match=r"correct\('p', 0, why\)") as refused:
        audit.tell("p", 0)
    assert refused.value.refusal is not None
    assert refused.value.refusal.fix == SuggestedCommand("correct", {"person": "p", "outcome": 0})


def test_a_batch_answers_each_in_its_order(begin: Begin) -> None:
    audit = begin()
    replies = audit.ask_many([("p", "A", 0), ("q", "nobody", 0), ("r", "B", 0), ("s",)])
    assert [reply.problem is None for reply in replies] == [True, False, True, False]
    assert [reply.person for reply in replies[:3]] == ["p", "q", "r"]
    told = audit.tell_many([("p", 1), ("nobody", 1), ("r", 7)])
    assert [reply.state for reply in told] == ["REVEALED", "", ""]
    mixed = audit.run([Ask("t", "B", 0), Tell("t", 0), Pause("holidays")])
    assert [reply.state for reply in mixed] == ["RESERVED", "REVEALED", "PAUSED"]
    assert len(audit.ask_many((f"many {i}", "B", 0) for i in range(2100))) == 2100
    assert audit.status().people == 3 + 2100


def test_decisions_about_the_audit(begin: Begin) -> None:
    audit = begin(budget=1000)
    assert audit.pause("holidays", key="k-1").state == "PAUSED"
    assert audit.resume("back", key="k-2").state == "RESUMED"
    late = audit.pause("holidays", key="k-1")  # a duplicate that comes late is no new decision
    assert (late.state, late.repeated) == ("PAUSED", True)
    assert audit.status().paused is None
    assert audit.set_budget(5000, "more").state == "BUDGET"
    assert audit.set_limits(7, {"A": 3}, why="few").state == "LIMITS"
    status = audit.status()
    assert (status.cap, status.max_in_flight, status.max_in_flight_groups) == (5000, 7, {"A": 3})


def test_to_resume_or_pause_what_has_ended_says_so(begin: Begin) -> None:
    audit = begin()
    audit.pause("holidays")
    audit.conclude("nobody else")
    for repeated in (False, True):
        reply = audit.resume("back", key="late")
        assert (reply.state, reply.why) == ("CONCLUDED", "nobody is asked any more")
        assert reply.repeated is repeated
    assert audit.status().paused is None
    assert audit.pause("holidays").state == "CONCLUDED"


def test_from_the_first_ask_to_the_verdict_and_its_proof(begin: Begin) -> None:
    audit = begin(overdue_after=30.0)
    people = list(WORLD.draw(400, 0))
    replies = audit.ask_many((str(i), p.group, p.decision) for i, p in enumerate(people))
    pairs = zip(replies, people, strict=True)
    wanted = [(r.person, p.outcome) for r, p in pairs if r.want is Want.LABEL]
    assert not [reply.problem for reply in audit.tell_many(wanted) if reply.problem]
    finding = audit.finding or audit.conclude("nobody else")
    assert finding is not None
    assert finding.verdict in list(Verdict)
    assert audit.so_far() == finding
    assert audit.overdue(days=0.0) == []
    point = audit.checkpoint()
    assert point.seq == audit.status().events == len(list(audit.events()))
    audit.verify()
    stored = list(audit.people(states="REVEALED"))
    assert len(stored) == len(wanted)


def test_they_have_the_same_verbs() -> None:
    def public(kind: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}

    assert public(LiveAudit) - ELSEWHERE - {"settings", "seed"} <= public(RemoteAudit)
