"""A fork must never harm a ledger: a handle belongs to the process that opened it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from threading import Event, Thread

import pytest

from equipoise.errors import LedgerError
from equipoise.ledger import LiveAudit
from tests.conformance.ledgers import create


def in_child(work: Callable[[], object]) -> bool:
    """Run in a forked process; return whether it ended well."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_handle_refuses_after_a_fork_and_says_how_to_reopen(either: str) -> None:
    live = create(either)
    live.ask("before", "A", 0)

    def refused() -> None:
        with pytest.raises(LedgerError, match=r"before this process was forked; open the audit"):
            live.ask("x", "A", 0)

    assert in_child(refused)
    live.ask("after", "A", 0)
    live.verify()


def test_a_handle_refuses_that_another_thread_was_using_at_the_fork(either: str) -> None:
    live = create(either)
    uses, may_end = Event(), Event()

    def use() -> None:
        with live._store.turn, live._store.using():
            uses.set()
            may_end.wait()

    def refused() -> None:
        signal.alarm(10)  # where it would wait for a thread that the child does not have
        with pytest.raises(LedgerError, match="before this process was forked"):
            live.ask("x", "A", 0)

    thread = Thread(target=use)
    thread.start()
    uses.wait()
    ended_well = in_child(refused)
    may_end.set()
    thread.join()
    assert ended_well


def test_who_closes_before_a_fork_may_open_again_in_both(either: str) -> None:
    live = create(either)
    live.ask("before", "A", 0)
    live.close_ledger()
    assert in_child(lambda: LiveAudit.open(either, "loans").ask("child", "A", 0))
    live.ask("parent", "A", 0)
    assert [row.person for row in live.people()] == ["before", "child", "parent"]
    live.verify()


def test_a_sqlite_file_that_was_open_at_a_fork_is_not_opened_in_the_child(ledger: str) -> None:
    live = create(ledger)

    def refused() -> None:
        with pytest.raises(LedgerError, match=r"was open when this process was forked.*spawn"):
            LiveAudit.open(ledger, "loans")

    assert in_child(refused)
    live.ask("x", "A", 0)
    live.verify()


def test_a_child_has_its_own_connection_to_postgresql(on_postgres: str) -> None:
    live = create(on_postgres)
    live.ask("parent", "A", 0)
    assert in_child(lambda: LiveAudit.open(on_postgres, "loans").ask("child", "A", 0))
    live.ask("after", "A", 0)
    assert [row.person for row in live.people()] == ["parent", "child", "after"]
    live.verify()


def test_a_ledger_in_memory_stays_with_its_process() -> None:
    live = create("sqlite://")

    def refused() -> None:
        with pytest.raises(LedgerError, match="before this process was forked"):
            live.ask("x", "A", 0)

    assert in_child(refused)
    live.ask("x", "A", 0)
