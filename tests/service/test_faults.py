"""Workers that are killed, a database that is gone, disks that are busy."""

from __future__ import annotations

import sqlite3
import threading
import time
from functools import partial
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import psycopg
import pytest

from equipoise.ledger import LiveAudit
from tests.profiles import quick
from tests.support.postgres import in_memory
from tests.support.serving import ASK, Served, serving
from tests.torture.service_kill import kill_workers


def test_nothing_acknowledged_is_lost_when_workers_are_killed() -> None:
    with TemporaryDirectory(dir=in_memory()) as directory:
        found = kill_workers(directory, f"{directory}/ledger.db", kills=quick(4, full=6), seed=0)
    assert found.acknowledged > quick(10, full=20)
    assert (found.lost, found.answered_differently) == (0, 0)
    assert (found.requested_twice, found.wrong_money) == (0, 0)


def test_a_database_that_is_gone_comes_back_by_itself(on_postgres: Served) -> None:
    served, ledger = on_postgres, on_postgres.settings.ledger
    served.create("gone")
    ask = partial(served.send, "gone", "ask", **ASK)
    auditor, anybody = served.as_("auditor"), served.client()
    assert ask("before").status_code == 200
    assert auditor.get("/v1/audits/gone/status").status_code == 200
    name = urlsplit(ledger).path.removeprefix("/")
    server = ledger.replace(f"/{name}?", "/postgres?")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false".encode())
        kill = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s"
        connection.execute(kill, (name,))
        for answer in (
            ask("during"),
            ask("during"),
            auditor.get("/v1/audits/gone/status"),
            anybody.get("/readyz"),
        ):
            assert answer.status_code == 503, answer.text
            assert answer.headers["retry-after"].isdigit()
            assert answer.json()["type"] == "urn:equipoise:storage-unavailable"
            assert name not in ask("x").text  # a writer is told no more
        assert anybody.get("/livez").status_code == 200
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true".encode())
    assert anybody.get("/readyz").status_code == 200
    again = [ask(name).json()["results"][0]["repeated"] for name in ("during", "before")]
    assert again == [False, True]
    assert served.verify("gone")["kind"] == "verified"


def test_a_database_that_others_hold_is_busy_not_broken() -> None:
    with (
        TemporaryDirectory(dir=in_memory()) as directory,
        serving(directory, wait_seconds=0.2) as served,
    ):
        served.create("held")
        ask = partial(served.send, "held", "ask", "p", **ASK)
        other = sqlite3.connect(served.settings.ledger, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        refused = ask()
        assert refused.status_code == 503
        # Pages read on, whoever writes.
        assert served.as_("auditor").get("/v1/audits/held/status").status_code == 200
        other.execute("ROLLBACK")
        other.close()
        assert ask().json()["results"][0]["repeated"] is False


def test_a_server_is_not_ready_when_nothing_can_be_written() -> None:
    with TemporaryDirectory(dir=in_memory()) as directory, serving(directory) as served:
        served.create("full")
        ready = partial(served.client().get, "/readyz")
        assert ready().status_code == 200
        other = sqlite3.connect(served.settings.ledger, isolation_level=None)
        other.execute(
            "CREATE TRIGGER full BEFORE UPDATE ON audits "
            "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        )
        time.sleep(1.1)  # a write is tried once in a second
        assert ready().status_code == 503
        other.execute("DROP TRIGGER full")
        other.close()
        assert ready().status_code == 200


def test_a_server_is_not_ready_before_its_audits_are_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with TemporaryDirectory(dir=in_memory()) as directory:
        with serving(directory) as served:
            served.create("cold")
        may_load = threading.Event()
        catch_up = LiveAudit.catch_up

        def wait_and_load(live: LiveAudit, *, wait: bool = True) -> None:
            may_load.wait(10)
            catch_up(live, wait=wait)

        monkeypatch.setattr(LiveAudit, "catch_up", wait_and_load)
        with serving(directory) as served:
            ready = partial(served.client().get, "/readyz")
            assert ready().status_code == 503
            may_load.set()
            answers = [ready().status_code for _ in range(50) if not time.sleep(0.05)]
            assert answers[-1] == 200
