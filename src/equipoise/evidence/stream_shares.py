"""Evidence, at any time, that a share of a stream of people is not what past data say."""

from __future__ import annotations

import numpy as np

from equipoise._arrays import Array


def share_evidence(k: Array | np.float64, n: Array | np.float64, low: float, high: float) -> Array:
    """Return the log evidence, k of n people being counted, that a share is outside [low, high].

    It is the log of ``B(k + 1/2, n - k + 1/2) / B(1/2, 1/2) / (a^k (1-a)^(n-k))``, a martingale
    where ``a`` is the share, at the ``a`` of the range that is nearest to k/n.
    """
    from scipy.special import betaln, xlog1py, xlogy

    with np.errstate(invalid="ignore", divide="ignore"):
        a = np.clip(np.where(n > 0, k / np.maximum(n, 1.0), low), low, high)
        null = xlogy(k, a) + xlog1py(n - k, -a)
    return np.asarray(betaln(k + 0.5, n - k + 0.5) - betaln(0.5, 0.5) - null)
