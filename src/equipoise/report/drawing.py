"""A drawing as SVG: marks and axes, measured in percent across and in pixels down.

So bars grow with the page and letters do not, on a phone as on a wide screen. Colours are classes
of the style sheet that report and dashboard share (``templates/look.css``), where each has one
meaning; outside of a page a drawing has no colours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

Points = Sequence[tuple[float, float]]


def round_ticks(high: float, max_steps: int) -> list[float]:
    """Return round numbers from 0 to about ``high``, at most ``max_steps`` steps apart.

    Examples
    --------
    >>> round_ticks(0.34, 6)
    [0.0, 0.1, 0.2, 0.3]
    """
    step = round_step(high, max_steps)
    n_steps = int(high / step + 1e-9)  # 0.3 / 0.1 is a little less than 3
    # 3 * 0.1 is 0.30000000000000004, which no axis may show.
    return [round(index * step, 12) for index in range(n_steps + 1)]


def round_step(width: float, max_steps: int) -> float:
    """Return the least of 1, 2, 5, 10, … that fits at most ``max_steps`` times into a width.

    Examples
    --------
    >>> round_step(0.34, 6), round_step(70, 4)
    (0.1, 20.0)
    """
    least_step = width / max_steps
    magnitude = 10.0 ** math.floor(math.log10(least_step))
    # The tolerance keeps a step that is round already from being rounded up.
    steps = [factor * magnitude for factor in (1, 2, 5, 10)]
    return round(next(step for step in steps if step >= least_step * (1 - 1e-9)), 12)


class Drawing:
    """A drawing that is built up mark by mark: x from ``low`` to ``high``, y in pixels.

    Texts are escaped here, so whatever a caller passes is text.
    """

    def __init__(self, high: float, low: float = 0.0) -> None:
        self.low = low
        self.high = high
        self._marks: list[str] = []

    def percent(self, x: float) -> str:
        """Return where a value lies between the ends, as SVG writes it."""
        return f"{100.0 * (x - self.low) / (self.high - self.low):.2f}%"

    def bar(
        self, start: float, end: float, y: str, height: str, name: str, *, down: float = 0.0
    ) -> None:
        """Draw a bar, ``down`` pixels below y; one too narrow to see is made visible."""
        width = max(end - start, 0.004 * (self.high - self.low))
        # percent() says where a value lies: a width is that of a value so far from the left end.
        move = f' transform="translate(0 {down:g})"' if down else ""
        self._marks.append(
            f'<rect class="{name}" x="{self.percent(start)}" '
            f'width="{self.percent(self.low + width)}" y="{y}" height="{height}"{move}/>'
        )

    def dot(
        self, x: float, y: str, name: str = "dot", *, radius: float = 5.5, down: float = 0.0
    ) -> None:
        """Draw a dot; a hollow one is an estimate."""
        move = f' transform="translate(0 {down:g})"' if down else ""
        self._marks.append(
            f'<circle class="{name}" cx="{self.percent(x)}" cy="{y}" r="{radius:g}"{move}/>'
        )

    def line(
        self, x1: float, y1: str, x2: float, y2: str, name: str, *, width: float = 1.0
    ) -> None:
        """Draw a straight line."""
        self._marks.append(
            f'<line class="{name}" x1="{self.percent(x1)}" y1="{y1}" x2="{self.percent(x2)}" '
            f'y2="{y2}" stroke-width="{width:g}"/>'
        )

    def text(
        self, x: float, y: float, text: str, name: str = "", *, shift: float = 0.0,
        anchor: str = "start",
    ) -> None:  # fmt: skip
        """Write a text, ``shift`` pixels beside a place."""
        self._marks.append(
            f'<text class="{name}" x="{self.percent(x)}" dx="{shift:g}" y="{y:g}" '
            f'text-anchor="{anchor}">{escape(text)}</text>'
        )

    def curves(self, top: float, height: float, curves: Sequence[tuple[str, str]]) -> None:
        """Draw paths of (class, path) that stretch with the page, while their lines do not.

        A path has x in units of the drawing and y in pixels from ``top``.
        """
        paths = [f'<path class="{name}" d="{path}"/>' for name, path in curves]
        self._marks.append(
            f'<svg x="0" y="{top:g}" width="100%" height="{height:g}" overflow="visible" '
            f'viewBox="{self.low:g} 0 {self.high - self.low:g} {height:g}" '
            f'preserveAspectRatio="none" aria-hidden="true">{"".join(paths)}</svg>'
        )

    def axis(
        self, y: float, title: str, max_steps: int, *, highest_tick: float | None = None,
        hundredths: bool = False,
    ) -> None:  # fmt: skip
        """Draw an axis with round numbers, up to ``most``, and what it measures below them."""
        self.line(self.low, f"{y:g}", self.high, f"{y:g}", "l-axis")
        for tick in round_ticks(min(self.high, highest_tick or self.high), max_steps):
            label = f"{tick * 100:g}" if hundredths else f"{tick:,g}"
            if tick >= 1e6 and not hundredths:  # "g" would write an exponent
                label = f"{tick:,.0f}"
            self.line(tick, f"{y:g}", tick, f"{y + 5:g}", "l-axis")
            # A number at the right edge would stick out.
            is_last = tick > 0.96 * self.high
            self.text(tick, y + 18, label, "quiet", anchor="end" if is_last else "middle")
        middle = (self.low + self.high) / 2
        self.text(middle, y + 36, title, "quiet", anchor="middle")

    def to_chart(self, kind: str, height: float, label: str) -> Markup:
        """Return a chart with a text that says what it shows, for whoever cannot see it."""
        return Markup(
            f'<svg class="chart {kind}" height="{height:g}" role="img" '
            f'aria-label="{escape(label)}">{self._joined}</svg>'
        )

    def to_cell(self) -> Markup:
        """Return the drawing for a table, whose other columns have the numbers."""
        return Markup(f'<svg aria-hidden="true">{self._joined}</svg>')

    @property
    def _joined(self) -> str:
        return "".join(self._marks)


def step_path(points: Points) -> str:
    """Return a path that keeps its height until the next point."""
    first_x, first_y = points[0]
    parts = [f"M{first_x:g} {first_y:.1f}"]
    # Across at the old height, then up or down at the place where it changed.
    parts += [f"H{x:g}V{y:.1f}" for x, y in points[1:]]
    return "".join(parts)


KEY_MARKS = {
    "dot": '<circle class="dot" cx="9" cy="6" r="5"/>',
    "now": '<rect class="now" width="18" height="10" y="1"/>',
    "before": '<rect class="before" width="18" height="10" y="1"/>',
    "tol": '<rect class="tol" width="18" height="10" y="1"/>',
    "spent": '<rect class="spent" width="18" height="10" y="1"/>',
    "held": '<rect class="held" width="18" height="10" y="1"/>',
    "unspent": '<rect class="unspent" width="18" height="10" y="1"/>',
}


def key(entries: Sequence[tuple[str, str]]) -> Markup:
    """Return what marks mean: (mark, meaning) in the order in which they are listed."""
    entry_marks = [
        f'<li><svg aria-hidden="true">{KEY_MARKS[mark]}</svg>{escape(meaning)}</li>'
        for mark, meaning in entries
    ]
    return Markup(f'<ul class="key">{"".join(entry_marks)}</ul>')
