"""What is answered: a verdict with its interval, its price and its assumptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._arrays import Array
from equipoise._json import JsonValue, to_plain_data
from equipoise.comparison import Comparison, GapScale, as_comparison
from equipoise.display import Displayable, Row, format_money
from equipoise.metrics import METRICS
from equipoise.question import Question, Verdict
from equipoise.rates import RATES, Rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        guess = None if value is None else min(max(value, self.lower), self.upper)
        return Interval(self.lower, self.upper, guess)

    @property
    def percent(self) -> str:
        """The range in percent, and the best guess."""
        guess = "" if self.estimate is None else f" ({100 * self.estimate:.1f})"
        return f"{100 * self.lower:.1f} to {100 * self.upper:.1f}%{guess}"

    def __str__(self) -> str:
        middle = "" if self.estimate is None else f"{self.estimate:.3f} in "
        return f"{middle}[{self.lower:.3f}, {self.upper:.3f}]"


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
        shares = (self.denied, self.approved_good, self.denied_good)
        corners = product(*((share.lower, share.upper) for share in shares))
        found = [value for corner in corners if (value := _rate_at(rate, *corner)) is not None]
        if not found:  # undefined: it may be anything
            return Interval(0.0, 1.0)
        known = Interval(max(min(found), 0.0), min(max(found), 1.0))  # but for rounding
        denied, good, r = (share.estimate for share in shares)
        if denied is None or (good is None and denied < 1.0):
            return known
        return known.with_estimate(_rate_at(rate, denied, good or 0.0, r))


def _rate_at(rate: Rate, denied: float, good: float, r: float | None) -> float | None:
    """Return a rate at these shares; None if it is undefined, or r matters and is not known."""
    curve = rate.curve((1.0 - denied) * good, (1.0 - denied) * (1.0 - good), denied)
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


def separation(
    rates: Mapping[str, Mapping[str, Interval]], compare: str | Comparison = GapScale.DIFFERENCE
) -> Separation | None:
    """Return the compared groups and the rate whose intervals are furthest apart; None if all meet.

    Examples
    --------
    >>> a, b, c = Interval(0.1, 0.2), Interval(0.3, 0.5), Interval(0.15, 0.9)
    >>> print(separation({"selection_rate": {"A": a, "B": b, "C": c}}))
    the selection rate of B is above that of A
    """
    apart = {
        found: high.lower - low.upper
        for found, high, low in _pairs(rates, compare)
        if high.lower > low.upper
    }
    return max(apart, key=apart.__getitem__, default=None)


def gap_interval(
    rates: Mapping[str, Mapping[str, Interval]], compare: str | Comparison = GapScale.DIFFERENCE
) -> Interval:
    """Return the gaps that rates can have if each lies in its interval, and the best guess.

    Examples
    --------
    >>> a, b = Interval(0.1, 0.2, 0.1), Interval(0.3, 0.5, 0.4)
    >>> print(gap_interval({"selection_rate": {"A": a, "B": b}}))
    0.300 in [0.100, 0.400]
    """
    asked = as_comparison(compare).resolve(next(iter(rates.values())))
    own = [[(i.lower, i.upper, i.estimate) for i in by.values()] for by in rates.values()]
    low, high, guess = np.moveaxis(np.array(own, dtype=float), -1, 0)
    known = not np.isnan(guess[:, asked.groups]).any()
    return Interval(
        float(asked.least_gap(low, high).max()),
        float(asked.largest_gap(low, high).max()),
        float(asked.gap(guess).max()) if known else None,
    )


def _pairs(
    rates: Mapping[str, Mapping[str, Interval]], compare: str | Comparison
) -> list[tuple[Separation, Interval, Interval]]:
    """Return every gap that counts, with the higher and the lower group's interval."""
    return [
        (Separation(rate, names[high], names[low]), by_group[names[high]], by_group[names[low]])
        for rate, by_group in rates.items()
        for names in [[*by_group]]
        for high, low in as_comparison(compare).resolve(names).pairs
    ]


@dataclass(frozen=True)
class Finding(JsonValue, Displayable):
    """The answer of an audit, and everything needed to defend it.

    It prints, shows itself in a notebook, draws itself (``plot``), and becomes a table
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
        Whether the question's error probability is proven for this verdict; not so where a
        threshold below the proof's was given, nor for INCONCLUSIVE, which is no verdict.
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

    Examples
    --------
    >>> rates = {"true_positive_rate": {"A": Interval(0.7, 0.8, 0.75), "B": Interval(0.5, 0.6)}}
    >>> finding = Finding(
    ...     Question("equal_opportunity"), Verdict.UNFAIR, 0.1, 0.3, "the evidence says so",
    ...     rates=rates, decided_by=separation(rates),
    ... )
    >>> finding.who
    'the true positive rate of A is above that of B by at least 10 percentage points'
    >>> print(finding.meaning)
    UNFAIR says that the gap is more than 0.05, not that it is more than 0.1: between the two both
    answers are right, and the range may reach there
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

    _optional = ("score_only", "p_hat", "q_hat", "shares", "currency", "decimals")

    def __post_init__(self) -> None:
        if self.verdict is Verdict.INCONCLUSIVE:
            object.__setattr__(self, "guaranteed", False)

    @property
    def who(self) -> str:
        """Who differs in which rate, which way and by how much; empty where nobody can be named.

        After UNFAIR the groups that the ranges separate, else those of the largest guessed gap.
        """
        scale, pairs = self.question.gap_scale, _pairs(self.rates, self.question.comparison)
        likely = {
            found: float(scale.gap(low.estimate, high.estimate))
            for found, high, low in pairs
            if low.estimate is not None and high.estimate is not None
        }
        if (found := self.decided_by) is not None:
            high, low = (self.rates[found.rate][g] for g in (found.higher, found.lower))
            least = float(scale.gap(low.upper, high.lower))
            if len({(pair.rate, *sorted((pair.higher, pair.lower))) for pair, *_ in pairs}) == 1:
                least = max(least, self.lower)  # the gap is theirs
            guess = ""
            if found in likely:
                guess = f", {_size(scale, max(likely[found], least))} by the best guess"
            return f"{found} by at least {_size(scale, least)}{guess}"
        if likely and len(likely) == len(pairs):
            found = max(likely, key=likely.__getitem__)
            return f"by the best guess {found} by {_size(scale, likely[found])}, the largest gap"
        together = "no rate by itself tells two groups apart; all of them together do"
        return together if self.verdict is Verdict.UNFAIR else ""

    @property
    def meaning(self) -> str:
        """What the verdict says and what it does not, in a sentence."""
        gamma, threshold = f"{self.question.gamma:g}", f"{self.question.threshold:.10g}"
        if self.verdict is Verdict.INCONCLUSIVE:
            neither = "INCONCLUSIVE says that neither is established"
            return f"{neither}; the range for the gap is, all the same"
        says, unsaid = f"at most {threshold}", f"at most {gamma}"
        if self.verdict is Verdict.UNFAIR:
            says, unsaid = f"more than {gamma}", f"more than {threshold}"
        between = "between the two both answers are right, and the range may reach there"
        return f"{self.verdict} says that the gap is {says}, not that it is {unsaid}: {between}"

    def _rows(self) -> Sequence[Row]:
        return [{"rate": rate, "group": g, **i.to_dict()} for rate, g, i in self._intervals()]

    def _intervals(self) -> list[tuple[str, str, Interval]]:
        """Return the gap's interval, then every rate's of every group."""
        rates = [(rate, g, i) for rate, by in self.rates.items() for g, i in by.items()]
        return [("gap", "", Interval(self.lower, self.upper, self.estimate)), *rates]

    def rate_rows(self) -> list[Row]:
        """Return the ranges of every group's rates, a row per group."""
        words = {rate.replace("_", " "): by_group for rate, by_group in self.rates.items()}
        return [
            {"group": g} | {w: f"{by[g].lower:.3f} to {by[g].upper:.3f}" for w, by in words.items()}
            for g in next(iter(words.values()), {})
        ]

    def all_rates(self) -> dict[str, dict[str, Interval]]:
        """Return an interval for every rate of every group, whatever was asked.

        Each group has three unknown shares, and one simultaneous set for all of them gives every
        rate. Of an adaptive audit, all of these intervals and the verdict are right together with
        probability at least ``1 - delta``, whenever one looks; of a free check, the intervals are.
        They are wider than :attr:`rates`, whose bounds are made for the question. Empty for
        audits that estimate rates directly.

        Examples
        --------
        >>> from equipoise import History, check
        >>> counts = {"approved_positive": 600, "approved_negative": 200, "denied": 200}
        >>> found = check(History.from_cells({"A": counts, "B": counts}), "equal_opportunity")
        >>> print(found.all_rates()["selection_rate"]["A"])
        0.800 in [0.767, 0.831]
        """
        return {
            name: {group: own.rate(rate) for group, own in self.shares.items()}
            for name, rate in (RATES if self.shares else {}).items()
        }

    def all_metrics(self) -> dict[str, Interval]:
        """Return an interval for every metric's gap, compared as the question does.

        It follows from :meth:`all_rates` and holds together with it.
        """
        rates, compare = self.all_rates(), self.question.comparison
        return {
            name: gap_interval({rate.name: rates[rate.name] for rate in metric.rates}, compare)
            for name, metric in (METRICS if rates else {}).items()
        }

    def all_rows(self) -> tuple[list[Row], list[Row]]:
        """Return :meth:`all_rates`, a row per rate, and :meth:`all_metrics`, a row per metric."""
        rates: list[Row] = [
            {"rate": rate.replace("_", " "), **{g: one.percent for g, one in by_group.items()}}
            for rate, by_group in self.all_rates().items()
        ]
        metrics: list[Row] = [
            {"metric": name.replace("_", " "), "gap": one.percent}
            for name, one in self.all_metrics().items()
        ]
        return rates, metrics

    def to_full_dict(self) -> dict[str, Any]:
        """Return :meth:`to_dict` with every rate and every metric, where there are any."""
        more = {
            "all_rates": to_plain_data(self.all_rates()),
            "all_metrics": to_plain_data(self.all_metrics()),
        }
        return self.to_dict() | (more if self.shares else {})

    def _draw(self, ax: Axes) -> None:
        from equipoise.display import BLUE, FAIR, GREY, INK, UNFAIR, draw_ranges, wrap_caption

        rows = [
            (f"{rate.replace('_', ' ')}: {group}".rstrip(": "), i.lower, i.estimate, i.upper)
            for rate, group, i in self._intervals()
        ]
        ends = (0.0, self.question.gamma, self.question.threshold, 1.0)
        zones = (("fair", FAIR), ("either", GREY), ("unfair", UNFAIR))  # which answers are right
        for (word, colour), start, end in zip(zones, ends, ends[1:], strict=False):
            ax.fill_between([start, end], -0.5, 0.5, color=colour, alpha=0.13, lw=0)
            if end - start > 0.06:
                at = (start + end) / 2
                ax.text(at, -0.56, word, ha="center", va="bottom", color=colour, size=8.5)
        draw_ranges(ax, rows, [INK, *[BLUE] * (len(rows) - 1)])
        ax.set_xlim(0.0, 1.0)
        axis = f"{self.question.gap_scale.noun} (the gap) and rates, as shares"
        ax.set_xlabel(f"{axis}\n{wrap_caption(self.meaning)}")
        ax.set_title(wrap_caption(f"{self.verdict}: {self.who or self.reason}"), loc="left", pad=16)

    def __str__(self) -> str:
        cost = f"{self.cost:,.10g}"
        if self.currency or self.decimals:
            cost = format_money(self.cost, self.currency, self.decimals)
        more = f" and {self.features:,} feature vectors" if self.features else ""
        if self.score_only:
            more = f" and {self.score_only:,} more people looked at"
        guess = "" if self.estimate is None else f"{self.estimate:.3f}, "
        rates = [
            line
            for rate, by_group in self.rates.items()
            for line in (rate.replace("_", " "), *(f"  {g}: {one}" for g, one in by_group.items()))
        ]
        lines = [
            f"question    {self.question}",
            f"gap         {guess}between {self.lower:.3f} and {self.upper:.3f}",
            f"spent       {cost} for {self.labels:,} labels asked for{more}",
            *rates,
            *([f"who         {self.who}"] if self.who else []),
            *(f"missing     {line}" for line in self.missing),
            *(f"assumes     {line}" for line in self.assumptions),
            *(f"WARNING     {line}" for line in self.warnings),
        ]
        return "\n  ".join([f"{self.verdict}: {self.reason}", *lines])


def _size(scale: GapScale, gap: float | Array) -> str:
    """Write how far a lower rate is from a higher one."""
    points = f"{float(gap) * 100.0:.3g}"
    if scale is GapScale.RATIO:
        return f"{points}% of it"
    return f"{points} percentage point{'' if points == '1' else 's'}"
