"""A drawing as SVG: marks, axes and legends, measured in percent across and in pixels down.

So bars grow with the page and letters do not, on a phone as on a wide screen. What must break into
lines on a small page stands below the picture as HTML: what an axis measures, what colours mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from equipoise.finding import Interval

Points = Sequence[tuple[float, float]]

# The page's style sets these colours, by day and by night; outside of a page those by day count.
INK = "var(--ink, #1f2933)"
MUTED = "var(--muted, #5f6c7b)"
RULE = "var(--rule, #d5dbe1)"
PAPER = "var(--paper, #ffffff)"
SAND = "var(--sand, #e9e4d8)"
BLUE = "var(--blue, #24588f)"
PALE = "var(--pale, #b9cde3)"
FAIR_COLOUR = "var(--fair, #00735c)"
FAIR_PALE = "var(--fair-pale, #d9efe8)"
UNFAIR_COLOUR = "var(--unfair, #b0440f)"
UNFAIR_PALE = "var(--unfair-pale, #f7e2d6)"


def round_ticks(high: float, max_steps: int) -> list[float]:
    """Return round numbers from 0 to about ``high``, at most ``max_steps`` steps apart.

    Examples
    --------
    >>> round_ticks(0.34, 6)
    [0.0, 0.1, 0.2, 0.3]
    """
    least_step = high / max_steps
    magnitude = 10.0 ** math.floor(math.log10(least_step))
    # The tolerance keeps a step that is round already from being rounded up.
    steps = [factor * magnitude for factor in (1, 2, 5, 10)]
    step = next(step for step in steps if step >= least_step * (1 - 1e-9))
    n_steps = int(high / step + 1e-9)
    return [round(index * step, 12) for index in range(n_steps + 1)]


class Picture:
    """A drawing that is built up mark by mark: x from 0 to ``high``, y in pixels.

    ``title`` describes the drawing for screen readers.
    """

    def __init__(self, title: str, height: float, high: float = 1.0) -> None:
        self.high = high
        self._marks = [
            f'<svg class="chart" height="{height:g}" role="img" aria-label="{escape(title)}">'
        ]

    def _percent(self, x: float) -> str:
        return f"{100.0 * x / self.high:.2f}"

    def bar(self, start: float, end: float, y: float, height: float, fill: str) -> None:
        """Draw a bar; one too narrow to see is made visible."""
        width = max(end - start, 0.004 * self.high)
        self._marks.append(
            f'<rect x="{self._percent(start)}%" y="{y:.1f}" width="{self._percent(width)}%" '
            f'height="{height:g}" fill="{fill}"/>'
        )

    def range(self, interval: Interval, y: float, height: float, fill: str) -> None:
        """Draw an interval as a bar, with a rimmed dot at the best guess."""
        self.bar(interval.lower, interval.upper, y, height, fill)
        if interval.estimate is not None:
            self._marks.append(
                f'<circle cx="{self._percent(interval.estimate)}%" cy="{y + height / 2:.1f}" r="6" '
                f'fill="{INK}" stroke="{PAPER}" stroke-width="1.5"/>'
            )

    def line(
        self, x1: float, y1: float, x2: float, y2: float, stroke: str, *, width: float = 1.0,
        dashes: str = "none",
    ) -> None:  # fmt: skip
        """Draw a straight line."""
        self._marks.append(
            f'<line x1="{self._percent(x1)}%" y1="{y1:.1f}" x2="{self._percent(x2)}%" '
            f'y2="{y2:.1f}" stroke="{stroke}" stroke-width="{width:g}" '
            f'stroke-dasharray="{dashes}"/>'
        )

    def curve(self, band: Points, line: Points) -> None:
        """Fill a band and draw a line; both stretch with the page, the line's width does not."""
        top = min(y for _, y in band)
        bottom = max(y for _, y in [*band, *line])
        height = f"{max(bottom - top, 1.0):.1f}"
        view = f'viewBox="0 {top:.1f} 100 {height}" preserveAspectRatio="none"'
        self._marks.append(
            f'<svg y="{top:.1f}" width="100%" height="{height}" {view}>'
            f'<polygon points="{self._join(band)}" fill="{PALE}" opacity="0.75"/>'
            f'<polyline points="{self._join(line)}" fill="none" stroke="{BLUE}" stroke-width="2.5" '
            'vector-effect="non-scaling-stroke"/></svg>'
        )

    def _join(self, points: Points) -> str:
        return " ".join(f"{self._percent(x)},{y:.1f}" for x, y in points)

    def text(
        self, x: float, y: float, text: str, *, fill: str = INK, shift: float = 0.0,
        size: float = 12, anchor: str = "start", bold: bool = False,
    ) -> None:  # fmt: skip
        """Write a text, ``shift`` pixels beside a place."""
        self._marks.append(
            f'<text x="{self._percent(x)}%" dx="{shift:g}" y="{y:.1f}" font-size="{size:g}" '
            f'fill="{fill}" text-anchor="{anchor}" font-weight="{600 if bold else 400}">'
            f"{escape(text)}</text>"
        )

    def axis(self, y: float, max_steps: int, *, hundredths: bool = False) -> None:
        """Draw an axis with round numbers; ``hundredths`` writes shares as percentages."""
        self.line(0.0, y, self.high, y, MUTED)
        for tick in round_ticks(self.high, max_steps):
            label = f"{tick * 100:g}" if hundredths else f"{tick:,g}"
            self.line(tick, y, tick, y + 5, MUTED)
            self.text(tick, y + 18, label, anchor="middle", fill=MUTED)

    def done(self, axis: str, legend: Mapping[str, str] | None = None) -> Markup:
        """Return the drawing with what its axis measures and what its colours mean."""
        # Markup is trusted as it is, so every text must have gone through escape().
        parts = [*self._marks, "</svg>"]
        if axis:
            parts.append(f'<p class="axis">{escape(axis)}</p>')
        if legend:
            entries = [_legend_entry(meaning, colour) for meaning, colour in legend.items()]
            parts.append(f'<p class="legend">{"".join(entries)}</p>')
        return Markup("".join(parts))


def _legend_entry(meaning: str, colour: str) -> str:
    swatch = f'<svg class="swatch"><rect width="14" height="14" fill="{colour}"/></svg>'
    return f"<span>{swatch}{escape(meaning)}</span>"
