"""What an audit may be created with."""

from __future__ import annotations

from typing import Any

import pytest

from equipoise.errors import InvalidInput, UnknownName
from equipoise.ledger import LiveAudit
from equipoise.ledger.batch import stamp
from equipoise.ledger.export import bodies_of, export_lines
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld

WORLD = CellWorld.from_shares({"B": (0.45, 0.15, 0.40, 0.5), "A": (0.15, 0.15, 0.70, 0.3)})


def create(costs: Costs | None = None, **options: Any) -> LiveAudit:
    options.setdefault("audit", "rs")
    name = options.pop("name", "x")
    costs = costs or Costs(label=1)
    return LiveAudit.create("sqlite://", name, WORLD.past(None, 0), Question(), costs, **options)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"audit": "rss"}, UnknownName, "unknown audit 'rss'. Did you mean 'rs'"),
        ({"budget": 10.5}, InvalidInput, "'budget' must be a whole number of minor units"),
        ({"budget": -1}, InvalidInput, "'budget' must be a whole number"),
        ({"costs": Costs(label=0.5)}, InvalidInput, "'costs.label' must be a whole number"),
        ({"lottery": 0.0}, InvalidInput, r"'lottery' must be in \(0, 1\]; got 0.0"),
        ({"max_in_flight": 0}, InvalidInput, "max_in_flight must be a whole number >= 1; got 0"),
        (
            {"max_in_flight_groups": {"Z": 1}},
            UnknownName,
            "unknown group in 'max_in_flight_groups'",
        ),
        ({"overdue_after": 0}, InvalidInput, "'overdue_after' must be a number of days > 0"),
        ({"stream": "some"}, UnknownName, "unknown stream 'some'"),
        ({"seed": "xyz"}, InvalidInput, "'seed' must be 64 hexadecimal digits"),
        ({"name": ""}, InvalidInput, "'name' must be 1 to 200 printable characters"),
        ({"options": {"tau": 0}}, InvalidInput, "'tau' must be a whole number of at least 1"),
    ],
)
def test_bad_settings_are_refused(
    options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        create(**options)


def test_groups_keep_their_order_through_the_first_event() -> None:
    assert create().settings.groups == ("B", "A")
    assert list(create().status().groups) == ["B", "A"]


def test_the_seed_stays_out_of_the_events() -> None:
    live = create(seed="ab" * 32)
    assert b"ab" * 32 not in b"".join(live.lines())
    assert live.settings.seed_hash.encode() in next(live.lines())


def test_money_is_written_as_people_read_it() -> None:
    settings = create(currency="EUR", decimals=2).settings
    assert settings.money(123456) == "1,234.56 EUR"
    assert create().settings.money(123456) == "123,456"


def test_export_lines_can_be_taken_apart_again() -> None:
    live = create()
    live.ask('odd ","prev":" name', "A", 0)
    stored = list(live._store.events(live.row.id))
    assert list(bodies_of(export_lines(stored))) == stored
    live.verify()


def test_an_unknown_kind_of_ledger_is_refused() -> None:
    past = WORLD.past(None, 0)
    with pytest.raises(InvalidInput, match=r"SQLite .* or PostgreSQL"):
        LiveAudit.create("mysql://host/db", "x", past, Question(), Costs(label=1), audit="rs")


def test_stamps_sort_as_text() -> None:
    from datetime import UTC, datetime, timedelta, timezone

    early = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
    late = datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=timezone(timedelta(hours=-1)))
    assert stamp(early) == "2026-03-01T12:00:00.000000Z"
    assert stamp(early) < stamp(late) == "2026-03-01T13:00:00.000005Z"
