"""Who did what, who must approve it, and how somebody is forgotten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from equipoise.errors import InvalidInput, LedgerError, ProtocolError, UnknownName
from equipoise.ledger import LiveAudit
from equipoise.ledger.export import read_checkpoints, verify_export
from equipoise.ledger.inputs import system_user
from equipoise.question import Want
from tests.conformance.ledgers import create, people, run
from tests.conformance.test_ledger_durability import execute

HOLD_B = 210


def test_every_event_names_who_did_it(ledger: str) -> None:
    live = create(ledger)
    live.acting_as(" token 7 ").ask("x", "A", 0)
    live.acting_as("anna").tell("x", 1)
    assert [event["actor"] for event in live.events()] == [system_user(), "token 7", "anna"]
    assert live.status().actors["anna"] == {"revealed": 1}
    live.verify()
    with pytest.raises(InvalidInput, match="'actor' must be 1 to 200 printable characters"):
        live.acting_as("")


def test_the_budget_can_be_changed_and_an_audit_that_ran_dry_goes_on(ledger: str) -> None:
    live = create(ledger, budget=HOLD_B)
    live.ask("one", "B", 0)
    assert live.ask("two", "B", 0).why == "budget"
    live.tell("one", 0)
    assert live.finding.reason.startswith("the budget is spent")
    assert live.ask("three", "B", 0).why == "budget"
    live.set_budget(3 * HOLD_B, "the board agreed")
    assert live.finding is None
    assert live.ask("four", "B", 0).want is Want.LABEL
    with pytest.raises(ProtocolError, match="must be at least what is spent or held, 420; got 419"):
        live.set_budget(2 * HOLD_B - 1, "less")
    live.set_budget(2 * HOLD_B, "all that is needed")
    assert live.ask("five", "B", 0).why == "budget"
    assert live.set_budget(2 * HOLD_B, "again").repeated
    live.set_budget(None, "no cap")
    assert live.ask("six", "B", 0).want is Want.LABEL
    assert live.status().cap is None
    live.verify()


def test_limits_can_be_changed_and_an_audit_paused(ledger: str) -> None:
    live = create(ledger, max_in_flight=1)
    live.ask("one", "A", 0)
    assert live.ask("two", "A", 0).why == "in_flight"
    live.set_limits(3, {"B": 1}, why="more hands")
    assert [live.ask(n, "B", 0).why for n in ("three", "four")] == ["", "in_flight"]
    live.pause("a holiday")
    assert live.ask("five", "A", 0).why == "paused"
    assert live.pause("again").repeated
    live.tell("one", 1)
    live.resume("back at work")
    assert live.ask("six", "A", 0).want is Want.LABEL
    with pytest.raises(UnknownName, match="unknown group in 'max_in_flight_groups' 'Z'"):
        live.set_limits(3, {"Z": 1}, why="typo")
    live.verify()


def test_money_is_the_same_wherever_it_is_shown(ledger: str) -> None:
    live = create(ledger, currency="EUR", decimals=2)
    run(live, 600, share_told=0.8)
    reached = live.finding
    assert reached is not None
    verdict = next(e for e in live.events() if e["type"] == "verdict")
    late = [r.person for r in live.people(states=("RESERVED",)) if r.decision == 0]
    live.tell_many([(person, 0) for person in late])
    status = live.status()
    assert status.finding.cost == reached.cost == verdict["data"]["finding"]["cost"]
    assert status.spent > reached.cost
    for amount in (status.spent, reached.cost):
        assert f"{amount / 100:,.2f} EUR" in str(status)
    live.verify()


# -- two people -----------------------------------------------------------------------------------


def test_a_second_person_must_approve_where_the_audit_says_so(ledger: str) -> None:
    kinds = ("budget", "concluded", "corrected", "erased", "limits", "resumed")
    live = create(ledger, approvals=kinds, actor="anna", budget=1000)
    bert = live.acting_as("bert")
    live.ask("x", "B", 0)
    live.tell("x", 0)
    live.pause("a holiday")  # stopping needs one person, going on two
    proposals = [
        live.set_budget(2000, "more"),
        live.correct("x", 1, "typo"),
        live.set_limits(5, why="fewer"),
        live.resume("back"),
    ]
    assert [reply.state for reply in proposals] == ["PROPOSED"] * 4
    assert live.set_budget(2000, "more").repeated
    status = live.status()
    assert (status.cap, status.spent, len(status.proposals)) == (1000, HOLD_B, 4)
    with pytest.raises(ProtocolError, match="is 'anna''s own; another person must approve"):
        live.approve(proposals[0].number)
    for reply in proposals:
        done, again = bert.approve(reply.number), bert.approve(reply.number)
        assert (again.state, again.number, again.repeated) == (done.state, done.number, True)
    with pytest.raises(ProtocolError, match="was approved before"):
        live.reject(proposals[0].number, "too late")
    with pytest.raises(UnknownName, match="unknown proposal"):
        bert.approve(999)
    status = live.status()
    assert (status.cap, status.spent, status.paused, status.proposals) == (2000, 10, None, ())
    dropped = bert.erase("x")
    live.reject(dropped.number, "not asked for")
    assert live.reject(dropped.number, "not asked for").repeated
    with pytest.raises(ProtocolError, match="was rejected before"):
        live.approve(dropped.number)
    assert live.person("x") is not None
    live.conclude()
    assert live.status().concluded is None
    bert.approve(live.status().proposals[0].number)
    assert live.status().concluded == "nobody else is to come"
    live.verify()


# -- forgetting somebody --------------------------------------------------------------------------

SECRET = "somebody-who-wants-to-be-forgotten"


def filled(ledger: str, **more: Any) -> LiveAudit:
    live = create(ledger, lottery=0.8, seed="ab" * 32, **more)
    for person, group, decision, outcome in people(60):
        if live.ask(person, group, decision).want is Want.LABEL:
            live.tell(person, outcome)
    live.ask(SECRET, "B", 1)
    live.tell(SECRET, 1)
    run_more = [row[:3] for row in people(40, 5)]
    live.ask_many([(f"q{p}", g, d) for p, g, d in run_more])
    return live


def test_an_erased_person_is_gone_and_everything_stays_provable(
    either: str, tmp_path: Path
) -> None:
    live = filled(either)
    before, point = live.status(), live.checkpoint()
    assert live.erase(SECRET).state == "ERASED"
    assert live.erase(SECRET).repeated  # and whoever was never known
    after = live.status()
    assert (after.spent, after.groups, after.erased) == (before.spent, before.groups, 1)
    live.verify([(point.seq, point.hash)])
    head = live.export(tmp_path / "a.jsonl", people=tmp_path / "keys.jsonl")
    keys = [json.loads(line) for line in (tmp_path / "keys.jsonl").read_text().splitlines()]
    assert len(keys) == after.people - 1
    verify_export(tmp_path / "a.jsonl", head=head.hash, people=keys, seed="ab" * 32)
    assert live.person(SECRET) is None
    with pytest.raises(InvalidInput, match="is unknown to audit"):
        live.tell(SECRET, 0)
    assert not live.ask(SECRET, "A", 0).repeated  # a new person: nobody can know better
    live.verify()


def test_no_byte_of_an_erased_person_stays_in_sqlite(ledger: str) -> None:
    live = filled(ledger, approvals=("erased",))
    files = [Path(ledger), Path(f"{ledger}-wal")]
    assert any(SECRET.encode() in path.read_bytes() for path in files)
    proposal = live.erase(SECRET).number
    assert proposal is not None
    live.acting_as("second").approve(proposal)
    for path in Path(ledger).parent.iterdir():
        assert SECRET.encode() not in path.read_bytes(), path


def test_no_byte_of_an_erased_person_stays_in_postgresqls_tables(on_postgres: str) -> None:
    live = filled(on_postgres)
    execute(on_postgres, "ANALYZE")
    live.erase(SECRET)
    execute(on_postgres, "CHECKPOINT")
    ((data,),) = execute(on_postgres, "SHOW data_directory")
    own = "SELECT oid FROM pg_database WHERE datname = current_database()"
    ((number,),) = execute(on_postgres, own)
    files = list((Path(data) / "base" / str(number)).iterdir())
    assert len(files) > 100
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


def test_somebody_with_an_open_request_cannot_be_erased(ledger: str) -> None:
    live = create(ledger)
    live.ask("x", "B", 0)
    with pytest.raises(ProtocolError, match="settle the request first"):
        live.erase("x")
    live.withdraw("x")
    live.erase("x")
    live.verify()


# -- heads kept outside ---------------------------------------------------------------------------


def test_checkpoints_kept_in_a_file_are_held_against_the_ledger(
    ledger: str, tmp_path: Path
) -> None:
    live, file = create(ledger), tmp_path / "heads.jsonl"
    for size in (10, 20):
        run(live, size)
        live.checkpoint().append_to(file)
    points = read_checkpoints(file, live.row.uid)
    assert len(points) == 2
    live.verify(points)
    with pytest.raises(LedgerError, match="the checkpoint says hash"):
        live.verify([(points[0][0], points[1][1])])
    with pytest.raises(InvalidInput, match="no checkpoint of this audit"):
        read_checkpoints(file, "another")
    (tmp_path / "words").write_text("words")
    with pytest.raises(InvalidInput, match="not a file of checkpoints"):
        read_checkpoints(tmp_path / "words")
