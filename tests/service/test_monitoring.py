"""What a monitoring system sees: every audit, a damaged one as such, and a disk that is full."""

from __future__ import annotations

import errno
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from equipoise.history import History
from equipoise.ledger import LiveAudit
from equipoise.ledger.audit_totals import audit_totals
from equipoise.ledger.store import Store
from equipoise.question import Costs, Question
from equipoise.service import audits, disk_probe
from tests.support.postgres import in_memory, new_database
from tests.support.serving import ASK, PAST, Served, serving

NAMES = [f"a{number}" for number in range(10)]  # more than a server loads


def fill(ledger: str) -> None:
    """Begin audits with one open request each; the first has a verdict."""
    past = History.from_cells(PAST)
    costs = Costs(5, 100)
    question = Question("equal_opportunity", gamma=0.2, epsilon=0.2)
    live = LiveAudit.create(ledger, "decided", past, Question("demographic_parity"), costs)
    live.close_ledger()
    for name in NAMES:
        live = LiveAudit.create(
            ledger, name, past, question, costs, audit="rs", options={"tau": 20}, budget=1000
        )
        live.ask("p", "B", 0)
        live.close_ledger()


def damage(ledger: str, audit: str) -> None:
    """Change an event of an audit, as no program of ours can."""
    with sqlite3.connect(ledger) as connection:
        connection.execute("DROP TRIGGER events_no_update")
        connection.execute(
            "UPDATE events SET body = replace(body, 'asked', 'askex') "
            "WHERE audit_id = (SELECT id FROM audits WHERE name = ?)",
            (audit,),
        )
    connection.close()


def gauges_of(text: str, measure: str) -> dict[str, float]:
    pattern = rf'^equipoise_audit_{measure}\{{audit="([^"]*)"[^}}]*\}} (\S+)$'
    return {name: float(value) for name, value in re.findall(pattern, text, re.MULTILINE)}


@pytest.fixture
def damaged_server() -> Iterator[Served]:
    with TemporaryDirectory(dir=in_memory()) as folder:
        fill(f"{folder}/ledger.db")
        damage(f"{folder}/ledger.db", NAMES[-1])
        with serving(folder) as server:
            yield server


def test_every_audit_is_measured_and_one_that_is_damaged_keeps_none_from_it(
    damaged_server: Served,
) -> None:
    server = damaged_server
    assert server.client().get("/readyz").status_code == 200
    regulator = server.as_("regulator")
    assert regulator.get(f"/v1/audits/{NAMES[-1]}/status").status_code == 503
    assert server.send(NAMES[0], "ask", "q", **ASK).status_code == 200
    assert server.client().get("/readyz").status_code == 200
    server.as_("auditor").post(f"/v1/audits/{NAMES[-1]}/verifications")
    assert server.verify(NAMES[1])["kind"] == "verified"
    assert server.verify(NAMES[-1])["kind"] == "broken"
    text = regulator.get("/metrics").text
    audits_measured = {"decided", *NAMES}
    for measure in ("events", "open_requests", "held", "spent", "cache_age", "has_verdict"):
        assert set(gauges_of(text, measure)) == audits_measured, measure
    assert gauges_of(text, "open_requests") == {"decided": 0} | dict.fromkeys(NAMES, 1.0) | {
        NAMES[0]: 2.0
    }
    assert gauges_of(text, "damaged")[NAMES[-1]] == 1.0
    assert gauges_of(text, "damaged")[NAMES[0]] == 0.0
    assert set(gauges_of(text, "oldest_open_request_time")) == set(NAMES)
    assert gauges_of(text, "failed_verifications")[NAMES[-1]] >= 1.0
    assert set(gauges_of(text, "last_failed_verification_time")) == {NAMES[-1]}
    assert 'equipoise_audit_verdict{audit="decided",verdict="UNFAIR"} 1.0' in text


def test_the_same_totals_on_postgresql(postgres_server: str) -> None:
    ledger = new_database(postgres_server)
    fill(ledger)
    store = Store(ledger)
    totals = {total.row.name: total for total in audit_totals(store)}
    assert list(totals) == ["decided", *NAMES]
    assert totals["decided"].verdict == "UNFAIR"
    assert (totals["a0"].open_requests, totals["a0"].verdict) == (1, "")
    for _ in range(2):  # its table is there the second time, and empty again
        disk_probe.require_writable(store)
    with store.using() as connection:
        assert connection.run("SELECT COUNT(*) FROM equipoise_probe").fetchone() == (0,)
    store.close()


def test_a_server_on_a_full_disk_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audits, "SECONDS_BETWEEN_PROBES", 0.0)
    make_file = tempfile.TemporaryFile

    def refuse(*arguments: Any, **options: Any) -> Any:
        if "dir" in options:
            raise OSError(errno.ENOSPC, "No space left on device")
        return make_file(*arguments, **options)

    with TemporaryDirectory(dir=in_memory()) as folder, serving(folder) as server:
        ready = partial(server.client().get, "/readyz")  # there is no audit whose row could change
        assert ready().status_code == 200
        monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
        assert ready().status_code == 503
        monkeypatch.undo()
        monkeypatch.setattr(audits, "SECONDS_BETWEEN_PROBES", 0.0)
        assert ready().status_code == 200
