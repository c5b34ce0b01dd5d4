"""The pictures of reports and of the dashboard.

Functions that take a report or findings choose what is drawn; those below them draw plain numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from equipoise.comparison import GapScale
from equipoise.display import format_figures, format_hundredths, format_number, trim_hundredths
from equipoise.finding import Finding, Interval
from equipoise.free_check import Check
from equipoise.ledger.state import EvidencePoint, SpendingPoint
from equipoise.messages.answer import build_answer, name_gap_unit, name_rate_axis
from equipoise.question import Question, Verdict
from equipoise.rates import RATES
from equipoise.report.content import Report, expected_total_range
from equipoise.report.drawing import Drawing, key, round_step, round_ticks, step_path
from equipoise.report.selection import FOUR_FIFTHS, SelectionRow

# Heights are in pixels.
FLAGS_HEIGHT = 56.0  # of the names of the three zones, one line each
GAP_ROW_HEIGHT = 44.0
AXIS_HEIGHT = 40.0  # below a chart, for the numbers and the title of its axis
TIME_TOP = 30.0  # above a chart over time, for the title of its vertical axis
TIME_HEIGHT = 190.0
LABEL_HEIGHT = 16.0
LABEL_ABOVE = -9.0  # from the end of a curve to the foot of its label
LABEL_BELOW = 18.0

MAX_DRAWN_DECADES = 3  # below 1: an answer with less evidence is as good as ruled out
MAX_BUDGET_FACTOR = 3.0  # a budget above so many times the other amounts is named, not drawn
MAX_SHORT_NAME = 18  # characters; longer names of groups are broken into lines
PEOPLE_TITLE = "People since the audit began"

FormatMoney = Callable[[float], str]


# -- the gap --------------------------------------------------------------------------------------


def draw_gap(free: Finding | None, finding: Finding) -> Markup:
    """Draw where the gap may be, before and now, over the zones of the question.

    Parameters
    ----------
    free
        What historical data alone established, for a first bar; None for one bar.
    finding
        What is established now.
    """
    current = Interval(finding.lower, finding.upper, finding.estimate)
    if isinstance(finding, Check) or free is None:
        single_range = GapRange("Historical data", current, is_current=False)
        return draw_gap_ranges(finding.question, [single_range], build_answer(finding).range_note)
    earlier_range = GapRange(
        "Historical data alone", Interval(free.lower, free.upper), is_current=False
    )
    overrides = "override" if finding.labels == 1 else "overrides"
    current_range = GapRange(f"After {finding.labels:,} {overrides}", current)
    return draw_gap_ranges(
        finding.question, [earlier_range, current_range], build_answer(finding).range_note
    )


class GapRange(NamedTuple):
    """A range of the gap, what it rests on, and whether it is the one that holds now."""

    label: str
    interval: Interval
    is_current: bool = True

    @property
    def mark(self) -> str:
        """The class of the style sheet that colours it."""
        return "now" if self.is_current else "before"


def draw_gap_ranges(question: Question, ranges: Sequence[GapRange], note: str = "") -> Markup:
    """Draw ranges of the gap over the three zones of a question, numbers at their ends.

    ``ranges`` go from the earliest to the answer's; ``note`` is what to know about the last one.
    """
    largest = max(gap_range.interval.upper for gap_range in ranges)
    # Room for the last number, and for the name of the zone "UNFAIR is right".
    high = min(1.09, max(1.09 * largest, 2.6 * question.threshold))
    bottom = FLAGS_HEIGHT + GAP_ROW_HEIGHT * len(ranges)
    drawing = Drawing(high)
    # The zones first: what is drawn later lies on top.
    _draw_zones(drawing, question, bottom)
    for index, gap_range in enumerate(ranges):
        _draw_gap_row(drawing, gap_range, FLAGS_HEIGHT + GAP_ROW_HEIGHT * index)
    title = f"Gap between two groups ({name_gap_unit(question)})"
    # No gap is above 1, so numbers end there although there is room beyond.
    drawing.axis(bottom, title, 5, highest_tick=1.0, hundredths=True)
    sentences = [_describe_range(gap_range) for gap_range in ranges]
    sentences += [f"{text}." for _, _, _, text in _zones(question, high)]
    chart = drawing.to_chart(
        "gap", bottom + AXIS_HEIGHT, f"Range of the gap. {' '.join(sentences)}"
    )
    return chart + key(_gap_key_entries(question, ranges, note))


def _describe_range(gap_range: GapRange) -> str:
    """Return what a row shows, for readers who cannot see the chart."""
    interval = gap_range.interval
    estimate = "" if interval.estimate is None else f", estimate {100 * interval.estimate:.1f}"
    return f"{gap_range.label}: {interval.hundredths}{estimate}."


def _gap_key_entries(
    question: Question, ranges: Sequence[GapRange], note: str
) -> list[tuple[str, str]]:
    """Return mark and meaning: of the estimate, then of the ranges from the last to the first."""
    entries = []
    if any(gap_range.interval.estimate is not None for gap_range in ranges):
        entries.append(("dot", "Estimate"))
    is_difference = question.gap_scale is GapScale.DIFFERENCE
    # The axis has the unit in full ("percentage points"); here the short word will do.
    unit = "points" if is_difference else name_gap_unit(question)
    for gap_range in reversed(ranges):
        meaning = "Range now" if gap_range.is_current else "Range from historical data alone"
        if gap_range is ranges[-1]:  # the range of the answer
            meaning += f": {gap_range.interval.hundredths} {unit}"
            meaning += f" ({note})" if note else ""
        entries.append((gap_range.mark, meaning))
    return entries


def _zones(question: Question, high: float) -> list[tuple[str, float, float, str]]:
    """Return the name, the ends and the text of each zone of the gap."""
    gamma = format_number(100 * question.gamma)
    threshold = format_number(100 * question.threshold)
    return [
        ("fair", 0.0, question.gamma, f"FAIR is right: up to {gamma}"),
        ("open", question.gamma, question.threshold, f"Either is right: {gamma} to {threshold}"),
        ("unfair", question.threshold, high, f"UNFAIR is right: above {threshold}"),
    ]


def _draw_zones(drawing: Drawing, question: Question, bottom: float) -> None:
    """Colour the zones; each has a flag at its left edge, on a line of its own."""
    for index, (name, start, end, text) in enumerate(_zones(question, drawing.high)):
        flag_top = 2.0 + 18.0 * index
        if end > start:
            drawing.bar(start, end, f"{FLAGS_HEIGHT:g}", f"{bottom - FLAGS_HEIGHT:g}", f"z-{name}")
        drawing.line(start, f"{flag_top:g}", start, f"{FLAGS_HEIGHT:g}", f"l-{name}", width=2)
        is_far_right = start > 0.55 * drawing.high
        drawing.text(
            start,
            flag_top + 10,
            text,
            f"t-{name} b",
            shift=-6 if is_far_right else 6,
            anchor="end" if is_far_right else "start",
        )


def _draw_gap_row(drawing: Drawing, gap_range: GapRange, top: float) -> None:
    """Draw the name of a range, and below it the bar with numbers at its ends."""
    interval = gap_range.interval
    middle = top + 31
    drawing.text(0.0, top + 17, gap_range.label, "b" if gap_range.is_current else "", shift=6)
    drawing.bar(interval.lower, interval.upper, f"{middle - 7:g}", "14", gap_range.mark)
    # Both ends are rounded together, outwards, so that they show what the text says.
    low, high = format_hundredths(interval.lower, interval.upper).split(" to ")
    drawing.text(interval.lower, middle + 5, low, "b", shift=-5, anchor="end")
    drawing.text(interval.upper, middle + 5, high, "b", shift=6)
    if interval.estimate is not None:
        drawing.dot(interval.estimate, f"{middle:g}", radius=6)


# -- groups ---------------------------------------------------------------------------------------


def draw_rates(free: Finding | None, finding: Finding, rate: str) -> Markup:
    """Draw a rate of every group as a table: a group, its ranges, its numbers; sorted."""
    earlier = {} if free is None else free.rates.get(rate, {})
    current = finding.rates.get(rate, {}) or earlier
    question = finding.question
    comparison = question.comparison
    tolerance = None
    # A band below the best estimate says something if every group is compared with every other.
    if question.gap_scale is GapScale.DIFFERENCE and not comparison.within:
        tolerance = question.gamma if comparison.against is None else None
    return draw_group_ranges(
        name_rate_axis(rate),
        current,
        earlier if finding.rates.get(rate) else {},
        tolerance=tolerance,
        is_worse_if_higher=RATES[rate].is_worse_if_higher,
    )


def draw_group_ranges(
    title: str,
    current: Mapping[str, Interval],
    earlier: Mapping[str, Interval] | None = None,
    *,
    tolerance: float | None = None,
    is_worse_if_higher: bool = False,
) -> Markup:
    """Draw ranges of shares, a row per group, sorted by the estimate.

    Parameters
    ----------
    title
        What the shares are.
    current, earlier
        What is established now, and what historical data alone established.
    tolerance
        The gap that is tolerated: a band of this width begins at the best estimate.
    is_worse_if_higher
        Whether the lowest estimate is the best one.
    """
    earlier = earlier or {}
    order = sorted(
        current, key=lambda group: _middle(current[group]), reverse=not is_worse_if_higher
    )
    # An earlier range of a group that is not shown now would only widen the axis.
    drawn_earlier = [earlier[group] for group in order if group in earlier]
    low, high = _ends_of_axis([*current.values(), *drawn_earlier])
    band = _tolerated_band(current, tolerance, is_worse_if_higher)
    rows = []
    for group in order:
        drawing = _draw_group(low, high, current[group], earlier.get(group), band)
        rows.append(_group_row(group, drawing, _numbers(current[group])))
    has_estimates = any(interval.estimate is not None for interval in current.values())
    head = "Estimate (range)" if has_estimates else "Range"
    entries = [("dot", "Estimate")] if has_estimates else []
    if earlier:
        entries += [("now", "Range now"), ("before", "Range from historical data alone")]
    if band is not None and tolerance is not None:
        side = "above the lowest" if is_worse_if_higher else "below the highest"
        entries.append(("tol", f"{format_number(100 * tolerance, 3)} points {side} estimate"))
    table = _group_table(("Group", title, head), order, rows, _axis_cell(low, high))
    return table + key(entries) if entries else table


def _middle(interval: Interval) -> float:
    if interval.estimate is not None:
        return interval.estimate
    return (interval.lower + interval.upper) / 2


def _ends_of_axis(intervals: Sequence[Interval]) -> tuple[float, float]:
    """Return round ends between which all intervals lie."""
    # At least 5 points apart, so that groups that hardly differ do not look far from each other.
    least = min((interval.lower for interval in intervals), default=0.0)
    largest = max((interval.upper for interval in intervals), default=1.0)
    step = round_step(max(largest - least, 0.05), 4)
    low = max(0.0, math.floor(least / step + 1e-9) * step)
    return low, max(math.ceil(largest / step - 1e-9) * step, low + step)


def _tolerated_band(
    current: Mapping[str, Interval], tolerance: float | None, is_worse_if_higher: bool
) -> tuple[float, float] | None:
    """Return where a group is within the tolerance of the best estimate; None without estimates."""
    estimates = [
        interval.estimate for interval in current.values() if interval.estimate is not None
    ]
    # If one estimate is missing, it may be the best one.
    if tolerance is None or len(estimates) < len(current) or not estimates:
        return None
    if is_worse_if_higher:
        return min(estimates), min(estimates) + tolerance
    return max(estimates) - tolerance, max(estimates)


def _draw_group(
    low: float,
    high: float,
    current: Interval,
    earlier: Interval | None,
    band: tuple[float, float] | None,
) -> Drawing:
    drawing = Drawing(high, low)
    # The band may reach beyond the axis, whose ends are those of the ranges.
    if band is not None:
        start = max(band[0], low)
        end = min(band[1], high)
        drawing.bar(start, end, "0", "100%", "tol")
    for tick in _axis_ticks(low, high):
        drawing.line(tick, "0", tick, "100%", "l-grid")
    if earlier is not None:
        drawing.bar(earlier.lower, earlier.upper, "50%", "6", "before", down=6)
    # Beside an earlier range the current one moves up, else it stands in the middle.
    down = -8.0 if earlier is not None else -6.0
    drawing.bar(current.lower, current.upper, "50%", "12", "now", down=down)
    if current.estimate is not None:
        drawing.dot(current.estimate, "50%", down=down + 6)
    return drawing


def _axis_ticks(low: float, high: float) -> list[float]:
    step = round_step(high - low, 4)
    n_steps = round((high - low) / step)
    return [round(low + step * index, 12) for index in range(n_steps + 1)]


def _axis_cell(low: float, high: float) -> Markup:
    """Return the numbers of the axis below the drawings of a table."""
    drawing = Drawing(high, low)
    ticks = _axis_ticks(low, high)
    for tick in ticks:
        # Centred below the ends of the axis, numbers would stick out of the cell.
        anchor = {ticks[0]: "start", ticks[-1]: "end"}.get(tick, "middle")
        drawing.text(tick, 14, f"{100 * tick:g}", anchor=anchor)
    return drawing.to_cell()


def _numbers(interval: Interval) -> Markup:
    """Return an estimate and its range in hundredths."""
    if interval.estimate is None:
        return Markup("<b>{}</b>").format(interval.hundredths)
    estimate = trim_hundredths(f"{100 * interval.estimate:.1f}")
    return Markup("<b>{}</b> <span>({})</span>").format(estimate, interval.hundredths)


def _group_row(group: str, drawing: Drawing, numbers: Markup) -> str:
    return (
        f'<tr><th scope="row">{escape(group)}</th><td class="bar">{drawing.to_cell()}</td>'
        f'<td class="num">{numbers}</td></tr>'
    )


def _group_table(
    heads: tuple[str, str, str], names: Sequence[str], rows: Sequence[str], axis: Markup
) -> Markup:
    """Return a table whose middle column is a picture."""
    group_head = escape(heads[0])
    picture_head = escape(heads[1])
    numbers_head = escape(heads[2])
    is_long = any(len(name) > MAX_SHORT_NAME for name in names)
    return Markup(
        f'<table class="rows{" long" if is_long else ""}"><thead><tr>'
        f'<th scope="col">{group_head}</th>'
        f'<th scope="col">{picture_head}</th>'
        f'<th scope="col" class="num">{numbers_head}</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody>"
        f'<tfoot><tr aria-hidden="true"><td></td><td class="bar">{axis}</td><td></td></tr></tfoot>'
        "</table>"
    )


def draw_impact_ratios(rows: Sequence[SelectionRow]) -> Markup:
    """Draw the impact ratios, as far as past data establish them, with the four-fifths line."""
    compared = [(row, row.impact_ratio) for row in rows if row.impact_ratio is not None]
    compared.sort(key=lambda pair: -(pair[1].estimate or 0.0))
    table_rows = []
    for row, ratio in compared:
        drawing = Drawing(1.0)
        for tick in round_ticks(1.0, 5):
            drawing.line(tick, "0", tick, "100%", "l-grid")
        drawing.bar(ratio.lower, ratio.upper, "50%", "12", "now", down=-6)
        drawing.line(FOUR_FIFTHS, "0", FOUR_FIFTHS, "100%", "l-ink dash", width=1.5)
        if ratio.estimate is not None:
            drawing.dot(ratio.estimate, "50%")
        numbers = Markup("<b>{:.2f}</b> <span>({})</span>").format(
            ratio.estimate or 0.0, row.four_fifths
        )
        table_rows.append(_group_row(row.group, drawing, numbers))
    axis = Drawing(1.0)
    for tick, anchor in ((0.0, "start"), (0.4, "middle"), (FOUR_FIFTHS, "middle"), (1.0, "end")):
        axis.text(tick, 14, f"{tick:g}", anchor=anchor)
    title = "Approval rate over the highest of the others (dashed: four fifths)"
    heads = ("Group", title, "Ratio (four-fifths rule)")
    entries = [("dot", "Estimate"), ("now", "Range")]
    names = [row.group for row, _ in compared]
    return _group_table(heads, names, table_rows, axis.to_cell()) + key(entries)


# -- over time ------------------------------------------------------------------------------------


class _TimeChart:
    """A chart of something that grows with the people who arrive.

    Parameters
    ----------
    high
        People at the right end.
    y_of
        A value -> where it stands, in pixels below the top of the chart.
    title
        What the values are.
    """

    def __init__(self, high: float, y_of: Callable[[float], float], title: str) -> None:
        self.drawing = Drawing(high)
        self.y_of = y_of
        self.drawing.text(0.0, 11, title, "quiet", shift=-46)

    def draw_grid(self, values: Sequence[float], labels: Sequence[str]) -> None:
        """Draw a faint line at each of some values, with its label to the left, and the axis."""
        for value, label in zip(values, labels, strict=True):
            y = TIME_TOP + self.y_of(value)
            self.drawing.line(0.0, f"{y:.1f}", self.drawing.high, f"{y:.1f}", "l-grid")
            self.drawing.text(0.0, y + 4, label, "quiet", shift=-7, anchor="end")
        self.drawing.axis(TIME_TOP + TIME_HEIGHT, PEOPLE_TITLE, 4)

    def draw_bar(self, value: float, label: str, *, label_gap: float) -> None:
        """Draw a dashed line across at a value, with its label some pixels above it."""
        y = TIME_TOP + self.y_of(value)
        self.drawing.line(0.0, f"{y:.1f}", self.drawing.high, f"{y:.1f}", "l-ink dash", width=1.75)
        self.drawing.text(0.0, y - label_gap, label, "halo b", shift=6)

    def to_chart(self, label: str) -> Markup:
        """Return the chart with a text that says what it shows."""
        return self.drawing.to_chart("time", TIME_TOP + TIME_HEIGHT + AXIS_HEIGHT, label)


def draw_evidence(report: Report) -> Markup | None:
    """Draw the evidence for both answers over time, None if there is nothing to draw.

    There is nothing before the first outcome, and the published audits weigh no evidence.
    """
    # By number of people: of outcomes that came together only the last counts.
    by_people = {point.people: point for point in report.evidence if point.for_fair is not None}
    points = list(by_people.values())
    if len(points) < 2 or points[-1].answers == 0:
        return None
    verdict = report.status.finding.verdict if report.status.finding else None
    return draw_evidence_points(points, verdict, people=_people_on_axis(report))


def draw_evidence_points(
    points: Sequence[EvidencePoint], verdict: Verdict | None = None, *, people: float | None = None
) -> Markup:
    """Draw the smallest e-value against each wrong answer, on a logarithmic axis with its bar.

    Parameters
    ----------
    points
        The evidence over time, as :meth:`LiveAudit.evidence_history` returns it.
    verdict
        The answer that was given, None while the audit is in progress.
    people
        Where the axis ends; at the last point if left out.
    """
    last = points[-1]
    assert last.for_fair is not None and last.for_unfair is not None  # noqa: PT018
    assert last.fair_needs is not None and last.unfair_needs is not None  # noqa: PT018
    top, bottom = _decades(points)

    def y_of(e_value: float) -> float:
        exponent = math.log10(max(e_value, 10.0**bottom))
        return TIME_HEIGHT * (top - exponent) / (top - bottom)

    high = max(people or 0.0, last.people, 1.0)
    chart = _TimeChart(high, y_of, "Evidence (e-value, logarithmic axis)")
    e_values = [10.0**exponent for exponent in range(bottom, top + 1)]
    chart.draw_grid(e_values, [format_number(e_value) for e_value in e_values])
    # One bar only, that of the answer which was given or leads: two would be hard to tell apart.
    answer = _leading_answer(last, verdict)
    needed = last.fair_needs if answer is Verdict.FAIR else last.unfair_needs
    chart.draw_bar(needed, f"Needed for {answer}: {format_figures(needed)}", label_gap=5)
    fair_text = f"FAIR: {_format_e_value(last.for_fair, bottom)}"
    unfair_text = f"UNFAIR: {_format_e_value(last.for_unfair, bottom)}"
    _draw_evidence_curves(chart, points, fair_text, unfair_text, y_of(needed))
    return chart.to_chart(
        f"Evidence for each answer over {last.people:,} people, on a logarithmic axis. "
        f"{unfair_text}, {format_figures(last.unfair_needs)} needed. "
        f"{fair_text}, {format_figures(last.fair_needs)} needed."
    )


def _draw_evidence_curves(
    chart: _TimeChart, points: Sequence[EvidencePoint], fair_text: str, unfair_text: str, bar: float
) -> None:
    """Draw the evidence for both answers, with texts where the curves end.

    ``bar`` is where the line of what is needed stands, in pixels below the top.
    """
    fair_path = [(point.people, chart.y_of(point.for_fair or 0.0)) for point in points]
    unfair_path = [(point.people, chart.y_of(point.for_unfair or 0.0)) for point in points]
    curves = [("line l-fair", step_path(fair_path)), ("line l-unfair", step_path(unfair_path))]
    chart.drawing.curves(TIME_TOP, TIME_HEIGHT, curves)
    fair_y = fair_path[-1][1]
    unfair_y = unfair_path[-1][1]
    # Pixels count from the top, so the higher curve has the smaller number.
    higher_offset, lower_offset = _label_offsets(min(fair_y, unfair_y), max(fair_y, unfair_y), bar)
    is_fair_higher = (points[-1].for_fair or 0.0) > (points[-1].for_unfair or 0.0)
    fair_offset = higher_offset if is_fair_higher else lower_offset
    unfair_offset = lower_offset if is_fair_higher else higher_offset
    _label_end(chart.drawing, fair_path[-1], "fair", fair_text, fair_offset)
    _label_end(chart.drawing, unfair_path[-1], "unfair", unfair_text, unfair_offset)


def _decades(points: Sequence[EvidencePoint]) -> tuple[int, int]:
    """Return the exponents of the highest and the lowest e-value on the axis."""
    e_values: list[float] = []
    for point in points:
        e_values += [point.for_fair or 0.0, point.for_unfair or 0.0]
    # An e-value of 0 has no place on a logarithmic axis.
    positive_e_values = [e_value for e_value in e_values if e_value > 0.0]
    needed = max(points[-1].fair_needs or 0.0, points[-1].unfair_needs or 0.0)
    highest = max([*positive_e_values, needed])
    lowest = min([*positive_e_values, 0.1])
    bottom = max(math.floor(math.log10(lowest)), -MAX_DRAWN_DECADES)
    # Room for a label above the line of what is needed.
    top = math.ceil(math.log10(1.5 * highest))
    while TIME_HEIGHT * (top - math.log10(highest)) / (top - bottom) < LABEL_HEIGHT:
        top += 1
    return top, bottom


def _leading_answer(point: EvidencePoint, verdict: Verdict | None) -> Verdict:
    """Return the answer that was given, or the one that is nearer to what it needs."""
    if verdict is Verdict.FAIR or verdict is Verdict.UNFAIR:
        return verdict
    fair_part = (point.for_fair or 0.0) / (point.fair_needs or 1.0)
    unfair_part = (point.for_unfair or 0.0) / (point.unfair_needs or 1.0)
    return Verdict.FAIR if fair_part > unfair_part else Verdict.UNFAIR


def _format_e_value(e_value: float, lowest_decade: int) -> str:
    if e_value < 10.0**lowest_decade:
        return f"below {format_number(10.0**lowest_decade)}"
    return format_figures(e_value) if e_value >= 0.01 else format_number(e_value, 1)


def _label_offsets(higher: float, lower: float, bar: float) -> tuple[float, float]:
    """Return how far below the ends of two curves their labels stand, all in pixels from the top.

    Labels stay clear of each other, of the bar, and of the numbers below the axis.
    """
    has_room_between = lower - higher > 3 * LABEL_HEIGHT
    is_near_bar = abs(higher - 0.8 * LABEL_HEIGHT - bar) < LABEL_HEIGHT
    is_near_axis = lower > TIME_HEIGHT - 1.5 * LABEL_HEIGHT
    higher_offset = LABEL_BELOW if has_room_between and is_near_bar else LABEL_ABOVE
    if not is_near_axis:
        return higher_offset, LABEL_BELOW
    if has_room_between:
        return higher_offset, LABEL_ABOVE
    # Both above, one on top of the other.
    return min(LABEL_ABOVE, lower - higher + LABEL_ABOVE - LABEL_HEIGHT), LABEL_ABOVE


def _label_end(
    drawing: Drawing, end: tuple[float, float], name: str, text: str, offset: float
) -> None:
    """Mark the last point of a curve and name it; ``offset`` is that of the name, downwards."""
    x, y = end
    is_on_the_right = _is_named_on_the_right(drawing, x)
    drawing.dot(x, f"{TIME_TOP + y:.1f}", f"t-{name}", radius=4.5)
    drawing.text(
        x,
        TIME_TOP + y + offset,
        text,
        f"halo t-{name} b",
        shift=7 if is_on_the_right else 4,
        anchor="start" if is_on_the_right else "end",
    )


class MoneyForecast(NamedTuple):
    """What an audit will have cost in all, and after about how many people it will end."""

    low: float
    middle: float
    high: float
    people: float


def draw_money(report: Report) -> Markup | None:
    """Draw what was spent over time, the forecast and the budget; None if nothing was spent."""
    status = report.status
    if not report.spending or report.spending[-1].spent == 0:
        return None
    return draw_spending(
        report.spending,
        budget=status.cap,
        forecast=expected_total(report),
        people=_people_on_axis(report),
        unit=status.currency,
        decimals=status.decimals,
    )


def expected_total(report: Report) -> MoneyForecast | None:
    """Return the forecast of an audit in progress; None if it has ended or cannot be forecast."""
    status = report.status
    if report.forecast is None or status.finding is not None or not status.people:
        return None
    amounts = expected_total_range(report.forecast, status)
    if not amounts:
        return None
    low, middle, high = amounts
    people = report.forecast.people
    if status.spent > 0:
        # Money goes on being spent at the pace of the audit so far.
        people = status.people * middle / status.spent
    # The end lies ahead, even if more people came by now than were expected in all.
    return MoneyForecast(low, middle, high, max(people, status.people + 1.0))


def _people_on_axis(report: Report) -> float:
    """Return where the axes of time end: where the audit ended, or may end."""
    expected = expected_total(report)
    if expected is None:
        return 1.04 * report.status.people
    # An end far ahead would squeeze what has happened so far into a corner.
    return 1.02 * min(expected.people, 4.0 * report.status.people)


def draw_spending(
    points: Sequence[SpendingPoint],
    *,
    budget: int | None = None,
    forecast: MoneyForecast | None = None,
    people: float | None = None,
    unit: str = "",
    decimals: int = 0,
) -> Markup:
    """Draw what was spent over time, with the 80% range of the forecast and the budget.

    Parameters
    ----------
    points
        What was spent, as :meth:`LiveAudit.spending_history` returns it, in minor units.
    budget, forecast
        In minor units; None where there is none.
    people
        Where the axis ends; at the last point if left out.
    unit, decimals
        How money is written: in units of ``10**decimals`` minor ones.
    """
    last = points[-1]
    scale = 10.0**decimals
    highest = max(last.spent, 0.0 if forecast is None else forecast.high)
    # A budget far above all else would press the curve to the ground, so it is not drawn.
    if budget is not None and budget > MAX_BUDGET_FACTOR * highest:
        budget = None
    if budget is not None:
        highest = max(highest, budget)
    top = 1.12 * highest / scale  # with room for a label above the highest line

    def y_of(amount: float) -> float:
        return TIME_HEIGHT * (1.0 - amount / scale / top)

    title = f"Spent ({unit})" if unit else "Spent"
    chart = _TimeChart(max(people or 0.0, last.people, 1.0), y_of, title)
    ticks = round_ticks(top, 4)
    chart.draw_grid([tick * scale for tick in ticks], [_short_amount(tick) for tick in ticks])
    path = [(point.people, y_of(point.spent)) for point in points]
    curve = ("line l-money", step_path(path))
    if forecast is None:
        chart.drawing.curves(TIME_TOP, TIME_HEIGHT, [curve])
    else:
        _draw_forecast(chart, curve, last, forecast)
    if budget is not None:
        chart.draw_bar(budget, f"Budget {budget / scale:,.0f}", label_gap=6)
    spent_text = f"Spent {last.spent / scale:,.0f}"
    label_offset = _offset_of_spent(chart.drawing, path[-1], has_forecast=forecast is not None)
    _label_end(chart.drawing, path[-1], "money", spent_text, label_offset)
    forecast_text = "" if forecast is None else _describe_forecast(forecast, scale)
    return chart.to_chart(
        f"Money spent over {last.people:,} people. {spent_text} {unit}.{forecast_text}"
    )


def _offset_of_spent(drawing: Drawing, end: tuple[float, float], *, has_forecast: bool) -> float:
    """Return how far below the end of the curve, in pixels, its label stands."""
    x, y = end
    # The curve comes from below on the left, and the forecast rises to the right. So a label on the
    # right is free below the end of the curve, and one on the left is free above it.
    has_room_below = TIME_HEIGHT - y > LABEL_BELOW + 4
    is_on_forecast = has_forecast and _is_named_on_the_right(drawing, x)
    return LABEL_BELOW if is_on_forecast and has_room_below else LABEL_ABOVE


def _is_named_on_the_right(drawing: Drawing, x: float) -> bool:
    """Say whether the name of a curve's end stands on its right, as on the left of a picture."""
    return x < 0.4 * drawing.high


def _describe_forecast(forecast: MoneyForecast, scale: float) -> str:
    """Return the forecast as a sentence with a space before it; ``scale`` minor units are one."""
    low = format_figures(forecast.low / scale)
    middle = format_figures(forecast.middle / scale)
    high = format_figures(forecast.high / scale)
    return f" Forecast of the total: {middle}, 80% range {low} to {high}."


def _draw_forecast(
    chart: _TimeChart, curve: tuple[str, str], last: SpendingPoint, forecast: MoneyForecast
) -> None:
    """Draw the curve of what was spent, and from its last point the range and the middle."""
    # The audit may end beyond the axis. Then the fan is cut there, at so large a part of its way.
    end = min(forecast.people, chart.drawing.high)
    part = (end - last.people) / (forecast.people - last.people)
    low_y = chart.y_of(last.spent + part * (forecast.low - last.spent))
    middle_y = chart.y_of(last.spent + part * (forecast.middle - last.spent))
    high_y = chart.y_of(last.spent + part * (forecast.high - last.spent))
    start = f"M{last.people:g} {chart.y_of(last.spent):.1f}"
    # The curve comes last, on top of the fan.
    curves = [
        ("fan", f"{start}L{end:g} {high_y:.1f}V{low_y:.1f}Z"),
        ("line l-money dash thin", f"{start}L{end:g} {middle_y:.1f}"),
        curve,
    ]
    chart.drawing.curves(TIME_TOP, TIME_HEIGHT, curves)
    # Above the fan, and still below the title of the axis.
    label_y = max(TIME_TOP + high_y - 8, TIME_TOP + 12)
    chart.drawing.text(end, label_y, "Forecast (80% range)", "halo", anchor="end")


def _short_amount(amount: float) -> str:
    """Write an amount in at most about five characters: 300k, 1.5M."""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if amount >= size:
            return f"{amount / size:g}{letter}"
    return f"{amount:g}"


def draw_budget(report: Report) -> Markup | None:
    """Draw the budget: spent, held, unspent. None for an audit without a cap."""
    status = report.status
    if not status.cap:
        return None
    unspent = max(status.cap - status.spent - status.reserved, 0)
    # Each mark is a class of the style sheet, and an entry of the key.
    parts = (
        ("spent", "Spent", status.spent),
        ("held", "Held", status.reserved),
        ("unspent", "Left", unspent),
    )
    drawing = Drawing(float(max(status.cap, status.spent + status.reserved)))
    start = 0
    entries = []
    for name, label, amount in parts:
        entries.append((name, f"{label} {status.short_money(amount)}"))
        if amount:
            drawing.bar(start, start + amount, "2", "24", name)
            start += amount
    amounts_text = ", ".join(text for _, text in entries)
    return drawing.to_chart("", 30.0, f"The budget: {amounts_text}") + key(entries)
