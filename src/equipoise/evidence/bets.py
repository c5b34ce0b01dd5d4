"""Where to bet at a corner: alternatives that lie on the far side of it from the null.

At a corner ``lam`` a label multiplies the stake by ``rho/lam`` (Y=1) or ``(1-rho)/(1-lam)`` (Y=0).
Its mean under a null point ``lam'`` is ``1 + (lam'-lam)(rho-lam)/(lam(1-lam))``, at most 1 when
lam' and rho lie on opposite sides of lam. That is all that validity needs; how far to move is a
matter of power.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AIMED",
    "UNFAIR_SIZES",
    "Sizes",
    "alternatives",
    "fair_sizes",
    "plug_in",
    "ratios",
    "trust",
]

Array = NDArray[np.float64]

_EDGE = 1e-9
AIMED = 2  # bets that follow the estimates
STANDARD_ERRORS = 1.2


@dataclass(frozen=True)
class Sizes:
    """How far the gap moves under each alternative, in epsilons, and its share of the stake."""

    steps: tuple[float, ...]
    weights: tuple[float, ...]
    aimed: float  # share of the stake on bets that follow the estimates


UNFAIR_SIZES = Sizes((0.6, 1.2, 2.2, 4.5), (0.05, 0.37, 0.33, 0.25), aimed=0.75)
"""For refuting the FAIR set: nothing says how unfair the truth may be, so sizes spread out."""


def fair_sizes(gap: float, epsilon: float) -> Sizes:
    """For refuting the UNFAIR set: the gap can shrink by little more than itself."""
    t = max(0.8 * gap / epsilon, 1.3)
    return Sizes((0.6, 1.1, float(np.sqrt(1.1 * t)), t), (0.05, 0.25, 0.3, 0.4), aimed=0.3)


def alternatives(
    lam_a: Array,
    lam_b: Array,
    side: Array,
    curve_a: Array,
    curve_b: Array,
    share_a: Array,
    share_b: Array,
    steps: Array,
) -> tuple[Array, Array]:
    """Return ``rho`` for a and b, one column per alternative.

    Group a moves towards ``side``, group b against it, each in proportion to what a label of it
    tells per unit of planned share, until the active rate's gap has moved by the step.

    Parameters
    ----------
    lam_a, lam_b, side, share_a, share_b
        Corners, directions and planned shares of labels, all of shape (n,).
    curve_a, curve_b
        Coefficients (a, b, c, d) of the active rate, shape (4, n).
    steps
        How far the gap should move when both groups move, shape (n, J).
    """
    pull_a = np.maximum(lam_a * (1.0 - lam_a), 1e-4) * np.abs(_slope(curve_a, lam_a)) / share_a
    pull_b = np.maximum(lam_b * (1.0 - lam_b), 1e-4) * np.abs(_slope(curve_b, lam_b)) / share_b
    return _move(lam_a, lam_b, side, curve_a, curve_b, pull_a, pull_b, steps)


def trust(gathered: Array, groups: Array) -> Array:
    """Return how far each aimed bet goes from its box to the estimate, as a share of the way.

    ``gathered`` is the evidence that the estimates promise (nats), ``groups`` how many of the two
    groups contribute. The first bet shrinks the way by the estimates' noise; the second has the
    same length in standard errors whatever the estimates say, so that noise cannot cost it much.
    """
    shrunk = gathered / (gathered + 0.5 * groups + 1e-9)
    steady = np.minimum(STANDARD_ERRORS / np.sqrt(2.0 * gathered + 1e-9), 1.5)
    return np.stack([shrunk, steady], axis=1)


def plug_in(low: Array, high: Array, estimate: Array, way: Array) -> tuple[Array, Array]:
    """Return the factors of bets that go from the box towards the estimate, by shares ``way``.

    The corner is the end of [low, high] nearest to the estimate; there is no bet while the estimate
    is inside.
    """
    low = np.where(low < _EDGE, 0.0, np.minimum(low, 1.0 - _EDGE))  # a wider box is safe
    high = np.where(high > 1.0 - _EDGE, 1.0, np.maximum(high, _EDGE))
    corner = np.clip(estimate, low, high)[:, None]
    rho = corner + way * (estimate[:, None] - corner)
    rho = np.clip(rho, 0.02 * corner, 1.0 - 0.02 * (1.0 - corner))
    return rho / corner, (1.0 - rho) / (1.0 - corner)


def ratios(rho: Array, lam: Array) -> tuple[Array, Array]:
    """Return what a label of 1 and a label of 0 multiply the stake by; 1 at a useless corner."""
    lam = lam[:, None]
    useless = (lam < _EDGE) & (rho <= _EDGE) | (lam > 1.0 - _EDGE) & (rho >= 1.0 - _EDGE)
    safe = np.clip(lam, _EDGE, 1.0 - _EDGE)
    one = np.where(useless, 1.0, rho / safe)
    zero = np.where(useless, 1.0, (1.0 - rho) / (1.0 - safe))
    return one, zero


def _move(
    lam_a: Array,
    lam_b: Array,
    side: Array,
    curve_a: Array,
    curve_b: Array,
    pull_a: Array,
    pull_b: Array,
    steps: Array,
) -> tuple[Array, Array]:
    start_a, start_b = _rate(curve_a, lam_a)[:, None], _rate(curve_b, lam_b)[:, None]
    pace = pull_a * np.abs(_slope(curve_a, lam_a)) + pull_b * np.abs(_slope(curve_b, lam_b))
    mu = steps / np.maximum(pace, 1e-12)[:, None]
    for _ in range(4):  # a few secant steps: the size of a bet need not be exact
        rho_a, rho_b = _clip(lam_a, side, mu, pull_a), _clip(lam_b, -side, mu, pull_b)
        moved = np.abs(_rate(curve_a, rho_a) - start_a) + np.abs(_rate(curve_b, rho_b) - start_b)
        mu = mu * np.clip(steps / np.maximum(moved, 1e-12), 0.5, 2.0)
    return _clip(lam_a, side, mu, pull_a), _clip(lam_b, -side, mu, pull_b)


def _clip(lam: Array, side: Array, mu: Array, pull: Array) -> Array:
    lam, side, pull = lam[:, None], side[:, None], pull[:, None]
    return np.clip(lam + side * mu * pull, 0.02 * lam, 1.0 - 0.02 * (1.0 - lam))


def _rate(curve: Array, r: Array) -> Array:
    a, b, c, d = curve if r.ndim == 1 else curve[:, :, None]
    return np.asarray((a + b * r) / (c + d * r))


def _slope(curve: Array, r: Array) -> Array:
    a, b, c, d = curve
    return np.asarray((b * c - a * d) / (c + d * r) ** 2)
