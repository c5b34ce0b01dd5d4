"""Tables that several commands show, at home on 80 columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from equipoise.cells import Cells
from equipoise.finding import Finding
from equipoise.question import Verdict

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["colour_of", "new_table", "number", "past_table", "rates_table"]

COLOURS = {Verdict.FAIR: "green", Verdict.UNFAIR: "red", Verdict.INCONCLUSIVE: "yellow"}


def colour_of(verdict: Verdict) -> str:
    """Return a verdict's colour."""
    return COLOURS[verdict]


def number(value: float) -> str:
    """Write a count or a cost, whatever its size.

    Examples
    --------
    >>> [number(x) for x in (290.5, 12_345.6, 1_234_567.0, float("inf"))]
    ['290.5', '12,346', '1.23e+06', 'no limit']
    """
    if math.isinf(value):
        return "no limit"
    if value < 1e6:
        return f"{value:.4g}" if value < 1e3 else f"{value:,.0f}"
    return f"{value:.2e}"


def new_table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table: the first column for words, the others for numbers."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    for at, column in enumerate(columns):
        table.add_column(column, justify="right" if at else "left", overflow="fold")
    return table


def past_table(cells: Cells) -> Table:
    """Show past decisions: what is known of each group."""
    random_accepts = any(c.random_accepts for c in cells.values())
    more = ("random accepts",) if random_accepts else ()
    table = new_table("group", "people", "approved", "good of these", "denied: nobody knows", *more)
    for group, c in cells.items():
        known = c.approved - c.approved_unknown
        good = f"{c.approved_positive / known:.1%}" if known else "-"
        good += f" ({c.approved_unknown:,g} unknown)" if c.approved_unknown else ""
        denied = [
            f"{c.unseen:,g}",
            *([f"{c.denied - c.unseen:,g} known"] if random_accepts else []),
        ]
        table.add_row(group, f"{c.total:,g}", f"{c.approved / c.total:.1%}", good, *denied)
    return table


def rates_table(finding: Finding) -> Table:
    """Show the interval of every rate of every group."""
    names = [rate.replace("_", " ") for rate in finding.rates]
    table = new_table("group", *names)
    groups = next(iter(finding.rates.values()), {})
    for group in groups:
        intervals = (rates[group] for rates in finding.rates.values())
        table.add_row(group, *(f"{i.lower:.3f} to {i.upper:.3f}" for i in intervals))
    return table
