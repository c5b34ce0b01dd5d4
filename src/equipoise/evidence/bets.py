"""Where to bet at a corner: alternatives that lie on the far side of it from the null.

At a corner ``lam`` a label multiplies the stake by ``rho/lam`` (Y=1) or ``(1-rho)/(1-lam)`` (Y=0).
Its mean under a null point ``lam'`` is ``1 + (lam'-lam)(rho-lam)/(lam(1-lam))``, at most 1 when
lam' and rho lie on opposite sides of lam. That is all that validity needs; how far to move is a
matter of power. Bets follow from the cell and the question alone: no label ever moves one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["alternatives", "bet_shares", "fair_sizes", "ratios", "unfair_sizes"]

Array = NDArray[np.float64]
Range = tuple[float, float]

_EDGE = 1e-9
ALONE = 0.125  # share of a corner's stake on bets that move group a alone; the same for b alone
_DIRECTIONS = ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0))  # both groups, a alone, b alone
SMALL = 0.5  # bets of so many epsilons decide also in the middle between gamma and gamma + epsilon
LARGER = 2.5  # between two sizes of bets on a larger gap
LARGEST = 0.2  # … and how far such a gap moves at most
FEW = 0.1  # share of a stake on small bets, the same for those on a gap far beyond epsilon


def unfair_sizes(epsilon: float) -> tuple[float, ...]:
    """For refuting the FAIR set: how far the gap moves, in epsilons.

    Where epsilon is small the gap may be many times as large, and small bets would be slow.
    """
    larger = int(np.log(LARGEST / (LARGER * epsilon)) / np.log(LARGER)) if epsilon < LARGEST else 0
    return SMALL, 1.0, *(LARGER ** (1 + i) for i in range(1 + max(larger, 0)))


def fair_sizes(gap: float, epsilon: float) -> tuple[float, ...]:
    """For refuting the UNFAIR set: the gap can shrink by little more than itself."""
    return SMALL, 1.0, max(0.8 * gap / epsilon, 1.3)


def bet_shares(sizes: int) -> Array:
    """Return how a corner's stake is divided among directions and sizes, two of them the main."""
    far = max(sizes - 3, 0)
    main = sizes - 1 - far
    each = (1.0 - FEW - FEW * (far > 0)) / main
    by_size = [FEW] + [each] * main + [FEW / max(far, 1)] * far
    return np.outer([1.0 - 2.0 * ALONE, ALONE, ALONE], by_size).ravel()


def alternatives(
    lam_a: Array,
    lam_b: Array,
    side: Array,
    curve_a: Array,
    curve_b: Array,
    steps: Array,
    limits: tuple[Range, Range] = ((0.0, 1.0), (0.0, 1.0)),
) -> tuple[Array, Array]:
    """Return ``rho`` for a and b, one column per direction and size.

    Group a moves towards ``side``, group b against it, each in proportion to what a label of it
    tells, or one of them alone, until the active rate's gap has moved by the step.

    Parameters
    ----------
    lam_a, lam_b, side
        Corners and directions, all of shape (n,).
    curve_a, curve_b
        Coefficients (a, b, c, d) of the active rate, shape (4, n).
    steps
        How far the gap should move, shape (n, J).
    limits
        Where the unknowns of a and of b may lie at all.
    """
    pull_a = np.maximum(lam_a * (1.0 - lam_a), 1e-4) * np.abs(_slope(curve_a, lam_a))
    pull_b = np.maximum(lam_b * (1.0 - lam_b), 1e-4) * np.abs(_slope(curve_b, lam_b))
    moved = [
        _move(lam_a, lam_b, side, curve_a, curve_b, a * pull_a, b * pull_b, steps, limits)
        for a, b in _DIRECTIONS
    ]
    rho_a, rho_b = zip(*moved, strict=True)
    return np.hstack(rho_a), np.hstack(rho_b)


def ratios(rho: Array, lam: Array) -> tuple[Array, Array, Array]:
    """Return the corner, and what labels of 1 and 0 multiply a stake by; 1 at a useless corner."""
    lam = lam[:, None]
    useless = (lam < _EDGE) & (rho <= _EDGE) | (lam > 1.0 - _EDGE) & (rho >= 1.0 - _EDGE)
    safe = np.clip(lam, _EDGE, 1.0 - _EDGE)
    one = np.where(useless, 1.0, rho / safe)
    zero = np.where(useless, 1.0, (1.0 - rho) / (1.0 - safe))
    return safe, one, zero


def _move(
    lam_a: Array,
    lam_b: Array,
    side: Array,
    curve_a: Array,
    curve_b: Array,
    pull_a: Array,
    pull_b: Array,
    steps: Array,
    limits: tuple[Range, Range],
) -> tuple[Array, Array]:
    start_a, start_b = _rate(curve_a, lam_a)[:, None], _rate(curve_b, lam_b)[:, None]
    pace = pull_a * np.abs(_slope(curve_a, lam_a)) + pull_b * np.abs(_slope(curve_b, lam_b))
    mu = steps / np.maximum(pace, 1e-12)[:, None]
    for _ in range(4):  # a few secant steps: the size of a bet need not be exact
        rho_a = _clip(lam_a, side, mu, pull_a, limits[0])
        rho_b = _clip(lam_b, -side, mu, pull_b, limits[1])
        moved = np.abs(_rate(curve_a, rho_a) - start_a) + np.abs(_rate(curve_b, rho_b) - start_b)
        mu = mu * np.clip(steps / np.maximum(moved, 1e-12), 0.5, 2.0)
    return (
        _clip(lam_a, side, mu, pull_a, limits[0]),
        _clip(lam_b, -side, mu, pull_b, limits[1]),
    )


def _clip(lam: Array, side: Array, mu: Array, pull: Array, limits: Range) -> Array:
    lam, side, pull = lam[:, None], side[:, None], pull[:, None]
    least, most = limits
    low, high = np.maximum(0.02 * lam, least), np.minimum(1.0 - 0.02 * (1.0 - lam), most)
    return np.clip(lam + side * mu * pull, low, high)


def _rate(curve: Array, r: Array) -> Array:
    a, b, c, d = curve if r.ndim == 1 else curve[:, :, None]
    return np.asarray((a + b * r) / (c + d * r))


def _slope(curve: Array, r: Array) -> Array:
    a, b, c, d = curve
    return np.asarray((b * c - a * d) / (c + d * r) ** 2)
