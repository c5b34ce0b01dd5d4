"""How results are shown: one palette and style for pictures, tables, HTML, money, progress."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING, Any

from equipoise.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

# Colour-blind readers tell these apart, by lightness where colours are lost in print.
INK, GREY = "#1f2933", "#5f6c7b"
BLUE, FAIR, UNFAIR = "#24588f", "#00735c", "#b0440f"

STYLE: dict[Any, Any] = {
    "font.size": 10.0,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Arial", "sans-serif"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "equipoise",
}


@contextmanager
def plot_style() -> Iterator[None]:
    """Draw in this style inside."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("matplotlib", extra="report", purpose="pictures") from None
    with matplotlib.rc_context(STYLE):
        yield


def wrap_caption(words: str) -> str:
    """Return words as lines that fit above or below a picture."""
    return fill(words, 62)


def draw_ranges(
    ax: Axes, rows: Sequence[tuple[str, float, float | None, float]], colours: Sequence[str] = ()
) -> None:
    """Draw a bar per row of (name, low, middle, high) from top to bottom, a dot in the middle."""
    for at, (_, low, middle, high) in enumerate(rows):
        colour = colours[at] if colours else BLUE
        ax.plot([low, high], [at, at], color=colour, lw=8, solid_capstyle="butt", alpha=0.55)
        if middle is not None:
            ax.plot([middle], [at], "o", color=INK, ms=6, mec="white", zorder=3)
    ax.set_yticks(range(len(rows)), [name for name, *_ in rows])
    ax.set_ylim(len(rows) - 0.4, -0.8)
    ax.grid(visible=False, axis="y")


Row = Mapping[str, object]
MOST_ROWS = 30  # of a table in a notebook


class Displayable:
    """Mixin for results: ``to_frame``, ``plot``, and HTML for notebooks.

    A result defines its rows, its picture if it has one, and the lines above its table.
    """

    def _rows(self) -> Sequence[Row]:
        """Return the table, a mapping from column to value per row."""
        raise NotImplementedError

    def _draw(self, ax: Axes) -> None:
        """Draw the picture, if there is one."""

    def _lines(self) -> Sequence[str]:
        """Return the lines above the table, a heading first: the text but for indented tables."""
        return [line for line in str(self).splitlines() if not line.startswith("    ")]

    def _table(self) -> Sequence[Row]:
        """Return the rows that a notebook shows."""
        return self._rows()

    def to_frame(self) -> pandas.DataFrame:
        """Return the result as a table of pandas."""
        try:
            import pandas
        except ImportError:
            raise MissingExtra("pandas", extra="frames", purpose="tables") from None
        return pandas.DataFrame([dict(row) for row in self._rows()])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the result with matplotlib, in ``ax`` if it is given; return the axes."""
        if type(self)._draw is Displayable._draw:
            kind = type(self).__name__
            raise InvalidInput(f"a {kind} has no picture; draw what you need of its to_frame()")
        with plot_style():
            if ax is None:
                from matplotlib import pyplot

                _, ax = pyplot.subplots(figsize=(7.5, 4.0), layout="constrained")
            self._draw(ax)
        return ax

    def _repr_html_(self) -> str:
        first, *others = (escape(line.strip()) for line in self._lines())
        text = "".join(f"<br>{line}" for line in others)
        return f"<div><p><strong>{first}</strong>{text}</p>{html_table(self._table())}</div>"


def html_table(rows: Sequence[Row]) -> str:
    """Return rows as an HTML table, the columns named by the first of them."""
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{escape(name.replace("_", " "))}</th>' for name in rows[0])
    body = "".join(
        "<tr>"
        + "".join(f"<td>{escape(format_value(value))}</td>" for value in row.values())
        + "</tr>"
        for row in rows[:MOST_ROWS]
    )
    more = len(rows) - MOST_ROWS
    left = f"<p>… and {more:,} more rows</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{left}"


def format_value(value: object) -> str:
    """Write a value of a table: numbers of any size, nothing as a dash, words as they are.

    Examples
    --------
    >>> [format_value(x) for x in (290.5, 12_345.6, 1_234_567.0, float("inf"), 12_345, None)]
    ['290.5', '12,346', '1.23e+06', 'no limit', '12,345', '–']
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        if math.isinf(value):
            return "no limit"
        if abs(value) < 1e6:
            return f"{value:.4g}" if abs(value) < 1e3 else f"{value:,.0f}"
        return f"{value:.2e}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def format_money(amount: float, currency: str, decimals: int) -> str:
    """Write minor units as people read money.

    Examples
    --------
    >>> format_money(123456, "EUR", 2)
    '1,234.56 EUR'
    """
    unit = f" {currency}" if currency else ""
    return f"{amount / 10**decimals:,.{decimals}f}{unit}"


Progress = Callable[[float], object]
"""Is called with the share of the work that is done, from 0 to 1."""


def silent(share: float) -> None:
    """Ignore the progress."""
