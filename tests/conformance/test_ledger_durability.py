"""What the database itself guarantees, and what happens when something breaks."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from equipoise.errors import LedgerError
from equipoise.ledger import LiveAudit, driver
from equipoise.ledger.engine import connect, database_errors, ensure_schema
from equipoise.ledger.migrations import upgrade
from equipoise.ledger.snapshots import fingerprint, made_by
from equipoise.ledger.store import Store
from equipoise.question import Want
from tests.conformance.ledgers import create, people, run


@contextmanager
def bare(ledger: str) -> Iterator[Connection]:
    """A connection as somebody would open it behind the ledger's back."""
    connection = connect(ledger, create=True, timeout=5)
    try:
        yield connection
    finally:
        connection.close()
        connection.engine.dispose()


def test_the_database_refuses_to_exceed_the_cap(ledger: str) -> None:
    create(ledger, budget=1000)
    with bare(ledger) as connection, pytest.raises(database_errors(), match="cap_not_exceeded"):
        connection.execute(text("UPDATE audits SET spent = 900, reserved = 101"))


@pytest.mark.parametrize("verb", ["UPDATE events SET body = '{}'", "DELETE FROM events"])
def test_the_database_refuses_to_change_an_event(ledger: str, verb: str) -> None:
    create(ledger)
    with bare(ledger) as connection, pytest.raises(database_errors(), match="append-only"):
        connection.execute(text(verb))


def test_migrations_lead_to_the_tables_that_the_code_knows(ledger: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from equipoise.ledger.schema import metadata

    Store(ledger, create=True).close()
    with bare(ledger) as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_an_older_schema_is_brought_up_to_date(ledger: str) -> None:
    with bare(ledger) as connection:
        upgrade(connection, "0001")
    live = create(ledger)
    run(live, 20)
    live.verify()


def test_a_newer_schema_is_refused(ledger: str) -> None:
    create(ledger)
    with bare(ledger) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(LedgerError, match="schema 9999, newer than this program's"):
        LiveAudit.open(ledger, "loans")


def test_a_place_without_a_ledger_is_said_to_be_one(ledger: str) -> None:
    with pytest.raises(LedgerError, match="no ledger"):
        LiveAudit.open(ledger, "loans")


def test_a_failed_commit_acknowledges_nothing_and_the_call_can_be_repeated(
    ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = create(ledger)
    run(live, 30)
    before = live.checkpoint()

    def fail(self: Store, connection: Connection) -> None:
        raise OSError("power is gone")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_commit", fail)
        with pytest.raises(OSError, match="power is gone"):
            live.ask("x", "B", 0)
    assert live.checkpoint() == before
    assert live.ask("x", "B", 0).repeated is False
    live.verify()


def test_a_lost_acknowledgement_is_made_good_by_asking_again(
    ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = create(ledger)
    commit = Store._commit

    def commit_then_fail(self: Store, connection: Connection) -> None:
        commit(self, connection)
        raise OSError("the line is dead")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_commit", commit_then_fail)
        with pytest.raises(OSError, match="the line is dead"):
            live.ask("x", "B", 0)
    reply = live.ask("x", "B", 0)
    assert reply.repeated
    assert reply.want is Want.LABEL
    live.verify()


def test_a_locked_database_is_a_clear_error(ledger: str) -> None:
    create(ledger)
    holder = Store(ledger)
    waiting = LiveAudit.open(ledger, "loans", timeout=0.2)
    with (
        holder.write(waiting.row.id),
        pytest.raises(LedgerError, match=r"locked by others for 0.2 s; nothing was stored"),
    ):
        waiting.ask("x", "B", 0)
    assert not waiting.ask("x", "B", 0).repeated


def test_snapshots_equal_a_replay_and_damaged_ones_are_ignored(
    ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "SNAPSHOT_EVERY", 25)
    live = create(ledger)
    run(live, 200, share_told=0.6)
    found = live._store.snapshot(live.row.id, software=made_by(), since=1, upto=10**9)
    assert found is not None
    reopened = LiveAudit.open(ledger, "loans")
    assert reopened._driver.read(fingerprint) == fingerprint(live._driver.replay())
    seq, digest, state = found
    damaged = bytes([state[0] ^ 1]) + state[1:]
    live._store.add_snapshot(live.row.id, seq + 1, software=made_by(), digest=digest, state=damaged)
    again = LiveAudit.open(ledger, "loans")
    assert again._driver.read(fingerprint) == fingerprint(live._driver.replay())
    again.verify()


def test_a_snapshot_from_before_a_correction_is_not_used(
    ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "SNAPSHOT_EVERY", 10)
    live = create(ledger)
    run(live, 60)
    monkeypatch.setattr(driver, "SNAPSHOT_EVERY", 10**9)
    row = live.people(states=("REVEALED",))[0]
    live.correct(row.person, 1 - row.outcome, "typo")
    reopened = LiveAudit.open(ledger, "loans")
    assert reopened.status().to_json() == live.replay().to_json()
    reopened.verify()


def test_tampering_with_a_table_is_found(ledger: str) -> None:
    live = create(ledger)
    run(live, 40)
    with bare(ledger) as connection:
        connection.execute(text("UPDATE people SET outcome = 1 - outcome WHERE state = 'REVEALED'"))
    with pytest.raises(LedgerError, match="outcome of 'p"):
        live.verify()


def test_threads_share_commits(ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    live = create(ledger)
    commits = []
    commit = Store._commit

    def counting(self: Store, connection: Connection) -> None:
        commits.append(1)
        commit(self, connection)

    monkeypatch.setattr(Store, "_commit", counting)
    start = threading.Barrier(8)

    def work(part: int) -> None:
        start.wait()
        for person, group, decision, _ in people(40, seed=part):
            live.ask(f"{part}-{person}", group, decision)

    threads = [threading.Thread(target=work, args=(part,)) for part in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert live.status().people == 320
    assert len(commits) < 320
    live.verify()


def test_eight_processes_are_granted_exactly_what_the_budget_allows(ledger: str) -> None:
    # Every outcome is bad, so each grant costs its whole hold of 105. RS-Audit asks while the
    # dearest person (210) could be paid: 100 times out of 10,000.
    create(ledger, budget=99 * 105 + 210, options={"tau": 100_000})
    context = multiprocessing.get_context("fork")
    queue: Any = context.Queue()
    processes = [
        context.Process(target=_ask_and_tell, args=(ledger, part, queue)) for part in range(8)
    ]
    for process in processes:
        process.start()
    granted = sum(queue.get(timeout=120) for _ in processes)
    for process in processes:
        process.join()
    live = LiveAudit.open(ledger, "loans")
    status = live.status()
    assert granted == 100
    assert status.people == 10_000
    assert (status.spent, status.reserved) == (100 * 105, 0)
    live.verify()


def test_an_open_audit_can_be_carried_over_a_fork(ledger: str) -> None:
    live = create(ledger)
    live.ask("before", "A", 0)
    context = multiprocessing.get_context("fork")
    queue: Any = context.Queue()
    child = context.Process(target=lambda: queue.put(live.ask("child", "A", 0).number))
    child.start()
    assert queue.get(timeout=60) == 1
    child.join()
    assert live.ask("after", "A", 0).number == 2
    live.verify()


def _ask_and_tell(ledger: str, part: int, queue: Any) -> None:
    live = LiveAudit.open(ledger, "loans")
    granted = 0
    for start in range(0, 1250, 50):
        names = [f"{part}-{start + i}" for i in range(50)]
        replies = live.ask_many([(name, "A", 0) for name in names])
        wanted = [reply.person for reply in replies if reply.want is Want.LABEL]
        granted += len(wanted)
        live.tell_many([(name, 0) for name in wanted])
    queue.put(granted)


def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, just some words " * 100)
    with pytest.raises(LedgerError, match=r"is not a ledger, or is damaged"):
        LiveAudit.open(str(path), "loans")


def test_schema_check_survives_two_programs_at_once(ledger: str) -> None:
    with bare(ledger) as first, bare(ledger) as second:
        ensure_schema(first, ledger, create=True)
        ensure_schema(second, ledger, create=True)
