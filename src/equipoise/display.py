"""How results are shown: one palette and style for pictures, tables, HTML, money, progress."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import ROUND_CEILING, Decimal
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING, Any

from equipoise.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

# Colour-blind readers tell these apart, by lightness where colours are lost in print. They are
# the colours of the same meaning in report/templates/look.css; a test compares them.
INK = "#1b2430"
GREY = "#55606d"
BLUE = "#1f5a9c"
FAIR = "#006b57"
UNFAIR = "#a63c06"
UNDECIDED = "#755600"  # no answer: in progress, INCONCLUSIVE, or either answer is right

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
    """Draw pictures of one style inside a ``with`` block.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("matplotlib", extra="report", purpose="pictures") from None
    with matplotlib.rc_context(STYLE):
        yield


def wrap_caption(text: str) -> str:
    """Return a text as lines that fit above or below a picture."""
    return fill(text, _CAPTION_WIDTH)


def draw_ranges(
    ax: Axes, rows: Sequence[tuple[str, float, float | None, float]], colours: Sequence[str] = ()
) -> None:
    """Draw a bar per row of (name, low, middle, high) from top to bottom, a dot in the middle.

    ``colours`` has one colour per row; all bars are blue without it.
    """
    names = []
    for position, (name, low, middle, high) in enumerate(rows):
        names.append(name)
        colour = colours[position] if colours else BLUE
        height = [position, position]
        ax.plot([low, high], height, color=colour, lw=8, solid_capstyle="butt", alpha=0.55)
        if middle is not None:
            ax.plot([middle], [position], "o", color=INK, ms=6, mec="white", zorder=3)
    ax.set_yticks(range(len(rows)), names)
    ax.set_ylim(len(rows) - 0.4, -0.8)  # the first row on top
    ax.grid(visible=False, axis="y")


Row = Mapping[str, object]
"""Column -> value."""

MAX_NOTEBOOK_ROWS = 30
_CAPTION_WIDTH = 62  # characters
_ROUNDING = 1e-9  # of the last place: a number that exceeds a round one by less is that number


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
        """Return the lines above the table, a heading first."""
        return str(self).splitlines()

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
        # A result without a picture says so, instead of showing empty axes.
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
        heading, *lines = (escape(line.strip()) for line in self._lines())
        text = "".join(f"<br>{line}" for line in lines)
        return f"<div><p><strong>{heading}</strong>{text}</p>{html_table(self._table())}</div>"


def html_table(rows: Sequence[Row]) -> str:
    """Return rows as an HTML table, the columns named by the first of them."""
    if not rows:
        return ""
    headers = [f'<th scope="col">{escape(name.replace("_", " "))}</th>' for name in rows[0]]
    lines = []
    for row in rows[:MAX_NOTEBOOK_ROWS]:
        columns = [f"<td>{escape(format_value(value))}</td>" for value in row.values()]
        lines.append(f"<tr>{''.join(columns)}</tr>")
    n_left_out = len(rows) - MAX_NOTEBOOK_ROWS
    note = f"<p>… and {n_left_out:,} more rows</p>" if n_left_out > 0 else ""
    return (
        f"<table><thead><tr>{''.join(headers)}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table>{note}"
    )


def format_value(value: object) -> str:
    """Write a value of a table: whole numbers in full, others with three figures, None as a dash.

    Examples
    --------
    >>> [format_value(x) for x in (290.5, 12_345.6, 1_234_567.8, float("inf"), 12_345, None)]
    ['290', '12,300', '1,230,000', 'no limit', '12,345', '–']
    """
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return str(value)
    if math.isinf(value):
        return "no limit"
    return f"{value:,.0f}" if value.is_integer() else format_figures(value)


def format_figures(value: float) -> str:
    """Write a number with three significant figures, in full: never as 7.13e+05.

    Examples
    --------
    >>> format_figures(713_250.4), format_figures(10.32), format_figures(0.0000471)
    ('713,000', '10.3', '0.0000471')
    """
    return format_number(value, 3)


def format_number(value: float, figures: int = 6) -> str:
    """Write a number in full, with so many significant figures at most: never as 1e-07.

    Examples
    --------
    >>> format_number(1e-7), format_number(0.05), format_number(1_234_567, 12)
    ('0.0000001', '0.05', '1,234,567')
    """
    if not math.isfinite(value):
        return f"{value:g}"
    # By way of a decimal number, which is written without an exponent.
    return f"{Decimal(f'{value:.{figures}g}'):,f}"


def round_down(value: float, decimals: int) -> str:
    """Write a lower bound: the largest number of so many decimals that is not above it."""
    return f"{math.floor(value * 10**decimals + _ROUNDING) / 10**decimals:.{decimals}f}"


def round_up(value: float, decimals: int) -> str:
    """Write an upper bound: the smallest number of so many decimals that is not below it.

    Examples
    --------
    >>> round_down(12.37, 1), round_up(12.31, 1), round_up(0.1 + 0.2, 1)
    ('12.3', '12.4', '0.3')
    """
    return f"{math.ceil(value * 10**decimals - _ROUNDING) / 10**decimals:.{decimals}f}"


def format_hundredths(lower: float, upper: float) -> str:
    """Write a range of shares in hundredths, rounded outwards to one decimal.

    Examples
    --------
    >>> format_hundredths(0.0, 0.7342)
    '0 to 73.5'
    """
    low = round_down(100.0 * lower, 1)
    high = round_up(100.0 * upper, 1)
    return f"{trim_hundredths(low)} to {trim_hundredths(high)}"


def trim_hundredths(hundredths: str) -> str:
    """Return "0" and "100" without a decimal: they are the ends of the scale."""
    return {"0.0": "0", "100.0": "100"}.get(hundredths, hundredths)


def format_count(count: float) -> str:
    """Write how many there are, or how much, in full: never as 1.23e+06.

    Examples
    --------
    >>> format_count(1_234_567), format_count(40.5)
    ('1,234,567', '40.5')
    """
    return format_number(count, 12)


def format_p_value(p_value: float) -> str:
    """Write the p-value of a test: two figures, or that it is tiny.

    Examples
    --------
    >>> format_p_value(0.0312), format_p_value(1e-30)
    ('0.031', 'below 0.0001')
    """
    return format_number(p_value, 2) if p_value >= 1e-4 else "below 0.0001"


def format_level(level: float) -> str:
    """Write an error probability in percent, rounded up to three figures, never as 0% or 100%.

    Examples
    --------
    >>> [format_level(level) for level in (0.05, 1e-5, 0.012341, 0.99999)]
    ['5%', '0.001%', '1.24%', '99.999%']
    """
    # Twelve figures, so that 0.07 is not rounded up for a float's last digit.
    percent = 100 * Decimal(f"{level:.12g}")
    if percent >= 100:
        percent = 100 * Decimal(repr(level))
    # The last place that is written: the third figure, but no more than ten decimals.
    place = max(percent.adjusted() - 2, -10)
    rounded = percent.quantize(Decimal(1).scaleb(place), rounding=ROUND_CEILING)
    # A level below 1 must not read as 100%, so it gets more places until it does not.
    while rounded >= 100 > percent:
        place -= 1
        rounded = percent.quantize(Decimal(1).scaleb(place), rounding=ROUND_CEILING)
    return f"{rounded.normalize():f}%"


def format_money(amount: float, currency: str, decimals: int) -> str:
    """Write an amount in units of ``10**-decimals`` of a currency, as people read money.

    Examples
    --------
    >>> format_money(123456, "EUR", 2)
    '1,234.56 EUR'
    """
    unit = f" {currency}" if currency else ""
    return f"{amount / 10**decimals:,.{decimals}f}{unit}"


Progress = Callable[[float], object]
"""A function that is called with the share of the work that is done, from 0 to 1."""


def silent(share: float) -> None:
    """Ignore the progress."""
