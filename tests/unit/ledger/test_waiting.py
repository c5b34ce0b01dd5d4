"""An audit that waits for a group that does not arrive says so."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

import equipoise as eq
from equipoise.cli.console import Output
from equipoise.cli.replies import with_verdict
from equipoise.ledger.commands import Ask
from equipoise.ledger.database import Connection
from equipoise.ledger.waiting import MIN_TURNED_AWAY, ArrivalRecord
from equipoise.protocol import Want
from tests.support.hmda import applicants
from tests.unit.planning.test_feasibility import PAST, QUESTION


def test_it_is_said_from_the_first_day_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a trial an audit turned 19,581 people away without a word about the group it needed."""
    live = eq.LiveAudit.create(
        "sqlite://", "loans", PAST, QUESTION, eq.Costs(label=100), confirm=True
    )
    assert live.status().waiting == ()
    chance = random.Random(3)
    stated = (person for person in applicants(chance) if person.race and not person.approved)
    for number, person in enumerate(stated):
        # Repaid or not: evenly, so that no verdict comes of these groups alone.
        if live.ask(f"p-{number}", person.race, 0).want is Want.LABEL:
            live.tell(f"p-{number}", number % 2)
        if number > 1000 or live.status().waiting:
            break
    (waiting,) = live.status().waiting
    assert waiting.group == "not stated"
    assert not waiting.has_arrived
    assert waiting.days == 0
    assert waiting.turned_away >= MIN_TURNED_AWAY
    later = datetime.now(UTC) + timedelta(days=9, hours=1)
    monkeypatch.setattr(Connection, "clock", lambda _: later)
    live.run([Ask("later", "White", 0)])
    (waiting,) = live.status().waiting
    assert waiting.days == 9
    assert "none has arrived since the audit began 9 days ago" in str(live.status())
    assert "leaves the group out" in str(live.status())
    assert "waiting: only denied people of group 'not stated'" in str(
        with_verdict(live, Output(None, "later: nothing to do")).text
    )
    assert live.ask("at last", "not stated", 0).want is Want.LABEL
    assert live.status().waiting == ()


def test_whoever_is_wanted_ends_the_waiting() -> None:
    record = ArrivalRecord("2026-01-01T00:00:00.000000Z")
    for _ in range(MIN_TURNED_AWAY):
        record.arrive("A", 0, "not_wanted", "2026-01-03T00:00:00.000000Z")
        record.arrive("A", 1, "approved", "2026-01-03T00:00:00.000000Z")
    now = "2026-01-04T12:00:00.000000Z"
    (waiting,) = record.waiting_for(["A", "B"], now)
    assert (waiting.group, waiting.days) == ("B", 3)
    record.arrive("A", 0, "", now)
    assert record.waiting_for(["A", "B"], now) == ()
