"""The decision-maker as a truncation: whom it lets through, by its answers.

:class:`Oracle` asks it about many people at once. If it is linear, :func:`find_half_space` finds
its half-space by bisection, and a Gaussian can be fitted exactly in any dimension. A decision-maker
that cannot be asked is the subject of :mod:`equipoise.mixture.learned_rules`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, ndtri

from equipoise._arrays import Array
from equipoise.errors import BadData, InvalidInput

Accepts: TypeAlias = Callable[[Array], ArrayLike]
Bits: TypeAlias = NDArray[np.bool_]
Ask: TypeAlias = Callable[[Array], Bits]

TEST_POINTS = 2**13  # around the sample, on all of which the half-space must agree
LINES_PER_DIMENSION = 3  # crossings per dimension: d settle a hyperplane, the others test it
FLATNESS_TOLERANCE = 1e-6  # in standard deviations of the sample


def apart(seed: int, number: int = 1) -> np.random.Generator:
    """Return a generator whose draws are not those that made the data, whatever their seed was."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))


def sobol(dimensions: int, size: int, seed: int) -> Array:
    """Return scrambled Sobol points: they fill a cube more evenly than random ones."""
    from scipy.stats import qmc  # takes longer to import than most commands to run

    return np.asarray(qmc.Sobol(dimensions, seed=seed).random(size))


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """``normal . x >= offset``: what a linear classifier approves.

    Known as such, it lets a Gaussian be fitted exactly.

    Examples
    --------
    >>> HalfSpace([1.0, -1.0], offset=0.5)(np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([ True, False])
    """

    normal: ArrayLike
    offset: float = 0.0

    def __post_init__(self) -> None:
        normal = np.array(self.normal, dtype=float)
        if normal.ndim != 1 or not np.isfinite(normal).all() or not normal.any():
            raise InvalidInput(f"'normal' must be a finite non-zero vector; got {self.normal!r}")
        object.__setattr__(self, "normal", normal)

    def __call__(self, X: ArrayLike) -> Bits:
        """Say for every row whether it is approved."""
        return np.asarray(np.asarray(X, dtype=float) @ np.asarray(self.normal) >= self.offset)


@dataclass
class Oracle:
    """``accepts``, which takes an (n, d) array and returns n booleans, checked and counted."""

    accepts: Accepts
    calls: int = 0

    def __call__(self, X: Array) -> Bits:
        """Say for every row whether it is approved."""
        self.calls += len(X)
        # A function that was written for one row fails on several in one of these ways.
        try:
            answer = np.asarray(self.accepts(X))
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise InvalidInput(
                "'accepts' failed on an array of several rows; it must be a vectorised function: "
                f"(n, d) array in, n booleans out ({type(error).__name__}: {error})"
            ) from error
        is_yes_or_no = answer.dtype == bool or np.isin(answer, (0, 1)).all()
        if answer.shape != (len(X),) or not is_yes_or_no:
            raise InvalidInput(
                f"'accepts' must be vectorised: for {len(X)} rows {len(X)} booleans, or 0 and 1 "
                f"(scores need a threshold); got {answer.dtype} values of shape {answer.shape}"
            )
        return answer.astype(bool)

    def require_all(self, X: Array) -> None:
        """Raise unless every past approved person is approved by the oracle."""
        refused = int((~self(X)).sum())
        if refused:
            raise BadData(
                f"'accepts' refuses {refused} of the {len(X)} people who were approved: it is not "
                "the decision-maker of these data, or it does not see the group or column that "
                "the decision used"
            )


# -- a linear classifier that can be asked ---------------------------------------------------------


def surroundings(dimensions: int, size: int, seed: int) -> tuple[Array, Array]:
    """Return points that cover a standardised sample, and their log density.

    A mixture of a slightly and a widely inflated normal.
    """
    uniforms = sobol(dimensions + 1, size, seed)
    # The wide part reaches where the sample is thin, less far in many dimensions, where most points
    # would fall far outside.
    inflation = 1.0 + np.minimum([0.3, 3.0], np.array([1.5, 15.0]) / dimensions)
    variance = np.where(uniforms[:, -1] < 0.7, *inflation)
    x = ndtri(np.clip(uniforms[:, :-1], 1e-15, 1.0 - 1e-15)) * np.sqrt(variance)[:, None]
    square = np.einsum("ij,ij->i", x, x)[:, None]
    normal = -0.5 * (square / inflation + dimensions * np.log(2.0 * np.pi * inflation))
    return x, np.asarray(logsumexp(normal, axis=1, b=[0.7, 0.3]))


def border(ask: Ask, inside: Array, outside: Array) -> Array:
    """Return where lines between accepted and refused points cross the border, by bisection."""
    for _ in range(50):  # then the distance is 2**-50 of what it was, a float's last digit
        middle = (inside + outside) / 2.0
        is_inside = ask(middle)[:, None]
        inside = np.where(is_inside, middle, inside)
        outside = np.where(is_inside, outside, middle)
    return (inside + outside) / 2.0


def find_half_space(z: Array, ask: Ask, seed: int) -> HalfSpace | None:
    """Return the half-space of people who are let through, None if they form no half-space.

    ``z`` is a standardised sample of people who were let through.
    """
    d = z.shape[1]
    around, _ = surroundings(d, TEST_POINTS, seed)
    accepted = ask(around)
    refused = around[~accepted]
    if not len(refused):  # everybody is let through: a half-space that cuts nothing off
        return HalfSpace(np.eye(d)[0], -1e9)
    n_lines = LINES_PER_DIMENSION * d
    if min(len(z), len(refused)) < n_lines:
        return None
    crossings = border(ask, z[:n_lines], refused[:n_lines])
    centre = crossings.mean(axis=0)
    # The direction in which the crossings spread least is that of the plane's normal.
    normal = np.linalg.svd(crossings - centre)[2][-1]
    if np.abs((crossings - centre) @ normal).max() > FLATNESS_TOLERANCE:
        return None
    # It points to the side of the sample, whose people were all let through.
    normal = normal * np.sign((z.mean(axis=0) - centre) @ normal)
    # rounding must not put one of the sample on the wrong side
    cut = HalfSpace(normal, min(float(centre @ normal), float((z @ normal).min())))
    return cut if (cut(around) == accepted).all() else None
