"""The cache beside the chain: the same answers with and without it, whatever is done to it."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from equipoise import evidence
from equipoise.audits.scores import Assist
from equipoise.errors import Conflict, EquipoiseError, LedgerError
from equipoise.ledger import LiveAudit, Reply, Status, state_cache
from equipoise.ledger.commands import (
    Ask,
    Conclude,
    Correct,
    MarkOverdue,
    Tell,
    Withdraw,
    WriteOff,
)
from equipoise.ledger.live import Driver
from equipoise.ledger.state import AuditState
from equipoise.ledger.verify import canonical, digest, verify
from equipoise.ledger.waiting import MIN_TURNED_AWAY
from equipoise.protocol import Want
from equipoise.question import Costs, Question, Verdict
from equipoise.report import Report
from tests.conformance.ledgers import WORLD, create, people, run, writers_role
from tests.profiles import quick

CACHE_EVERY = 15  # events, so that audits of a hundred people have a cache
OPEN_QUESTION = Question(gamma=0.2656, epsilon=0.02)  # the truth is between both answers: no end
N_AUDITS = quick(4, full=300)
N_CHANGES = quick(12, full=1000)
N_VERIFIED = quick(4, full=1000)  # forged states of which `verify` is asked


@pytest.fixture(autouse=True)
def _cache_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_cache, "EVENTS_BEFORE_CACHING", CACHE_EVERY)


@contextmanager
def opened(ledger: str, *, cached: bool = True) -> Iterator[LiveAudit]:
    """Open the audit as a program does that starts, with the cache or without it."""
    live = LiveAudit.open(ledger, "loans")
    live._driver._uses_cache = cached
    yield live
    live.close_ledger()


def is_cached(live: LiveAudit) -> bool:
    """Whether the state of a handle rests on the cache."""
    return not live._driver.read(lambda state: state.is_from_chain)


def status_without_cache(ledger: str) -> Status:
    with opened(ledger, cached=False) as live:
        assert not is_cached(live)
        return live.status()


def read_row(ledger: str) -> tuple[Any, ...]:
    with closing(sqlite3.connect(ledger)) as database:
        row: tuple[Any, ...] = database.execute(
            "SELECT seq, hash, edition, digest, body FROM state_cache WHERE audit_id = 1"
        ).fetchone()
        return row


def write_row(ledger: str, row: tuple[Any, ...]) -> None:
    with closing(sqlite3.connect(ledger)) as database, database:
        database.execute(
            "UPDATE state_cache SET seq = ?, hash = ?, edition = ?, digest = ?, body = ? "
            "WHERE audit_id = 1",
            row,
        )


def forge(ledger: str, change: Any) -> None:
    """Change the data of the cache and bind it again, as somebody would who knows how."""
    seq, event_hash, edition, _, body = read_row(ledger)
    data = json.loads(body)
    change(data)
    forged = canonical(data)
    with closing(sqlite3.connect(ledger)) as database:
        (uid,) = database.execute("SELECT uid FROM audits WHERE id = 1").fetchone()
    bound = digest(state_cache._binding(uid, seq, event_hash, forged))
    write_row(ledger, (seq, event_hash, edition, bound, forged))


def test_a_program_that_starts_takes_the_state_from_the_cache(either: str) -> None:
    live = create(either, audit="adaptive")
    run(live, 60, share_told=0.6)
    live.close_ledger()
    with opened(either) as again:
        assert again.status() == status_without_cache(either)
        assert is_cached(again)
        again.ask("somebody new", "A", 0)
    with opened(either) as later:
        assert is_cached(later)
        assert later.verify().statistics == "repeated, every decision made anew"
        assert later.status() == status_without_cache(either)


def test_a_writer_without_the_right_to_make_tables_uses_the_cache(on_postgres: str) -> None:
    run(create(on_postgres, audit="adaptive"), 30)
    with writers_role(on_postgres) as ledger:
        with opened(ledger) as live:
            for number in range(2 * CACHE_EVERY):
                live.ask(f"new {number}", "A", 0)
        with opened(ledger) as live:
            live.status()
            assert is_cached(live)


Batches = list[list[Any]]
"""Commands of an audit, in the blocks in which they were sent."""


def begin_random(ledger: str, seed: int) -> LiveAudit:
    rng = random.Random(seed)
    options: dict[str, Any] = {"audit": rng.choice(["adaptive", "adaptive", "rs", "baseline"])}
    if rng.random() < 0.3:
        options["budget"] = rng.randrange(500, 4000)
    if rng.random() < 0.3:
        options["lottery"] = 0.7
    if rng.random() < 0.3:
        options["max_in_flight"] = rng.randrange(5, 20)
    return create(ledger, seed=f"{seed:064x}", **options)


def random_audit(ledger: str, seed: int) -> tuple[LiveAudit, Batches]:
    """Return an audit with outcomes that are pending, withdrawn, late, noted and corrected."""
    live = begin_random(ledger, seed)
    rng = random.Random(-seed)
    sent: Batches = []
    arrivals: list[Any] = []
    waiting: list[str] = []
    told: list[tuple[str, int]] = []

    def send(*commands: Any) -> list[Reply]:
        sent.append(list(commands))
        return [reply for reply in live.results(commands) if isinstance(reply, Reply)]

    for person, group, decision, _ in people(rng.randrange(30, 90), seed):
        arrivals.append(Ask(person, group, decision))
        if len(arrivals) == 10:
            waiting += [reply.person for reply in send(*arrivals) if reply.want is Want.LABEL]
            arrivals = []
        if waiting and rng.random() < 0.6:
            chosen = waiting.pop(rng.randrange(len(waiting)))
            outcome = rng.randrange(2)
            way = rng.random()
            if way < 0.7:
                send(Tell(chosen, outcome))
                told.append((chosen, outcome))
            elif way < 0.85:
                send(Withdraw(chosen))
            else:
                late = [Tell(chosen, outcome)] if rng.random() < 0.5 else []
                send(MarkOverdue(chosen), WriteOff(chosen), *late)
        if told and rng.random() < 0.05:
            chosen, outcome = told.pop(rng.randrange(len(told)))
            send(Correct(chosen, 1 - outcome, "typo"))
    if rng.random() < 0.2:
        send(Conclude("enough"))
    return live, sent


def repeat_one_by_one(ledger: str, seed: int, batches: Batches) -> Status:
    """Send the same commands one at a time, half of them by a program that starts anew."""
    commands = [command for batch in batches for command in batch]
    middle = len(commands) // 2
    live = begin_random(ledger, seed)
    for command in commands[:middle]:
        live.results([command])
    live.close_ledger()
    with opened(ledger) as again:
        for command in commands[middle:]:
            again.results([command])
        return again.status()


def result_of(status: Status) -> tuple[Any, ...]:
    """Return the verdict, the money, and what became of the people of every group."""
    finding = None if status.finding is None else status.finding.verdict
    return finding, status.spent, status.reserved, status.overrun, status.groups


def assert_same_status(live: LiveAudit, replayed: Status) -> None:
    """Compare statuses; one from the cache has the ranges of a verdict as they were recorded."""
    cached = live.status()
    assert result_of(cached) == result_of(replayed)
    if cached.finding is not None and replayed.finding is not None:
        assert cached.finding.cost == replayed.finding.cost
    if live._driver.read(lambda state: state.has_steps_since_verdict):
        cached = replace(cached, finding=replayed.finding)
    assert cached == replayed


def test_random_audits_are_the_same_with_and_without_a_cache(tmp_path: Path) -> None:
    n_cached = 0
    for seed in range(N_AUDITS):
        ledger = f"{tmp_path}/{seed}.db"
        live, batches = random_audit(ledger, seed)
        in_one_go = live.status()
        live.close_ledger()
        replayed = status_without_cache(ledger)
        assert in_one_go.finding == replayed.finding
        assert result_of(in_one_go) == result_of(replayed)
        one_by_one = repeat_one_by_one(f"{tmp_path}/{seed}-single.db", seed, batches)
        assert result_of(one_by_one) == result_of(replayed)
        with opened(ledger) as again:
            assert_same_status(again, replayed)
            n_cached += is_cached(again)
            replies = [again.ask(f"new {i}", "AB"[i % 2], 0) for i in range(4)]
            events = [canonical(event["data"]) for event in again.events(after=replayed.events)]
        with opened(ledger) as again:
            assert again.verify().seq == replayed.events + len(events)
        assert all(reply.number for reply in replies)
    assert n_cached > 0.8 * N_AUDITS


def test_a_cache_that_was_damaged_is_ignored(ledger: str) -> None:
    live = create(ledger, audit="adaptive")
    run(live, 80, share_told=0.5)
    live.close_ledger()
    expected = status_without_cache(ledger)
    whole = read_row(ledger)
    rng = random.Random(0)
    for _ in range(N_CHANGES):
        write_row(ledger, damaged(whole, rng))
        with opened(ledger) as again:
            assert again.status() == expected
    write_row(ledger, whole)
    with opened(ledger) as again:
        assert again.status() == expected
        assert is_cached(again)


def damaged(row: tuple[Any, ...], rng: random.Random) -> tuple[Any, ...]:
    """Return a row of the cache with one value changed at random."""
    values = list(row)
    column = rng.randrange(len(values))
    value = values[column]
    if isinstance(value, int):
        values[column] = rng.choice([value + 1, value - 1, -1, 0, 2**60, "x", b"\xff"])
        return tuple(values)
    position = rng.randrange(len(value))
    ways = (
        value[:position],
        value[:position] + chr(rng.randrange(32, 127)) + value[position + 1 :],
        value[:position] + "\u00e9" + value[position:],
        value + value,
        b"\x00\xff",
        17,
    )
    values[column] = rng.choice(ways)
    return tuple(values)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE state_cache SET body = CAST(x'7bff7d' AS TEXT)",  # no UTF-8
        "ALTER TABLE state_cache RENAME COLUMN hash TO event_hash",
        "DROP INDEX events_rare",
        "DROP INDEX people_open",
    ],
)
def test_a_cache_that_the_database_cannot_read_is_ignored(ledger: str, change: str) -> None:
    live = create(ledger, audit="adaptive")
    run(live, 40, share_told=0.5)
    live.close_ledger()
    with closing(sqlite3.connect(ledger)) as database, database:
        database.execute(change)
    with opened(ledger) as again:
        assert again.status() == status_without_cache(ledger)
        assert again.ask("somebody new", "A", 0).number == 41
        assert again.verify().seq == again.status().events


def test_an_audit_that_waits_for_a_group_says_so_from_the_cache(ledger: str) -> None:
    live = LiveAudit.create(ledger, "loans", WORLD.past(None, 0), OPEN_QUESTION, Costs(5, 100))
    live.tell(live.ask("first of B", "B", 0).person, 1)
    live.ask_many((f"a {number}", "A", 0) for number in range(20))
    live.tell_many((f"a {number}", number % 2) for number in range(20))
    live.ask_many((f"more {number}", "A", 0) for number in range(2 * MIN_TURNED_AWAY))
    waiting = live.waiting()
    assert [group.group for group in waiting] == ["B"]
    live.close_ledger()
    with opened(ledger) as again:
        assert again.waiting() == waiting
        assert is_cached(again)


def test_random_changes_that_are_bound_again_crash_nothing_and_are_named(ledger: str) -> None:
    live = create(ledger, audit="adaptive", max_in_flight=30)
    run(live, 80, share_told=0.5)
    live.close_ledger()
    expected = status_without_cache(ledger)
    assert expected.finding is not None
    whole = read_row(ledger)
    rng = random.Random(1)
    for number in range(N_CHANGES):
        write_row(ledger, whole)
        forge(ledger, lambda data: change_at_random(data, rng))
        is_changed = read_row(ledger) != whole
        with opened(ledger) as again:
            status = again.status()
            assert status.finding is not None
            verdict = status.finding.verdict
            assert verdict == expected.finding.verdict
            assert (status.spent, status.reserved, status.cap) == (
                *(expected.spent, expected.reserved, expected.cap),
            )
            assert again.so_far().verdict == verdict
        if number < N_VERIFIED and is_changed:
            assert_named(ledger)


def scored_audit(ledger: str) -> None:
    """Store an audit that scores assist, with prices of its people."""
    options = {"assist": Assist(max_price=400)}
    live = create(ledger, audit="adaptive", question=OPEN_QUESTION, options=options)
    rng = random.Random(3)
    waiting: list[tuple[str, int]] = []
    for person, group, decision, outcome in people(80, 1):
        score = rng.gauss(outcome, 1)
        price = rng.randrange(50, 400)
        reply = live.ask(person, group, decision, score=score, price=price, version="m")
        if reply.want is Want.LABEL:
            waiting.append((person, outcome))
        if len(waiting) > 5:
            live.tell(*waiting.pop(0))
    live.close_ledger()


def audit_with_random_accepts(ledger: str) -> None:
    """Store an audit with files of a test programme between its people."""
    live = create(ledger, audit="adaptive", question=OPEN_QUESTION)
    run(live, 40, share_told=0.8)
    live.set_random_accepts({"A": [10, 5, 3], "B": [5, 5, 2]}, why="May")
    live.ask_many((f"May {number}", "AB"[number % 2], 0) for number in range(20))
    live.tell_many((f"May {number}", number % 2) for number in range(10))
    live.set_random_accepts({"A": [30, 15, 3], "B": [15, 15, 7]}, why="June")
    live.ask_many((f"June {number}", "AB"[number % 2], 0) for number in range(2 * CACHE_EVERY))
    live.close_ledger()


@pytest.mark.parametrize("make", [scored_audit, audit_with_random_accepts])
def test_random_changes_of_what_few_audits_have_crash_nothing(
    ledger: str, make: Callable[[str], None]
) -> None:
    make(ledger)
    score: dict[str, Any] = {}
    if make is scored_audit:
        score = {"score": 0.3, "price": 100, "version": "m"}
    whole = read_row(ledger)
    rng = random.Random(4)
    for number in range(N_CHANGES // 2):
        write_row(ledger, whole)
        forge(ledger, lambda data: change_at_random(data, rng))
        if number % 3 == 0 and read_row(ledger) != whole:
            assert_named(ledger)
            continue
        with opened(ledger) as again:
            assert again.status().finding is None
            again.ask(f"new {number}", "AB"[number % 2], 0, **score)
            assert again.so_far().verdict is Verdict.INCONCLUSIVE
            assert set(again.good_shares()) == {"A", "B"}
            again.waiting()
    write_row(ledger, whole)
    with opened(ledger) as again:
        verify(f"{line}\n".encode() for line in again.lines())  # the rules without statistics


def assert_named(ledger: str) -> None:
    """Check that ``verify`` and ``status`` say that the cache differs from the chain."""
    with opened(ledger) as again:
        with pytest.raises(LedgerError, match="state cached at event"):
            again.verify()
        status = again.status()
        assert status.cache_differs_at == read_row(ledger)[0]
        assert "CACHE" in str(status)


def change_at_random(data: Any, rng: random.Random) -> None:
    """Change one value somewhere in JSON data."""
    while True:
        keys = list(data) if isinstance(data, dict) else list(range(len(data)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(data[key], dict | list) and data[key] and rng.random() < 0.9:
            data = data[key]
            continue
        old = data[key]
        changes: list[Any] = [None, -1, 10**20, "x", [], {}, True, 0.5]
        if isinstance(old, int) and not isinstance(old, bool):
            changes += [old + 1, max(old - 1, 0)] * 8
        if isinstance(old, str):
            changes += ["A", "B", "NOTHING", "LABEL"]
        if isinstance(data, list):
            changes.append(data[-1])
        data[key] = rng.choice(changes)
        return


def swap_outcomes(data: Any) -> None:
    """Exchange a good outcome of one group with a bad one of the other; the money stays."""
    told = [step for step in data["steps"] if step[2] is not None]
    group_of = {index: ticket[1] for index, ticket in enumerate(data["tickets"])}
    good = next(step for step in told if step[2] == 1 and group_of[step[1]] == "A")
    bad = next(step for step in told if step[2] == 0 and group_of[step[1]] == "B")
    good[2], bad[2] = 0, 1
    for group, change in (("A", 1), ("B", -1)):
        tally = data["groups"][group]
        tally[4] -= change
        tally[5] += change
        tally[6] += 100 * change


def test_a_forged_state_is_named_and_gives_no_verdict(ledger: str) -> None:
    live = LiveAudit.create(ledger, "loans", WORLD.past(None, 0), OPEN_QUESTION, Costs(5, 100))
    run(live, 60, share_told=0.8)
    live.close_ledger()
    forge(ledger, swap_outcomes)
    with opened(ledger) as again:
        assert again.status().finding is None
        assert is_cached(again)  # it fits all that can be seen at a glance
        with pytest.raises(LedgerError, match="state cached at event"):
            again.verify()
        again.conclude("enough")  # a verdict is stored: the chain is replayed first
        assert not is_cached(again)
        status = again.status()
    assert status == status_without_cache(ledger)
    assert status.finding is not None
    with closing(sqlite3.connect(ledger)) as database, database:
        database.execute("DELETE FROM state_cache")
    with opened(ledger) as again:
        assert again.verify().verdict == status.finding.verdict.value


def test_a_verdict_is_stored_by_a_state_of_the_chain_alone(
    ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = create(ledger, audit="adaptive", question=OPEN_QUESTION)
    run(live, 40, share_told=0.8)
    live.close_ledger()
    recorded: list[bool] = []
    original = AuditState.apply

    def apply(self: AuditState, event: Any, event_hash: str, **more: Any) -> Any:
        if event["type"] == "verdict" and more:
            recorded.append(self.is_from_chain)
        return original(self, event, event_hash, **more)

    monkeypatch.setattr(AuditState, "apply", apply)
    with opened(ledger) as again:
        again.status()
        assert is_cached(again)
        again.conclude("enough")
        assert again.finding is not None
    assert recorded == [True]


@pytest.mark.parametrize("source", ["audit", "chain", "edition"])
def test_a_cache_of_something_else_is_ignored(
    ledger: str, tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, seed in ((ledger, 1), (f"{tmp_path}/other.db", 2)):
        live = create(place, audit="adaptive", seed=f"{1:064x}")
        run(live, 80, seed=seed, share_told=0.5)
        live.close_ledger()
    expected = status_without_cache(ledger)
    if source == "edition":
        monkeypatch.setattr(evidence, "EDITION", 10**6)
        with opened(ledger) as again:
            assert again.status().edition != 10**6
            assert not is_cached(again)
        return
    seq, event_hash, edition, bound, body = read_row(f"{tmp_path}/other.db")
    write_row(ledger, (seq, event_hash, edition, bound, body))
    if source == "chain":  # bound to an event of this audit, as far as one can
        forge(ledger, lambda data: None)
    with opened(ledger) as again:
        assert replace(again.status(), cache_differs_at=None) == expected
        assert not is_cached(again)
        if source == "audit":
            again.verify()
    if source == "chain":
        assert_named(ledger)


def concluded_audit(ledger: str) -> Report:
    """Conclude an audit without an answer, go on until that is cached; return its report."""
    live = LiveAudit.create(ledger, "loans", WORLD.past(None, 0), OPEN_QUESTION, Costs(5, 100))
    run(live, 120, share_told=0.8)
    told = live.people(states=("REVEALED",))[0]
    with pytest.raises(Conflict):
        live.tell(str(told.person), 1 - int(told.outcome or 0))
    live.conclude("enough")
    live.ask_many((f"later {number}", "A", 0) for number in range(CACHE_EVERY + 5))
    report = Report.of(live, evidence=())
    live.close_ledger()
    return report


def falsify(data: Any) -> None:
    """Change outcomes, who did what, and that an outcome was contradicted."""
    for _ in range(4):
        swap_outcomes(data)
    data["contradicted"] = []
    data["acts"] = {"somebody else": {"asked": 1}}


def test_a_forged_state_reaches_no_report_and_does_not_vanish_after_it(ledger: str) -> None:
    expected = concluded_audit(ledger)
    forge(ledger, falsify)
    with opened(ledger) as again:
        assert again.status().finding == expected.finding
    with opened(ledger) as again:
        report = Report.of(again, evidence=())
        assert report.finding == expected.finding
        assert replace(report.status, cache_differs_at=None) == expected.status
        assert report.status.conflicts == len(again.people(conflicted=True)) == 1
        assert report.sensitivity == expected.sensitivity
        assert report.spending == expected.spending
        again.ask_many((f"much later {number}", "A", 0) for number in range(2 * CACHE_EVERY))
    assert_named(ledger)
    with closing(sqlite3.connect(ledger)) as database, database:
        database.execute("DELETE FROM state_cache")
    with opened(ledger) as again:
        assert again.verify().verdict == "INCONCLUSIVE"
        assert again.status().cache_differs_at is None


def test_a_forged_state_that_leads_to_the_same_verdict_shows_no_other_ranges(ledger: str) -> None:
    expected = concluded_audit(ledger)

    def forge_later_answers(data: Any) -> None:
        falsify(data)
        data["steps_before_verdict"] -= 5

    for change in (falsify, forge_later_answers):
        whole = read_row(ledger)
        forge(ledger, change)
        with opened(ledger) as again:
            assert again.status().finding == expected.finding
        assert_named(ledger)
        write_row(ledger, whole)


def test_a_program_that_goes_on_does_not_store_over_a_forged_state(ledger: str) -> None:
    live = create(ledger, audit="adaptive", question=OPEN_QUESTION)
    run(live, 60, share_told=0.8)
    live._driver.wait_for_cache()
    forge(ledger, swap_outcomes)
    forged = read_row(ledger)
    for number in range(4):
        live.ask_many((f"{number}-{i}", "A", 0) for i in range(CACHE_EVERY))
        live._driver.wait_for_cache()
    assert read_row(ledger)[0] == forged[0]
    assert_named(ledger)


def test_programs_leave_the_cache_to_the_one_that_keeps_it(
    ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed: list[Driver] = []
    original = Driver.replay

    def replay(self: Driver, **options: Any) -> AuditState:
        replayed.append(self)
        return original(self, **options)

    programs = [create(ledger, audit="adaptive"), LiveAudit.open(ledger, "loans")]
    programs[1].status()
    monkeypatch.setattr(Driver, "replay", replay)
    for number in range(4 * CACHE_EVERY):
        programs[number % 2].ask(f"p{number}", "A", 0)
        programs[number % 2]._driver.wait_for_cache()
    assert not replayed
    assert read_row(ledger)[0] > 3 * CACHE_EVERY


def test_rules_never_rest_on_the_cache(ledger: str) -> None:
    """Nothing that a forged cache leads to makes an event that the chain refuses."""
    live = create(ledger, audit="adaptive", max_in_flight=5, lottery=0.9)
    run(live, 60, share_told=0.3)
    live.pause("a holiday")
    live.close_ledger()
    whole = read_row(ledger)
    rng = random.Random(2)
    for number in range(N_CHANGES):
        write_row(ledger, whole)
        forge(ledger, lambda data: change_at_random(data, rng))
        with opened(ledger) as again:
            try:
                again.ask(f"new {number}", rng.choice("AB"), rng.randrange(2))
            except EquipoiseError as error:  # pragma: no cover
                pytest.fail(f"a forged cache refused a person: {error}")
    write_row(ledger, whole)
    with opened(ledger) as again:
        again.verify()


def test_a_ledger_of_an_older_version_gets_its_cache(ledger: str) -> None:
    live = create(ledger, audit="adaptive")
    run(live, 40)
    live.close_ledger()
    with closing(sqlite3.connect(ledger)) as database, database:
        database.execute("DROP TABLE state_cache")
        database.execute("DROP INDEX events_rare")
        database.execute("DROP INDEX people_place")
        database.execute("DROP INDEX people_request")
    for is_second in (False, True):
        with opened(ledger) as again:
            again.status()
            assert is_cached(again) is is_second
            assert again.verify().seq == again.status().events
