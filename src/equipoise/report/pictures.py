"""The pictures of pages, drawn once for every width.

Across, a picture is measured in percent of its place; down, in pixels. So bars grow with the page
and letters do not, on a phone as on a wide screen. What must break into lines on a small page
stands below the picture as HTML: what an axis measures, what colours mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from equipoise.finding import Finding, Interval
from equipoise.rates import RATES
from equipoise.report import sentences
from equipoise.report.content import Report
from equipoise.report.selection import FOUR_FIFTHS, SelectionRow

Points = Sequence[tuple[float, float]]

# The page's style says what these are, by day and by night; outside of a page, by day.
INK, MUTED, RULE = "var(--ink, #1f2933)", "var(--muted, #5f6c7b)", "var(--rule, #d5dbe1)"
PAPER, SAND = "var(--paper, #ffffff)", "var(--sand, #e9e4d8)"
BLUE, PALE = "var(--blue, #24588f)", "var(--pale, #b9cde3)"
FAIR_COLOUR, FAIR_PALE = "var(--fair, #00735c)", "var(--fair-pale, #d9efe8)"
UNFAIR_COLOUR, UNFAIR_PALE = "var(--unfair, #b0440f)", "var(--unfair-pale, #f7e2d6)"


# -- what pages show -------------------------------------------------------------------------------


def draw_gap(free: Finding | None, finding: Finding) -> Markup:
    """Draw where the gap may be, before and now, against the question's two lines."""
    question, current = finding.question, Interval(finding.lower, finding.upper, finding.estimate)
    rows = [("past data", current, BLUE)]
    if free is not None:
        before = Interval(free.lower, free.upper)
        rows = [("before, for free", before, PALE), ("now", current, BLUE)]
    largest = max(interval.upper for _, interval, _ in rows)
    high = min(1.0, max(largest, question.threshold * 1.6) * 1.04)
    top, bottom = 24.0, 32.0 + 56.0 * len(rows)
    picture = Picture("The gap between groups: established range", bottom + 24, high)
    zones = (
        (0.0, question.gamma, FAIR_PALE, "fair"),
        (question.gamma, question.threshold, SAND, "either"),
        (question.threshold, high, UNFAIR_PALE, "unfair"),
    )
    for start, end, colour, zone in zones:
        picture.bar(start, end, top, bottom - top, colour)
        if end - start > 0.11 * high:
            picture.text((start + end) / 2, top - 8, zone, anchor="middle", fill=MUTED)
    for row, (label, interval, colour) in enumerate(rows):
        top_of_row = top + 18 + 56.0 * row
        picture.text(0.0, top_of_row, label, shift=6, bold=interval is current, size=13)
        picture.range(interval, top_of_row + 10, 16, colour)
    picture.axis(bottom, 5, hundredths=True)
    return picture.done(f"gap between groups, {sentences.name_gap_unit(question)}")


def draw_rates(free: Finding | None, finding: Finding, rate: str) -> Markup:
    """Draw a rate of every group: a pale bar for what is free, a dark one for what is known now."""
    before, current = ({} if one is None else one.rates.get(rate, {}) for one in (free, finding))
    groups = list(current or before)
    bottom = 8.0 + 54.0 * len(groups)
    picture = Picture(RATES[rate].phrase, bottom + 24)
    for tick in round_ticks(1.0, 5):
        picture.line(tick, 0.0, tick, bottom, RULE)
    for row, group in enumerate(groups):
        top_of_row = 16.0 + 54.0 * row
        picture.text(0.0, top_of_row, group, size=13)
        if group in before:
            picture.bar(before[group].lower, before[group].upper, top_of_row + 7, 10, PALE)
        if group in current:
            picture.range(current[group], top_of_row + 19, 10, BLUE)
    picture.axis(bottom, 5, hundredths=True)
    legend = {} if free is None else {"before, for free": PALE, "after the audit": BLUE}
    return picture.done(f"{RATES[rate].phrase} (%)", legend)


def draw_evidence(report: Report) -> Markup | None:
    """Draw how the established range narrowed with the outcomes that were bought."""
    points, question = report.evidence, report.finding.question
    if len(points) < 2 or points[-1].answers == 0:
        return None
    top_gap = min(1.0, max(max(point.upper for point in points), question.threshold * 1.5) * 1.02)
    bottom = 236.0

    def height_of(share: float) -> float:
        return bottom - 220.0 * share / top_gap

    picture = Picture("Evidence over time", bottom + 24, float(points[-1].answers))
    band = [(point.answers, height_of(point.upper)) for point in points]
    band += [(point.answers, height_of(point.lower)) for point in reversed(points)]
    picture.curve(
        band,
        [
            (point.answers, height_of(point.estimate))
            for point in points
            if point.estimate is not None
        ],
    )
    for tick in round_ticks(top_gap, 6):
        picture.line(0.0, height_of(tick), picture.high, height_of(tick), RULE)
        picture.text(0.0, height_of(tick) - 4, f"{tick * 100:g}")
    for value, colour in ((question.gamma, FAIR_COLOUR), (question.threshold, UNFAIR_COLOUR)):
        picture.line(
            0.0, height_of(value), picture.high, height_of(value), colour, width=1.5, dashes="6 4"
        )
    picture.axis(bottom, 4)
    axis_text = f"across: requests answered; up: gap, {sentences.name_gap_unit(question)}"
    return picture.done(
        axis_text, {"fair below this line": FAIR_COLOUR, "unfair above this line": UNFAIR_COLOUR}
    )


def draw_impact_ratios(rows: Sequence[SelectionRow]) -> Markup:
    """Draw the impact ratios, as far as past data establish them, with the four-fifths line."""
    bars = [(row, row.impact_ratio) for row in rows if row.impact_ratio is not None]
    bottom = 22.0 + 48.0 * len(bars)
    picture = Picture("Impact ratios", bottom + 24)
    for index, (row, ratio) in enumerate(bars):
        top_of_row = 34.0 + 48.0 * index
        picture.text(0.0, top_of_row, row.group, size=13)
        picture.bar(0.0, ratio.upper, top_of_row + 7, 18, PALE)
        picture.bar(
            0.0,
            ratio.lower,
            top_of_row + 7,
            18,
            UNFAIR_COLOUR if row.four_fifths == "below" else BLUE,
        )
        if ratio.estimate is not None and ratio.lower > 0.15:
            estimate_text, end_of_bar = f"{ratio.estimate:.2f}", ratio.lower
            picture.text(
                end_of_bar,
                top_of_row + 20,
                estimate_text,
                anchor="end",
                shift=-6,
                fill=PAPER,
                bold=True,
            )
    picture.line(FOUR_FIFTHS, 2, FOUR_FIFTHS, bottom, INK, width=1.5, dashes="5 4")
    picture.text(FOUR_FIFTHS, 12, "four fifths", anchor="end", shift=-6, fill=MUTED)
    picture.axis(bottom, 5)
    return picture.done("approval rate over the largest other group's")


def draw_budget(report: Report) -> Markup | None:
    """Draw the budget: spent, held, free."""
    status = report.status
    if not status.cap:
        return None
    unspent = status.cap - status.spent - status.reserved
    parts = {
        "spent": (status.spent, BLUE),
        "held": (status.reserved, PALE),
        "free": (unspent, SAND),
    }
    picture, start = Picture("The budget", 36.0, status.cap), 0
    for amount, colour in parts.values():
        if amount:
            picture.bar(start, start + amount, 2, 32, colour)
            start += amount
    legend = {f"{part} {status.money(amount)}": colour for part, (amount, colour) in parts.items()}
    return picture.done("", legend)


# -- marks -----------------------------------------------------------------------------------------


def round_ticks(high: float, max_steps: int) -> list[float]:
    """Return round numbers from 0 to about ``high``.

    Examples
    --------
    >>> round_ticks(0.34, 6)
    [0.0, 0.1, 0.2, 0.3]
    """
    least_step = high / max_steps
    magnitude = 10.0 ** math.floor(math.log10(least_step))
    step = next(
        factor * magnitude
        for factor in (1, 2, 5, 10)
        if factor * magnitude >= least_step * (1 - 1e-9)
    )
    return [round(index * step, 12) for index in range(int(high / step + 1e-9) + 1)]


class Picture:
    """A drawing that is built up mark by mark: x from 0 to ``high``, y in pixels.

    ``title`` says what it shows, for those who cannot see it.
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
        low, high = min(y for _, y in band), max(y for _, y in [*band, *line])
        view = f'viewBox="0 {low:.1f} 100 {max(high - low, 1.0):.1f}" preserveAspectRatio="none"'
        area, path = (
            " ".join(f"{self._percent(x)},{y:.1f}" for x, y in points) for points in (band, line)
        )
        self._marks.append(
            f'<svg y="{low:.1f}" width="100%" height="{max(high - low, 1.0):.1f}" {view}>'
            f'<polygon points="{area}" fill="{PALE}" opacity="0.75"/>'
            f'<polyline points="{path}" fill="none" stroke="{BLUE}" stroke-width="2.5" '
            'vector-effect="non-scaling-stroke"/></svg>'
        )

    def text(
        self, x: float, y: float, text: str, *, fill: str = INK, shift: float = 0.0,
        size: float = 12, anchor: str = "start", bold: bool = False,
    ) -> None:  # fmt: skip
        """Write words, some pixels beside a place."""
        self._marks.append(
            f'<text x="{self._percent(x)}%" dx="{shift:g}" y="{y:.1f}" font-size="{size:g}" '
            f'fill="{fill}" text-anchor="{anchor}" font-weight="{600 if bold else 400}">'
            f"{escape(text)}</text>"
        )

    def axis(self, y: float, max_steps: int, *, hundredths: bool = False) -> None:
        """Draw an axis with at most so many steps, shares in hundredths."""
        self.line(0.0, y, self.high, y, MUTED)
        for tick in round_ticks(self.high, max_steps):
            label = f"{tick * 100:g}" if hundredths else f"{tick:,g}"
            self.line(tick, y, tick, y + 5, MUTED)
            self.text(tick, y + 18, label, anchor="middle", fill=MUTED)

    def done(self, axis: str, legend: Mapping[str, str] | None = None) -> Markup:
        """Return the drawing with what its axis measures and what its colours mean."""
        # Every word goes through escape().
        axis_html = f'<p class="axis">{escape(axis)}</p>' if axis else ""
        entries = "".join(
            f'<span><svg class="swatch"><rect width="14" height="14" fill="{colour}"/></svg>'
            f"{escape(meaning)}</span>"
            for meaning, colour in (legend or {}).items()
        )
        legend_html = f'<p class="legend">{entries}</p>' if entries else ""
        return Markup("".join([*self._marks, "</svg>", axis_html, legend_html]))
