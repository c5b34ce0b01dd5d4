"""What a live audit promises, over every database."""

from __future__ import annotations

import random
import shlex
from datetime import UTC, datetime, timedelta

import pytest

from equipoise.cli.replies import describe_reply, with_scrub_command
from equipoise.errors import Conflict, InvalidInput, ProtocolError, UnknownName
from equipoise.ledger import LiveAudit, list_audits
from equipoise.ledger.commands import Correct
from equipoise.ledger.database import Connection
from equipoise.messages.shell import describe_refusal
from equipoise.protocol import Want
from equipoise.question import Verdict
from tests.conformance.ledgers import COSTS, create, people, run

DENIED_B = ("person", "B", 0)
HOLD_B = 210


def test_asking_again_returns_the_stored_decision(either: str) -> None:
    live = create(either)
    first = live.ask(*DENIED_B)
    again = LiveAudit.open(either, "loans").ask(*DENIED_B)
    assert (first.want, first.hold, first.request) == (Want.LABEL, HOLD_B, 0)
    assert not first.repeated
    assert again.repeated
    assert (again.want, again.hold, again.request) == (first.want, first.hold, first.request)
    assert live.status().people == 1


def test_asking_with_other_facts_is_an_error(ledger: str) -> None:
    live = create(ledger)
    live.ask(*DENIED_B)
    with pytest.raises(Conflict, match="was asked about as group 'B', denied; got 'A', denied"):
        live.ask("person", "A", 0)
    with pytest.raises(Conflict, match="got 'B', approved"):
        live.ask("person", "B", 1)
    assert live.person("person").group_name == "B"


def test_bad_facts_are_refused_and_leave_no_trace(ledger: str) -> None:
    live = create(ledger)
    before = live.checkpoint()
    with pytest.raises(UnknownName, match="unknown group 'C'"):
        live.ask("x", "C", 0)
    with pytest.raises(InvalidInput, match="'decision' must be 0 or 1; got 2"):
        live.ask("x", "A", 2)
    with pytest.raises(InvalidInput, match="printable"):
        live.ask("a\nb", "A", 0)
    with pytest.raises(InvalidInput, match="person 'ghost' is unknown"):
        live.tell("ghost", 1)
    live.ask(*DENIED_B)
    with pytest.raises(InvalidInput, match="'outcome' must be 0 or 1; got 7"):
        live.tell("person", 7)
    assert live.checkpoint().seq == before.seq + 1


def test_telling_twice_is_free_and_telling_otherwise_is_a_recorded_conflict(ledger: str) -> None:
    live = create(ledger)
    live.ask(*DENIED_B)
    assert live.tell("person", 1).state == "REVEALED"
    assert live.tell("person", 1).repeated
    for _ in range(2):
        with pytest.raises(Conflict, match=r"outcome 1 \(good\) of person 'person' is stored"):
            live.tell("person", 0)
    status = live.status()
    assert status.conflicts == 1
    assert status.spent == COSTS.of("B").feature
    assert [row.person for row in live.people(conflicted=True)] == ["person"]
    live.verify()


def test_a_correction_settles_a_conflict(ledger: str) -> None:
    live = create(ledger)
    for name, decision in (("asked", 0), ("noted", 1), ("open", 0)):
        live.ask(name, "B", decision)
        live.tell(name, 1)
        with pytest.raises(Conflict):
            live.tell(name, 0)
    for name in ("asked", "noted"):
        live.correct(name, 0, "the second report is right")
        with pytest.raises(Conflict):  # the first file once more: nothing new, nothing to do
            live.tell(name, 1)
    for handle in (live, LiveAudit.open(ledger, "loans")):
        assert handle.status().conflicts == 1
        assert [row.person for row in handle.people(conflicted=True)] == ["open"]
    assert "1 contradicted" in str(live.status())
    live.correct("open", 0, "this one, too")
    assert "contradicted" not in str(live.status())
    live.verify()


def test_advice_can_be_pasted_into_a_shell(ledger: str) -> None:
    live = create(ledger, "loans & more")
    live.ask("Anna B; rm *", "B", 1)
    live.tell("Anna B; rm *", 1)
    with pytest.raises(Conflict) as refusal:
        live.tell("Anna B; rm *", 0)
    assert "correct('Anna B; rm *', 0, why)" in str(refusal.value)
    assert refusal.value.refusal is not None
    assert refusal.value.refusal.code == "outcome-conflict"
    advice = describe_refusal(refusal.value.refusal).partition("equipoise ")[2]
    words = ["audit", "correct", "loans & more", "Anna B; rm *", "bad", "--why", "REASON"]
    assert shlex.split(advice) == words
    reply = live.erase("Anna B; rm *")
    text = with_scrub_command(live, reply, describe_reply(reply)).text
    assert isinstance(text, str)
    assert text.endswith("equipoise audit scrub 'loans & more'")


def test_money_follows_the_states(either: str) -> None:
    live = create(either)

    def money() -> tuple[int, int]:
        status = live.status()
        return status.spent, status.reserved

    for name in ("good", "bad", "refused", "lost"):
        live.ask(name, "B", 0)
    assert money() == (0, 4 * HOLD_B)
    live.executed("good")
    live.tell("good", 1)
    assert money() == (10, 3 * HOLD_B)
    live.tell("bad", 0)
    assert money() == (10 + HOLD_B, 2 * HOLD_B)
    live.withdraw("refused")
    assert money() == (10 + HOLD_B, HOLD_B)
    live.executed("lost")
    live.overdue(days=0)
    assert live.person("lost").state == "OVERDUE"
    assert money() == (10 + HOLD_B, HOLD_B)
    live.write_off("lost")
    assert money() == (10 + 2 * HOLD_B, 0)
    live.tell("lost", 1)
    assert money() == (20 + HOLD_B, 0)
    live.verify()


def test_states_allow_only_what_the_diagram_shows(ledger: str) -> None:
    live = create(ledger)
    live.ask(*DENIED_B)
    with pytest.raises(ProtocolError, match=r"cannot be written off: .* must be 'outcome overdue'"):
        live.write_off("person")
    with pytest.raises(ProtocolError, match="tell it instead"):
        live.correct("person", 1, "typo")
    live.executed("person")
    assert live.executed("person").repeated
    with pytest.raises(ProtocolError, match=r"cannot be withdrawn: .* must be 'outcome requested'"):
        live.withdraw("person")
    live.tell("person", 0)
    with pytest.raises(ProtocolError, match=r"cannot be withdrawn: .* must be 'outcome requested'"):
        live.withdraw("person")


def test_an_outcome_may_come_before_the_message_that_it_was_carried_out(ledger: str) -> None:
    live = create(ledger)
    live.ask(*DENIED_B)
    live.tell("person", 0)
    assert live.executed("person").state == "REVEALED"
    live.verify()


def test_outcomes_that_nobody_asked_for_are_stored_and_cost_nothing(ledger: str) -> None:
    live = create(ledger, max_in_flight=1)
    live.ask("first", "A", 0)
    skipped = live.ask("second", "A", 0)
    assert (skipped.state, skipped.why) == ("SKIPPED", "in_flight")
    live.tell("second", 0)
    live.withdraw("first")
    live.tell("first", 1)
    assert live.status().spent == 0
    assert live.status().late == 0
    assert live.person("first").state == "WITHDRAWN"
    live.verify()


def test_a_correction_is_a_new_event_that_changes_statistics_and_money(ledger: str) -> None:
    live = create(ledger)
    live.ask(*DENIED_B)
    live.tell("person", 0)
    before = live.checkpoint()
    reply = live.correct("person", 1, "the bank mixed up two files")
    assert (reply.state, reply.outcome) == ("CORRECTED", 1)
    assert live.checkpoint().seq == before.seq + 1
    assert live.status().spent == COSTS.of("B").feature
    assert live.status().groups["B"].positive == 1
    assert live.correct("person", 1, "again").repeated
    live.correct("person", 0, "no, it was right")
    assert live.status().spent == HOLD_B
    live.verify(checkpoints=[(before.seq, before.hash)])


def test_a_correction_beyond_the_cap_is_reported_apart(ledger: str) -> None:
    live = create(ledger, budget=HOLD_B + 10)
    live.ask("one", "B", 0)
    live.tell("one", 1)
    assert live.ask("two", "B", 0).want is Want.LABEL
    live.correct("one", 0, "it failed after all")
    status = live.status()
    assert status.spent + status.reserved == HOLD_B + 10
    assert status.overrun == HOLD_B - 10
    live.tell("two", 1)
    live.verify()


def test_the_verdict_is_recorded_and_can_be_superseded(ledger: str) -> None:
    live = create(ledger)
    run(live, 600)
    first = live.finding
    assert first is not None
    assert first.verdict in (Verdict.FAIR, Verdict.UNFAIR)
    assert live.ask("after", "A", 0).why == "decided"
    swapped = [
        Correct(row.person, 1 - row.outcome, "columns were swapped")
        for row in live.people(states=("REVEALED",))
        if row.group_name == "B" and row.decision == 0
    ]
    assert not any(reply.problem for reply in live.run(swapped))
    second = live.finding
    assert second is None or second.verdict is not first.verdict
    assert live.status().taken_back == (first.verdict,)
    assert f"earlier     {first.verdict} was reached before" in str(live.status())
    live.verify()


def test_late_outcomes_supersede_an_inconclusive_end(ledger: str) -> None:
    live = create(ledger)
    run(live, 600, share_told=0.2)
    waiting = {row.person for row in live.people(states=("RESERVED",))}
    finding = live.conclude()
    assert finding is not None
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert live.ask("late", "A", 0).why == "concluded"
    outcomes = [(person, outcome) for person, _, _, outcome in people(600) if person in waiting]
    assert not any(reply.problem for reply in live.tell_many(outcomes))
    assert live.finding.verdict is not Verdict.INCONCLUSIVE
    assert live.status().late == len(outcomes)
    live.verify()


def test_the_cap_is_never_exceeded_and_the_budget_ends_the_audit(ledger: str) -> None:
    live = create(ledger, budget=1000)
    for person, group, decision, outcome in people(120):
        reply = live.ask(person, group, decision)
        status = live.status()
        assert status.spent + status.reserved <= 1000
        if reply.want is Want.LABEL:
            live.tell(person, outcome)
    assert live.finding.verdict is Verdict.INCONCLUSIVE
    assert "budget" in live.finding.reason
    live.verify()


def test_requests_in_flight_are_limited_per_audit_and_group(ledger: str) -> None:
    live = create(ledger, max_in_flight=3, max_in_flight_groups={"B": 1})
    replies = live.ask_many([(f"{g}{i}", g, 0) for i in range(4) for g in "AB"])
    wanted = [reply.person for reply in replies if reply.want is Want.LABEL]
    assert wanted == ["A0", "B0", "A1"]
    live.tell("B0", 1)
    assert live.ask("B9", "B", 0).want is Want.LABEL
    live.verify()


def test_the_lottery_gives_the_same_people_in_any_order(ledger: str) -> None:
    drawn = people(120)
    chosen = []
    for name in ("forward", "backward"):
        live = create(ledger, name, lottery=0.3, seed="ab" * 32)
        order = drawn if name == "forward" else drawn[::-1]
        replies = live.ask_many([row[:3] for row in order])
        chosen.append({reply.person for reply in replies if reply.why != "lottery"})
        live.verify()
    assert chosen[0] == chosen[1]
    assert 15 <= len(chosen[0]) <= 60


def test_many_at_once_report_each_row_and_let_the_rest_in(ledger: str) -> None:
    live = create(ledger)
    replies = live.ask_many([("a", "A", 0), ("b", "nowhere", 0), ("a", "A", 1), ("c", "B", 0)])
    assert [reply.problem is None for reply in replies] == [True, False, False, True]
    told = live.tell_many([("a", 1), ("ghost", 0), ("c", 0)])
    assert [reply.problem is None for reply in told] == [True, False, True]


def test_programs_that_take_turns_agree(either: str) -> None:
    create(either)
    programs = [LiveAudit.open(either, "loans") for _ in range(3)]
    rng = random.Random(1)
    waiting = []
    for person, group, decision, outcome in people(150):
        if rng.choice(programs).ask(person, group, decision).want is Want.LABEL:
            waiting.append((person, outcome))
        if waiting and rng.random() < 0.7:
            rng.choice(programs).tell(*waiting.pop(rng.randrange(len(waiting))))
    states = {program.status().to_json() for program in programs}
    assert len(states) == 1
    for program in programs:
        program.verify()


@pytest.mark.parametrize("audit", ["rs", "baseline"])
def test_the_verdict_does_not_depend_on_the_order_of_messages(ledger: str, audit: str) -> None:
    rng, findings = random.Random(3), set()
    for attempt in range(2):
        live = create(ledger, f"attempt {attempt}", audit=audit, seed="cd" * 32)
        replies = live.ask_many([row[:3] for row in people(700)])
        asked = {reply.person for reply in replies if reply.want is Want.LABEL}
        outcomes = [(p, y) for p, _, _, y in people(700) if p in asked]
        messages = outcomes + rng.choices(outcomes, k=len(outcomes) // 2)
        rng.shuffle(messages)
        live.tell_many(messages)
        finding = live.finding
        findings.add((finding.verdict, finding.estimate, finding.lower, finding.upper))
        live.verify()
    assert len(findings) == 1


def test_order_is_by_number_whatever_the_clocks_say(
    ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [datetime.now(UTC) - timedelta(days=10)]
    monkeypatch.setattr(Connection, "clock", lambda _: now[0])
    live = create(ledger, overdue_after=30)
    live.ask("one", "A", 0)
    now[0] -= timedelta(days=400)
    live.ask("two", "A", 0)
    now[0] += timedelta(days=405)
    live.ask("three", "A", 0)
    times = [event["time"] for event in live.events()]
    assert times[1] > times[2] < times[3]
    assert [row.request for row in live.people()] == [0, 1, 2]
    assert [reply.person for reply in live.overdue()] == ["two"]
    live.verify()


def test_overdue_requests_are_those_older_than_the_limit(
    ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [datetime.now(UTC) - timedelta(days=100)]
    monkeypatch.setattr(Connection, "clock", lambda _: now[0])
    live = create(ledger, overdue_after=30)
    live.ask("old", "A", 0)
    now[0] += timedelta(days=29)
    live.ask("new", "A", 0)
    assert live.overdue() == []
    now[0] += timedelta(days=2)
    assert [reply.person for reply in live.overdue()] == ["old"]
    assert live.status().states == {"OVERDUE": 1, "RESERVED": 1}
    live.verify()


def test_audits_are_listed_and_names_are_unique(either: str) -> None:
    create(either, "first")
    create(either, "second")
    assert [row.name for row in list_audits(either)] == ["first", "second"]
    with pytest.raises(InvalidInput, match="exists already"):
        create(either, "first")
    with pytest.raises(UnknownName, match=r"unknown audit 'frist'\. Did you mean 'first'"):
        LiveAudit.open(either, "frist")
