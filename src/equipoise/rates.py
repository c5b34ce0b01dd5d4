"""What a rate is: one object with all that an audit, a report and a page of notation need of it.

For a group with free shares ``p1 = P[f=1,Y=1]``, ``p0 = P[f=1,Y=0]``, ``s = P[f=0]`` the only
unknown is ``r = P[Y=1 | f=0]``. A rate is a curve in r that does not change its direction; an
audit works with curves and need not know which rate it serves. A wrong direction or a band that is
too narrow would make verdicts wrong without a sign, so a rate is held against its own definition
when it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import comb
from typing import TYPE_CHECKING, Protocol

from equipoise.cells import Cells, GroupCells
from equipoise.comparison import GapScale
from equipoise.errors import BadData, InvalidInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

__all__ = [
    "CONSTANT",
    "FALLING",
    "METRICS",
    "RATES",
    "RISING",
    "UNKNOWN",
    "Band",
    "Bands",
    "Curve",
    "Metric",
    "Rate",
    "ShareBounds",
    "band_from_counts",
    "bands_from_cells",
    "clopper_pearson",
    "difference",
    "rates",
    "register",
    "unknown_band",
]


@dataclass(frozen=True)
class Curve:
    """A rate of one group as a monotone function of ``r`` on [0, 1].

    Every rate is a fraction ``(a + b r) / (c + d r)`` without a pole in [0, 1]: a hyperbola for TPR
    (falling) and FPR (rising), a line for the others, a constant where the free data suffice.

    Examples
    --------
    >>> tpr = Curve.falling(odds=2.0)  # 1 / (1 + 2 r)
    >>> float(tpr.value(0.5)), float(tpr.cut(0.5)), tpr.trend
    (0.5, 0.5, -1)
    """

    a: float
    b: float
    c: float = 1.0
    d: float = 0.0

    @classmethod
    def falling(cls, odds: float) -> Curve:
        """Return ``1 / (1 + odds r)``."""
        return cls(1.0, 0.0, 1.0, odds)

    @classmethod
    def rising(cls, odds: float) -> Curve:
        """Return ``1 / (1 + odds (1 - r))``."""
        return cls(1.0, 0.0, 1.0 + odds, -odds)

    @classmethod
    def constant(cls, value: float) -> Curve:
        """Return a rate that does not depend on r."""
        return cls(value, 0.0)

    @property
    def trend(self) -> int:
        """+1 if the rate rises in r, -1 if it falls, 0 if it is constant."""
        slope = self.b * self.c - self.a * self.d
        return 1 if slope > 0.0 else -1 if slope < 0.0 else 0

    def at(self, r: float) -> float:
        """Return the rate at one r, as a plain number."""
        return (self.a + self.b * r) / (self.c + self.d * r)

    def value(self, r: ArrayLike) -> Array:
        """Return the rate at r."""
        import numpy as np

        r = np.asarray(r, dtype=float)
        return np.asarray((self.a + self.b * r) / (self.c + self.d * r))

    def slope_at(self, r: ArrayLike) -> Array:
        """Return the derivative of the rate at r."""
        import numpy as np

        r = np.asarray(r, dtype=float)
        return np.asarray((self.b * self.c - self.a * self.d) / (self.c + self.d * r) ** 2)

    def cut(self, value: ArrayLike) -> Array:
        """Return the r at which the rate passes ``value``, -inf or +inf where it never does.

        For a falling curve ``rate(r) >= v`` exactly when ``r <= cut(v)``, for a rising one exactly
        when ``r >= cut(v)``; a constant counts as falling.
        """
        import numpy as np

        v = np.asarray(value, dtype=float)
        at_zero, at_one = self.a / self.c, (self.a + self.b) / (self.c + self.d)
        trend = self.trend
        if trend == 0:
            return np.where(at_zero >= v, np.inf, -np.inf)
        inside = np.minimum(np.maximum(v, min(at_zero, at_one)), max(at_zero, at_one))
        r = (self.a - inside * self.c) / (inside * self.d - self.b)
        r = np.minimum(np.maximum(r, 0.0), 1.0)
        beyond_zero, beyond_one = v > at_zero, v < at_one
        if trend > 0:
            beyond_zero, beyond_one = v < at_zero, v > at_one
        return np.asarray(np.where(beyond_zero, -np.inf, np.where(beyond_one, np.inf, r)))

    def until(self, value: Array, *, falling: bool) -> Array:
        """Return the largest r with rate >= value (falling rate) or rate <= value (rising rate)."""
        import numpy as np

        if self.trend != 0:
            return self.cut(value)
        holds = self.value(0.0) >= value if falling else self.value(0.0) <= value
        return np.where(holds, np.inf, -np.inf)

    def since(self, value: Array, *, falling: bool) -> Array:
        """Return the least r with rate <= value (falling rate) or rate >= value (rising rate)."""
        import numpy as np

        if self.trend != 0:
            return self.cut(value)
        holds = self.value(0.0) <= value if falling else self.value(0.0) >= value
        return np.where(holds, -np.inf, np.inf)


@dataclass(frozen=True)
class Band:
    """A group's rate lies between two curves of the same trend; one curve if the past is exact."""

    low: Curve
    high: Curve

    @classmethod
    def exact(cls, curve: Curve) -> Band:
        """Return the band of a rate that is known up to r."""
        return cls(curve, curve)

    @property
    def depends_on_r(self) -> bool:
        """Whether labels of denied people can say anything about the rate."""
        return self.low.trend != 0 or self.high.trend != 0


FALLING, CONSTANT, RISING = -1, 0, 1
UNKNOWN = Band(Curve.constant(0.0), Curve.constant(1.0))
"""The band of a rate of nobody: it may be anything."""


class ShareBounds(Protocol):
    """Bounds of a share from a sample of it."""

    def __call__(self, successes: float, trials: float, *, parts: int = 1) -> tuple[float, float]:
        """Return bounds, each at a curve's level over ``parts``, the shares that a curve needs."""
        ...


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A rate of the confusion matrix as a monotone function of one unknown per group.

    Parameters
    ----------
    name
        How code and files call it, such as ``"true_positive_rate"``.
    fraction
        The definition: from the shares of true positives, false positives, false negatives and
        true negatives to numerator and denominator. Where the denominator is 0 the rate is of
        nobody.
    curve
        The rate as a curve in r, from ``p1``, ``p0``, ``s``; None if it is of nobody for every r.
    trend
        :data:`FALLING`, :data:`RISING` or :data:`CONSTANT` in r.
    band
        What finite past data say: from a group's counts, and bounds of shares, to two curves. Each
        curve must be on its right side whenever the bounds that it uses are.
    phrase
        What it is, in words: "approved share of those with outcome 1".
    probability
        What it is, as a probability: "P[f=1 | Y=1, A=a]".
    formula
        What it is in ``p1``, ``p0``, ``s`` and ``r``.

    Raises
    ------
    InvalidInput
        If curve, trend or band do not fit the definition.

    Examples
    --------
    >>> base_rate = Rate(
    ...     name="base_rate",
    ...     fraction=lambda tp, fp, fn, tn: (tp + fn, tp + fp + fn + tn),
    ...     curve=lambda p1, p0, s: Curve(p1, s),
    ...     trend=RISING,
    ...     band=lambda counts, share: Band(*(
    ...         Curve(p1, s) for p1, s in zip(
    ...             share(counts.approved_positive, counts.total, parts=2),
    ...             share(counts.denied, counts.total, parts=2),
    ...         )
    ...     )),
    ...     phrase="share of outcome 1 among everybody",
    ...     probability="P[Y=1 | A=a]",
    ...     formula="p1 + s r",
    ... )
    >>> base_rate.curve(0.25, 0.25, 0.5).at(0.5)
    0.5
    """

    name: str
    fraction: Callable[[float, float, float, float], tuple[float, float]]
    curve: Callable[[float, float, float], Curve | None]
    trend: int
    band: Callable[[GroupCells, ShareBounds], Band]
    phrase: str
    probability: str
    formula: str

    def __post_init__(self) -> None:
        for field in ("name", "phrase", "probability", "formula"):
            if not isinstance(value := getattr(self, field), str) or not value:
                raise InvalidInput(f"{field!r} of a rate must be some words; got {value!r}")
        for field in ("fraction", "curve", "band"):
            if not callable(value := getattr(self, field)):
                raise self._refused(f"{field!r} must be a function; got {value!r}")
        if self.trend not in (FALLING, CONSTANT, RISING):
            raise self._refused(f"'trend' must be FALLING, CONSTANT or RISING; got {self.trend!r}")
        self._check_curve()
        self._check_band()
        self._check_coverage()

    @property
    def words(self) -> str:
        """The name as people write it."""
        return self.name.replace("_", " ")

    @property
    def falls(self) -> bool:
        """Whether the rate falls in r."""
        return self.trend == FALLING

    def is_of_nobody(self, p1: float, p0: float, s: float, r: float) -> bool:
        """Say whether the denominator is empty."""
        return self.fraction(p1, p0, s * r, s * (1.0 - r))[1] == 0.0

    # -- what is checked when a rate is made -----------------------------------------------------

    def _check_curve(self) -> None:
        trends = set()
        for counts in _PASTS:
            p1, p0, s = counts.shares
            curve = self.curve(p1, p0, s)
            where = f"for p1, p0, s = {p1:g}, {p0:g}, {s:g}"
            if (curve is None) != all(self.is_of_nobody(p1, p0, s, r) for r in _POINTS):
                raise self._refused(f"'curve' must be None where the rate is of nobody; {where}")
            if curve is None:
                continue
            trends.add(curve.trend)
            for r in _POINTS:
                part, whole = self.fraction(p1, p0, s * r, s * (1.0 - r))
                if whole > 0.0 and abs(curve.at(r) - part / whole) > _ROUNDING:
                    raise self._refused(
                        f"'curve' must equal 'fraction', {part / whole:g} at r = {r:g} {where}; "
                        f"got {curve.at(r):g}"
                    )
        if trends - {CONSTANT, self.trend} or (self.trend and self.trend not in trends):
            raise self._refused(
                f"'trend' must be that of 'curve'; got {_TREND_WORDS[self.trend]}, and the curve "
                f"is {' or '.join(_TREND_WORDS[t] for t in sorted(trends))}"
            )

    def _check_band(self) -> None:
        for counts in _PASTS:
            band, curve = self.band(counts, _share), self.curve(*counts.shares)
            where = f"for the counts {counts}"
            for side in (band.low, band.high):
                if side.trend not in (CONSTANT, self.trend):
                    raise self._refused(
                        f"'band' must not have a curve that is {_TREND_WORDS[side.trend]}; {where}"
                    )
            if curve is None:
                continue
            for r in _POINTS:
                low, middle, high = band.low.at(r), curve.at(r), band.high.at(r)
                if not low - _ROUNDING <= middle <= high + _ROUNDING:
                    raise self._refused(
                        f"'band' must hold the curve of its own counts; at r = {r:g} {where} it is "
                        f"[{low:g}, {high:g}] and the curve {middle:g}"
                    )

    def _check_coverage(self) -> None:
        """Add up, over every past of a few people, how often either curve is on its wrong side."""
        for shares in _TRUTHS:
            if (truth := self.curve(*shares)) is None:
                continue
            missed = [0.0, 0.0]
            for counts in _PASTS:
                chance = _chance(counts, shares)
                band = self.band(counts, _share)
                missed[0] += chance * any(band.low.at(r) > truth.at(r) + _ROUNDING for r in _POINTS)
                missed[1] += chance * any(
                    band.high.at(r) < truth.at(r) - _ROUNDING for r in _POINTS
                )
            if max(missed) > _LEVEL + _ROUNDING:
                raise self._refused(
                    f"'band' must miss the truth with probability at most its level; at level "
                    f"{_LEVEL:g} it misses {shares} with probability {max(missed):.3g}"
                )

    def _refused(self, why: str) -> InvalidInput:
        return InvalidInput(f"the rate {self.name!r} is unfinished or wrong: {why}")


# -- a few people, and exact bounds without scipy: a question is asked in no time ------------------

_TREND_WORDS = {FALLING: "falling", CONSTANT: "constant", RISING: "rising"}
_POINTS = (0.0, 0.5, 1.0)
_ROUNDING = 1e-9
_PEOPLE = 4
_LEVEL = 0.1
_TRUTHS = ((0.5, 0.2, 0.3), (0.1, 0.3, 0.6))
_PASTS = [
    GroupCells(p1, p0, _PEOPLE - p1 - p0)
    for p1 in range(_PEOPLE + 1)
    for p0 in range(_PEOPLE + 1 - p1)
]


def _chance(counts: GroupCells, shares: tuple[float, float, float]) -> float:
    p1, p0, s = (
        round(n) for n in (counts.approved_positive, counts.approved_negative, counts.denied)
    )
    ways = comb(_PEOPLE, p1) * comb(_PEOPLE - p1, p0)
    return float(ways * shares[0] ** p1 * shares[1] ** p0 * shares[2] ** s)


def _share(successes: float, trials: float, *, parts: int = 1) -> tuple[float, float]:
    """Return the Clopper-Pearson bounds of a few people."""
    k, n = round(successes), round(trials)
    return _least_share(k, n, _LEVEL / parts), 1.0 - _least_share(n - k, n, _LEVEL / parts)


@lru_cache(maxsize=256)
def _least_share(k: int, n: int, level: float) -> float:
    """Return the p at which k or more of n have probability ``level``."""
    if k == 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(40):
        p = (low + high) / 2.0
        tail = sum(comb(n, j) * p**j * (1.0 - p) ** (n - j) for j in range(k, n + 1))
        low, high = (p, high) if tail < level else (low, p)
    return low


RATES: dict[str, Rate] = {}
"""Every rate by name."""

METRICS: dict[str, Metric] = {}
"""Every metric by name."""


@dataclass(frozen=True)
class Metric:
    """A named set of rates: groups are compared in each of them.

    Parameters
    ----------
    name
        How a question calls it, such as ``"equal_opportunity"``.
    rates
        One or more.
    asks
        The question as somebody would ask it, for the report.
    """

    name: str
    rates: tuple[Rate, ...]
    asks: str

    def __post_init__(self) -> None:
        if not self.name or not self.asks:
            raise InvalidInput(f"a metric needs a name and words; got {self.name!r}, {self.asks!r}")
        if not self.rates or len({rate.name for rate in self.rates}) < len(self.rates):
            raise InvalidInput(f"the metric {self.name!r} needs one or more rates, each once")

    @property
    def words(self) -> str:
        """The name as people write it."""
        return self.name.replace("_", " ")

    @property
    def is_free(self) -> bool:
        """Whether no outcome of a denied person is needed."""
        return all(rate.trend == CONSTANT for rate in self.rates)


def register(metric: Metric) -> None:
    """Make a metric and its rates known by name, in this process.

    Raises
    ------
    InvalidInput
        If the metric's name, or one of its rates', stands for something else.
    """
    if METRICS.get(metric.name, metric) != metric:
        raise InvalidInput(f"there is another metric called {metric.name!r}; take another name")
    for rate in metric.rates:
        if RATES.get(rate.name, rate) != rate:
            raise InvalidInput(f"there is another rate called {rate.name!r}; take another name")
    METRICS[metric.name] = metric
    RATES.update({rate.name: rate for rate in metric.rates})


def rates(cells: Cells, r: Mapping[str, float], metric: str) -> dict[str, dict[str, float]]:
    """Return every group's rates when ``r`` is known, as rate -> group -> value.

    Raises
    ------
    BadData
        If a rate has an empty denominator in some group.
    """
    out: dict[str, dict[str, float]] = {}
    for rate in METRICS[metric].rates:
        out[rate.name] = {}
        for group, counts in cells.items():
            curve = rate.curve(*counts.shares)
            if curve is None or rate.is_of_nobody(*counts.shares, r[group]):
                raise BadData(
                    f"the {rate.words} of group {group!r} has an empty denominator; "
                    "merge the group with another or leave it out"
                )
            out[rate.name][group] = curve.at(r[group])
    return out


def difference(
    cells: Cells, r: Mapping[str, float], metric: str, compare: str = GapScale.DIFFERENCE
) -> float:
    """Return Delta, the largest gap between two groups over the metric's rates.

    Examples
    --------
    >>> cells = Cells({"A": GroupCells(30, 10, 60), "B": GroupCells(10, 5, 85)})
    >>> round(difference(cells, {"A": 0.2, "B": 0.1}, "equal_opportunity"), 4)
    0.1737
    >>> round(difference(cells, {"A": 0.2, "B": 0.1}, "equal_opportunity", "ratio"), 4)
    0.2432
    """
    gap = GapScale(compare).gap
    by_rate = rates(cells, r, metric).values()
    return max(float(gap(min(by.values()), max(by.values()))) for by in by_rate)


# -- the rates of the confusion matrix -------------------------------------------------------------

Shape = Callable[[float], Curve]
"""From the odds of denial to a curve."""


def _missed(odds: float) -> Curve:
    """Return ``1 - 1 / (1 + odds r)``."""
    return Curve(0.0, odds, 1.0, odds)


def _spared(odds: float) -> Curve:
    """Return ``1 - 1 / (1 + odds (1 - r))``."""
    return Curve(odds, -odds, 1.0 + odds, -odds)


def _hyperbola(shape: Shape, denied: float, approved: float) -> Curve:
    if denied > 0.0 < approved:
        return shape(denied / approved)
    nobody_denied = shape(0.0).at(0.0)
    return Curve.constant(nobody_denied if approved > 0.0 else 1.0 - nobody_denied)


def _hyperbola_band(shape: Shape, denied: float, approved: float, share: ShareBounds) -> Band:
    # Given that a person is denied or approved-with-the-outcome, denied is a coin with odds s/p.
    few, many = (_hyperbola(shape, x, 1.0 - x) for x in share(denied, denied + approved))
    return Band(few, many) if shape(0.0).at(0.0) == 0.0 else Band(many, few)


def _constant_band(bounds: tuple[float, float]) -> Band:
    return Band(*(Curve.constant(x) for x in bounds))


def _error_band(counts: GroupCells, share: ShareBounds) -> Band:
    p0 = share(counts.approved_negative, counts.total, parts=2)
    s = share(counts.denied, counts.total, parts=2)
    return Band(Curve(p0[0], s[0]), Curve(p0[1], s[1]))


def _accuracy_band(counts: GroupCells, share: ShareBounds) -> Band:
    p0_low, p0_high = share(counts.approved_negative, counts.total, parts=2)
    s_low, s_high = share(counts.denied, counts.total, parts=2)
    return Band(Curve(1.0 - p0_high, -s_high), Curve(1.0 - p0_low, -s_low))


def _accuracy(p1: float, p0: float, s: float) -> Curve:
    total = p1 + p0 + s
    return Curve((p1 + s) / total, -s / total)


def _error(p1: float, p0: float, s: float) -> Curve:
    total = p1 + p0 + s
    return Curve(p0 / total, s / total)


_TRUE_POSITIVE = Rate(
    name="true_positive_rate",
    fraction=lambda tp, fp, fn, tn: (tp, tp + fn),
    curve=lambda p1, p0, s: _hyperbola(Curve.falling, s, p1) if p1 + s > 0.0 else None,
    trend=FALLING,
    band=lambda n, share: _hyperbola_band(Curve.falling, n.denied, n.approved_positive, share),
    phrase="approved share of those with outcome 1",
    probability="P[f=1 | Y=1, A=a]",
    formula="p1 / (p1 + s r)",
)
_FALSE_POSITIVE = Rate(
    name="false_positive_rate",
    fraction=lambda tp, fp, fn, tn: (fp, fp + tn),
    curve=lambda p1, p0, s: _hyperbola(Curve.rising, s, p0) if p0 + s > 0.0 else None,
    trend=RISING,
    band=lambda n, share: _hyperbola_band(Curve.rising, n.denied, n.approved_negative, share),
    phrase="approved share of those with outcome 0",
    probability="P[f=1 | Y=0, A=a]",
    formula="p0 / (p0 + s (1 - r))",
)
_SELECTION = Rate(
    name="selection_rate",
    fraction=lambda tp, fp, fn, tn: (tp + fp, tp + fp + fn + tn),
    curve=lambda p1, p0, s: Curve.constant((p1 + p0) / (p1 + p0 + s)),
    trend=CONSTANT,
    band=lambda n, share: _constant_band(share(n.approved, n.total)),
    phrase="approved share of everybody",
    probability="P[f=1 | A=a]",
    formula="p1 + p0",
)
_FALSE_OMISSION = Rate(
    name="false_omission_rate",
    fraction=lambda tp, fp, fn, tn: (fn, fn + tn),
    curve=lambda p1, p0, s: Curve(0.0, 1.0) if s > 0.0 else None,
    trend=RISING,
    band=lambda n, share: Band.exact(Curve(0.0, 1.0)),
    phrase="share of outcome 1 among the denied",
    probability="P[Y=1 | f=0, A=a]",
    formula="r",
)
_ACCURACY = Rate(
    name="accuracy",
    fraction=lambda tp, fp, fn, tn: (tp + tn, tp + fp + fn + tn),
    curve=_accuracy,
    trend=FALLING,
    band=_accuracy_band,
    phrase="share of decisions that agree with the outcome",
    probability="P[f=Y | A=a]",
    formula="p1 + s (1 - r)",
)
_PRECISION = Rate(
    name="precision",
    fraction=lambda tp, fp, fn, tn: (tp, tp + fp),
    curve=lambda p1, p0, s: Curve.constant(p1 / (p1 + p0)) if p1 + p0 > 0.0 else None,
    trend=CONSTANT,
    band=lambda n, share: _constant_band(share(n.approved_positive, n.approved)),
    phrase="share of outcome 1 among the approved",
    probability="P[Y=1 | f=1, A=a]",
    formula="p1 / (p1 + p0)",
)

_FALSE_NEGATIVE = Rate(
    name="false_negative_rate",
    fraction=lambda tp, fp, fn, tn: (fn, tp + fn),
    curve=lambda p1, p0, s: _hyperbola(_missed, s, p1) if p1 + s > 0.0 else None,
    trend=RISING,
    band=lambda n, share: _hyperbola_band(_missed, n.denied, n.approved_positive, share),
    phrase="denied share of those with outcome 1",
    probability="P[f=0 | Y=1, A=a]",
    formula="s r / (p1 + s r)",
)
_TRUE_NEGATIVE = Rate(
    name="true_negative_rate",
    fraction=lambda tp, fp, fn, tn: (tn, fp + tn),
    curve=lambda p1, p0, s: _hyperbola(_spared, s, p0) if p0 + s > 0.0 else None,
    trend=FALLING,
    band=lambda n, share: _hyperbola_band(_spared, n.denied, n.approved_negative, share),
    phrase="denied share of those with outcome 0",
    probability="P[f=0 | Y=0, A=a]",
    formula="s (1 - r) / (p0 + s (1 - r))",
)
_NEGATIVE_PREDICTIVE = Rate(
    name="negative_predictive_value",
    fraction=lambda tp, fp, fn, tn: (tn, fn + tn),
    curve=lambda p1, p0, s: Curve(1.0, -1.0) if s > 0.0 else None,
    trend=FALLING,
    band=lambda n, share: Band.exact(Curve(1.0, -1.0)),
    phrase="share of outcome 0 among the denied",
    probability="P[Y=0 | f=0, A=a]",
    formula="1 - r",
)
_ERROR = Rate(
    name="error_rate",
    fraction=lambda tp, fp, fn, tn: (fp + fn, tp + fp + fn + tn),
    curve=_error,
    trend=RISING,
    band=_error_band,
    phrase="share of decisions that disagree with the outcome",
    probability="P[f≠Y | A=a]",
    formula="p0 + s r",
)

for _metric in (
    Metric(
        "equalized_odds",
        (_TRUE_POSITIVE, _FALSE_POSITIVE),
        "Among people who would turn out well, and among people who would turn out badly, is every "
        "group approved equally often?",
    ),
    Metric(
        "equal_opportunity",
        (_TRUE_POSITIVE,),
        "Among people who would turn out well, is every group approved equally often?",
    ),
    Metric(
        "predictive_equality",
        (_FALSE_POSITIVE,),
        "Among people who would turn out badly, is every group approved equally often?",
    ),
    Metric("demographic_parity", (_SELECTION,), "Is every group approved equally often?"),
    Metric(
        "false_omission_parity",
        (_FALSE_OMISSION,),
        "Among the people who are turned down, would equally many of every group have turned out "
        "well?",
    ),
    Metric("accuracy_parity", (_ACCURACY,), "Is the decision right equally often in every group?"),
    Metric(
        "predictive_parity",
        (_PRECISION,),
        "Among the people who are approved, do equally many of every group turn out well?",
    ),
    Metric(
        "false_negative_parity",
        (_FALSE_NEGATIVE,),
        "Among people who would turn out well, is every group turned down equally often?",
    ),
    Metric(
        "true_negative_parity",
        (_TRUE_NEGATIVE,),
        "Among people who would turn out badly, is every group turned down equally often?",
    ),
    Metric(
        "error_rate_balance",
        (_FALSE_NEGATIVE, _FALSE_POSITIVE),
        "Does every group bear both kinds of mistakes equally often: being turned down among those "
        "who would turn out well, being approved among those who would turn out badly?",
    ),
    Metric(
        "negative_predictive_parity",
        (_NEGATIVE_PREDICTIVE,),
        "Among the people who are turned down, would equally many of every group have turned out "
        "badly?",
    ),
    Metric(
        "conditional_use_accuracy",
        (_PRECISION, _NEGATIVE_PREDICTIVE),
        "Is an approval right equally often in every group, and a denial as well?",
    ),
    Metric("error_rate_parity", (_ERROR,), "Is the decision wrong equally often in every group?"),
):
    register(_metric)


Bounds = tuple[float, float]
Share = Callable[[float, float, float], Bounds]
"""Successes, trials and the part of the level that a bound gets -> bounds."""


def unknown_band(
    rate: Rate, counts: GroupCells, share: Share, known: Callable[[GroupCells, float], Band]
) -> Band:
    """Return a rate's band for counts with unknown outcomes.

    Parameters
    ----------
    share
        Bounds of shares: a point where the past is exact.
    known
        The band of counts without unknown outcomes, at a part of the level.
    """
    whatever = _whatever(counts, known, 1.0)
    if not counts.cohorts or whatever == known(counts.resolved(0), 1.0):
        return whatever
    sides = _sides(rate)
    cohorts = len(counts.cohorts)
    part = 0.5 / ((1 if cohorts == 1 else 2 * cohorts) + (sides > 0))
    good = _good_share(counts, share, part)
    denied = share(counts.denied, counts.total, part / max(sides, 1))
    corners = [rate.curve((1 - s) * g, (1 - s) * (1 - g), s) for s, g in product(denied, good)]
    curves = [curve for curve in corners if curve is not None]
    if len(curves) < len(corners):
        return UNKNOWN
    return _narrower(_around(curves, curves), _whatever(counts, known, 0.5))


def _whatever(counts: GroupCells, known: Callable[[GroupCells, float], Band], part: float) -> Band:
    """Return a band that holds whatever the unknown outcomes are."""
    ends = [known(counts.resolved(good), part) for good in (0, 1)]
    return _around([band.low for band in ends], [band.high for band in ends])


def _narrower(one: Band, other: Band) -> Band:
    """Return the higher of two lower curves and the lower of two upper ones, by their middles."""

    def middle(curve: Curve) -> float:
        return curve.at(0.0) + curve.at(0.5) + curve.at(1.0)

    return Band(max(one.low, other.low, key=middle), min(one.high, other.high, key=middle))


def _good_share(counts: GroupCells, share: Share, part: float) -> Bounds:
    """Return bounds of the share of good outcomes among the approved."""
    goods = [
        share(good, good + bad, part) if good + bad else (0.0, 1.0)
        for good, bad, _ in counts.cohorts
    ]
    if len(counts.cohorts) == 1:
        return goods[0]
    weights = [share(sum(cohort), counts.approved, part / 2.0) for cohort in counts.cohorts]
    return (
        _mean(weights, [low for low, _ in goods], largest=False),
        _mean(weights, [high for _, high in goods], largest=True),
    )


def _mean(weights: Sequence[Bounds], values: Sequence[float], *, largest: bool) -> float:
    """Return the extreme mean of values for weights in a box that add up to 1."""
    total, left = 0.0, 1.0 - sum(low for low, _ in weights)
    for (low, high), value in sorted(
        zip(weights, values, strict=True), key=lambda pair: pair[1], reverse=largest
    ):
        more = min(high - low, max(left, 0.0))
        left -= more
        total += (low + more) * value
    return min(max(total, 0.0), 1.0)


@lru_cache(maxsize=64)
def _sides(rate: Rate) -> int:
    """Return which bounds of s a curve uses: 0 if it does not move with s, 2 if it turns with r."""
    less, more = (rate.curve((1 - s) / 2, (1 - s) / 2, s) for s in (0.3, 0.6))
    if less is None or more is None:
        return 2
    return len({more.at(r) > less.at(r) for r in (0.0, 1.0) if not _same(more.at(r), less.at(r))})


def _around(lows: Sequence[Curve], highs: Sequence[Curve]) -> Band:
    return Band(_extreme(lows, min), _extreme(highs, max))


def _extreme(curves: Sequence[Curve], pick: Callable[..., float]) -> Curve:
    """Return a curve on the far side of all of them."""
    at_zero, at_one = (pick(curve.at(r) for curve in curves) for r in (0.0, 1.0))
    for curve in curves:
        if all(_same(curve.at(r), pick(c.at(r) for c in curves)) for r in (0.0, 0.5, 1.0)):
            return curve
    if all(curve.d == 0.0 for curve in curves):
        return Curve(at_zero, at_one - at_zero)  # the least of lines is concave: a chord is below
    return Curve.constant(pick(at_zero, at_one))


def _same(one: float, other: float) -> bool:
    """Compare rates up to rounding: curves that meet at an end hardly ever meet to the last bit."""
    return abs(one - other) <= 1e-12


Bands = Mapping[str, Mapping[str, Band]]
"""Rate name -> group -> band."""


def bands_from_cells(cells: Cells, metric: str, alpha: float | None) -> Bands:
    """Return the bands of a metric's rates for counts, exact if ``alpha`` is None."""
    return {
        rate.name: {group: band_from_counts(rate, n, alpha) for group, n in cells.items()}
        for rate in METRICS[metric].rates
    }


def band_from_counts(rate: Rate, counts: GroupCells, alpha: float | None) -> Band:
    """Return one rate's band for one group."""
    if counts.approved_unknown:

        def bounds(successes: float, trials: float, part: float) -> tuple[float, float]:
            if alpha is None:
                return successes / trials, successes / trials
            return clopper_pearson(successes, trials, alpha * part)

        def known(whole: GroupCells, part: float) -> Band:
            return band_from_counts(rate, whole, None if alpha is None else alpha * part)

        return unknown_band(rate, counts, bounds, known)
    if alpha is None:
        curve = rate.curve(*counts.shares)
        return UNKNOWN if curve is None else Band.exact(curve)
    level = alpha

    def share(successes: float, trials: float, *, parts: int = 1) -> tuple[float, float]:
        return clopper_pearson(successes, trials, level / parts)

    return rate.band(counts, share)


def clopper_pearson(successes: float, trials: float, alpha: float) -> tuple[float, float]:
    """Return bounds of a binomial probability, each missed with probability at most ``alpha``.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 10, 0.025)
    >>> low, round(high, 4)
    (0.0, 0.3085)
    """
    from scipy.special import betaincinv

    failures = trials - successes
    low = float(betaincinv(successes, failures + 1.0, alpha)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1.0, failures, 1.0 - alpha)) if failures > 0 else 1.0
    return low, high
