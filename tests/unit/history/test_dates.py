"""Periods cut out of columns of dates, and of text that writes dates."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.errors import BadData, InvalidInput
from tests.profiles import quick
from tests.support.messages import refused
from tests.unit.history.backends import Table, offer, options

pytestmark = pytest.mark.slow

COLUMNS: dict[str, Any] = {"group": "race", "decision": "ok", "outcome": "paid"}
KINDS = ("csv", "sqlite file", "polars lazy")
NOON = datetime(2024, 6, 15, 12)


def table_of(dates: list[Any]) -> Table:
    size = 2 * len(dates)
    return {"race": ["a", "b"] * len(dates), "ok": [1] * size, "paid": [1] * size} | {
        "day": [day for day in dates for _ in "ab"]
    }


def kept(dates: list[Any], kind: str, folder: Path, **ends: Any) -> int:
    source = offer(kind, table_of(dates), folder)
    read = eq.History.read(source, **COLUMNS, date="day", **ends, **options(kind))
    return int(read.cells.total) // 2


ENDS = ("2024-07-01", "20240701", "2024-W27", datetime(2024, 7, 1))
FORMS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%Y-%m-%d 13:00", "%Y-%m-%dT01Z")
# Each engine reads every form, and every end is read: by us, whatever the engine.
FEW_ENDS = [*product(KINDS, ENDS[:1], FORMS), *product(KINDS[:1], ENDS[1:], FORMS[:1])]


@pytest.mark.parametrize(
    ("kind", "until", "form"), quick(FEW_ENDS, full=[*product(KINDS, ENDS, FORMS)])
)
def test_an_end_is_the_same_day_however_it_is_written(
    kind: str, until: Any, form: str, tmp_path: Path
) -> None:
    days = [*(datetime(2024, month, 15) for month in range(1, 13)), datetime(2024, 7, 1)]
    assert kept([day.strftime(form) for day in days], kind, tmp_path, until=until) == 6


@pytest.mark.parametrize("kind", ["parquet", "pandas", "polars", "polars lazy", "duckdb", "ibis"])
def test_the_engine_compares_its_own_dates(kind: str, tmp_path: Path) -> None:
    times = [NOON.replace(hour=hour) for hour in (11, 12, 13)]
    assert kept(times, kind, tmp_path, since="2024-06-15") == 3
    assert kept([*times, NOON.replace(day=14)], kind, tmp_path, since="2024-06-15") == 3
    days = [time.date() for time in times]
    assert kept(days, kind, tmp_path, since="2024-06-15") == 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("wrong", "code", "fields"),
    [
        ("2024-15-01", "not-dates", {"odd": ["2024-15-01"], "rows": 2}),
        ("15/06/2024", "not-dates", {"odd": ["15/06/2024"]}),
        ("soon", "not-dates", {"odd": ["soon"], "rows": 2}),
    ],
)
def test_text_that_is_no_date_is_refused(
    kind: str, wrong: str, code: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    with refused(code, column="day", **fields):
        kept(["2024-06-15 12:00:00", "2024-06-16", wrong], kind, tmp_path, since="2024-01-01")


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_without_a_date_is_refused(kind: str, tmp_path: Path) -> None:
    with pytest.raises(BadData, match="2 rows"):
        kept(["2024-06-15 12:00:00", "2024-06-16", ""], kind, tmp_path, since="2024-01-01")


def test_day_and_month_are_not_guessed(tmp_path: Path) -> None:
    with refused("day-or-month-first", column="day"):
        kept(["01/02/2024", "03/04/2024"], "csv", tmp_path, since="2024-01-01")
    assert kept(["01/02/2024", "31/01/2024"], "csv", tmp_path, since="2024-02-01") == 1


def test_periods_are_cut_by_day(tmp_path: Path) -> None:
    for kind, date in (("csv", "2024-06-15 12:00"), ("pandas", NOON)):
        with pytest.raises(InvalidInput, match="'since' must be a day such as '2024-01-31'"):
            kept([date], kind, tmp_path, since=NOON)
    with refused("period-empty", first="2024-06-15", last="2024-06-15"):
        kept(["2024-06-15 12:00"], "csv", tmp_path, since="2025-01-01")


@pytest.mark.parametrize("kind", ["parquet", "pandas", "polars lazy", "ibis"])
def test_dates_may_have_a_zone(kind: str, tmp_path: Path) -> None:
    times = [NOON.replace(day=day, hour=0, tzinfo=UTC) for day in (14, 15)]
    assert kept(times, kind, tmp_path, since="2024-06-15") == 1
