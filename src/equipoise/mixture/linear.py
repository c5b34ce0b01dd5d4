"""A classifier that can only be asked, but is linear: its half-space, found by asking.

Where a line from somebody approved to somebody refused crosses the border is a matter of bisection.
If the crossings lie on one hyperplane, and the classifier agrees with its half-space on thousands
of points, a Gaussian can be fitted exactly in any dimension, where sampled points would thin out.
"""

from __future__ import annotations

import numpy as np

from equipoise.mixture.family import Array, Frame
from equipoise.mixture.oracle import HalfSpace, Oracle
from equipoise.mixture.quasirandom import sobol

__all__ = ["find_half_space"]

POINTS = 2**13  # around the sample, on all of which the half-space must agree
LINES = 3  # crossings per dimension: d settle a hyperplane, the others test it
TOLERANCE = 1e-6  # in standard deviations of the sample


def find_half_space(frame: Frame, points: Array, oracle: Oracle, seed: int) -> HalfSpace | None:
    """Return the half-space that the classifier accepts, None if it is something else."""
    z = frame.inside(points)
    d = z.shape[1]
    around, _ = frame.family.propose(sobol(d + 1, seed).random(POINTS), z)
    accepted = oracle(frame.outside(around))
    refused = around[~accepted]
    if min(len(z), len(refused)) < LINES * d:
        return None
    crossings = _bisect(frame, oracle, z[: LINES * d], refused[: LINES * d])
    centre = crossings.mean(axis=0)
    normal = np.linalg.svd(crossings - centre)[2][-1]
    normal *= np.sign((z.mean(axis=0) - centre) @ normal) or 1.0
    if np.abs((crossings - centre) @ normal).max() > TOLERANCE:
        return None
    offset = min(float(centre @ normal), float((z @ normal).min()))
    beyond = around @ normal - offset
    if offset < float(centre @ normal) - TOLERANCE or np.any(
        (np.abs(beyond) > TOLERANCE) & ((beyond > 0.0) != accepted)
    ):
        return None
    outside = np.linalg.solve(frame.scale.T, normal)
    # rounding must not put one of the sample on the wrong side
    return HalfSpace(outside, min(offset + float(outside @ frame.shift), (points @ outside).min()))


def _bisect(frame: Frame, oracle: Oracle, inside: Array, outside: Array) -> Array:
    """Return where the lines between accepted and refused points cross the border."""
    for _ in range(45):
        middle = (inside + outside) / 2.0
        yes = oracle(frame.outside(middle))[:, None]
        inside, outside = np.where(yes, middle, inside), np.where(yes, outside, middle)
    return (inside + outside) / 2.0
