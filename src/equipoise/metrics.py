"""The rates and metrics that a question can name: one registry that everything else reads.

A metric is a named set of rates. To add one, :func:`register` it: the free check, the adaptive
audit, C*, plans, simulations, ledgers and reports work with it from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from equipoise.cells import Cells, GroupCells
from equipoise.compare import Compare
from equipoise.curves import Band, Curve
from equipoise.errors import BadData, InvalidInput
from equipoise.rates import CONSTANT, FALLING, RISING, Rate, ShareBounds

__all__ = ["METRICS", "RATES", "Metric", "difference", "rates", "register"]

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
    cells: Cells, r: Mapping[str, float], metric: str, compare: str = Compare.DIFFERENCE
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
    gap = Compare(compare).gap
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
