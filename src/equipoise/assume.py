"""What a user grants about the denied, so that less has to be found out.

Either limits of ``r = P[Y=1 | f=0]`` (:class:`Assume`), or that deciders get cases as if at random:
then the most and the least approving say something of the denied.

Let ``q = P[Y=1 | A=a]``. If within a group the decider says nothing about a case's outcome, and the
outcome does not depend on who approves, then every decider j meets the same q. Those whom j
approves and who turn out well are some of those who would, so ``p1_j <= q``; likewise
``p0_j <= 1 - q``: ``max_j p1_j <= q <= 1 - max_j p0_j``. No more follows from who decided.

With it every rate is a curve in q in place of r: ``fn = q - p1`` and ``tn = 1 - q - p0``, so that
``TPR = p1/q`` and ``FPR = p0/(1 - q)``. The curves here are drawn over a number from 0 to 1 that
runs over the range of q; everything that works with curves in r works with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from equipoise._json import JsonValue
from equipoise.cells import Cells, Decider, GroupCells
from equipoise.errors import InvalidInput, UnknownName, require_in_unit, require_kind
from equipoise.finding import Interval
from equipoise.rates import CELLS, RATES, Band, Curve, Rate, band_from_counts, clopper_pearson

Boxes = Mapping[str, tuple[float, float]]
"""Group -> the least and the largest r."""

NO_BETTER = "denied-no-better"


@dataclass(frozen=True)
class Assume(JsonValue):
    """Where ``r = P[Y=1 | f=0]`` may lie. Under it the question's error probability holds.

    If it does not hold, nothing is promised. A check whose past data contradict it is INCONCLUSIVE
    and says so; that they do not is no support.

    Parameters
    ----------
    denied_no_better
        The denied of every group would do no better than its approved: r is at most their share of
        good outcomes, which is the same as TPR >= selection rate >= FPR.
    r_at_most, r_at_least
        Bounds of some groups' r.

    Examples
    --------
    >>> print(Assume(denied_no_better=True, r_at_least={"B": 0.1}))
    the denied of every group would do no better than its approved; at least 0.1 of the denied of B
    would do well
    """

    denied_no_better: bool = False
    r_at_most: Mapping[str, float] = field(default_factory=dict)
    r_at_least: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_kind("denied_no_better", self.denied_no_better, bool, "True or False")
        for name in ("r_at_most", "r_at_least"):
            limits = getattr(self, name)
            require_kind(name, limits, Mapping, "a mapping of groups to numbers")
            for group, limit in limits.items():
                require_in_unit(f"{name}[{group!r}]", limit)
        for group, least in self.r_at_least.items():
            if least > (most := self.r_at_most.get(group, 1.0)):
                raise InvalidInput(
                    f"'r_at_least' of {group!r} must not be above its 'r_at_most'; "
                    f"got {least!r} and {most!r}"
                )

    @classmethod
    def parse(cls, words: Iterable[str]) -> Assume:
        """Read what people write on a command line or in a form.

        Examples
        --------
        >>> print(Assume.parse(["denied-no-better", "at-most:B=0.4"]))
        the denied of every group would do no better than its approved; at most 0.4 of the denied of
        B would do well
        """
        words = [*words]
        limits: dict[str, dict[str, float]] = {"at-most": {}, "at-least": {}}
        for word in (word for word in words if word != NO_BETTER):
            kind, _, rest = word.partition(":")
            group, _, number = rest.rpartition("=")
            try:
                limits[kind][group] = float(number)
            except (KeyError, ValueError):
                raise InvalidInput(
                    f"'assume' must be {NO_BETTER}, at-most:GROUP=NUMBER or at-least:GROUP=NUMBER; "
                    f"got {word[:80]!r}"
                ) from None
        return cls(NO_BETTER in words, limits["at-most"], limits["at-least"])

    def __bool__(self) -> bool:
        return bool(self.denied_no_better or self.r_at_most or self.r_at_least)

    @property
    def lines(self) -> tuple[str, ...]:
        """What is assumed, one line each."""
        no_better = ["the denied of every group would do no better than its approved"]
        lines = no_better if self.denied_no_better else []
        for side, limits in (("at most", self.r_at_most), ("at least", self.r_at_least)):
            lines += [f"{side} {r:g} of the denied of {g} would do well" for g, r in limits.items()]
        return tuple(lines)

    def __str__(self) -> str:
        return "; ".join(self.lines) or "nothing"

    def limits(self, cells: Cells, alpha: float | None) -> Boxes:
        """Return the limits of every group's r.

        That the denied do no better than the approved bounds r by the precision, of which a finite
        past gives an upper bound, missed with probability at most ``alpha`` per group (None: the
        counts are the population). A least r above a largest one is left as it is: a contradiction.

        Examples
        --------
        >>> from equipoise.cells import GroupCells
        >>> cells = Cells({"A": GroupCells(20, 20, 60), "B": GroupCells(0, 0, 5)})
        >>> Assume(denied_no_better=True, r_at_least={"B": 0.2}).limits(cells, None)
        {'A': (0.0, 0.5), 'B': (0.2, 1.0)}
        """
        for name, word in (("r_at_most", "at-most"), ("r_at_least", "at-least")):
            for group in getattr(self, name):
                if group not in cells:
                    raise UnknownName(f"group in {name!r} (--assume {word})", group, cells.groups)
        limits = {}
        for group, counts in cells.items():
            most = self.r_at_most.get(group, 1.0)
            if self.denied_no_better:
                most = min(most, band_from_counts(RATES["precision"], counts, alpha).high.at(0.0))
            limits[group] = self.r_at_least.get(group, 0.0), most
        return limits


# -- deciders who get cases as if at random --------------------------------------------------------

ASSUMES_DECIDERS = (
    "within each group (and stratum) cases fall to deciders as if at random, and how a case turns "
    "out does not depend on who approves it (granted; that the data do not contradict it is no "
    "support)"
)


def base_rate(deciders: Sequence[Decider], alpha: float | None) -> tuple[Interval, str, str]:
    """Return where a group's share of good outcomes ``q = P[Y=1 | A=a]`` lies, and by whose cases.

    The lower end is that of the decider with the largest share approved and good, the upper end
    that of the one with the largest share approved and bad. A lower end above the upper one is a
    contradiction: cases did not fall as at random.

    Each decider has two bounds, each missed with probability at most ``alpha`` (None: the counts
    are the population). Given who decided which case, every case of a decider, or of several who
    are counted together, is approved and good with a chance of at most q. So the number of such
    cases is at most binomial(cases, q), and its exact lower bound exceeds q with probability at
    most alpha, whatever deciders do.

    Examples
    --------
    >>> base_rate([Decider("X", 70, 20, 100), Decider("Y", 50, 5, 100)], None)
    (Interval(lower=0.7, upper=0.8, estimate=None), 'X', 'X')
    """
    good = max((clopper_pearson(d.approved_positive, d.cases, alpha)[0], d.name) for d in deciders)
    bad = max((clopper_pearson(d.approved_negative, d.cases, alpha)[0], d.name) for d in deciders)
    return Interval(good[0], 1.0 - bad[0]), good[1], bad[1]


def decider_band(rate: Rate, counts: GroupCells, known: Interval, alpha: float | None) -> Band:
    """Return a rate's band as q runs over what is known of it, from its lower (0) to its upper end.

    A rate rises or falls in p1 and in p0, whatever the cells are: p1 moves people from false
    negatives to true positives, p0 from true negatives to false positives, and each of the four is
    in the rate's part, in the rest of its whole, or in neither. So each curve takes one bound of
    each of the two shares that matter, and these divide ``alpha``.
    """
    if rate.trend == 0:
        return band_from_counts(rate, counts, alpha)
    side = {cell: 2 * (cell in rate.part) - (cell in rate.whole) for cell in CELLS}  # 1, -1 or 0
    ways = side["tp"] - side["fn"], side["fp"] - side["tn"]
    level = None if alpha is None else alpha / max(2 - ways.count(0), 1)
    ends = []  # of p1 and of p0, for the low curve and for the high one
    for way, count in zip(ways, (counts.approved_positive, counts.approved_negative), strict=True):
        low, high = clopper_pearson(count, counts.total, level, counts.approved_unknown)
        ends.append((0.0, 0.0) if way == 0 else (low, high) if way > 0 else (high, low))
    curves = []
    for p1, p0 in zip(*ends, strict=True):
        (a, c), (a_most, c_most) = (
            rate.fraction(p1, p0, q - p1, 1.0 - q - p0) for q in (known.lower, known.upper)
        )
        somebody = min(c, c_most) > 0.0  # else the shares leave nobody to divide by
        curves.append(Curve(a, a_most - a, c, c_most - c) if somebody else None)
    return Band(curves[0] or Curve(0.0), curves[1] or Curve(1.0))
