"""``equipoise trend``: what checks said, one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from equipoise.cli import options as shared
from equipoise.cli.check_log import COLUMNS, read_checks
from equipoise.cli.console import Heading, Output, Part, Table, show
from equipoise.display import round_down, round_up

app = typer.Typer(add_completion=False)

BAR_CHARACTERS = 30  # from a gap of 0 to one of 1
ChecksFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A file of check --append.", show_default=False)
]


@app.command()
def trend(file: ChecksFile, json: shared.Json = False) -> None:
    """Draw verdict, range of the gap and rates of the checks in a file, over time.

    Example: equipoise trend checks.parquet
    """
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in read_checks(file)]
    data = [{**row, "time": f"{row['time']:%Y-%m-%dT%H:%M:%S.%fZ}"} for row in rows]
    parts: list[Part] = []
    for metric in dict.fromkeys(row["metric"] for row in data):
        metric_rows = [row for row in data if row["metric"] == metric]
        parts += [Heading(metric.replace("_", " ")), Table(_gap_rows(metric_rows))]
        for rate in dict.fromkeys(row["rate"] for row in metric_rows):
            rate_rows = [row for row in metric_rows if row["rate"] == rate]
            parts.append(Table(_rate_rows(rate_rows), caption=rate.replace("_", " ")))
    show(Output(data, parts), json)


def _gap_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per check: when, the verdict, the range of the gap and its picture."""
    # A check has a row for each group and rate, and all of them have its time, verdict and gap.
    checks = {row["time"]: row for row in rows}
    return [
        {
            "time (UTC)": _short(time),
            "verdict": row["verdict"],
            "gap, points": _range_in_hundredths(row["gap_lower"], row["gap_upper"]),
            "0 to 100 points": draw_range(row["gap_lower"], row["gap_upper"], row["gamma"]),
        }
        for time, row in checks.items()
    ]


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
