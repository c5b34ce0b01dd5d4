"""What careless and hostile callers do to a ledger: one clear line, and nobody else is harmed."""

from __future__ import annotations

import os
import shutil
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from equipoise.errors import InvalidInput, LedgerError
from equipoise.ledger import LiveAudit
from equipoise.ledger.commands import Ask, read_command
from equipoise.ledger.database import driver_errors
from equipoise.protocol import Want
from equipoise.question import Costs
from tests.conformance.ledgers import QUESTION, WORLD, create, people, run


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_nothing_is_acknowledged_into_a_file_that_is_gone(ledger: str, how: str) -> None:
    live = create(ledger)
    live.ask("a", "A", 0)
    live.close_ledger()
    shutil.copy(ledger, f"{ledger}.kept")
    live.ask("b", "A", 0)
    for end in ("", "-wal", "-shm"):
        Path(ledger + end).unlink(missing_ok=True)
    if how == "replaced":
        os.replace(f"{ledger}.kept", ledger)
    with pytest.raises(LedgerError, match="was removed or replaced while it was open"):
        live.ask("c", "A", 0)
    if how == "removed":
        with pytest.raises(LedgerError, match="cannot open the ledger"):
            live.ask("c", "A", 0)
        assert not Path(ledger).exists()
    else:
        with pytest.raises(LedgerError, match=r"has seen event 3 .* now ends at event 2"):
            live.ask("b", "A", 0)
        again = LiveAudit.open(ledger, "loans")  # somebody decided to go on without them
        assert not again.ask("b", "A", 0).repeated
        again.verify()


def test_a_ledger_named_by_a_relative_path_stays_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    live = create("ledger.db")
    live.close_ledger()
    monkeypatch.chdir("/")
    live.ask("a", "A", 0)
    assert LiveAudit.open(f"{tmp_path}/ledger.db", "loans").person("a") is not None
    assert not Path("/ledger.db").exists()


def test_money_beyond_what_can_be_counted_exactly_is_never_held(ledger: str) -> None:
    costs = Costs(feature=1, label=2**52 + 1)
    past = WORLD.past(None, 0)
    live = LiveAudit.create(ledger, "h", past, QUESTION, costs, audit="rs", options={"tau": 100})
    replies = {}
    for person, group, decision, _ in people(12):
        replies[person] = live.ask(person, group, decision)
        if replies[person].want is Want.LABEL:
            live.tell(person, 0)
    assert live.status().spent == 2**52 + 2
    assert {r.why for r in replies.values() if r.want is Want.NOTHING} <= {"approved", "budget"}
    live.verify()


@pytest.mark.parametrize(
    "call",
    [
        lambda live: live.approve([1]),
        lambda live: live.reject({"a": 1}, "no"),
        lambda live: live.set_limits(5, [1, 2], why="fewer"),
        lambda live: live.acting_as(None),
        lambda live: create("sqlite://", seed=5),
        lambda live: create("sqlite://", decimals=True),
        lambda live: LiveAudit.open("sqlite://", "loans", timeout="x"),
    ],
)
def test_arguments_of_the_wrong_kind_are_named(call: Any) -> None:
    with pytest.raises(InvalidInput, match="must be"):
        call(create("sqlite://"))


def test_rows_of_the_wrong_length_and_things_that_are_no_command_are_refused_alone() -> None:
    live = create("sqlite://")
    asked = live.ask_many([("a", "A", 0), ("b", "A"), None, ("c", "A", 0)])  # type: ignore[list-item]
    assert [reply.problem is None for reply in asked] == [True, False, False, True]
    assert asked[1].problem == "a row must be (person, group, decision); got ('b', 'A')"
    told = live.tell_many([("a", 1), ("c", 1, (0.5,))])  # type: ignore[list-item]
    assert [reply.problem is None for reply in told] == [True, False]
    ran = live.run([object(), Ask("d", "A", 0)])  # type: ignore[list-item]
    assert "a command is needed" in str(ran[0].problem)
    assert ran[1].state == "RESERVED"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"command": "tell"}, "the command 'tell' lacks 'person' and 'outcome'"),
        ({"command": "set_limits", "max_in_flight": 1, "max_in_flight_groups": "x"}, "cannot be"),
        ({"command": "set_random_accepts", "random_accepts": 5, "why": "x"}, "cannot be read"),
        ({"command": "scrubbed", "erased": 1}, "unknown command 'scrubbed'"),
    ],
)
def test_a_command_of_another_shape_is_refused(data: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_command(data)


def test_days_without_end_and_no_points_at_all_are_survived() -> None:
    live = create("sqlite://")
    run(live, 10)
    assert live.overdue(days=1e300) == []
    assert len(live.evidence_history(0)) == 2
    assert live.people(states="REVEALED") == live.people(states=("REVEALED",))


def test_an_error_while_a_driver_is_being_imported_keeps_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", types.ModuleType("psycopg"))
    assert [error.__module__ for error in driver_errors()] == ["sqlite3"]
