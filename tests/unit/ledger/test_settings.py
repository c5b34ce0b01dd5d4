"""What an audit may be created with."""

from __future__ import annotations

from typing import Any

import pytest

from equipoise.errors import InvalidInput, UnknownName
from equipoise.ledger import LiveAudit, inputs
from equipoise.ledger.timestamps import format_timestamp
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
        ({"max_in_flight": 0}, InvalidInput, "'max_in_flight' must be a whole number >= 1; got 0"),
        (
            {"max_in_flight_groups": {"Z": 1}},
            UnknownName,
            "unknown group in 'max_in_flight_groups'",
        ),
        ({"approvals": ["conclude"]}, UnknownName, "Did you mean 'concluded'"),
        ({"decimals": 11}, InvalidInput, "'decimals' must be a whole number, 0 to 9"),
        ({"actor": "a\nb"}, InvalidInput, "'actor' must be 1 to 200 printable characters"),
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
    assert "ab" * 32 not in "".join(live.lines())
    assert live.settings.seed_hash in next(live.lines())


def test_money_is_written_as_people_read_it() -> None:
    settings = create(currency="EUR", decimals=2).settings
    assert settings.money(123456) == "1,234.56 EUR"
    assert create().settings.money(123456) == "123,456"


def test_pseudonyms_stay_out_of_the_events() -> None:
    live = create()
    live.ask("somebody", "A", 0)
    live.tell("somebody", 1)
    assert "somebody" not in "".join(live.lines())
    live.verify()


@pytest.mark.parametrize(
    "amount", [2**53, float("inf"), float("nan"), "500", None, True, -1, 0.5, [1], 10**400]
)
def test_amounts_that_are_no_whole_money_are_refused(amount: Any) -> None:
    live = create(budget=1000)
    with pytest.raises(InvalidInput, match=r"'budget' must be a whole number of minor units"):
        inputs.whole_amount("budget", amount)
    if amount is not None:
        with pytest.raises(InvalidInput, match=r"'budget' must be a whole number"):
            live.set_budget(amount, "more")
        with pytest.raises(InvalidInput):
            create(budget=amount)


def test_groups_that_would_be_one_are_refused() -> None:
    world = CellWorld.from_shares({"A": (0.4, 0.2, 0.4, 0.5), " A": (0.2, 0.1, 0.7, 0.3)})
    past = world.past(None, 0)
    with pytest.raises(InvalidInput, match="differ in form only; rename one"):
        LiveAudit.create("sqlite://", "x", past, Question(), Costs(label=1), audit="rs")


def test_an_unknown_kind_of_ledger_is_refused() -> None:
    past = WORLD.past(None, 0)
    with pytest.raises(InvalidInput, match=r"SQLite .* or PostgreSQL"):
        LiveAudit.create("mysql://host/db", "x", past, Question(), Costs(label=1), audit="rs")


def test_stamps_sort_as_text() -> None:
    from datetime import UTC, datetime, timedelta, timezone

    early = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
    late = datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=timezone(timedelta(hours=-1)))
    assert format_timestamp(early) == "2026-03-01T12:00:00.000000Z"
    assert format_timestamp(early) < format_timestamp(late) == "2026-03-01T13:00:00.000005Z"
