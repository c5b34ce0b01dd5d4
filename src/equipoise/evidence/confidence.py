"""Where the unknowns lie, at any time: exact intervals that hold for all sample sizes at once."""

from __future__ import annotations

from collections.abc import Callable
from math import lgamma, log

__all__ = ["anytime_interval"]


def anytime_interval(
    ones: float, zeros: float, unknown: float, level: float
) -> tuple[float, float]:
    """Return an interval for r that ever misses it with probability at most ``level``.

    The Beta(1/2, 1/2) mixture likelihood over the likelihood at r is a nonnegative martingale with
    mean 1 (Ville's inequality); the interval holds every r at which it is below ``1/level``.
    ``unknown`` labels count as 0 for the lower end and as 1 for the upper.

    Examples
    --------
    >>> low, high = anytime_interval(20, 80, 0, 0.05)
    >>> round(low, 3), round(high, 3)
    (0.091, 0.352)
    """
    low, _ = _ends(ones, zeros + unknown, level)
    _, high = _ends(ones + unknown, zeros, level)
    return low, high


def _ends(ones: float, zeros: float, level: float) -> tuple[float, float]:
    if ones + zeros == 0:
        return 0.0, 1.0
    best = ones / (ones + zeros)
    # the likelihood that an r must fall below to be out
    bar = _log_beta(ones + 0.5, zeros + 0.5) - _log_beta(0.5, 0.5) + log(level)

    def likely(r: float) -> bool:
        return (ones * log(r) if ones else 0.0) + (zeros * log(1.0 - r) if zeros else 0.0) > bar

    return _last(likely, best, 0.0), _last(likely, best, 1.0)


def _last(likely: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return the point nearest to ``inside`` that is certainly beyond the likely ones."""
    for _ in range(60):
        middle = (inside + outside) / 2.0
        if 0.0 < middle < 1.0 and likely(middle):
            inside = middle
        else:
            outside = middle
    return outside


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
