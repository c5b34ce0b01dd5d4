"""The pictures of pages, drawn once for every width.

Across, a picture is measured in percent of its place; down, in pixels. So bars grow with the page
and letters do not, on a phone as on a wide screen. What must break into lines on a small page
stands below the picture as HTML: what an axis measures, what colours mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup, escape

from equipoise.finding import Finding, Interval
from equipoise.rates import RATES
from equipoise.report import sentences
from equipoise.report.content import Report
from equipoise.report.selection import FOUR_FIFTHS, SelectionRow

__all__ = [
    *("evidence", "gap", "impact", "linear", "money", "nice_ticks", "rates"),
]

Scale = Callable[[float], float]
Points = Sequence[tuple[float, float]]

# The page's style says what these are, by day and by night; outside of a page, by day.
INK, MUTED, RULE = "var(--ink, #1f2933)", "var(--muted, #5f6c7b)", "var(--rule, #d5dbe1)"
PAPER, SAND = "var(--paper, #ffffff)", "var(--sand, #e9e4d8)"
BLUE, PALE = "var(--blue, #24588f)", "var(--pale, #b9cde3)"
FAIR, FAIR_PALE = "var(--fair, #00735c)", "var(--fair-pale, #d9efe8)"
UNFAIR, UNFAIR_PALE = "var(--unfair, #b0440f)", "var(--unfair-pale, #f7e2d6)"


# -- what pages show -------------------------------------------------------------------------------


def gap(free: Finding | None, found: Finding) -> Markup:
    """Draw where the gap may be, before and now, against the question's two lines."""
    question, now = found.question, Interval(found.lower, found.upper, found.estimate)
    rows = [("past data", now, BLUE)]
    if free is not None:
        known = Interval(free.lower, free.upper)
        rows = [("before, for free", known, PALE), ("now", now, BLUE)]
    largest = max(interval.upper for _, interval, _ in rows)
    high = min(1.0, max(largest, question.threshold * 1.6) * 1.04)
    x = linear(0.0, high, 0.0, 100.0)
    step, top = 56.0, 24.0
    bottom = top + 8 + step * len(rows)
    picture = Picture(bottom + 24, "The gap between groups: established range")
    zones = (
        (0.0, question.gamma, FAIR_PALE, "fair"),
        (question.gamma, question.threshold, SAND, "either"),
        (question.threshold, high, UNFAIR_PALE, "unfair"),
    )
    for start, end, fill, word in zones:
        picture.bar(x(start), x(end), top, bottom - top, fill)
        if x(end) - x(start) > 11.0:
            picture.text((x(start) + x(end)) / 2, top - 8, word, anchor="middle", fill=MUTED)
    for row, (label, interval, fill) in enumerate(rows):
        y = top + 18 + row * step
        picture.text(0.0, y, label, shift=6, bold=interval is now, size=13, fill=INK)
        picture.range(x, interval, y + 10, 16, fill)
    picture.axis(x, nice_ticks(high, 5), bottom, hundredths=True)
    return picture.done(f"gap between groups, {sentences.unit(question)}")


def rates(free: Finding | None, found: Finding, rate: str) -> Markup:
    """Draw a rate of every group: a pale bar for what is free, a dark one for what is known now."""
    known, now = ({} if one is None else one.rates.get(rate, {}) for one in (free, found))
    groups = list(now or known)
    step = 54.0
    bottom = 8.0 + step * len(groups)
    picture = Picture(bottom + 24, RATES[rate].phrase)
    x = linear(0.0, 1.0, 0.0, 100.0)
    for tick in nice_ticks(1.0, 5):
        picture.line(x(tick), 0.0, x(tick), bottom, RULE)
    for row, group in enumerate(groups):
        y = 16.0 + step * row
        picture.text(0.0, y, group, size=13, fill=INK)
        if group in known:
            picture.bar(x(known[group].lower), x(known[group].upper), y + 7, 10, PALE)
        if group in now:
            picture.range(x, now[group], y + 19, 10, BLUE)
    picture.axis(x, nice_ticks(1.0, 5), bottom, hundredths=True)
    legend = {} if free is None else {"before, for free": PALE, "after the audit": BLUE}
    return picture.done(f"{RATES[rate].phrase} (%)", legend)


def evidence(report: Report) -> Markup | None:
    """Draw how the established range narrowed with the outcomes that were bought."""
    points, question = report.evidence, report.finding.question
    if len(points) < 2 or points[-1].answers == 0:
        return None
    high = min(1.0, max(max(p.upper for p in points), question.threshold * 1.5) * 1.02)
    top, bottom = 16.0, 236.0
    picture = Picture(bottom + 24, "Evidence over time")
    x = linear(0.0, float(points[-1].answers), 0.0, 100.0)
    y = linear(0.0, high, bottom, top)
    band = [(x(p.answers), y(p.upper)) for p in points]
    band += [(x(p.answers), y(p.lower)) for p in reversed(points)]
    guesses = [(x(p.answers), y(p.estimate)) for p in points if p.estimate is not None]
    picture.curve(band, guesses)
    for tick in nice_ticks(high):
        picture.line(0.0, y(tick), 100.0, y(tick), RULE)
        picture.text(0.0, y(tick) - 4, f"{tick * 100:g}", fill=INK)
    for value, colour in ((question.gamma, FAIR), (question.threshold, UNFAIR)):
        picture.line(0.0, y(value), 100.0, y(value), colour, width=1.5, dashes="6 4")
    picture.axis(x, nice_ticks(float(points[-1].answers), 4), bottom)
    upright = f"gap, {sentences.unit(question)}"
    legend = {"fair below this line": FAIR, "unfair above this line": UNFAIR}
    return picture.done(f"across: requests answered; up: {upright}", legend)


def impact(rows: Sequence[SelectionRow]) -> Markup:
    """Draw the impact ratios, as far as past data establish them, with the four-fifths line."""
    step, top = 48.0, 18.0
    drawn = [(row, row.impact_ratio) for row in rows if row.impact_ratio is not None]
    bottom = top + 4 + step * len(drawn)
    picture = Picture(bottom + 24, "Impact ratios")
    x = linear(0.0, 1.0, 0.0, 100.0)
    for at, (group, ratio) in enumerate(drawn):
        y = top + 16 + step * at
        picture.text(0.0, y, group.group, size=13, fill=INK)
        picture.bar(0.0, x(ratio.upper), y + 7, 18, PALE)
        fill = UNFAIR if group.four_fifths == "below" else BLUE
        picture.bar(0.0, x(ratio.lower), y + 7, 18, fill)
        if ratio.estimate is not None and ratio.lower > 0.15:
            words = f"{ratio.estimate:.2f}"
            picture.text(
                x(ratio.lower), y + 20, words, anchor="end", shift=-6, fill=PAPER, bold=True
            )
    picture.line(x(FOUR_FIFTHS), 2, x(FOUR_FIFTHS), bottom, INK, width=1.5, dashes="5 4")
    picture.text(x(FOUR_FIFTHS), 12, "four fifths", anchor="end", shift=-6, fill=MUTED)
    picture.axis(x, nice_ticks(1.0, 5), bottom)
    return picture.done("approval rate over the largest other group's")


def money(report: Report) -> Markup | None:
    """Draw the budget: spent, held, free."""
    status = report.status
    if not status.cap:
        return None
    left = status.cap - status.spent - status.reserved
    parts = {"spent": (status.spent, BLUE), "held": (status.reserved, PALE), "free": (left, SAND)}
    picture, start = Picture(36.0, "The budget"), 0.0
    for amount, fill in parts.values():
        if amount:
            end = start + 100.0 * amount / status.cap
            picture.bar(start, end, 2, 32, fill)
            start = end
    legend = {f"{word} {status.money(amount)}": fill for word, (amount, fill) in parts.items()}
    return picture.done("", legend)


# -- scales ----------------------------------------------------------------------------------------


def linear(low: float, high: float, start: float, end: float) -> Scale:
    """Return a map from [low, high] to [start, end].

    Examples
    --------
    >>> linear(0, 1, 100, 300)(0.5)
    200.0
    """
    span = (high - low) or 1.0
    return lambda value: start + (value - low) / span * (end - start)


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


# -- marks -----------------------------------------------------------------------------------------


class Picture:
    """A drawing that is built up mark by mark: x in percent of its place, y in pixels.

    Parameters
    ----------
    title
        What it shows, for those who cannot see it.
    """

    def __init__(self, height: float, title: str) -> None:
        self._parts = [
            f'<svg class="chart" height="{height:g}" role="img" aria-label="{escape(title)}">'
        ]

    def bar(self, start: float, end: float, y: float, height: float, fill: str) -> None:
        """Draw a bar; one too narrow to see is made visible."""
        self._parts.append(
            f'<rect x="{start:.2f}%" y="{y:.1f}" width="{max(end - start, 0.4):.2f}%" '
            f'height="{height:g}" fill="{fill}"/>'
        )

    def line(
        self, x1: float, y1: float, x2: float, y2: float, stroke: str, *, width: float = 1.0,
        dashes: str = "",
    ) -> None:  # fmt: skip
        """Draw a straight line."""
        dash = f' stroke-dasharray="{dashes}"' if dashes else ""
        self._parts.append(
            f'<line x1="{x1:.2f}%" y1="{y1:.1f}" x2="{x2:.2f}%" y2="{y2:.1f}" stroke="{stroke}" '
            f'stroke-width="{width:g}"{dash}/>'
        )

    def curve(self, band: Points, line: Points) -> None:
        """Fill a band and draw a line; both stretch with the page, the line's width does not."""
        low, high = min(y for _, y in band), max(y for _, y in [*band, *line])
        view = f'viewBox="0 {low:.1f} 100 {max(high - low, 1.0):.1f}" preserveAspectRatio="none"'
        area, path = (" ".join(f"{x:.2f},{y:.1f}" for x, y in some) for some in (band, line))
        self._parts.append(
            f'<svg y="{low:.1f}" width="100%" height="{max(high - low, 1.0):.1f}" {view}>'
            f'<polygon points="{area}" fill="{PALE}" opacity="0.75"/>'
            f'<polyline points="{path}" fill="none" stroke="{BLUE}" stroke-width="2.5" '
            'vector-effect="non-scaling-stroke"/></svg>'
        )

    def range(self, x: Scale, own: Interval, y: float, height: float, fill: str) -> None:
        """Draw an interval as a bar, with a rimmed dot at the best guess."""
        self.bar(x(own.lower), x(own.upper), y, height, fill)
        if own.estimate is not None:
            self._parts.append(
                f'<circle cx="{x(own.estimate):.2f}%" cy="{y + height / 2:.1f}" r="6" '
                f'fill="{INK}" stroke="{PAPER}" stroke-width="1.5"/>'
            )

    def text(
        self, x: float, y: float, words: str, *, fill: str, shift: float = 0.0, size: float = 12,
        anchor: str = "start", bold: bool = False,
    ) -> None:  # fmt: skip
        """Write words, some pixels beside a place."""
        weight = ' font-weight="600"' if bold else ""
        self._parts.append(
            f'<text x="{x:.2f}%" dx="{shift:g}" y="{y:.1f}" font-size="{size:g}" fill="{fill}" '
            f'text-anchor="{anchor}"{weight}>{escape(words)}</text>'
        )

    def axis(self, x: Scale, ticks: Sequence[float], y: float, *, hundredths: bool = False) -> None:
        """Draw an axis with its numbers, shares in hundredths."""
        self.line(0.0, y, 100.0, y, MUTED)
        for tick in ticks:
            shown = f"{tick * 100:g}" if hundredths else f"{tick:,g}"
            self.line(x(tick), y, x(tick), y + 5, MUTED)
            self.text(x(tick), y + 18, shown, anchor="middle", fill=MUTED)

    def done(self, axis: str, legend: Mapping[str, str] | None = None) -> Markup:
        """Return the drawing with what its axis measures and what its colours mean."""
        # Every word goes through escape().
        below = f'<p class="axis">{escape(axis)}</p>' if axis else ""
        entries = "".join(
            f'<span><svg class="swatch"><rect width="14" height="14" fill="{fill}"/></svg>'
            f"{escape(words)}</span>"
            for words, fill in (legend or {}).items()
        )
        key = f'<p class="legend">{entries}</p>' if entries else ""
        return Markup("".join([*self._parts, "</svg>", below, key]))
