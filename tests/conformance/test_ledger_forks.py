"""A fork must never harm a ledger: a fresh handle in the child, or a clear error."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from equipoise.errors import LedgerError
from equipoise.ledger import LiveAudit
from equipoise.question import Want
from tests.conformance.ledgers import create


def in_child(work: Callable[[], object]) -> int:
    """Run in a forked process; return its number."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def succeeded(*pids: int) -> bool:
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * len(pids)


@pytest.mark.parametrize("own_handle", [False, True], ids=["inherited", "own"])
def test_a_handle_open_at_a_fork_loses_nothing(either: str, own_handle: bool) -> None:
    live = create(either, budget=50 * 105 + 210, options={"tau": 100_000})
    live.ask("before", "A", 0)

    def ask_in_child(child: int) -> None:
        mine = LiveAudit.open(either, "loans") if own_handle else live
        for i in range(25):
            mine.tell(mine.ask(f"{child}-{i}", "A", 0).person, 0)

    children = [in_child(lambda c=c: ask_in_child(c)) for c in range(3)]
    for i in range(25):
        live.ask(f"parent-{i}", "A", 0)
        if i % 5 == 0:
            live.close_ledger()  # the last to leave removes SQLite's log, if it thinks it is alone
    live.close_ledger()
    assert succeeded(*children)
    again = LiveAudit.open(either, "loans")
    assert {row.person for row in again.people()} == {
        "before",
        *(f"parent-{i}" for i in range(25)),
        *(f"{c}-{i}" for c in range(3) for i in range(25)),
    }
    status = again.status()
    assert status.spent + status.reserved <= 50 * 105 + 210
    again.verify()
    live.ask("after", "A", 0)


def test_forking_from_a_threaded_program_hangs_nobody(either: str) -> None:
    live = create(either)
    stop = threading.Event()

    def keep_asking(part: int) -> None:
        number = 0
        while not stop.is_set():
            live.ask(f"{part}-{number}", "A", 0)
            number += 1

    threads = [threading.Thread(target=keep_asking, args=(part,)) for part in range(3)]
    for thread in threads:
        thread.start()
    try:
        children = []
        for child in range(4):
            time.sleep(0.02)
            children.append(in_child(lambda c=child: live.ask(f"child-{c}", "B", 0)))
        assert succeeded(*children)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert len([r for r in live.people() if r.group_name == "B"]) == 4
    live.verify()


def test_multiprocessing_as_it_comes_grants_exactly_what_the_budget_allows(ledger: str) -> None:
    # Every outcome is bad, so each grant costs its whole hold of 105. RS-Audit asks while the
    # dearest person (210) could be paid: 40 times out of 1,200.
    live = create(ledger, budget=39 * 105 + 210, options={"tau": 100_000})
    context = multiprocessing.get_context("fork")
    queue: Any = context.Queue()
    processes = [context.Process(target=_work, args=(live, part, queue)) for part in range(4)]
    for process in processes:
        process.start()
    granted = sum(queue.get(timeout=120) for _ in processes)
    for process in processes:
        process.join()
    status = live.status()
    assert granted == 40
    assert (status.people, status.spent, status.reserved) == (1200, 40 * 105, 0)
    live.verify()


def _work(live: LiveAudit, part: int, queue: Any) -> None:
    granted = 0
    for start in range(0, 300, 50):
        names = [f"{part}-{start + i}" for i in range(50)]
        wanted = [
            r.person for r in live.ask_many([(n, "A", 0) for n in names]) if r.want is Want.LABEL
        ]
        granted += len(wanted)
        live.tell_many([(name, 0) for name in wanted])
    queue.put(granted)


def test_a_ledger_in_memory_stays_with_its_process() -> None:
    live = create("sqlite://")

    def refused() -> None:
        with pytest.raises(LedgerError, match="in memory belongs to the process that made it"):
            live.ask("x", "A", 0)

    assert succeeded(in_child(refused))
    live.ask("x", "A", 0)


def test_a_fork_in_the_middle_of_a_call_is_refused_in_the_child(ledger: str) -> None:
    live = create(ledger)

    def refused() -> None:
        with pytest.raises(LedgerError, match="was in use when this process was forked"):
            live.ask("x", "A", 0)
        with pytest.raises(LedgerError, match="was in use when this process was forked"):
            LiveAudit.open(ledger, "loans")

    with live._store.write(live.row.id):
        pid = in_child(refused)
    assert succeeded(pid)
    live.ask("x", "A", 0)
    live.verify()


def test_a_fork_past_pythons_hooks_is_noticed(ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    live = create(ledger)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(LedgerError, match="was open when this process was forked"):
        live.ask("x", "A", 0)
    monkeypatch.undo()
    live.ask("x", "A", 0)
