"""Who did what, who must approve it, and how somebody is forgotten."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from equipoise.errors import Conflict, InvalidInput, LedgerError, ProtocolError, UnknownName
from equipoise.ledger import LiveAudit
from equipoise.ledger.commands import Correct, Erase, Pause, Resume, Tell
from equipoise.ledger.database import connect
from equipoise.ledger.inputs import system_user
from equipoise.ledger.proof import read_checkpoints, verify_export
from equipoise.protocol import Want
from tests.conformance.ledgers import create, people, run, writers_role
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


def test_a_later_file_of_a_test_programme_brings_labels_and_misses_nobody(ledger: str) -> None:
    live, waiting = create(ledger, audit="adaptive"), []
    files = [{"A": [5, 4, 3], "B": [3, 5, 2]}, {"A": [6, 4, 8], "B": [9, 4, 12]}]
    for at, (person, group, decision, outcome) in enumerate(people(160)):
        if live.ask(person, group, decision).want is Want.LABEL:
            waiting.append((person, outcome))
        if len(waiting) > 6:
            live.tell(*waiting.pop(at % 5))
        if at == 50:
            reply = live.set_random_accepts(files[0], why="the first quarter")
            assert (reply.state, reply.repeated) == ("RANDOM_ACCEPTS", False)
            assert live.set_random_accepts(files[0], why="again").repeated
    for own in ([6, 4, 1], [4, 5, 3], [5, 3, 9]):
        with pytest.raises(InvalidInput, match="'random_accepts' of 'A' must list everybody of"):
            live.set_random_accepts({"A": own, "B": [3, 5, 2]}, why="somebody left")
    with pytest.raises(InvalidInput, match="'random_accepts' of 'B' must be three counts"):
        live.set_random_accepts({"A": [5, 4, 3], "B": [1.5, 0, 0]}, why="half a person")
    for wrong in (5, None, [5, 4], [5, 4, 10**400], [5, 4, 2**53]):
        with pytest.raises(InvalidInput, match="'random_accepts' of 'A' must be three counts"):
            live.set_random_accepts({"A": wrong}, why="no counts")  # type: ignore[dict-item]
    with pytest.raises(UnknownName, match="unknown group in 'random_accepts' 'Z'"):
        live.set_random_accepts({"Z": [1, 1, 1]}, why="typo")
    live.set_random_accepts(files[1], {"B": 1}, why="the second quarter, one outcome corrected")
    live.tell(*waiting[0])
    assert live.replay().to_json() == live.status().to_json()
    assert LiveAudit.open(ledger, "loans").status().to_json() == live.status().to_json()
    now = live.evidence_history()[-1]
    assert now.answers == sum(e["type"] == "revealed" for e in live.events())
    assert now.people == live.status().people
    assert None not in (now.for_fair, now.for_unfair)
    spending = live.spending_history()
    assert [point.spent for point in (spending[0], spending[-1])] == [0, live.status().spent]
    live.verify()
    told = live.status()
    labels = sum(own.positive + own.negative for own in told.groups.values())
    audit = live._driver.read(lambda state: state.audit)
    assert audit.evidence.log.n_told.sum() == labels + 6 + 4 + 9 + 4
    with pytest.raises(ProtocolError, match="a rs audit counts no labels of a test programme"):
        create(ledger, "other").set_random_accepts(files[0], why="no use")


@pytest.mark.parametrize(("audit", "told"), [("rs", 0.8), ("adaptive", 0.2)])
def test_money_is_the_same_wherever_it_is_shown(ledger: str, audit: str, told: float) -> None:
    live = create(ledger, audit=audit, currency="EUR", decimals=2)
    run(live, 600, share_told=told)
    verdict = next(e for e in live.events() if e["type"] == "verdict")
    late = [r.person for r in live.people(states=("RESERVED",)) if r.decision == 0]
    live.tell_many([(person, 0) for person in late])
    status = live.status()
    assert status.finding is not None
    assert status.finding.cost == status.spent > verdict["data"]["finding"]["cost"]
    assert f"spent       {status.spent / 100:,.2f} EUR for" in str(status)
    assert live.verify().verdict == status.finding.verdict
    assert live.replay().to_json() == status.to_json()


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


def test_a_later_file_of_a_test_programme_may_need_a_second_person(ledger: str) -> None:
    kinds = ("random_accepts",)
    live, file = create(ledger, audit="adaptive", approvals=kinds, actor="anna"), {"A": [9, 1, 2]}
    proposal = live.set_random_accepts(file, why="the first quarter")
    assert (proposal.state, live.status().events) == ("PROPOSED", 2)
    assert live.set_random_accepts({**file, "B": [0, 0, 0]}, why="the first quarter").repeated
    same = live.set_random_accepts(file, {"A": 1}, why="the first quarter")
    assert live.acting_as("bert").approve(proposal.number).state == "RANDOM_ACCEPTS"
    with pytest.raises(ProtocolError, match="would change nothing, it is so by now; reject it"):
        live.acting_as("bert").approve(same.number)
    live.reject(same.number, "it is so")
    (taken,) = [e["data"] for e in live.events() if e["type"] == "random_accepts"]
    assert taken["random_accepts"] == {"A": [9, 1, 2], "B": [0, 0, 0]}
    assert taken["proposal"] == proposal.number
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
    left = live.erase(SECRET)
    assert (left.state, "scrubs the ledger" in left.why) == ("UNLINKED", True)
    assert live.erase(SECRET).repeated  # and whoever was never known
    assert "1 of them still in the files" in str(live.status())
    assert live.scrub().state == "ERASED"
    assert live.erase(SECRET).state == "ERASED"
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
    assert live.acting_as("second").approve(proposal).state == "UNLINKED"
    assert live.scrub().state == "ERASED"
    for path in Path(ledger).parent.iterdir():
        assert SECRET.encode() not in path.read_bytes(), path


def test_no_byte_of_an_erased_person_stays_in_postgresqls_tables(on_postgres: str) -> None:
    live = filled(on_postgres)
    execute(on_postgres, "ANALYZE")
    live.erase(SECRET)
    assert live.scrub().state == "ERASED"
    assert not holding(on_postgres, SECRET)


def holding(ledger: str, secret: str) -> list[Path]:
    """Return PostgreSQL's files of this database in which a text stands."""
    execute(ledger, "CHECKPOINT")
    ((data,),) = execute(ledger, "SHOW data_directory")
    own = "SELECT oid FROM pg_database WHERE datname = current_database()"
    ((number,),) = execute(ledger, own)
    files = list((Path(data) / "base" / str(number)).iterdir())
    assert len(files) > 100
    return [path for path in files if secret.encode() in path.read_bytes()]


def test_erased_is_not_said_while_a_reader_holds_the_log(ledger: str) -> None:
    live = filled(ledger)
    live.erase(SECRET)
    with closing(connect(ledger)) as reader:
        reader.run("BEGIN")
        reader.run("SELECT COUNT(*) FROM people").fetchall()
        quick = LiveAudit.open(ledger, "loans", timeout=0.2)
        left = quick.scrub()
        assert left.state == "UNLINKED"
        assert "while another program reads the ledger" in left.why
        assert quick.erase(SECRET).state == "UNLINKED"
        assert any(SECRET.encode() in p.read_bytes() for p in Path(ledger).parent.iterdir())
    assert live.scrub().state == "ERASED"
    assert not any(SECRET.encode() in p.read_bytes() for p in Path(ledger).parent.iterdir())
    live.verify()


def test_erased_is_not_said_by_who_may_not_rewrite_tables(on_postgres: str) -> None:
    live = filled(on_postgres)
    with writers_role(on_postgres) as as_writer:
        writer = LiveAudit.open(as_writer, "loans")
        assert writer.erase(SECRET).state == "UNLINKED"
        left = writer.scrub()
        assert left.state == "UNLINKED"
        assert "until its owner, postgres, scrubs the ledger" in left.why
        assert holding(on_postgres, SECRET)
        writer.close_ledger()
    assert live.scrub().state == "ERASED"
    assert not holding(on_postgres, SECRET)
    live.verify()


def test_many_are_erased_in_one_batch_and_scrubbed_once(ledger: str) -> None:
    live = filled(ledger)
    gone = [row.person for row in live.people(states=("SKIPPED", "REVEALED"))][:20]
    assert {reply.state for reply in live.run([Erase(person) for person in gone])} == {"UNLINKED"}
    assert live.status().unscrubbed == 20
    assert live.scrub().state == "ERASED"
    assert [e["data"] for e in live.events() if e["type"] == "scrubbed"] == [{"erased": 20}]
    live.verify()


# -- keys of clients ------------------------------------------------------------------------------


def test_a_late_duplicate_is_answered_from_the_record(either: str) -> None:
    live = create(either)
    first = live.pause("a holiday", key="k1")
    live.resume("back", key="k2")
    again = LiveAudit.open(either, "loans").pause("a holiday", key="k1")
    assert (again.state, again.why, again.repeated) == (first.state, first.why, True)
    assert live.status().paused is None
    live.ask("p", "B", 0, key="k3")
    live.tell("p", 0, key="k4")
    live.correct("p", 1, "a typing error", key="k5")
    live.correct("p", 0, "no, it was right")
    late = live.correct("p", 1, "a typing error", key="k5")
    assert (late.repeated, late.outcome, live.person("p").outcome) == (True, 0, 0)
    assert live.ask("p", "B", 0, key="k3").repeated
    assert [e["key"] for e in live.events() if "key" in e] == ["k1", "k2", "k3", "k4", "k5"]
    live.verify()
    live.erase("p", key="k6")
    assert live.erase("p", key="k6").repeated
    live.verify()


def test_a_key_of_an_erased_person_answers_for_nobody_else(ledger: str) -> None:
    live = create(ledger)
    for person in ("p", "q"):
        live.ask(person, "B", 0, key=f"ask {person}")
    live.tell("p", 1, key="tell")
    live.erase("p", key="erase")
    others = (
        lambda: live.tell("q", 1, key="tell"),
        lambda: live.erase("q", key="erase"),
        lambda: live.ask("r", "B", 0, key="ask p"),
        lambda: live.ask("q", "B", 0, key="ask p"),
    )
    for other in others:
        with pytest.raises(Conflict, match="was used for another command"):
            other()
    assert live.person("q").state == "RESERVED"
    assert live.person("r") is None
    assert live.tell("p", 1, key="tell").repeated  # as late as it is, it may be the same person
    live.ask("p", "A", 0)
    with pytest.raises(Conflict, match="was used for another command"):
        live.erase("p", key="erase")
    assert live.person("p").group_name == "A"
    live.verify()


def test_a_key_belongs_to_one_command(ledger: str) -> None:
    live = create(ledger)
    live.pause("a holiday", key="k1")
    live.ask("p", "A", 1, key="k2")
    with pytest.raises(Conflict, match=r"'key' 'k1' was used for another command, event 2"):
        live.resume("back", key="k1")
    with pytest.raises(Conflict, match="'key' 'k2' was used for another command"):
        live.ask("q", "A", 1, key="k2")
    replies = live.run([Pause("x", key="k9"), Resume("y", key="k8"), Pause("z", key="k8")])
    assert [reply.problem is None for reply in replies] == [True, True, False]
    live.verify()


def test_a_proposal_about_somebody_erased_since_can_only_be_rejected(ledger: str) -> None:
    live = create(ledger, approvals=("corrected",), actor="anna")
    bert = live.acting_as("bert")
    live.ask("p", "B", 0)
    live.tell("p", 1)
    number = live.correct("p", 0, "a typing error").number
    live.erase("p")
    with pytest.raises(ProtocolError, match="person 1 was erased since; reject the proposal"):
        bert.approve(number)
    assert bert.reject(number, "erased").state == "REJECTED"
    live.verify()


def test_a_conflict_uses_up_no_key(ledger: str) -> None:
    live = create(ledger)
    live.ask_many([("p", "B", 0), ("q", "B", 0)])
    live.tell("p", 1)
    for _ in range(2):
        with pytest.raises(Conflict, match="of person 'p' is stored; got 0"):
            live.tell("p", 0, key="k")
    replies = live.run([Tell("q", 1), Correct("p", 0, "as advised", key="k")])
    assert [reply.state for reply in replies] == ["REVEALED", "CORRECTED"]
    with pytest.raises(Conflict, match="'key' 'k' was used for another command"):
        live.tell("p", 0, key="k")
    live.verify()


def test_a_key_belongs_to_what_the_command_said(ledger: str) -> None:
    live = create(ledger, audit="adaptive", approvals=("corrected",), actor="anna")
    bert, files = live.acting_as("bert"), {"A": [1, 2, 3]}
    for person in "pq":
        live.ask(person, "B", 0, key=f"ask {person}")
        live.tell(person, 1, key=f"tell {person}")
    live.set_budget(9000, "more", key="money")
    live.set_limits(5, {"A": 2}, why="fewer", key="limits")
    live.set_random_accepts(files, why="a file", key="file")
    first = live.correct("p", 0, "typo", key="wrong")
    second = live.correct("q", 0, "typo", key="wrong, too")
    bert.approve(first.number, key="approved")
    seen = live.checkpoint().seq
    for otherwise in (
        lambda: live.ask("p", "A", 0, key="ask p"),
        lambda: live.ask("p", "B", 1, key="ask p"),
        lambda: live.tell("p", 0, key="tell p"),
        lambda: live.set_budget(9001, "more", key="money"),
        lambda: live.set_limits(5, {}, why="fewer", key="limits"),
        lambda: live.set_random_accepts({"A": [1, 2, 4]}, why="a file", key="file"),
        lambda: live.correct("q", 0, "typo", key="wrong"),
        lambda: bert.approve(second.number, key="approved"),
        lambda: bert.approve(second.number, key="wrong, too"),
    ):
        with pytest.raises(Conflict, match="was used for another command"):
            otherwise()
    for again in (
        live.ask("p", " B ", 0, key="ask p"),
        live.tell("p", 1, key="tell p"),
        live.set_budget(9000, "in other words", key="money"),
        live.set_limits(5, {"A": 2}, why="fewer", key="limits"),
        live.set_random_accepts({**files, "B": (0, 0, 0)}, why="a file", key="file"),
        live.correct("p", 0, "typo", key="wrong"),
        bert.approve(first.number, key="approved"),
    ):
        assert again.repeated
    assert live.checkpoint().seq == seen
    live.verify()


def test_a_proposal_is_made_once_per_key(ledger: str) -> None:
    live = create(ledger, approvals=("budget",), actor="anna")
    number = live.set_budget(900, "more", key="k1").number
    live.acting_as("bert").reject(number, "no", key="k2")
    assert live.set_budget(900, "more", key="k1").number == number
    assert live.acting_as("bert").reject(number, "no", key="k2").state == "REJECTED"
    assert live.status().proposals == ()
    live.verify()


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
