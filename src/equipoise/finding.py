"""What is answered: a verdict with its interval, its price and its assumptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from html import escape
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._arrays import Array
from equipoise._json import JsonValue, to_plain_data
from equipoise.comparison import Comparison, GapScale, as_comparison
from equipoise.display import (
    BLUE,
    FAIR,
    INK,
    UNDECIDED,
    UNFAIR,
    Displayable,
    Row,
    format_count,
    format_hundredths,
    format_money,
    format_number,
    html_table,
    round_down,
    round_up,
)
from equipoise.levels import range_level, verdict_level
from equipoise.metrics import METRICS
from equipoise.question import Question, Verdict
from equipoise.rates import RATES, Rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from equipoise.messages.answer import Answer


@dataclass(frozen=True)
class Interval(JsonValue):
    """A range that holds a number, and the best guess at it where there is one.

    Examples
    --------
    >>> print(Interval(0.1, 0.3, estimate=0.2))
    0.200 in [0.100, 0.300]
    >>> 0.25 in Interval(0.1, 0.3)
    True
    """

    lower: float
    upper: float
    estimate: float | None = None

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def with_estimate(self, value: float | None) -> Interval:
        """Return the range with a best guess, which is kept inside it."""
        estimate = None if value is None else min(max(value, self.lower), self.upper)
        return Interval(self.lower, self.upper, estimate)

    @property
    def percent(self) -> str:
        """The range in percent, rounded outwards, and the best guess."""
        estimate = "" if self.estimate is None else f" ({100 * self.estimate:.1f})"
        return f"{self.hundredths}%{estimate}"

    @property
    def points(self) -> str:
        """The range in percentage points, rounded outwards, and the best guess."""
        estimate = "" if self.estimate is None else f" ({100 * self.estimate:.1f})"
        return f"{self.hundredths} points{estimate}"

    @property
    def hundredths(self) -> str:
        """The range in hundredths, rounded outwards."""
        return format_hundredths(self.lower, self.upper)

    def __str__(self) -> str:
        estimate = "" if self.estimate is None else f"{self.estimate:.3f} in "
        return f"{estimate}[{round_down(self.lower, 3)}, {round_up(self.upper, 3)}]"


@dataclass(frozen=True)
class GroupShares(JsonValue):
    """What is established of three shares of a group, which make up its confusion matrix.

    The share that is denied, s; the share of good outcomes among the approved, ``p1/(p1 + p0)``;
    and the share of good outcomes among the denied, r.
    """

    denied: Interval
    approved_good: Interval
    denied_good: Interval

    def rate(self, rate: Rate) -> Interval:
        """Return what follows for a rate.

        A rate is a fraction of functions that are linear in each of the three shares, so that it
        is least and largest at corners of their box.
        """
        corners = product(*((share.lower, share.upper) for share in self._shares))
        corner_values = []
        for denied, approved_good, denied_good in corners:
            value = _rate_at(rate, denied, approved_good, denied_good)
            if value is not None:
                corner_values.append(value)
        if not corner_values:  # undefined at every corner: it may be anything
            return Interval(0.0, 1.0)
        # Rounding may take a rate out of [0, 1].
        interval = Interval(max(min(corner_values), 0.0), min(max(corner_values), 1.0))
        return interval.with_estimate(self._estimate(rate))

    @property
    def _shares(self) -> tuple[Interval, Interval, Interval]:
        return self.denied, self.approved_good, self.denied_good

    def _estimate(self, rate: Rate) -> float | None:
        """Return a rate at the estimates of the shares; None where one that matters is missing."""
        denied = self.denied.estimate
        approved_good = self.approved_good.estimate
        denied_good = self.denied_good.estimate
        # Where all are denied, the outcomes of the approved do not matter.
        if denied is None or (approved_good is None and denied < 1.0):
            return None
        return _rate_at(rate, denied, approved_good or 0.0, denied_good)


def _rate_at(rate: Rate, denied: float, approved_good: float, r: float | None) -> float | None:
    """Return a rate at these shares; None if it is undefined, or r matters and is not known."""
    approved = 1.0 - denied
    curve = rate.curve(approved * approved_good, approved * (1.0 - approved_good), denied)
    if curve is None or (r is None and curve.trend != 0):
        return None
    return curve.value_at(min(max(r or 0.0, 0.0), 1.0))


@dataclass(frozen=True)
class Separation(JsonValue):
    """Two groups whose intervals for a rate do not meet, and which of them is the higher one."""

    rate: str
    higher: str
    lower: str

    def __str__(self) -> str:
        return f"the {self.rate.replace('_', ' ')} of {self.higher} is above that of {self.lower}"


RatesByGroup = Mapping[str, Mapping[str, Interval]]
"""Rate name -> group -> interval."""


def separation(
    rates: RatesByGroup, compare: str | Comparison = GapScale.DIFFERENCE
) -> Separation | None:
    """Return the compared groups and the rate whose intervals are furthest apart; None if all meet.

    Examples
    --------
    >>> a, b, c = Interval(0.1, 0.2), Interval(0.3, 0.5), Interval(0.15, 0.9)
    >>> print(separation({"selection_rate": {"A": a, "B": b, "C": c}}))
    the selection rate of B is above that of A
    """
    distances = {}
    for pair, higher, lower in compared_pairs(rates, compare):
        # Strictly: intervals that touch may hold the same rate.
        if higher.lower > lower.upper:
            distances[pair] = higher.lower - lower.upper
    return max(distances, key=distances.__getitem__, default=None)


def gap_interval(rates: RatesByGroup, compare: str | Comparison = GapScale.DIFFERENCE) -> Interval:
    """Return the gaps that rates can have if each lies in its interval, and the best guess.

    Examples
    --------
    >>> a, b = Interval(0.1, 0.2, 0.1), Interval(0.3, 0.5, 0.4)
    >>> print(gap_interval({"selection_rate": {"A": a, "B": b}}))
    0.300 in [0.100, 0.400]
    """
    comparison = as_comparison(compare).resolve(next(iter(rates.values())))
    # Axes: rate, group. An estimate that is missing is not a number.
    lower = _stack(rates, lambda interval: interval.lower)
    upper = _stack(rates, lambda interval: interval.upper)
    estimates = _stack(rates, lambda interval: interval.estimate)
    has_estimate = not np.isnan(estimates[:, comparison.groups]).any()
    return Interval(
        float(comparison.least_gap(lower, upper).max()),
        float(comparison.largest_gap(lower, upper).max()),
        float(comparison.gap(estimates).max()) if has_estimate else None,
    )


def _keep_estimate(interval: Interval, from_shares: Interval | None) -> Interval:
    """Return the question's own interval, with the best guess that the shares give if it has none.

    A free check makes no guess at what depends on denied people; rates such as the selection rate
    are known without them.
    """
    if interval.estimate is not None or from_shares is None:
        return interval
    return interval.with_estimate(from_shares.estimate)


def _largest_of(gaps: Sequence[Interval]) -> Interval:
    """Return where the largest of several gaps lies; without an estimate if one is missing."""
    estimates = [gap.estimate for gap in gaps if gap.estimate is not None]
    return Interval(
        max(gap.lower for gap in gaps),
        max(gap.upper for gap in gaps),
        max(estimates) if len(estimates) == len(gaps) else None,
    )


def _stack(rates: RatesByGroup, select: Callable[[Interval], float | None]) -> Array:
    """Return one number of every interval, such as its lower end; axes: rate, group."""
    rows = [list(map(select, by_group.values())) for by_group in rates.values()]
    return np.array(rows, dtype=float)  # None, where there is no estimate, becomes NaN


def compared_pairs(
    rates: RatesByGroup, compare: str | Comparison
) -> list[tuple[Separation, Interval, Interval]]:
    """Return every pair of groups that is compared, in each rate and each direction that counts.

    With each pair come the intervals of the group that would be higher, and of the lower one.
    """
    pairs = []
    for rate, by_group in rates.items():
        names = list(by_group)
        for higher_position, lower_position in as_comparison(compare).resolve(names).pairs:
            higher = names[higher_position]
            lower = names[lower_position]
            pairs.append((Separation(rate, higher, lower), by_group[higher], by_group[lower]))
    return pairs


class ProofStatus(StrEnum):
    """What stands behind the error probability of an answer.

    PROVEN: it holds for every population that meets the assumptions of every audit (historical and
    new people come from one population). UNDER_ASSUMPTIONS: it also takes an assumption of the
    user (``assume``, ``deciders``, outcomes "like the known", a test programme that drew at random,
    a model of features), which the finding states. NOT_PROVEN: the user chose a smaller threshold
    than the theorem needs.

    Examples
    --------
    >>> print(ProofStatus.UNDER_ASSUMPTIONS)
    proven under the stated assumptions
    """

    PROVEN = "proven"
    UNDER_ASSUMPTIONS = "proven under the stated assumptions"
    NOT_PROVEN = "not proven"


@dataclass(frozen=True)
class Finding(JsonValue, Displayable):
    """The answer of an audit, and everything needed to defend it.

    It prints, has a view for notebooks and a picture (``plot``), and becomes a table
    (``to_frame``) or plain data (``to_dict``).

    Attributes
    ----------
    verdict
        FAIR, UNFAIR or INCONCLUSIVE.
    estimate
        Best guess at the gap, None where nothing supports one.
    lower, upper
        The interval for the gap that is established at the question's error probability.
    rates
        Rate name -> group -> interval.
    cost, labels, features
        Money spent, labels requested of denied people, feature vectors requested of denied people.
    score_only
        Denied people whose score was read and whose label was not asked for (``assist``).
    reason
        One sentence: why this verdict.
    decided_by
        After UNFAIR: the groups and the rate that the intervals separate, at the level at which all
        intervals hold together. None where they separate none, and after any other verdict.
    guaranteed
        True if there is a verdict and ``proof`` is PROVEN, which takes no assumption of the user.
    missing
        For INCONCLUSIVE: what would decide, one line each.
    assumptions
        What the answer rests on, one line each.
    warnings
        Assumptions that the data speak against, one line each.
    p_hat, q_hat
        The paper's estimates of P[f=1, Y=y | A=a] and P[Y=y | A=a], by outcome ("0", "1") and
        group, of the audits that compare rates; empty for the others.
    shares
        What is established of every group's confusion matrix, from which :meth:`all_rates` and
        :meth:`all_metrics` follow; empty for audits that estimate rates directly.
    currency, decimals
        How ``cost`` is written: in units of ``10**decimals`` of this currency.
    proof
        Whether the error probabilities are proven, and under which kind of assumptions.
    error_level
        The probability, at most, with which this verdict is wrong; None if there is no verdict or
        nothing is proven. If left out it is what the question allows for this verdict.
    range_level
        The probability, at most, with which the verdict is wrong, or ``lower`` to ``upper`` or one
        of the ranges of ``rates`` misses what it is for. :meth:`all_rates` holds at the same level.
    contradiction
        Which data contradict what is assumed, in a sentence; None if none do. Then there is no
        verdict, and the ranges make no use of the assumption.

    Examples
    --------
    >>> rates = {"true_positive_rate": {"A": Interval(0.7, 0.8, 0.75), "B": Interval(0.5, 0.6)}}
    >>> finding = Finding(
    ...     Question("equal_opportunity"), Verdict.UNFAIR, 0.1, 0.3, "the evidence says so",
    ...     rates=rates, decided_by=separation(rates),
    ... )
    >>> print(finding.summary)
    UNFAIR. Among people who would turn out well, some group is approved more than 5 points less
    often than another (error probability at most 5%). The ranges do not overlap: B, below A.
    >>> print(finding.meaning)
    UNFAIR establishes a gap of more than 5 points; between 5 points and 10 points either answer is
    right
    """

    question: Question
    verdict: Verdict
    lower: float
    upper: float
    reason: str
    estimate: float | None = None
    rates: Mapping[str, Mapping[str, Interval]] = field(default_factory=dict)
    cost: float = 0.0
    labels: int = 0
    features: int = 0
    score_only: int = 0
    decided_by: Separation | None = None
    guaranteed: bool = True
    missing: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    p_hat: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    q_hat: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    shares: Mapping[str, GroupShares] = field(default_factory=dict)
    currency: str = ""
    decimals: int = 0
    proof: ProofStatus = ProofStatus.PROVEN
    error_level: float | None = None
    range_level: float | None = None
    contradiction: str | None = None

    _optional = ("score_only", "p_hat", "q_hat", "shares", "currency", "decimals", "contradiction")

    def __post_init__(self) -> None:
        has_verdict = self.verdict is not Verdict.INCONCLUSIVE
        proof = self.proof
        # Findings that were stored before there was a proof say it by ``guaranteed`` alone.
        if has_verdict and proof is ProofStatus.PROVEN and not self.guaranteed:
            proof = ProofStatus.NOT_PROVEN
        error_level = self.error_level
        if not has_verdict or proof is ProofStatus.NOT_PROVEN:
            error_level = None
        elif error_level is None:
            error_level = verdict_level(self.question, self.verdict)
        level_of_ranges = self.range_level
        if level_of_ranges is None:
            level_of_ranges = range_level(self.question)
        # A frozen dataclass can be filled in here only by this detour.
        object.__setattr__(self, "proof", proof)
        object.__setattr__(self, "guaranteed", has_verdict and proof is ProofStatus.PROVEN)
        object.__setattr__(self, "error_level", error_level)
        object.__setattr__(self, "range_level", level_of_ranges)

    @property
    def summary(self) -> str:
        """The whole answer in a line: the verdict, its meaning, and the groups that differ most."""
        return self._answer().summary

    @property
    def who(self) -> str:
        """The two groups that differ most by the estimates; empty where no groups stand out.

        Without estimates, after UNFAIR, two groups whose ranges do not overlap.
        """
        return self._answer().who

    @property
    def meaning(self) -> str:
        """What the verdict means and what it does not mean, in a sentence."""
        return self._answer().meaning

    def _answer(self) -> Answer:
        """Return what this finding says, as all faces of the product say it."""
        # Imported here because the builder itself needs this module.
        from equipoise.messages.answer import build_answer

        return build_answer(self)

    def _rows(self) -> Sequence[Row]:
        rows = []
        for rate, group, interval in self._intervals():
            rows.append({"rate": rate, "group": group, **interval.to_dict()})
        return rows

    def _intervals(self) -> list[tuple[str, str, Interval]]:
        """Return the gap's interval, then every rate's of every group."""
        intervals = [("gap", "", Interval(self.lower, self.upper, self.estimate))]
        for rate, by_group in self.rates.items():
            for group, interval in by_group.items():
                intervals.append((rate, group, interval))
        return intervals

    def rate_rows(self) -> list[Row]:
        """Return the ranges of every group's rates in percent, a row per group."""
        groups = next(iter(self.rates.values()), {})
        rows: list[Row] = []
        for group in groups:
            row: dict[str, object] = {"group": group}
            for rate, by_group in self.rates.items():
                interval = by_group[group]
                row[rate.replace("_", " ")] = f"{interval.hundredths}%"
            rows.append(row)
        return rows

    def all_rates(self) -> dict[str, dict[str, Interval]]:
        """Return an interval for every rate of every group, whatever was asked.

        Each group has three unknown shares, and one simultaneous set for all of them gives every
        rate. Of an adaptive audit, all of these intervals and the verdict are right together but
        with probability :attr:`range_level`, whenever one looks. Of a free check that holds for
        the intervals of the other rates by themselves. They are wider than :attr:`rates`, whose
        bounds are made for the question; the rates of the question itself are these. Empty for
        audits that estimate rates directly.

        Examples
        --------
        >>> from equipoise import History, check
        >>> counts = {"approved_positive": 600, "approved_negative": 200, "denied": 200}
        >>> past = History.from_cells({"A": counts, "B": counts})
        >>> print(check(past, "equal_opportunity").all_rates()["selection_rate"]["A"])
        0.800 in [0.766, 0.831]
        """
        if not self.shares:
            return {}
        # The question's own rates keep the ranges behind the verdict, which are narrower.
        intervals = self._rates_from_shares()
        for rate, by_group in self.rates.items():
            from_shares = intervals.get(rate, {})
            intervals[rate] = {
                group: _keep_estimate(interval, from_shares.get(group))
                for group, interval in by_group.items()
            }
        return intervals

    def _rates_from_shares(self) -> dict[str, dict[str, Interval]]:
        """Return an interval for every rate of every group, all of which hold together."""
        intervals = {}
        for name, rate in RATES.items():
            intervals[name] = {group: shares.rate(rate) for group, shares in self.shares.items()}
        return intervals

    def all_metrics(self) -> dict[str, Interval]:
        """Return an interval for every metric's gap, compared as the question does.

        It follows from the same shares as :meth:`all_rates` and holds together with them. The
        question's own metric has the range of this finding. Where the question counts one direction
        only, such as groups below a reference, the other direction counts in rates where a higher
        value is worse: fewer approvals are more denials.
        """
        if not self.shares:
            return {}
        all_rates = self._rates_from_shares()
        gaps = {}
        for name, metric in METRICS.items():
            gap_by_rate = []
            for rate in metric.rates:
                comparison = self._comparison_in(rate)
                gap_by_rate.append(gap_interval({rate.name: all_rates[rate.name]}, comparison))
            gaps[name] = _largest_of(gap_by_rate)
        if self.question.metric in gaps:
            answer = Interval(self.lower, self.upper, self.estimate)
            gaps[self.question.metric] = _keep_estimate(answer, gaps[self.question.metric])
        return gaps

    def _comparison_in(self, rate: Rate) -> Comparison:
        """Return how the question compares groups, applied to any rate."""
        comparison = self.question.comparison
        question_rates = METRICS[self.question.metric].rates
        directions = {question_rate.is_worse_if_higher for question_rate in question_rates}
        # A question about rates of both kinds has a direction in the sense of rates only.
        if len(directions) == 1 and rate.is_worse_if_higher not in directions:
            return comparison.opposite
        return comparison

    def all_rows(self) -> tuple[list[Row], list[Row]]:
        """Return :meth:`all_rates`, a row per rate, and :meth:`all_metrics`, a row per metric.

        Without the question's own rates and metric, whose ranges are those of the finding.
        """
        rate_rows: list[Row] = []
        for rate, by_group in self.all_rates().items():
            if rate not in self.rates:
                row = {"rate": rate.replace("_", " ")}
                row |= {group: interval.percent for group, interval in by_group.items()}
                rate_rows.append(row)
        metric_rows: list[Row] = []
        for metric, interval in self.all_metrics().items():
            if metric != self.question.metric:
                # A difference of two shares is in points, a ratio in percent.
                is_difference = self.question.gap_scale is GapScale.DIFFERENCE
                gap = interval.points if is_difference else interval.percent
                metric_rows.append({"metric": metric.replace("_", " "), "gap": gap})
        return rate_rows, metric_rows

    def to_full_dict(self) -> dict[str, Any]:
        """Return :meth:`to_dict` with every rate and every metric, where there are any."""
        data = self.to_dict()
        if self.shares:
            data["all_rates"] = to_plain_data(self.all_rates())
            data["all_metrics"] = to_plain_data(self.all_metrics())
        return data

    def _draw(self, ax: Axes) -> None:
        from equipoise.display import draw_ranges, wrap_caption

        rows = []
        for rate, group, interval in self._intervals():
            label = f"{rate.replace('_', ' ')}: {group}".rstrip(": ")
            rows.append((label, interval.lower, interval.estimate, interval.upper))
        # Behind the gap: where FAIR is right, where both answers are, where UNFAIR is.
        gamma = self.question.gamma
        threshold = self.question.threshold
        zones = (
            ("fair", FAIR, 0.0, gamma),
            ("either", UNDECIDED, gamma, threshold),
            ("unfair", UNFAIR, threshold, 1.0),
        )
        for label, colour, start, end in zones:
            ax.fill_between([start, end], -0.5, 0.5, color=colour, alpha=0.13, lw=0)
            if end - start > 0.06:  # else the label does not fit
                middle = (start + end) / 2
                ax.text(middle, -0.56, label, ha="center", va="bottom", color=colour, size=8.5)
        draw_ranges(ax, rows, [INK, *[BLUE] * (len(rows) - 1)])
        ax.set_xlim(0.0, 1.0)
        axis = f"{self.question.gap_scale.noun} (the gap) and rates, as shares"
        ax.set_xlabel(f"{axis}\n{wrap_caption(self.meaning)}")
        ax.set_title(wrap_caption(self._answer().summary), loc="left", pad=16)

    def __str__(self) -> str:
        lines = self._answer_lines()
        for rate, by_group in self.rates.items():
            lines.append(rate.replace("_", " "))
            lines += [f"  {group}: {interval.percent}" for group, interval in by_group.items()]
        lines += self._remark_lines()
        return "\n  ".join(lines)

    def _lines(self) -> Sequence[str]:
        return [*self._answer_lines(), *self._remark_lines()]

    def _answer_lines(self) -> list[str]:
        return [self._answer().summary, f"gap         {self._describe_gap()}"]

    def _remark_lines(self) -> list[str]:
        """Return what was spent, what the answer rests on, and why it is this one."""
        answer = self._answer()
        lines = [f"spent       {self._describe_cost()}"]
        lines += [f"assumes     {line}" for line in answer.assumptions]
        lines += [f"WARNING     {line}" for line in answer.warnings]
        lines += [f"missing     {line}" for line in answer.missing]
        lines.append(f"question    {self.question}")
        lines.append(f"because     {answer.reason}")
        return lines

    def _describe_gap(self) -> str:
        """Return the range of the gap, the estimate, and the level if it is not the verdict's."""
        answer = self._answer()
        text = answer.gap_range
        if answer.gap.estimate is not None:
            text = f"{text}, estimate {format_number(100 * answer.gap.estimate, 3)}"
        return f"{text} ({answer.range_note})" if answer.range_note else text

    def _repr_html_(self) -> str:
        """Return a small card: the verdict, the range in a picture, cost, what is missing."""
        answer = self._answer()
        colour = {Verdict.FAIR: FAIR, Verdict.UNFAIR: UNFAIR}.get(self.verdict, UNDECIDED)
        lines = [f"Gap: {self._describe_gap()}.", f"Spent: {self._describe_cost()}."]
        lines += [f"Missing: {line}." for line in answer.missing]
        lines += [f"Warning: {line}." for line in answer.warnings]
        text = "".join(f"<br>{escape(line)}" for line in lines)
        assumed = "".join(f"<li>{escape(line)}</li>" for line in answer.assumptions)
        return (
            f'<div style="max-width:46em;padding:.6em 1em;border:1px solid #d5dbe1;'
            f'border-left:6px solid {colour};border-radius:4px">'
            f'<strong style="font-size:1.4em;color:{colour}">{escape(answer.title)}</strong>'
            f"<p>{escape(answer.details)}</p>{self._gap_bar()}<p>{text.removeprefix('<br>')}</p>"
            f"<details><summary>Groups and assumptions</summary>{html_table(self.rate_rows())}"
            f"<ul>{assumed}</ul></details></div>"
        )

    def _gap_bar(self) -> str:
        """Return the range of the gap over the three zones, as a picture without text."""
        gamma = self.question.gamma
        threshold = self.question.threshold
        # So far to the right that the threshold and the range are seen, and no further.
        highest = min(1.0, max(self.upper, 1.6 * threshold))
        label = f"Range of the gap: {self._answer().gap_range}"
        marks = []
        zones = ((0.0, gamma, FAIR), (gamma, threshold, UNDECIDED), (threshold, highest, UNFAIR))
        for start, end, colour in zones:
            marks.append(_svg_bar(start / highest, end / highest, 0, 26, colour, 0.25))
        marks.append(_svg_bar(self.lower / highest, self.upper / highest, 8, 10, BLUE, 1.0))
        if self.estimate is not None:
            marks.append(
                f'<circle cx="{100 * self.estimate / highest:.1f}%" cy="13" r="5" fill="#fff" '
                f'stroke="{INK}" stroke-width="2"/>'
            )
        return (
            f'<svg width="100%" height="26" role="img" aria-label="{escape(label)}">'
            f"{''.join(marks)}</svg>"
        )

    def _describe_cost(self) -> str:
        """Return what was spent, and on what."""
        cost = format_count(self.cost)
        if self.currency or self.decimals:
            cost = format_money(self.cost, self.currency, self.decimals)
        besides = ""
        if self.score_only:
            besides = f" and {self.score_only:,} more people looked at"
        elif self.features:
            besides = f" and {self.features:,} feature vectors"
        return f"{cost} for {self.labels:,} outcomes requested{besides}"


def _svg_bar(
    start: float, end: float, top: float, height: float, colour: str, opacity: float
) -> str:
    """Return a bar across a picture; ``start`` and ``end`` are shares of its width."""
    return (
        f'<rect x="{100 * start:.1f}%" width="{max(100 * (end - start), 0.5):.1f}%" y="{top:g}" '
        f'height="{height:g}" fill="{colour}" fill-opacity="{opacity:g}"/>'
    )
