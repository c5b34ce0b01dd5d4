"""How pictures look: one palette and one style, and the two kinds of bars that results need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from equipoise.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BLUE",
    "FAIR",
    "GREY",
    "INK",
    "PALE",
    "SAND",
    "STYLE",
    "UNFAIR",
    "draw_ranges",
    "draw_stacked",
    "draw_zones",
    "styled",
    "wrapped",
]

# Told apart by everybody: blue, bluish green and vermilion, and by lightness where they meet.
INK, GREY, PALE, SAND = "#1f2933", "#5f6c7b", "#b9cde3", "#e9e4d8"
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
def styled() -> Iterator[None]:
    """Draw in this style inside."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("matplotlib", extra="report", purpose="pictures") from None
    with matplotlib.rc_context(STYLE):
        yield


def wrapped(words: str) -> str:
    """Return words as lines that fit above or below a picture."""
    return "\n".join(wrap(words, 62))


def draw_zones(ax: Axes, gamma: float, threshold: float, high: float, rows: float) -> None:
    """Shade where FAIR is right, where both are, and where UNFAIR is, behind the first rows."""
    zones = (
        (0.0, gamma, FAIR, "fair"),
        (gamma, threshold, GREY, "either"),
        (threshold, high, UNFAIR, "unfair"),
    )
    for start, end, colour, word in zones:
        ax.fill_between([start, end], -0.5, rows - 0.5, color=colour, alpha=0.13, lw=0)
        if end - start > 0.06 * high:
            ax.text(
                (start + end) / 2, -0.56, word, ha="center", va="bottom", color=colour, size=8.5
            )


def draw_ranges(
    ax: Axes,
    rows: Sequence[tuple[str, float, float | None, float]],
    colours: Sequence[str] = (),
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


def draw_stacked(
    ax: Axes, names: Sequence[str], parts: Mapping[str, tuple[Sequence[float], str]]
) -> None:
    """Draw a bar per name from top to bottom, made of parts that a legend explains."""
    starts = [0.0] * len(names)
    for word, (amounts, colour) in parts.items():
        ax.barh(range(len(names)), amounts, left=starts, color=colour, label=word, height=0.62)
        starts = [start + amount for start, amount in zip(starts, amounts, strict=True)]
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.legend(loc="upper left", bbox_to_anchor=(0.0, -0.16), ncols=len(parts))
