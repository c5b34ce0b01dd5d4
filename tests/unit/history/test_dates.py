"""Periods cut out of columns that hold their dates as text."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.errors import BadData, InvalidInput
from tests.unit.history.backends import Table, offer, options

COLUMNS: dict[str, Any] = {"group": "race", "decision": "ok", "outcome": "paid"}
KINDS = ("csv", "sqlite file", "polars lazy")
NOON = datetime(2024, 6, 15, 12)


def table_of(dates: list[str]) -> Table:
    size = 2 * len(dates)
    return {"race": ["a", "b"] * len(dates), "ok": [1] * size, "paid": [1] * size} | {
        "day": [day for day in dates for _ in "ab"]
    }


def kept(dates: list[str], kind: str, folder: Path, **ends: Any) -> int:
    source = offer(kind, table_of(dates), folder)
    read = eq.History.read(source, **COLUMNS, date="day", **ends, **options(kind))
    return int(read.cells.total) // 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("until", ["2024-07-01", "20240701", "2024-W27", datetime(2024, 7, 1, 9)])
def test_an_end_is_the_same_day_however_it_is_written(
    kind: str, until: Any, tmp_path: Path
) -> None:
    days = [f"2024-{month:02}-15" for month in range(1, 13)] + ["2024-07-01"]
    assert kept(days, kind, tmp_path, until=until) == 6


@pytest.mark.parametrize(
    ("kind", "since"),
    [
        *((kind, NOON) for kind in KINDS),
        ("excel", NOON),
        ("csv", "2024-06-15T12:00:00"),
        ("csv", "20240615 12"),
    ],
)
@pytest.mark.parametrize("written", ["{} {}", "{}T{}+00:00", "{}T{}Z"])
def test_an_end_is_the_same_moment_however_it_is_written(
    kind: str, since: Any, written: str, tmp_path: Path
) -> None:
    times = [written.format("2024-06-15", t) for t in ("11:59:59", "12:00:00", "13:00:00")]
    assert kept(times, kind, tmp_path, since=since) == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("micro", "left"), [(0, 3), (500_000, 2)])
def test_times_written_more_or_less_precisely_are_cut_alike(
    kind: str, micro: int, left: int, tmp_path: Path
) -> None:
    times = ["2024-06-14", "2024-06-15 12:00", "2024-06-15 12:00:00.5", "2024-06-15 12:00:01"]
    assert kept(times, kind, tmp_path, since=NOON.replace(microsecond=micro)) == left


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ("2024-15-01", "found '2024-15-01' in 2 rows"),
        ("2024-06-15 1:00", "found '2024-06-15 1:00'"),
        ("2024-06-15T13:00:00+02:00", "no time zone but UTC"),
        ("2024-06-15T13:00:00", "must write all times in one way"),
        ("2024-06-15 13:00:00Z", "must write all times in one way"),
    ],
)
def test_text_that_does_not_compare_as_dates_do_is_refused(
    kind: str, wrong: str, rule: str, tmp_path: Path
) -> None:
    with pytest.raises(BadData, match=rule.replace("+", r"\+")):
        kept(["2024-06-15 12:00:00", wrong], kind, tmp_path, since="2024-01-01")


def test_an_end_with_a_zone_needs_dates_with_one(tmp_path: Path) -> None:
    noon = NOON.replace(tzinfo=UTC)
    assert kept(["2024-06-15T11:00Z", "2024-06-15T12:00Z"], "csv", tmp_path, since=noon) == 1
    with pytest.raises(InvalidInput, match="'since' must have no time zone"):
        kept(["2024-06-15T11:00"], "csv", tmp_path, since=noon)
