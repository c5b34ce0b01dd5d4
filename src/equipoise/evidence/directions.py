"""Which pair of groups is likely to be furthest apart in a rate, judged by what is told."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from equipoise.rates import Curve

__all__ = ["likely_extremes"]

Array = NDArray[np.float64]

UNIFORM = 0.25  # of the stake is spread evenly, whatever the labels say
_DRAWS = 256


def likely_extremes(curves: Sequence[Curve], ones: Array, zeros: Array) -> Array:
    """Return a share of the stake per ordered pair (a, b), on a's unknown being the highest.

    b's is the lowest. The share follows how often their rates are the extremes when the unknowns
    are drawn from Beta(ones + 1/2, zeros + 1/2) laws.
    """
    k = len(curves)
    draws = np.random.default_rng(0).beta(ones + 0.5, zeros + 0.5, size=(_DRAWS, k))
    rates = np.stack([curve.value(draws[:, g]) for g, curve in enumerate(curves)], axis=1)
    if any(curve.trend < 0 for curve in curves):
        rates = -rates  # a high unknown is a low rate
    often = np.zeros((k, k))
    np.add.at(often, (rates.argmax(axis=1), rates.argmin(axis=1)), 1.0 / _DRAWS)
    pairs = list(permutations(range(k), 2))
    shares = np.array([often[a, b] for a, b in pairs])
    return np.asarray(UNIFORM / len(pairs) + (1.0 - UNIFORM) * shares / max(shares.sum(), 1e-9))
