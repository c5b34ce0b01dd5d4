"""The report's pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from equipoise.finding import Interval
from equipoise.metrics import RATES
from equipoise.report import sentences
from equipoise.report.content import FOUR_FIFTHS, Report
from equipoise.report.svg import Picture, Scale, linear, logarithmic, nice_ticks

__all__ = ["costs", "evidence", "gauge", "impact", "money", "rates"]

INK, MUTED, RULE = "#1f2933", "#5f6c7b", "#d5dbe1"
BLUE, PALE = "#24588f", "#b9cde3"
GREEN, RED, SAND = "#2f7d4f", "#b23a2e", "#e9e4d8"
GREEN_PALE, RED_PALE = "#dcefe3", "#f6dfdb"
WIDTH, LEFT, RIGHT = 860.0, 150.0, 40.0


def gauge(report: Report) -> Markup:
    """Draw where Delta may be, before and after, against the question's two lines."""
    question, finding = report.question, report.finding
    high = min(1.0, max(report.free.upper, question.threshold * 1.6) * 1.04)
    x = linear(0.0, high, LEFT, WIDTH - RIGHT)
    picture = Picture(
        WIDTH, 190, f"The {sentences.noun(question)} between groups: established range"
    )
    top, bottom = 34.0, 140.0
    zones = (
        (0.0, question.gamma, GREEN_PALE, "fair"),
        (question.gamma, question.threshold, SAND, "either"),
        (question.threshold, high, RED_PALE, "unfair"),
    )
    for start, end, fill, word in zones:
        picture.rectangle(x(start), top, x(end) - x(start), bottom - top, fill)
        if x(end) - x(start) > 26:
            middle = (x(start) + x(end)) / 2
            picture.text(middle, top - 9, word, anchor="middle", fill=MUTED, size=12)
    for row, (label, interval, fill) in enumerate(
        (
            ("before, for free", report.free, PALE),
            ("now", Interval(finding.lower, finding.upper, finding.estimate), BLUE),
        )
    ):
        y = top + 26 + row * 48
        picture.text(LEFT - 14, y + 5, label, anchor="end", bold=row == 1)
        picture.rectangle(
            x(interval.lower), y - 8, x(interval.upper) - x(interval.lower), 16, fill, radius=3
        )
        if interval.estimate is not None:
            picture.dot(x(interval.estimate), y, 7, INK)
    caption = f"{sentences.noun(question)} between groups, in {sentences.unit(question)}"
    _axis(picture, x, high, bottom, caption, percent=True)
    return picture.done()


def evidence(report: Report) -> Markup | None:
    """Draw how the established range narrowed with the outcomes that were bought."""
    points = report.evidence
    if len(points) < 2 or points[-1].answers == 0:
        return None
    question = report.question
    high = min(1.0, max(max(p.upper for p in points), question.threshold * 1.5) * 1.02)
    picture = Picture(WIDTH, 300, "Evidence over time")
    top, bottom, left = 16.0, 246.0, 70.0
    x = linear(0.0, float(points[-1].answers), left, WIDTH - 130)
    y = linear(0.0, high, bottom, top)
    for tick in nice_ticks(high):
        picture.line([(left, y(tick)), (WIDTH - 130, y(tick))], RULE)
        picture.text(left - 8, y(tick) + 4, f"{tick * 100:g}", anchor="end", fill=MUTED, size=12)
    band = [(x(p.answers), y(p.upper)) for p in points]
    band += [(x(p.answers), y(p.lower)) for p in reversed(points)]
    picture.area(band, PALE, opacity=0.75)
    guesses = [(x(p.answers), y(p.estimate)) for p in points if p.estimate is not None]
    if len(guesses) > 1:
        picture.line(guesses, BLUE, width=2.5)
    lines = ((question.gamma, GREEN, "fair below"), (question.threshold, RED, "unfair above"))
    for value, colour, words in lines:
        picture.line([(left, y(value)), (WIDTH - 130, y(value))], colour, width=1.5, dashes="6 4")
        shift = 10 if value == question.gamma else -2
        picture.text(WIDTH - 124, y(value) + shift, words, fill=colour, size=12)
    for tick in nice_ticks(float(points[-1].answers)):
        picture.text(x(tick), bottom + 20, f"{tick:,g}", anchor="middle", fill=MUTED, size=12)
    middle = (left + WIDTH - 130) / 2
    picture.text(middle, bottom + 42, "requests answered", anchor="middle", fill=MUTED, size=12)
    return picture.done()


def rates(report: Report, rate: str) -> Markup:
    """Draw a rate of every group, before and after."""
    groups = report.groups
    picture = Picture(WIDTH, 46 + 44 * len(groups) + 44, RATES[rate].phrase)
    x = linear(0.0, 1.0, LEFT, WIDTH - RIGHT)
    _legend(picture, (("before, for free", PALE), ("after the audit", BLUE)))
    bottom = 40 + 44.0 * len(groups)
    for tick in nice_ticks(1.0):
        picture.line([(x(tick), 34), (x(tick), bottom)], RULE)
    for row, group in enumerate(groups):
        y = 56 + 44.0 * row
        picture.text(LEFT - 14, y + 5, group.group, anchor="end")
        for interval, fill, shift in (
            (group.before.get(rate), PALE, -11),
            (group.after.get(rate), BLUE, 1),
        ):
            if interval is not None:
                width = x(interval.upper) - x(interval.lower)
                picture.rectangle(x(interval.lower), y + shift, width, 10, fill, radius=2)
        after = group.after.get(rate)
        if after is not None and after.estimate is not None:
            picture.dot(x(after.estimate), y + 6, 6, INK)
    _axis(picture, x, 1.0, bottom, RATES[rate].phrase, percent=True)
    return picture.done()


def impact(report: Report) -> Markup:
    """Draw the impact ratios, as far as past data establish them, with the four-fifths line."""
    groups = report.groups
    picture = Picture(WIDTH, 30 + 34 * len(groups) + 44, "Impact ratios")
    x = linear(0.0, 1.05, LEFT, WIDTH - RIGHT)
    bottom = 20 + 34.0 * len(groups)
    for row, group in enumerate(groups):
        y = 18 + 34.0 * row
        fill = RED if group.four_fifths == "below" else BLUE
        ratio = group.impact_ratio
        picture.text(LEFT - 14, y + 14, group.group, anchor="end")
        picture.rectangle(x(0), y, x(ratio.upper) - x(0), 18, PALE, radius=2)
        picture.rectangle(x(0), y, x(ratio.lower) - x(0), 18, fill, radius=2)
        if ratio.estimate is not None and ratio.lower > 0.1:
            picture.text(x(ratio.lower) - 6, y + 14, f"{ratio.estimate:.2f}",
                         anchor="end", fill="#ffffff", size=12, bold=True)  # fmt: skip
    picture.line([(x(FOUR_FIFTHS), 6), (x(FOUR_FIFTHS), bottom)], INK, width=1.5, dashes="5 4")
    picture.text(x(FOUR_FIFTHS) + 6, 12, "four fifths", size=12, fill=MUTED)
    _axis(picture, x, 1.0, bottom, "approval rate as a share of the largest other group's")
    return picture.done()


def money(report: Report) -> Markup | None:
    """Draw the budget: spent, held, free."""
    status = report.status
    cap = status.cap
    if not cap:
        return None
    picture = Picture(WIDTH, 96, "The budget")
    x = linear(0.0, float(cap), 10, WIDTH - 10)
    parts = (
        ("spent", status.spent, BLUE),
        ("held", status.reserved, PALE),
        ("free", cap - status.spent - status.reserved, SAND),
    )
    start = 0.0
    for _, amount, fill in parts:
        if amount:
            picture.rectangle(x(start), 12, x(start + amount) - x(start), 32, fill)
        start += amount
    at = 10.0
    for word, amount, fill in parts:
        words = f"{word} {report.money(amount)}"
        picture.rectangle(at, 64, 14, 14, fill, radius=2)
        picture.text(at + 20, 76, words)
        at += 48 + 7.4 * len(words)
    return picture.done()


def costs(report: Report) -> Markup | None:
    """Draw what this audit costs next to what the published ones would."""
    rows = [("this audit", float(report.status.spent + report.status.reserved), BLUE)]
    rows += [(row.audit, row.cost, PALE) for row in report.comparisons if math.isfinite(row.cost)]
    if len(rows) < 2:
        return None
    unit = 10.0**report.decimals
    shown = [max(cost / unit, 0.0) for _, cost, _ in rows]
    high = 10.0 ** math.ceil(math.log10(max(*shown, 10.0)))
    low = 10.0 ** math.floor(math.log10(max(min(s for s in [*shown, high] if s > 0) / 3, 1e-2)))
    picture = Picture(WIDTH, 16 + 36 * len(rows) + 44, "What it costs, on a logarithmic scale")
    x = logarithmic(low, high, LEFT, WIDTH - 170)
    bottom = 12 + 36.0 * len(rows)
    exponents = range(round(math.log10(low)), round(math.log10(high)) + 1)
    step = max(1, len(exponents) // 7)
    for exponent in exponents[::step]:
        tick = x(10.0**exponent)
        picture.line([(tick, 4), (tick, bottom)], RULE)
        picture.text(tick, bottom + 18, _power(exponent), anchor="middle", fill=MUTED, size=12)
    for row, ((name, cost, fill), value) in enumerate(zip(rows, shown, strict=True)):
        y = 10 + 36.0 * row
        picture.text(LEFT - 14, y + 15, name, anchor="end", bold=row == 0)
        picture.rectangle(x(low), y, x(max(value, low)) - x(low), 20, fill, radius=2)
        picture.text(x(max(value, low)) + 8, y + 15, report.money(cost), size=12)
    words = "each line is ten times the one before"
    picture.text((LEFT + WIDTH - 170) / 2, bottom + 38, words, anchor="middle", fill=MUTED, size=12)
    return picture.done()


def _axis(
    picture: Picture, x: Scale, high: float, y: float, words: str, *, percent: bool = False
) -> None:
    picture.line([(x(0.0), y), (x(high), y)], MUTED)
    for tick in nice_ticks(high, 8):
        shown = f"{tick * 100:g}" if percent else f"{tick:g}"
        picture.line([(x(tick), y), (x(tick), y + 5)], MUTED)
        picture.text(x(tick), y + 20, shown, anchor="middle", fill=MUTED, size=12)
    unit = " (%)" if percent and "points" not in words else ""
    picture.text((x(0.0) + x(high)) / 2, y + 40, words + unit, anchor="middle", fill=MUTED, size=12)


def _legend(picture: Picture, entries: Sequence[tuple[str, str]]) -> None:
    at = LEFT
    for words, fill in entries:
        picture.rectangle(at, 8, 14, 14, fill, radius=2)
        picture.text(at + 20, 20, words, size=12, fill=MUTED)
        at += 46 + 7.0 * len(words)


def _power(exponent: int) -> str:
    if exponent <= 6:
        return f"{10.0**exponent:,.10g}"
    words = {9: "billion", 12: "trillion"}
    base = max(b for b in (6, *words) if b <= exponent)
    return f"{10 ** (exponent - base):,} {words.get(base, 'million')}"
