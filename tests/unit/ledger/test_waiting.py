"""An audit that waits for a group that does not arrive says so."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

import equipoise as eq
from equipoise.cli import app
from equipoise.cli.console import Output
from equipoise.cli.replies import with_verdict
from equipoise.ledger.database import Connection
from equipoise.ledger.waiting import MIN_TURNED_AWAY, ArrivalRecord
from equipoise.protocol import Want
from tests.support.hmda import applicants
from tests.unit.planning.test_feasibility import PAST, QUESTION


def waiting_audit(ledger: str) -> eq.LiveAudit:
    """Return an audit that needs one group only, as people of the others arrive."""
    live = eq.LiveAudit.create(ledger, "loans", PAST, QUESTION, eq.Costs(label=100), confirm=True)
    chance = random.Random(3)
    stated = (person for person in applicants(chance) if person.race and not person.approved)
    for number, person in enumerate(stated):
        # Repaid or not: evenly, so that no verdict comes of these groups alone.
        if live.ask(f"p-{number}", person.race, 0).want is Want.LABEL:
            live.tell(f"p-{number}", number % 2)
        if number > 1000 or live.waiting():
            break
    return live


def test_it_is_said_from_the_first_day_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a trial an audit turned 19,581 people away without a word about the group it needed."""
    live = waiting_audit("sqlite://")
    (waiting,) = live.status().waiting
    assert waiting.group == "not stated"
    assert not waiting.has_arrived
    assert waiting.days == 0
    assert waiting.turned_away == MIN_TURNED_AWAY == 10
    n_events = live.status().events
    later = datetime.now(UTC) + timedelta(days=9, hours=1)
    monkeypatch.setattr(Connection, "clock", lambda _: later)
    # Nothing happened since, and days pass in a quiet audit as well.
    assert live.status().events == n_events
    assert [group.days for group in live.status().waiting] == [9]
    assert live.replay().waiting[0].days == 0  # a replay has no clock
    assert "none has arrived since the audit began 9 days ago" in str(live.status())
    assert "leaves the group out" in str(live.status())
    assert "waiting: only denied people of group 'not stated'" in str(
        with_verdict(live, Output(None, "later: nothing to do")).text
    )
    assert live.ask("at last", "not stated", 0).want is Want.LABEL
    assert live.status().waiting == ()


def test_ask_says_it(tmp_path: Path) -> None:
    """Whoever asks reads the replies, and may never look at the status."""
    ledger = str(tmp_path / "ledger.db")
    waiting_audit(ledger)
    people = tmp_path / "people.csv"
    people.write_text("person,group,decision\nq1,White,0\nq2,White,0\n")
    for arguments in (["q0", "White", "0"], ["--file", str(people)]):
        command = ["audit", "ask", "loans", *arguments, "--ledger", ledger]
        said = CliRunner().invoke(app, command)
        assert said.exit_code == 0, said.output
        assert "waiting: only denied people of group 'not stated' are needed now" in said.stdout
        data = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
        (waiting,) = data["waiting"]
        assert (waiting["group"], waiting["days"]) == ("not stated", 0)
        assert "leaves the group out" in waiting["text"]


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
