"""Rates known up to the past data's uncertainty: a lower and an upper curve in r per group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from equipoise.cells import Cells, GroupCells
from equipoise.history.past import Past
from equipoise.metrics import METRICS, Curve, rate_curve

__all__ = ["Band", "Bands", "bands_from_cells", "bands_from_past", "clopper_pearson"]


@dataclass(frozen=True)
class Band:
    """A group's rate lies between two curves of the same trend; one curve if the past is exact."""

    low: Curve
    high: Curve

    @property
    def depends_on_r(self) -> bool:
        """Whether labels of denied people can say anything about the rate."""
        return self.low.trend != 0 or self.high.trend != 0


Bands = Mapping[str, Mapping[str, Band]]
"""Rate name -> group -> band."""

_UNKNOWN = Band(Curve.constant(0.0), Curve.constant(1.0))


def bands_from_past(past: Past, metric: str, alpha: float | None) -> Bands:
    """Return the bands of a metric's rates.

    Parameters
    ----------
    alpha
        Each of the two curves of a band is on its right side with probability at least
        ``1 - alpha`` (exact, for any sample size). None reads the counts as the population; so
        does a past that is exact.
    """
    return bands_from_cells(past.cells, metric, None if past.exact else alpha)


def bands_from_cells(cells: Cells, metric: str, alpha: float | None) -> Bands:
    """Return the bands of :func:`bands_from_past` for counts, exact if ``alpha`` is None."""
    return {
        rate: {
            group: _exact_band(rate, counts) if alpha is None else _finite_band(rate, counts, alpha)
            for group, counts in cells.items()
        }
        for rate in METRICS[metric]
    }


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


def _exact_band(rate: str, counts: GroupCells) -> Band:
    curve = rate_curve(rate, *counts.shares)
    return _UNKNOWN if curve is None else Band(curve, curve)


def _finite_band(rate: str, counts: GroupCells, alpha: float) -> Band:
    if rate == "true_positive_rate":
        return _hyperbola_band(counts.denied, counts.approved_positive, alpha, rising=False)
    if rate == "false_positive_rate":
        return _hyperbola_band(counts.denied, counts.approved_negative, alpha, rising=True)
    if rate == "selection_rate":
        return _constant_band(counts.approved, counts.total, alpha)
    if rate == "precision":
        return _constant_band(counts.approved_positive, counts.approved, alpha)
    if rate == "false_omission_rate":
        return Band(Curve(0.0, 1.0), Curve(0.0, 1.0))
    # accuracy = 1 - p0 - s r: two shares, so half of alpha for each
    p0_low, p0_high = clopper_pearson(counts.approved_negative, counts.total, alpha / 2.0)
    s_low, s_high = clopper_pearson(counts.denied, counts.total, alpha / 2.0)
    return Band(Curve(1.0 - p0_high, -s_high), Curve(1.0 - p0_low, -s_low))


def _hyperbola_band(denied: float, approved: float, alpha: float, *, rising: bool) -> Band:
    # Given that a person is denied or approved-with-the-outcome, denied is a coin with odds s/p.
    low, high = clopper_pearson(denied, denied + approved, alpha)
    return Band(_hyperbola(high, rising=rising), _hyperbola(low, rising=rising))


def _hyperbola(denied_share: float, *, rising: bool) -> Curve:
    if denied_share <= 0.0:
        return Curve.constant(1.0)
    if denied_share >= 1.0:
        return Curve.constant(0.0)
    odds = denied_share / (1.0 - denied_share)
    return Curve.rising(odds) if rising else Curve.falling(odds)


def _constant_band(successes: float, trials: float, alpha: float) -> Band:
    low, high = clopper_pearson(successes, trials, alpha)
    return Band(Curve.constant(low), Curve.constant(high))
