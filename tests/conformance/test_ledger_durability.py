"""What the database itself guarantees, and what happens when something breaks."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from equipoise.audits.base import Audit
from equipoise.errors import LedgerError
from equipoise.evidence import Evidence
from equipoise.ledger import LiveAudit, state_cache
from equipoise.ledger import live as live_module
from equipoise.ledger.commands import Correct
from equipoise.ledger.database import Connection, connect, driver_errors
from equipoise.ledger.live import Driver
from equipoise.ledger.state import AuditState
from equipoise.ledger.store import Store
from equipoise.protocol import Want
from equipoise.question import Question
from equipoise.report import Report
from tests.conformance.ledgers import create, people, run


def execute(ledger: str, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """Run a statement as somebody would behind the ledger's back."""
    with closing(connect(ledger, 5)) as connection:
        cursor = connection.run(sql, values)
        return [] if cursor.description is None else cursor.fetchall()


def test_the_database_refuses_to_exceed_the_cap(either: str) -> None:
    create(either, budget=1000)
    with pytest.raises(driver_errors(), match="cap_not_exceeded"):
        execute(either, "UPDATE audits SET spent = 900, reserved = 101")


def test_the_database_refuses_to_change_an_event(either: str) -> None:
    create(either)
    for sql in ("UPDATE events SET body = '{}'", "DELETE FROM events"):
        with pytest.raises(driver_errors(), match="append-only"):
            execute(either, sql)


@pytest.mark.parametrize("version", [9999, 1])
def test_another_schema_is_refused(either: str, version: int) -> None:
    create(either)
    execute(either, "UPDATE ledger_schema SET version = ?", version)
    with pytest.raises(LedgerError, match=f"has schema {version}, and this program writes"):
        LiveAudit.open(either, "loans")


@pytest.mark.parametrize("version", ["two", "2", 2.5, b"2", "2; DROP TABLE events"])
def test_a_version_of_another_type_is_refused(ledger: str, version: Any) -> None:
    create(ledger)
    execute(ledger, "DROP TABLE ledger_schema")
    execute(ledger, "CREATE TABLE ledger_schema (version)")
    execute(ledger, "INSERT INTO ledger_schema VALUES (?)", version)
    with pytest.raises(LedgerError, match=r"has schema .*use the version of equipoise"):
        LiveAudit.open(ledger, "loans")


def test_a_place_without_a_ledger_is_said_to_be_one(either: str) -> None:
    with pytest.raises(LedgerError, match="no ledger"):
        LiveAudit.open(either, "loans")


def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, just some words " * 100)
    with pytest.raises(LedgerError, match=r"is not a ledger, or is damaged"):
        LiveAudit.open(str(path), "loans")


def test_files_that_hold_the_seed_are_for_their_owner_alone(ledger: str) -> None:
    live = create(ledger)
    live.ask("x", "A", 0)
    live.export(f"{ledger}.jsonl", people=f"{ledger}.people")
    for end in ("", "-wal", "-shm", ".people"):
        assert os.stat(ledger + end).st_mode & 0o777 == 0o600


# -- acknowledgements -----------------------------------------------------------------------------


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Put "before" or "after" in the list, and the next COMMIT fails there."""
    plan: list[str] = []
    honest = Connection.run

    def run_or_break(self: Connection, sql: str, values: Any = ()) -> Any:
        when = plan.pop() if sql == "COMMIT" and plan else None
        if when == "before":
            raise driver_errors()[-1]("disk I/O error")
        done = honest(self, sql, values)
        if when == "after":
            self.raw.close()
            raise driver_errors()[-1]("server closed the connection: disk I/O error")
        return done

    monkeypatch.setattr(Connection, "run", run_or_break)
    yield plan
    assert not plan


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_acknowledgement_is_said_to_be_unknown_and_repeating_is_safe(
    either: str, breaking: list[str], when: str
) -> None:
    live = create(either)
    run(live, 10)
    breaking.append(when)
    with pytest.raises(LedgerError, match=r"whether this was stored is unknown; repeat the call"):
        live.ask("x", "B", 0)
    assert live.ask("x", "B", 0).repeated is (when == "after")
    assert live.ask("x", "B", 0).want is Want.LABEL
    live.verify()


def test_a_locked_database_is_a_clear_error(either: str) -> None:
    create(either)
    holder = Store(either)
    waiting = LiveAudit.open(either, "loans", timeout=0.2)
    with (
        holder.write(waiting.row.id),
        pytest.raises(LedgerError, match=r"locked by others for 0.2 s; nothing was stored"),
    ):
        waiting.ask("x", "B", 0)
    assert not waiting.ask("x", "B", 0).repeated


# -- rebuilding ----------------------------------------------------------------------------------


def counting_replays(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note the length of every replay of statistics."""
    found: list[int] = []
    honest = Audit.restore

    def noted(self: Audit, log: Any) -> None:
        found.append(len(log))
        honest(self, log)

    monkeypatch.setattr(Audit, "restore", noted)
    return found


def test_nothing_in_the_ledger_can_run_what_it_reads() -> None:
    for path in Path(live_module.__file__).parent.glob("*.py"):
        text = path.read_text()
        assert not any(
            word in text for word in ("pickle", "marshal", "eval(", "exec(", 'getattr(self, f"')
        )


@pytest.mark.parametrize("late", [False, True])
def test_statistics_are_rebuilt_once_after_an_answer_was_revised(
    ledger: str, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    live = create(ledger)
    run(live, 60, share_told=0.8)
    found = counting_replays(monkeypatch)
    if late:
        person = live.people(states=("RESERVED",))[0].person
        live.overdue(days=0)
        live.write_off(person)
        live.tell(person, 1)
    else:
        row = live.people(states=("REVEALED",))[0]
        live.correct(row.person, 1 - row.outcome, "typo")
    live.ask("next", "A", 0)
    assert sum(length > 60 for length in found) == 1  # once, however many answers were revised
    live.verify()


def test_an_adaptive_audit_takes_a_correction_in_place(
    ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = create(ledger, audit="adaptive")
    run(live, 120, share_told=0.8)
    found = counting_replays(monkeypatch)
    for row in live.people(states=("REVEALED",))[:5]:
        live.correct(row.person, 1 - row.outcome, "typo")
    live.ask("next", "A", 0)
    assert found
    assert max(found) == 1  # nobody waits for a rebuild
    live.verify()


def test_many_corrections_are_weighed_once_and_as_one_by_one(
    ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, looks = [], []
    for name, at_once in (("one", False), ("all", True)):
        live = create(ledger, name, audit="adaptive", question=Question(gamma=0.3, epsilon=0.1))
        run(live, 80)
        wrong = [Correct(r.person, 1 - r.outcome, "typo") for r in live.people(states="REVEALED")]
        assert len(wrong) > 20
        look = counting_replays(monkeypatch)
        for batch in [wrong] if at_once else [[one] for one in wrong]:
            assert all(reply.state == "CORRECTED" for reply in live.run(batch))
        looks.append(look.copy())
        found.append((live.so_far().to_json(), live.status().states, live.replay().spent))
        live.verify()
    assert found[0] == found[1]
    assert looks[0] == [1] * len(wrong)
    assert looks[1] == [len(wrong)]  # in place: others wait as long as for one of them


def test_a_handle_that_has_seen_more_than_the_ledger_holds_stops(ledger: str) -> None:
    live = create(ledger)
    run(live, 10)
    live.close_ledger()
    for end in ("", "-wal", "-shm"):
        if Path(ledger + end).exists():
            shutil.copy(ledger + end, f"{ledger}.replica{end}")
    run(live, 20)
    seen, behind = live.checkpoint().seq, LiveAudit.open(f"{ledger}.replica", "loans")
    live._store.close()
    live._store.url = f"{ledger}.replica"  # as if the address led to another machine now
    live._store.path = Path(live._store.url)
    for call in (lambda: live.ask("x", "A", 0), live.status):
        with pytest.raises(
            LedgerError, match=rf"seen event {seen} .* ends at event {behind.checkpoint().seq} "
        ):
            call()
    assert behind.person("x") is None
    behind.ask("x", "A", 0)  # whoever opens it anew has accepted the loss
    behind.verify()


def test_a_handle_stops_where_others_went_on_from_less_than_it_has_seen(ledger: str) -> None:
    run(create(ledger), 10)
    with sqlite3.connect(ledger) as source, sqlite3.connect(f"{ledger}.old") as copy:
        source.backup(copy)
    live = LiveAudit.open(ledger, "loans")
    live.ask("seen", "A", 0)
    seen = live.checkpoint().seq
    with sqlite3.connect(f"{ledger}.old") as copy, sqlite3.connect(ledger) as target:
        copy.backup(target)  # a replica that was behind takes over …
    other = LiveAudit.open(ledger, "loans")
    other.ask_many([(f"other {i}", "A", 0) for i in range(5)])  # … and is longer soon
    assert other.checkpoint().seq > seen
    for call in (live.status, lambda: live.ask("seen", "A", 0), lambda: live.ask("x", "A", 0)):
        with pytest.raises(LedgerError, match=rf"seen event {seen} .* has another event {seen} "):
            call()
    assert other.person("x") is None
    other.verify()


# -- many at once ---------------------------------------------------------------------------------


def test_threads_share_commits(ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    live = create(ledger)
    commits = []
    commit = Store.commit

    def counting(self: Store, connection: Connection) -> None:
        commits.append(1)
        commit(self, connection)

    monkeypatch.setattr(Store, "commit", counting)
    in_threads(8, lambda part: [live.ask(f"{part}-{p}", g, d) for p, g, d, _ in people(20, part)])
    assert live.status().people == 160
    assert len(commits) < 160
    live.verify()


BAD = ["", " ", "a\0b", "a\nb", "\ud800", "x" * 201, None, 7, ["x"], {"a": 1}, b"x", float("nan")]


def test_bad_ids_harm_nobody_else(either: str) -> None:
    live = create(either)
    refused, wrong = [], []

    def work(part: int) -> None:
        for i in range(12):
            if part % 2:
                try:
                    live.ask(BAD[i], "A", 0)
                except ValueError as error:
                    refused.append(str(error))
            elif live.ask(f"{part}-{i}", "A", 0).problem:
                wrong.append(i)

    in_threads(6, work)
    assert (len(refused), wrong) == (36, [])
    assert all("'person' must be 1 to 200 printable characters" in line for line in refused)
    rows: list[Any] = [("good", "A", 0), *((bad, "A", 0) for bad in BAD), ("fine", "A", 0)]
    rows += [("g1", "\0", 0), ("g2", ["A"], 0), ("g3", "A", 2**70), ("g4", "A", None)]
    problems = [reply.problem for reply in live.ask_many(rows)]
    assert [p is None for p in problems] == [True, *[False] * len(BAD), True, *[False] * 4]
    told = live.tell_many([("good", 1), ("a\0b", 1), ("good", 2**70), ("fine", "1")])
    assert [reply.problem is None for reply in told] == [True, False, False, False]
    live.verify()


def test_one_name_in_two_spellings_is_one_person(ledger: str) -> None:
    live = create(ledger)
    live.ask(" Zo\u00eb ", " A", 0)
    assert live.ask("Zoe\u0308", "A", 0).repeated
    assert live.person("Zoe\u0308").person == "Zo\u00eb"


def in_threads(count: int, work: Any) -> None:
    """Run ``work(0)``, ``work(1)``, … at the same moment."""
    start, failed = threading.Barrier(count), []

    def one(part: int) -> None:
        start.wait()
        try:
            work(part)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=one, args=(part,)) for part in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


@contextmanager
def as_a_reader(folder: Path) -> Iterator[None]:
    """Be a user who may read the files of a folder, and may not write."""
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    user = os.geteuid()
    if user == 0:  # whom no rights stop
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)
        folder.chmod(0o755)


def test_a_ledger_on_read_only_media_is_read_verified_and_reported(
    ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = create(ledger)
    run(live, 40)
    expected = live.status()
    live.close_ledger()
    read_only = SimpleNamespace(f_flag=os.ST_RDONLY)
    with as_a_reader(Path(ledger).parent):
        monkeypatch.setattr(os, "statvfs", lambda path: read_only)
        again = LiveAudit.open(ledger, "loans")
        assert again.status() == expected
        assert again.verify().seq == expected.events
        assert Report.of(again).status == expected
        with pytest.raises(LedgerError, match="read-only"):
            again.ask("somebody", "A", 0)
        assert again.status() == expected
    os.utime(ledger)  # another machine may write to what is mounted read-only here
    with pytest.raises(LedgerError, match="removed or replaced"):
        again.status()


def test_a_reader_of_a_ledger_that_others_write_sees_what_they_write(ledger: str) -> None:
    live = create(ledger)
    run(live, 40)
    live.close_ledger()
    folder = Path(ledger).parent
    with as_a_reader(folder), pytest.raises(LedgerError, match=r"may not make in .* Copy the"):
        LiveAudit.open(ledger, "loans")  # SQLite would have to take it for a file without writers
    Path(ledger).chmod(0o644)
    live.ask("of the writer", "A", 0)
    with as_a_reader(folder):
        reader = LiveAudit.open(ledger, "loans")
        events = reader.status().events
    live.ask("of the writer, too", "A", 0)
    with as_a_reader(folder):
        assert reader.status().events == events + 1 == reader.verify().seq
        reader.close_ledger()


def test_a_read_only_copy_with_events_in_its_log_says_what_to_do(ledger: str) -> None:
    live = create(ledger)
    run(live, 20)
    snapshot = Path(ledger).parent / "snapshot"
    snapshot.mkdir()
    snapshot.parent.chmod(0o755)
    for file in (ledger, f"{ledger}-wal"):
        shutil.copy(file, snapshot)
    copy = str(snapshot / Path(ledger).name)
    with as_a_reader(snapshot), pytest.raises(LedgerError, match="copy both files to a folder"):
        LiveAudit.open(copy, "loans")
    for file in snapshot.iterdir():
        file.chmod(0o644)
    assert LiveAudit.open(copy, "loans").status().events == live.status().events


def test_a_single_command_goes_before_batches(ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    live = create(ledger)
    serve = Driver._serve
    may_go_on = threading.Event()
    commits: list[int] = []

    def slow_serve(self: Driver, jobs: Any) -> None:
        may_go_on.wait(10)
        commits.append(sum(len(job.commands) for job in jobs))
        serve(self, jobs)

    monkeypatch.setattr(Driver, "_serve", slow_serve)
    sizes = (600, 600, 600, 1)
    threads = [
        threading.Thread(target=live.ask_many, args=([(f"{i}-{j}", "A", 0) for j in range(n)],))
        for i, n in enumerate(sizes)
    ]
    for i, thread in enumerate(threads):
        thread.start()
        while len(live._driver._queue) + (i >= 0) < i + 1:
            time.sleep(0.001)
    may_go_on.set()
    for thread in threads:
        thread.join()
    assert commits[1] == 1  # after the batch under way
    assert max(commits) == 600  # two batches are more than one commit takes
    assert live.status().people == sum(sizes)


def test_a_batch_of_corrections_is_weighed_once_while_it_has_the_ledger(
    either: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is rebuilt then, so that a large audit does not keep others from writing."""
    live = create(either, audit="adaptive", question=Question(gamma=0.2656, epsilon=0.02))
    run(live, 120)
    told = [row for row in live.people(states=("REVEALED",)) if row.decision == 0]
    corrections = [Correct(str(row.person), 1 - int(row.outcome or 0), "typo") for row in told]
    n_weighed = 0
    advance = Evidence.advance

    def count(self: Evidence, **options: Any) -> Any:
        nonlocal n_weighed
        n_weighed += 1
        return advance(self, **options)

    monkeypatch.setattr(AuditState, "_rebuild", None)
    monkeypatch.setattr(Evidence, "advance", count)
    replies = live.run(corrections)
    assert {reply.state for reply in replies} == {"CORRECTED"}
    assert n_weighed == 1
    monkeypatch.undo()
    live.verify()


def test_corrections_of_a_concluded_audit_are_weighed_once(
    ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a program that starts from the cache, which may not take a verdict back."""
    monkeypatch.setattr(state_cache, "EVENTS_BEFORE_CACHING", 20)
    live = create(ledger, audit="adaptive", question=Question(gamma=0.2656, epsilon=0.02))
    run(live, 120)
    live.conclude("enough")
    told = [row for row in live.people(states=("REVEALED",)) if row.decision == 0]
    live.close_ledger()
    again = LiveAudit.open(ledger, "loans")
    again.status()
    assert not again._driver.read(lambda state: state.is_from_chain)
    rebuild = AuditState._rebuild
    n_rebuilt = 0

    def count(self: AuditState) -> Audit:
        nonlocal n_rebuilt
        n_rebuilt += 1
        return rebuild(self)

    monkeypatch.setattr(AuditState, "_rebuild", count)
    corrections = [Correct(str(row.person), 1 - row.outcome, "typo") for row in told[:20]]  # type: ignore[operator]
    assert {reply.state for reply in again.run(corrections)} == {"CORRECTED"}
    assert n_rebuilt == 1
    again.verify()
