"""The pictures of reports and of the dashboard."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from equipoise.finding import Finding, Interval
from equipoise.messages.answer import name_gap_unit
from equipoise.question import Question
from equipoise.rates import RATES
from equipoise.report.content import Report
from equipoise.report.drawing import (
    BLUE,
    FAIR_COLOUR,
    FAIR_PALE,
    INK,
    MUTED,
    PALE,
    PAPER,
    RULE,
    SAND,
    UNFAIR_COLOUR,
    UNFAIR_PALE,
    Picture,
    round_ticks,
)
from equipoise.report.selection import FOUR_FIFTHS, SelectionRow

GAP_ROW_HEIGHT = 56.0  # pixels, as all heights
RATE_ROW_HEIGHT = 54.0
IMPACT_ROW_HEIGHT = 48.0
AXIS_HEIGHT = 24.0  # below a picture, for the numbers of its axis


def draw_gap(free: Finding | None, finding: Finding) -> Markup:
    """Draw where the gap may be, before and now, against the question's two lines.

    Parameters
    ----------
    free
        What past data alone established, for a first bar; None for one bar.
    finding
        What is established now.
    """
    question = finding.question
    current = Interval(finding.lower, finding.upper, finding.estimate)
    rows = [("past data" if free is None else "now", current, BLUE)]
    if free is not None:
        rows.insert(0, ("before, for free", Interval(free.lower, free.upper), PALE))
    largest = max(interval.upper for _, interval, _ in rows)
    # Room for the zone "unfair" beside the threshold, even if all ranges lie below it.
    highest = min(1.0, max(largest, question.threshold * 1.6) * 1.04)
    top = 24.0
    bottom = top + 8.0 + GAP_ROW_HEIGHT * len(rows)
    title = "The gap between groups: established range"
    picture = Picture(title, bottom + AXIS_HEIGHT, highest)
    _draw_zones(picture, question, top, bottom)
    for index, (label, interval, colour) in enumerate(rows):
        baseline = top + 18 + GAP_ROW_HEIGHT * index
        picture.text(0.0, baseline, label, shift=6, bold=interval is current, size=13)
        picture.range(interval, baseline + 10, 16, colour)
    picture.axis(bottom, 5, hundredths=True)
    return picture.done(f"gap between groups, {name_gap_unit(question)}")


def _draw_zones(picture: Picture, question: Question, top: float, bottom: float) -> None:
    """Colour where the gap is fair, where both answers are right, and where it is unfair."""
    zones = (
        (0.0, question.gamma, FAIR_PALE, "fair"),
        (question.gamma, question.threshold, SAND, "either"),
        (question.threshold, picture.high, UNFAIR_PALE, "unfair"),
    )
    for start, end, colour, name in zones:
        picture.bar(start, end, top, bottom - top, colour)
        if end - start > 0.11 * picture.high:  # else the name would not fit
            picture.text((start + end) / 2, top - 8, name, anchor="middle", fill=MUTED)


def draw_rates(free: Finding | None, finding: Finding, rate: str) -> Markup:
    """Draw a rate of every group: a pale bar for what is free, a dark one for what is known now."""
    before = {} if free is None else free.rates.get(rate, {})
    current = finding.rates.get(rate, {})
    groups = list(current or before)
    bottom = 8.0 + RATE_ROW_HEIGHT * len(groups)
    picture = Picture(RATES[rate].phrase, bottom + AXIS_HEIGHT)
    for tick in round_ticks(1.0, 5):
        picture.line(tick, 0.0, tick, bottom, RULE)
    for index, group in enumerate(groups):
        baseline = 16.0 + RATE_ROW_HEIGHT * index
        picture.text(0.0, baseline, group, size=13)
        if group in before:
            picture.bar(before[group].lower, before[group].upper, baseline + 7, 10, PALE)
        if group in current:
            picture.range(current[group], baseline + 19, 10, BLUE)
    picture.axis(bottom, 5, hundredths=True)
    legend = {} if free is None else {"before, for free": PALE, "after the audit": BLUE}
    return picture.done(f"{RATES[rate].phrase} (%)", legend)


def draw_evidence(report: Report) -> Markup | None:
    """Draw how the established range narrowed with the outcomes that were bought.

    None as long as there is nothing to draw: fewer than two points, or no outcome.
    """
    points = report.evidence
    if len(points) < 2 or points[-1].answers == 0:
        return None
    question = report.finding.question
    largest = max(point.upper for point in points)
    highest = min(1.0, max(largest, question.threshold * 1.5) * 1.02)
    bottom = 236.0

    def y_of(gap: float) -> float:
        return bottom - 220.0 * gap / highest

    picture = Picture("Evidence over time", bottom + AXIS_HEIGHT, float(points[-1].answers))
    # The outline of the band goes along its upper edge and back along the lower one.
    band = [(point.answers, y_of(point.upper)) for point in points]
    band += [(point.answers, y_of(point.lower)) for point in reversed(points)]
    estimates = [
        (point.answers, y_of(point.estimate)) for point in points if point.estimate is not None
    ]
    picture.curve(band, estimates)
    for tick in round_ticks(highest, 6):
        picture.line(0.0, y_of(tick), picture.high, y_of(tick), RULE)
        picture.text(0.0, y_of(tick) - 4, f"{tick * 100:g}")
    for gap, colour in ((question.gamma, FAIR_COLOUR), (question.threshold, UNFAIR_COLOUR)):
        picture.line(0.0, y_of(gap), picture.high, y_of(gap), colour, width=1.5, dashes="6 4")
    picture.axis(bottom, 4)
    axis_text = f"across: requests answered; up: gap, {name_gap_unit(question)}"
    legend = {"fair below this line": FAIR_COLOUR, "unfair above this line": UNFAIR_COLOUR}
    return picture.done(axis_text, legend)


def draw_impact_ratios(rows: Sequence[SelectionRow]) -> Markup:
    """Draw the impact ratios, as far as past data establish them, with the four-fifths line."""
    bars = [(row, row.impact_ratio) for row in rows if row.impact_ratio is not None]
    bottom = 22.0 + IMPACT_ROW_HEIGHT * len(bars)
    picture = Picture("Impact ratios", bottom + AXIS_HEIGHT)
    for index, (row, ratio) in enumerate(bars):
        baseline = 34.0 + IMPACT_ROW_HEIGHT * index
        colour = UNFAIR_COLOUR if row.four_fifths == "below" else BLUE
        picture.text(0.0, baseline, row.group, size=13)
        picture.bar(0.0, ratio.upper, baseline + 7, 18, PALE)
        picture.bar(0.0, ratio.lower, baseline + 7, 18, colour)
        if ratio.estimate is not None and ratio.lower > 0.15:  # else the number would not fit
            estimate = f"{ratio.estimate:.2f}"
            picture.text(
                ratio.lower, baseline + 20, estimate, anchor="end", shift=-6, fill=PAPER, bold=True
            )
    picture.line(FOUR_FIFTHS, 2, FOUR_FIFTHS, bottom, INK, width=1.5, dashes="5 4")
    picture.text(FOUR_FIFTHS, 12, "four fifths", anchor="end", shift=-6, fill=MUTED)
    picture.axis(bottom, 5)
    return picture.done("approval rate over the largest other group's")


def draw_budget(report: Report) -> Markup | None:
    """Draw the budget: spent, held, free. None for an audit without a cap."""
    status = report.status
    if not status.cap:
        return None
    unspent = status.cap - status.spent - status.reserved
    parts = (
        ("spent", status.spent, BLUE),
        ("held", status.reserved, PALE),
        ("free", unspent, SAND),
    )
    picture = Picture("The budget", 36.0, status.cap)
    start = 0
    legend = {}
    for name, amount, colour in parts:
        legend[f"{name} {status.money(amount)}"] = colour
        if amount:
            picture.bar(start, start + amount, 2, 32, colour)
            start += amount
    return picture.done("", legend)
