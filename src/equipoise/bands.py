"""Rates known up to the past data's uncertainty: a lower and an upper curve in r per group."""

from __future__ import annotations

from collections.abc import Mapping

from equipoise.cells import Cells, GroupCells
from equipoise.curves import Band
from equipoise.history.past import Past
from equipoise.metrics import METRICS
from equipoise.rates import UNKNOWN, Rate
from equipoise.unknown import unknown_band

__all__ = ["Bands", "band_from_counts", "bands_from_cells", "bands_from_past", "clopper_pearson"]

Bands = Mapping[str, Mapping[str, Band]]
"""Rate name -> group -> band."""


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
