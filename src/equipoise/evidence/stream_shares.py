"""Evidence, at any time, that a share of a stream of people is not what past data say."""

from __future__ import annotations

import numpy as np

from equipoise._arrays import Array


def share_evidence(
    successes: Array | np.float64, people: Array | np.float64, low: float, high: float
) -> Array:
    """Return the log evidence that the share behind so many successes is outside [low, high].

    It is the log of ``B(k + 1/2, n - k + 1/2) / B(1/2, 1/2) / (a^k (1-a)^(n-k))``, with k successes
    of n people. That is a martingale where ``a`` is the share, and it is taken at the ``a`` of the
    range that is nearest to k/n. So it ever reaches ``log(1/level)`` with probability at most
    ``level`` if the share lies in the range (Ville's inequality).
    """
    from scipy.special import betaln, xlog1py, xlogy

    failures = people - successes
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = np.where(people > 0, successes / np.maximum(people, 1.0), low)
        # This share explains the counts best, so there is more evidence against any other one.
        nearest = np.clip(observed, low, high)
        log_likelihood = xlogy(successes, nearest) + xlog1py(failures, -nearest)
    log_mixture = betaln(successes + 0.5, failures + 0.5) - betaln(0.5, 0.5)
    return np.asarray(log_mixture - log_likelihood)
