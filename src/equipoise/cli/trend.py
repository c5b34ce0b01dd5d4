"""``equipoise trend``: what checks said, one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from equipoise.cli import options as shared
from equipoise.cli.check_log import read_checks
from equipoise.cli.console import Heading, Output, Part, Table, show
from equipoise.comparison import GapScale
from equipoise.display import format_number, round_down, round_up

app = typer.Typer(add_completion=False)

BAR_CHARACTERS = 30  # from a gap of 0 to one of 1
# Checks that agree in these columns asked the same, so that their answers can be compared.
SERIES_COLUMNS = (
    *("metric", "gamma", "epsilon", "delta", "question", "compare", "against", "direction"),
    "assumptions",
)
UNITS = {
    "difference": ("gap, points", "0 to 100 points"),
    "ratio": ("gap, % of the highest rate", "0 to 100%"),
}
UNKNOWN_UNITS = ("gap, hundredths", "0 to 100 hundredths")
"""Headings of the range and of its picture, by how groups are compared; of older files."""
ChecksFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A file of check --append.", show_default=False)
]


@app.command()
def trend(file: ChecksFile, json: shared.Json = False) -> None:
    """Draw verdict, range of the gap and rates of the checks in a file, over time.

    Each question has tables of its own.

    Example: equipoise trend checks.parquet
    """
    data = [{**row, "time": f"{row['time']:%Y-%m-%dT%H:%M:%S.%fZ}"} for row in read_checks(file)]
    series: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in data:
        series.setdefault(tuple(row[name] for name in SERIES_COLUMNS), []).append(row)
    parts: list[Part] = [] if data else [f"{file} holds no checks"]
    for rows in series.values():
        parts += [Heading(rows[0]["metric"].replace("_", " ")), _describe_question(rows[0])]
        parts.append(Table(_gap_rows(rows), caption=_describe_tolerance(rows[0])))
        for rate in dict.fromkeys(row["rate"] for row in rows):
            rate_rows = [row for row in rows if row["rate"] == rate]
            parts.append(Table(_rate_rows(rate_rows), caption=rate.replace("_", " ")))
    show(Output(data, parts), json)


def _describe_question(row: dict[str, Any]) -> str:
    """Return what the checks of a series asked, and what they assumed."""
    if row["question"] is None:
        return (
            "an older version stored these checks: whether as differences or as ratios, against "
            "whom, and under which assumptions, is not known"
        )
    question: str = row["question"]
    return f"{question}, assuming {row['assumptions']}" if row["assumptions"] else question


def _describe_tolerance(row: dict[str, Any]) -> str:
    tolerance = f"{format_number(100 * row['gamma'])} hundredths"
    if row["compare"] in UNITS:
        tolerance = GapScale(row["compare"]).format_gap(row["gamma"])
    return f"| marks the tolerated gap: {tolerance}"


def _gap_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per check: when, the verdict, the range of the gap and its picture."""
    range_heading, picture_heading = UNITS.get(rows[0]["compare"], UNKNOWN_UNITS)
    # A check has a row for each group and rate, and all of them have its time, verdict and gap.
    checks = {row["time"]: row for row in rows}
    has_sources = len({row["source"] for row in rows}) > 1
    table_rows = []
    for time, row in checks.items():
        table_row = {
            "time (UTC)": _short(time),
            "verdict": row["verdict"],
            range_heading: _range_in_hundredths(row["gap_lower"], row["gap_upper"]),
            picture_heading: draw_range(row["gap_lower"], row["gap_upper"], row["gamma"]),
        }
        if has_sources:
            table_row["source"] = row["source"] or ""
        table_rows.append(table_row)
    return table_rows


def draw_range(lower: float, upper: float, gamma: float) -> str:
    """Return a range between 0 and 1 as a bar, with a mark at the tolerance.

    Examples
    --------
    >>> draw_range(0.2, 0.5, 0.1)
    '···|··#########···············'
    """
    first = round(lower * (BAR_CHARACTERS - 1))
    last = round(upper * (BAR_CHARACTERS - 1))
    mark = round(gamma * (BAR_CHARACTERS - 1))
    characters = []
    for place in range(BAR_CHARACTERS):
        is_inside = first <= place <= last
        character = "#" if is_inside else "·"
        characters.append("|" if place == mark else character)
    return "".join(characters)


def _rate_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per check, with the range of a rate in each group."""
    groups = list(dict.fromkeys(row["group_name"] for row in rows))
    by_time: dict[str, dict[str, str]] = {}
    for row in rows:
        hundredths = _range_in_hundredths(row["rate_lower"], row["rate_upper"])
        by_time.setdefault(row["time"], {})[row["group_name"]] = f"{hundredths}%"
    return [
        {"time (UTC)": _short(time), **{group: ranges.get(group, "") for group in groups}}
        for time, ranges in by_time.items()
    ]


def _range_in_hundredths(lower: float, upper: float) -> str:
    """Return a range in hundredths, rounded outwards."""
    return f"{round_down(100 * lower, 1)} to {round_up(100 * upper, 1)}"


def _short(time: str) -> str:
    return time[:16].replace("T", " ")
