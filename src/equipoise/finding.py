"""What is answered: a verdict with its interval, its price and its assumptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from equipoise._json import JsonValue
from equipoise.question import Question, Verdict

__all__ = ["Finding", "Interval", "Separation", "separation"]


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

    def __str__(self) -> str:
        middle = "" if self.estimate is None else f"{self.estimate:.3f} in "
        return f"{middle}[{self.lower:.3f}, {self.upper:.3f}]"


@dataclass(frozen=True)
class Separation(JsonValue):
    """Two groups whose intervals for a rate do not meet, and which of them is the higher one."""

    rate: str
    higher: str
    lower: str

    def __str__(self) -> str:
        return f"the {self.rate.replace('_', ' ')} of {self.higher} is above that of {self.lower}"


def separation(rates: Mapping[str, Mapping[str, Interval]]) -> Separation | None:
    """Return the groups and the rate whose intervals are furthest apart; None if all of them meet.

    Examples
    --------
    >>> a, b, c = Interval(0.1, 0.2), Interval(0.3, 0.5), Interval(0.15, 0.9)
    >>> print(separation({"selection_rate": {"A": a, "B": b, "C": c}}))
    the selection rate of B is above that of A
    """
    apart = [
        (of_high.lower - of_low.upper, Separation(rate, high, low))
        for rate, by_group in rates.items()
        for high, of_high in by_group.items()
        for low, of_low in by_group.items()
        if of_high.lower > of_low.upper
    ]
    return max(apart, key=lambda found: found[0])[1] if apart else None


@dataclass(frozen=True)
class Finding(JsonValue):
    """The answer of an audit, and everything needed to defend it.

    Attributes
    ----------
    verdict
        FAIR, UNFAIR or INCONCLUSIVE.
    estimate
        Best guess at Delta, None where nothing supports one.
    lower, upper
        The interval for Delta that is established at the question's error probability.
    rates
        Rate name -> group -> interval.
    cost, labels, features
        Money spent, labels requested of denied people, feature vectors requested of denied people.
    reason
        One sentence: why this verdict.
    decided_by
        After UNFAIR: the groups and the rate that the intervals separate, at the level at which all
        intervals hold together. None where they separate none, and after any other verdict.
    guaranteed
        Whether the question's error probability is proven for this verdict; not so where a
        threshold below the proof's was given.
    missing
        For INCONCLUSIVE: what would decide, one line each.
    assumptions
        What the answer rests on, one line each.
    warnings
        Assumptions that the data speak against, one line each.
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
    decided_by: Separation | None = None
    guaranteed: bool = True
    missing: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.describe()

    def describe(self, money: Callable[[float], str] = "{:,.10g}".format) -> str:
        """Return the finding as lines of text, its cost written as ``money`` writes it."""
        guess = "" if self.estimate is None else f"{self.estimate:.3f}, "
        lines = [
            f"{self.verdict}: {self.reason}",
            f"  question    {self.question}",
            f"  Delta       {guess}between {self.lower:.3f} and {self.upper:.3f}",
            f"  spent       {money(self.cost)} for {self.labels:,} labels"
            f" and {self.features:,} feature vectors",
        ]
        for rate, groups in self.rates.items():
            lines += [f"  {rate.replace('_', ' ')}"]
            lines += [f"    {group}: {interval}" for group, interval in groups.items()]
        if self.decided_by is not None:
            lines += [f"  separated   {self.decided_by}"]
        lines += [f"  missing     {line}" for line in self.missing]
        lines += [f"  assumes     {line}" for line in self.assumptions]
        lines += [f"  WARNING     {line}" for line in self.warnings]
        return "\n".join(lines)
