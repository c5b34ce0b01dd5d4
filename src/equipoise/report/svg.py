"""Pictures as SVG text: a few marks on a few scales, readable without colour."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup, escape

__all__ = [
    "BLUE",
    "FAIR",
    "FAIR_PALE",
    "INK",
    "MUTED",
    "PALE",
    "PAPER",
    "RULE",
    "SAND",
    "UNFAIR",
    "UNFAIR_PALE",
    "Picture",
    "linear",
    "logarithmic",
    "nice_ticks",
]

# The page's style says what these are, by day and by night; outside of a page, by day.
INK, MUTED, RULE = "var(--ink, #1f2933)", "var(--muted, #5f6c7b)", "var(--rule, #d5dbe1)"
PAPER, SAND = "var(--paper, #ffffff)", "var(--sand, #e9e4d8)"
BLUE, PALE = "var(--blue, #24588f)", "var(--pale, #b9cde3)"
FAIR, FAIR_PALE = "var(--fair, #00735c)", "var(--fair-pale, #d9efe8)"
UNFAIR, UNFAIR_PALE = "var(--unfair, #b0440f)", "var(--unfair-pale, #f7e2d6)"

Scale = Callable[[float], float]

FAMILY = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"


def linear(low: float, high: float, start: float, end: float) -> Scale:
    """Return a map from [low, high] to pixels [start, end].

    Examples
    --------
    >>> linear(0, 1, 100, 300)(0.5)
    200.0
    """
    span = (high - low) or 1.0
    return lambda value: start + (value - low) / span * (end - start)


def logarithmic(low: float, high: float, start: float, end: float) -> Scale:
    """Return a map on a logarithmic scale."""
    inner = linear(math.log10(low), math.log10(high), start, end)
    return lambda value: inner(math.log10(max(value, low)))


def nice_ticks(high: float, most: int = 6) -> list[float]:
    """Return round numbers from 0 to about ``high``.

    Examples
    --------
    >>> nice_ticks(0.34)
    [0.0, 0.1, 0.2, 0.3]
    """
    if high <= 0:
        return [0.0]
    raw = high / most
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(m * size for m in (1, 2, 5, 10) if m * size >= raw * (1 - 1e-9))
    return [round(i * step, 12) for i in range(int(high / step + 1e-9) + 1)]


class Picture:
    """A drawing that is built up mark by mark.

    Parameters
    ----------
    width, height
        In units of the drawing; on the page it is as wide as its place.
    title
        What it shows, for those who cannot see it.
    """

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width = width
        self.height = height
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            f'role="img" aria-label="{escape(title)}" font-family="{escape(FAMILY)}">'
        ]

    def rectangle(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        *,
        radius: float = 0,
        opacity: float = 1.0,
    ) -> None:
        """Draw a filled rectangle; one too narrow to see is made visible."""
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1.5):.1f}" height="{height:.1f}" '
            f'fill="{fill}" rx="{radius:g}" opacity="{opacity:g}"/>'
        )

    def line(
        self,
        points: Sequence[tuple[float, float]],
        stroke: str,
        *,
        width: float = 1.0,
        dashes: str = "",
    ) -> None:
        """Draw a line through points."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = f' stroke-dasharray="{dashes}"' if dashes else ""
        self._parts.append(
            f'<polyline points="{path}" fill="none" stroke="{stroke}" '
            f'stroke-width="{width:g}" stroke-linejoin="round"{dash}/>'
        )

    def area(
        self, points: Sequence[tuple[float, float]], fill: str, *, opacity: float = 1.0
    ) -> None:
        """Fill the area inside points."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f'<polygon points="{path}" fill="{fill}" opacity="{opacity:g}"/>')

    def dot(self, x: float, y: float, radius: float, fill: str) -> None:
        """Draw a dot with a rim."""
        self._parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{fill}" '
            f'stroke="{PAPER}" stroke-width="1.5"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: float = 13,
        fill: str = INK,
        anchor: str = "start",
        bold: bool = False,
    ) -> None:
        """Write words."""
        weight = ' font-weight="600"' if bold else ""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{fill}" '
            f'text-anchor="{anchor}"{weight}>{escape(words)}</text>'
        )

    def done(self) -> Markup:
        """Return the drawing."""
        # Every word went through escape() above.
        return Markup("".join([*self._parts, "</svg>"]))
