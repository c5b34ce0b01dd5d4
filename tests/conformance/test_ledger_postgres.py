"""What PostgreSQL needs to be told, and what it may not be allowed."""

from __future__ import annotations

import psycopg
import pytest

from equipoise.errors import LedgerError
from equipoise.ledger import LiveAudit
from equipoise.ledger.database import Connection, connect
from tests.conformance.ledgers import create, run, writers_role
from tests.conformance.test_ledger_durability import execute


def test_durability_is_set_in_the_session_and_nobody_waits_for_ever(on_postgres: str) -> None:
    name = on_postgres.partition("?")[0].rpartition("/")[2]
    execute(on_postgres, f"ALTER DATABASE {name} SET synchronous_commit = off")
    with psycopg.connect(on_postgres) as plain:
        assert plain.execute("SHOW synchronous_commit").fetchone() == ("off",)
    connection = connect(on_postgres, 5)
    try:
        for setting, value in (
            ("synchronous_commit", "on"),
            ("lock_timeout", "5s"),
            ("statement_timeout", "65s"),
            ("idle_in_transaction_session_timeout", "65s"),
        ):
            assert connection.run(f"SHOW {setting}").fetchone() == (value,)
    finally:
        connection.close()


def test_a_server_that_may_lose_what_it_acknowledged_is_refused(on_postgres: str) -> None:
    live = create(on_postgres)
    with psycopg.connect(on_postgres, autocommit=True) as owner:
        for setting in ("fsync", "full_page_writes"):
            owner.execute(f"ALTER SYSTEM SET {setting} = off")  # type: ignore[call-overload]
            try:
                _reload(owner, setting, "off")
                live.close_ledger()
                with pytest.raises(LedgerError, match=f"runs with {setting}=off"):
                    live.ask("x", "A", 0)
            finally:
                owner.execute(f"ALTER SYSTEM RESET {setting}")  # type: ignore[call-overload]
                _reload(owner, setting, "on")
    assert not live.ask("x", "A", 0).repeated


def _reload(owner: psycopg.Connection[tuple[object, ...]], setting: str, value: str) -> None:
    owner.execute("SELECT pg_reload_conf()")
    for _ in range(1000):
        if owner.execute(f"SHOW {setting}").fetchone() == (value,):  # type: ignore[call-overload]
            return
    raise AssertionError(f"{setting} never became {value}")


def end_connections(ledger: str) -> None:
    execute(
        ledger,
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )


def test_a_connection_that_ended_while_idle_is_opened_anew(on_postgres: str) -> None:
    live = create(on_postgres)
    end_connections(on_postgres)
    assert not live.ask("x", "A", 0).repeated


def test_a_lost_connection_is_a_clear_error_and_then_mended(
    on_postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = create(on_postgres)
    monkeypatch.setattr(Connection, "is_stale", lambda self: False)  # it ends during the call
    end_connections(on_postgres)
    with pytest.raises(LedgerError, match="nothing was stored; repeating the call is safe"):
        live.ask("x", "A", 0)
    assert not live.ask("x", "A", 0).repeated


def test_the_writers_role_can_work_and_cannot_rewrite_history(on_postgres: str) -> None:
    run(create(on_postgres), 10)
    with writers_role(on_postgres) as as_writer:
        live = LiveAudit.open(as_writer, "loans")
        run(live, 60)
        live.pause("a holiday", key="k1")
        live.verify()
        refused(as_writer)


def refused(as_writer: str) -> None:
    with psycopg.connect(as_writer, autocommit=True) as writer:
        for verb in (
            "UPDATE events SET body = ''",
            "DELETE FROM events",
            "TRUNCATE events",
            "DROP TRIGGER events_append_only ON events",
            "ALTER TABLE audits DROP CONSTRAINT cap_not_exceeded",
            "DELETE FROM people",
            "DELETE FROM audits",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                writer.execute(verb)  # type: ignore[call-overload]


def test_a_changed_event_ends_the_verification(on_postgres: str) -> None:
    live = create(on_postgres)
    run(live, 30)
    execute(on_postgres, "ALTER TABLE events DISABLE TRIGGER USER")
    changed = "UPDATE events SET body = replace(body, '\"type\"', '\"kind\"') WHERE seq = 3"
    execute(on_postgres, changed)
    with pytest.raises(LedgerError, match="line 3"):  # it waited for rows that it had left unread
        live.verify()
    assert live.checkpoint().seq > 30  # the handle goes on
