"""The pictures of pages: each drawn twice, for a wide page and for a phone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec

from markupsafe import Markup

from equipoise.finding import Interval
from equipoise.question import Question
from equipoise.rates import RATES
from equipoise.report import sentences
from equipoise.report.content import FOUR_FIFTHS, Report
from equipoise.report.svg import (
    BLUE,
    FAIR,
    FAIR_PALE,
    INK,
    MUTED,
    PALE,
    PAPER,
    RULE,
    SAND,
    UNFAIR,
    UNFAIR_PALE,
    Picture,
    Scale,
    linear,
    logarithmic,
    nice_ticks,
)

__all__ = ["costs", "draw_gap", "draw_rates", "evidence", "gauge", "impact", "money", "rates"]

Arguments = ParamSpec("Arguments")
GapRow = tuple[str, Interval, str]
RateRow = tuple[str, Interval | None, Interval | None]


@dataclass(frozen=True)
class Page:
    """Where on a page a picture's rows begin and end; names stand beside them, or above."""

    width: float
    left: float
    right: float
    names_above: bool

    @property
    def above(self) -> float:
        """What a row needs for its name."""
        return 20.0 if self.names_above else 0.0

    @property
    def end(self) -> float:
        """Where rows end."""
        return self.width - self.right

    def name(self, picture: Picture, y: float, words: str, *, bold: bool = False) -> None:
        """Write a row's name, the row's middle being at ``y``."""
        if self.names_above:
            picture.text(self.left, y - 17, words, bold=bold)
        else:
            picture.text(self.left - 14, y + 5, words, anchor="end", bold=bold)


SIZES = {"wide": Page(860.0, 150.0, 40.0, False), "narrow": Page(400.0, 12.0, 16.0, True)}

Drawn = Markup | None


def in_both_sizes(
    draw: Callable[Concatenate[Page, Arguments], Drawn],
) -> Callable[Arguments, Markup]:
    """Draw for a wide page and for a phone; the page's style shows one of them."""

    @wraps(draw)
    def drawn(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Markup:
        found = {name: draw(page, *args, **kwargs) for name, page in SIZES.items()}
        divs = [
            Markup('<div class="{}">{}</div>').format(name, svg)
            for name, svg in found.items()
            if svg is not None
        ]
        return Markup("").join(divs)

    return drawn


@in_both_sizes
def draw_gap(page: Page, question: Question, rows: Sequence[GapRow]) -> Markup:
    """Draw where the gap may be, a row per state of knowledge, against the question's two lines."""
    largest = max(interval.upper for _, interval, _ in rows)
    high = min(1.0, max(largest, question.threshold * 1.6) * 1.04)
    x = linear(0.0, high, page.left, page.end)
    step = 48.0 + page.above
    top, bottom = 34.0, 44.0 + step * len(rows)
    noun = sentences.noun(question)
    picture = Picture(page.width, bottom + 52, f"The {noun} between groups: established range")
    zones = (
        (0.0, question.gamma, FAIR_PALE, "fair"),
        (question.gamma, question.threshold, SAND, "either"),
        (question.threshold, high, UNFAIR_PALE, "unfair"),
    )
    for start, end, fill, word in zones:
        picture.rectangle(x(start), top, x(end) - x(start), bottom - top, fill)
        if x(end) - x(start) > 34:
            middle = (x(start) + x(end)) / 2
            picture.text(middle, top - 9, word, anchor="middle", fill=MUTED, size=12)
    for row, (label, interval, fill) in enumerate(rows):
        y = top + 26 + page.above + row * step
        page.name(picture, y, label, bold=row == len(rows) - 1)
        picture.rectangle(
            x(interval.lower), y - 8, x(interval.upper) - x(interval.lower), 16, fill, radius=3
        )
        if interval.estimate is not None:
            picture.dot(x(interval.estimate), y, 7, INK)
    _axis(picture, page, x, high, bottom, f"{noun} between groups", sentences.unit(question))
    return picture.done()


def gauge(report: Report) -> Markup:
    """Draw where the gap may be, before and after the audit."""
    finding = report.finding
    now = Interval(finding.lower, finding.upper, finding.estimate)
    return draw_gap(report.question, [("before, for free", report.free, PALE), ("now", now, BLUE)])


@in_both_sizes
def evidence(page: Page, report: Report) -> Drawn:
    """Draw how the established range narrowed with the outcomes that were bought."""
    points = report.evidence
    if len(points) < 2 or points[-1].answers == 0:
        return None
    question = report.question
    high = min(1.0, max(max(p.upper for p in points), question.threshold * 1.5) * 1.02)
    picture = Picture(page.width, 312, "Evidence over time")
    top, bottom, left = 30.0, 258.0, 42.0 if page.names_above else 70.0
    end = page.width - 96 if page.names_above else page.width - 130
    x = linear(0.0, float(points[-1].answers), left, end)
    y = linear(0.0, high, bottom, top)
    upright = f"{sentences.noun(question)}, {sentences.unit(question)}"
    picture.text(4, 14, upright, fill=MUTED, size=12)
    for tick in nice_ticks(high):
        picture.line([(left, y(tick)), (end, y(tick))], RULE)
        picture.text(left - 8, y(tick) + 4, f"{tick * 100:g}", anchor="end", fill=MUTED, size=12)
    band = [(x(p.answers), y(p.upper)) for p in points]
    band += [(x(p.answers), y(p.lower)) for p in reversed(points)]
    picture.area(band, PALE, opacity=0.75)
    guesses = [(x(p.answers), y(p.estimate)) for p in points if p.estimate is not None]
    if len(guesses) > 1:
        picture.line(guesses, BLUE, width=2.5)
    lines = ((question.gamma, FAIR, "fair below"), (question.threshold, UNFAIR, "unfair above"))
    for value, colour, words in lines:
        picture.line([(left, y(value)), (end, y(value))], colour, width=1.5, dashes="6 4")
        shift = 10 if value == question.gamma else -2
        picture.text(end + 6, y(value) + shift, words, fill=colour, size=12)
    for tick in nice_ticks(float(points[-1].answers), 4 if page.names_above else 6):
        picture.text(x(tick), bottom + 20, f"{tick:,g}", anchor="middle", fill=MUTED, size=12)
    middle = (left + end) / 2
    picture.text(middle, bottom + 42, "requests answered", anchor="middle", fill=MUTED, size=12)
    return picture.done()


@in_both_sizes
def draw_rates(page: Page, rate: str, rows: Sequence[RateRow], legend: Mapping[str, str]) -> Markup:
    """Draw a rate of every group: a pale bar for what is free, a dark one for what an audit adds.

    Parameters
    ----------
    rows
        Group, free range, range after an audit; each range may be missing.
    legend
        Words and the colour that they explain.
    """
    step, top = 44.0 + page.above, 40.0 if legend else 12.0
    bottom = top + step * len(rows)
    picture = Picture(page.width, bottom + 50, RATES[rate].phrase)
    x = linear(0.0, 1.0, page.left, page.end)
    _legend(picture, page, legend)
    for tick in nice_ticks(1.0):
        picture.line([(x(tick), top - 6), (x(tick), bottom)], RULE)
    for row, (group, before, after) in enumerate(rows):
        y = top + 16 + page.above + step * row
        page.name(picture, y, group)
        for interval, fill, shift in ((before, PALE, -11), (after, BLUE, 1)):
            if interval is not None:
                width = x(interval.upper) - x(interval.lower)
                picture.rectangle(x(interval.lower), y + shift, width, 10, fill, radius=2)
        if after is not None and after.estimate is not None:
            picture.dot(x(after.estimate), y + 6, 6, INK)
    _axis(picture, page, x, 1.0, bottom, RATES[rate].phrase, "%")
    return picture.done()


def rates(report: Report, rate: str) -> Markup:
    """Draw a rate of every group, before and after."""
    rows = [(g.group, g.before.get(rate), g.after.get(rate)) for g in report.groups]
    return draw_rates(rate, rows, {"before, for free": PALE, "after the audit": BLUE})


@in_both_sizes
def impact(page: Page, report: Report) -> Markup:
    """Draw the impact ratios, as far as past data establish them, with the four-fifths line."""
    groups = report.groups
    step = 34.0 + page.above
    bottom = 20 + step * len(groups)
    picture = Picture(page.width, bottom + 54, "Impact ratios")
    x = linear(0.0, 1.05, page.left, page.end)
    for row, group in enumerate(groups):
        y = 18 + page.above + step * row
        fill = UNFAIR if group.four_fifths == "below" else BLUE
        ratio = group.impact_ratio
        page.name(picture, y + 9, group.group)
        picture.rectangle(x(0), y, x(ratio.upper) - x(0), 18, PALE, radius=2)
        picture.rectangle(x(0), y, x(ratio.lower) - x(0), 18, fill, radius=2)
        if ratio.estimate is not None and ratio.lower > 0.15:
            picture.text(x(ratio.lower) - 6, y + 14, f"{ratio.estimate:.2f}",
                         anchor="end", fill=PAPER, size=12, bold=True)  # fmt: skip
    picture.line([(x(FOUR_FIFTHS), 6), (x(FOUR_FIFTHS), bottom)], INK, width=1.5, dashes="5 4")
    picture.text(x(FOUR_FIFTHS) - 6, 13, "four fifths", anchor="end", size=12, fill=MUTED)
    _axis(picture, page, x, 1.0, bottom, "approval rate over the largest other group's", "")
    return picture.done()


@in_both_sizes
def money(page: Page, report: Report) -> Drawn:
    """Draw the budget: spent, held, free."""
    status = report.status
    cap = status.cap
    if not cap:
        return None
    parts = (
        ("spent", status.spent, BLUE),
        ("held", status.reserved, PALE),
        ("free", cap - status.spent - status.reserved, SAND),
    )
    picture = Picture(page.width, 60 + (26 * len(parts) if page.names_above else 36), "The budget")
    x = linear(0.0, float(cap), 10, page.width - 10)
    start = 0.0
    for _, amount, fill in parts:
        if amount:
            picture.rectangle(x(start), 12, x(start + amount) - x(start), 32, fill)
        start += amount
    at, down = 10.0, 64.0
    for word, amount, fill in parts:
        words = f"{word} {report.money(amount)}"
        picture.rectangle(at, down, 14, 14, fill, radius=2)
        picture.text(at + 20, down + 12, words)
        if page.names_above:
            down += 26
        else:
            at += 48 + 7.4 * len(words)
    return picture.done()


@in_both_sizes
def costs(page: Page, report: Report) -> Drawn:
    """Draw what this audit costs next to what the published ones would."""
    rows = [("this audit", float(report.status.spent + report.status.reserved), BLUE)]
    rows += [(row.audit, row.cost, PALE) for row in report.comparisons if math.isfinite(row.cost)]
    if len(rows) < 2:
        return None
    unit = 10.0**report.decimals
    shown = [max(cost / unit, 0.0) for _, cost, _ in rows]
    high = 10.0 ** math.ceil(math.log10(max(*shown, 10.0)))
    low = 10.0 ** math.floor(math.log10(max(min(s for s in [*shown, high] if s > 0) / 3, 1e-2)))
    step = 36.0 + page.above
    bottom = 12 + step * len(rows)
    picture = Picture(page.width, bottom + 48, "What it costs, on a logarithmic scale")
    end = page.width - (34 if page.names_above else 170)
    x = logarithmic(low, high, page.left, end)
    exponents = range(round(math.log10(low)), round(math.log10(high)) + 1)
    most = 3 if page.names_above else 7
    for exponent in exponents[:: max(1, -(-len(exponents) // most))]:
        tick = x(10.0**exponent)
        picture.line([(tick, 4), (tick, bottom)], RULE)
        anchor = "start" if page.names_above else "middle"
        picture.text(tick, bottom + 18, _power(exponent), anchor=anchor, fill=MUTED, size=12)
    for row, ((name, cost, fill), value) in enumerate(zip(rows, shown, strict=True)):
        y = 10 + page.above + step * row
        amount = report.money(cost)
        page.name(picture, y + 10, f"{name}: {amount}" if page.names_above else name, bold=row == 0)
        picture.rectangle(x(low), y, x(max(value, low)) - x(low), 20, fill, radius=2)
        if not page.names_above:
            picture.text(x(max(value, low)) + 8, y + 15, amount, size=12)
    words = f"cost{f' in {report.currency}' if report.currency else ''}, logarithmic scale"
    picture.text((page.left + end) / 2, bottom + 40, words, anchor="middle", fill=MUTED, size=12)
    return picture.done()


def _axis(
    picture: Picture, page: Page, x: Scale, high: float, y: float, words: str, unit: str
) -> None:
    """Draw an axis from 0 to ``high`` with what it measures; shares are written in hundredths."""
    picture.line([(x(0.0), y), (x(high), y)], MUTED)
    for tick in nice_ticks(high, 5 if page.names_above else 8):
        shown = f"{tick * 100:g}" if unit else f"{tick:g}"
        picture.line([(x(tick), y), (x(tick), y + 5)], MUTED)
        picture.text(x(tick), y + 20, shown, anchor="middle", fill=MUTED, size=12)
    whole = f"{words} (%)" if unit == "%" else f"{words}, {unit}" if unit else words
    middle = (x(0.0) + x(high)) / 2
    if page.names_above and len(whole) > 52:  # two lines on a phone
        picture.text(middle, y + 36, words, anchor="middle", fill=MUTED, size=12)
        picture.text(middle, y + 49, unit, anchor="middle", fill=MUTED, size=12)
    else:
        picture.text(middle, y + 40, whole, anchor="middle", fill=MUTED, size=12)


def _legend(picture: Picture, page: Page, entries: Mapping[str, str]) -> None:
    at = page.left
    for words, fill in entries.items():
        picture.rectangle(at, 8, 14, 14, fill, radius=2)
        picture.text(at + 20, 20, words, size=12, fill=MUTED)
        at += 46 + 7.0 * len(words)


def _power(exponent: int) -> str:
    if exponent <= 6:
        return f"{10.0**exponent:,.10g}"
    words = {9: "billion", 12: "trillion"}
    base = max(b for b in (6, *words) if b <= exponent)
    return f"{10 ** (exponent - base):,} {words.get(base, 'million')}"
