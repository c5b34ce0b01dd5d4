"""The decision-maker as a truncation: whom it lets through, by its answers or its past decisions.

If it can be asked, :class:`Oracle` asks about many people at once. If it is linear as well,
:func:`find_half_space` finds its half-space by bisection, and a Gaussian can be fitted exactly in
any dimension. If it cannot be asked but its rule is of a known class (thresholds, half-spaces),
:func:`learn_rule` takes all rules of the class that agree with past decisions, which are visible
for everybody. Where all of these approve, the rule approves for certain. People inside that region
follow their law truncated to a *known* set, so nothing is added to the error probability. Rows that
taught the region are not fitted to, since they lie inside it by construction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.special import logsumexp, ndtri

from equipoise._arrays import Array
from equipoise.errors import BadData, InvalidInput, UnknownName

Accepts: TypeAlias = Callable[[Array], ArrayLike]
Bits: TypeAlias = NDArray[np.bool_]
Ask: TypeAlias = Callable[[Array], Bits]

TAUGHT = 0.3  # share of past rows that a rule is learnt from
POINTS = 2**13  # around the sample, on all of which the half-space must agree
LINES = 3  # crossings per dimension: d settle a hyperplane, the others test it
TOLERANCE = 1e-6  # in standard deviations of the sample


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
        try:
            answer = np.asarray(self.accepts(X))
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise InvalidInput(
                "'accepts' failed on an array of several rows; it must be a vectorised function: "
                f"(n, d) array in, n booleans out ({type(error).__name__}: {error})"
            ) from error
        if answer.shape != (len(X),) or not (answer.dtype == bool or np.isin(answer, (0, 1)).all()):
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
    inflation = 1.0 + np.minimum([0.3, 3.0], np.array([1.5, 15.0]) / dimensions)
    variance = np.where(uniforms[:, -1] < 0.7, *inflation)
    x = ndtri(np.clip(uniforms[:, :-1], 1e-15, 1.0 - 1e-15)) * np.sqrt(variance)[:, None]
    square = np.einsum("ij,ij->i", x, x)[:, None]
    normal = -0.5 * (square / inflation + dimensions * np.log(2.0 * np.pi * inflation))
    return x, np.asarray(logsumexp(normal, axis=1, b=[0.7, 0.3]))


def border(ask: Ask, inside: Array, outside: Array) -> Array:
    """Return where lines between accepted and refused points cross the border, by bisection."""
    for _ in range(50):
        middle = (inside + outside) / 2.0
        yes = ask(middle)[:, None]
        inside, outside = np.where(yes, middle, inside), np.where(yes, outside, middle)
    return (inside + outside) / 2.0


def find_half_space(z: Array, ask: Ask, seed: int) -> HalfSpace | None:
    """Return the half-space that lets a standardised sample through, None if it is none."""
    d = z.shape[1]
    around, _ = surroundings(d, POINTS, seed)
    accepted = ask(around)
    refused = around[~accepted]
    if not len(refused):
        return HalfSpace(np.eye(d)[0], -1e9)
    lines = LINES * d
    if min(len(z), len(refused)) < lines:
        return None
    crossings = border(ask, z[:lines], refused[:lines])
    centre = crossings.mean(axis=0)
    normal = np.linalg.svd(crossings - centre)[2][-1]
    if np.abs((crossings - centre) @ normal).max() > TOLERANCE:
        return None
    normal = normal * np.sign((z.mean(axis=0) - centre) @ normal)
    # rounding must not put one of the sample on the wrong side
    cut = HalfSpace(normal, min(float(centre @ normal), float((z @ normal).min())))
    return cut if (cut(around) == accepted).all() else None


# -- a decision-maker that cannot be asked ---------------------------------------------------------


class LearntRule(NamedTuple):
    """Where all rules of a class that agree with past decisions approve, and where all deny.

    ``fresh`` are the rows that did not teach these regions; ``words`` say how sure the rule is.
    """

    approves: Ask
    denies: Ask
    fresh: Bits
    words: str


def learn_rule(X: Array, approved: Bits, kind: str, seed: int) -> LearntRule:
    """Learn a group's rule from some of its past decisions; the fresh ones may contradict it."""
    classes = {"threshold": _threshold, "half_space": _half_space}
    if kind not in classes:
        raise UnknownName("class of rules in 'accepts'", kind, classes)
    fresh = apart(seed).random(len(X)) >= TAUGHT
    yes, no = X[~fresh & approved], X[~fresh & ~approved]
    if not (len(yes) and len(no)):
        missing = "denied" if len(yes) else "approved"
        raise BadData(f"nobody among the {(~fresh).sum()} people to learn from was {missing}")
    approves, denies = classes[kind](yes, no)
    sure, refused = approves(X[fresh]), denies(X[fresh])
    against, checked = np.where(approved[fresh], refused, sure).sum(), (sure | refused).sum()
    words = (
        f"a {kind.replace('_', '-')} rule: unsure about {1 - checked / max(len(sure), 1):.2%} of "
        f"people, {against} of {checked:,} fresh decisions against it"
    )
    if against:
        raise BadData(f"past decisions contradict the class of rules: {words}")
    return LearntRule(approves, denies, fresh, words)


def _threshold(yes: Array, no: Array) -> tuple[Ask, Ask]:
    """Take every column and direction in which a threshold agrees; a region is where all do."""
    directions = np.hstack([np.eye(yes.shape[1]), -np.eye(yes.shape[1])])
    low, high = (yes @ directions).min(axis=0), (no @ directions).max(axis=0)
    fits = high < low
    if not fits.any():
        raise BadData(
            "no threshold on one column explains these decisions; try 'half_space', or add the "
            "score that the rule looks at as a column"
        )
    directions, low, high = directions[:, fits], low[fits], high[fits]
    return (
        lambda X: np.all(X @ directions >= low, axis=1),
        lambda X: np.all(X @ directions <= high, axis=1),
    )


def _half_space(yes: Array, no: Array) -> tuple[Ask, Ask]:
    """Enclose all separating hyperplanes in a box, by linear programmes; its ends decide.

    Hyperplanes are ``(u + V z) . x = b`` with u one separating direction and V its complement.
    Over a box of (z, b) the least and the largest ``(u + V z) . x - b`` have a closed form.
    """
    everybody = np.concatenate([yes, no])
    centre, spread = everybody.mean(axis=0), everybody.std(axis=0) + 1e-300
    rows = np.concatenate([yes - centre, centre - no]) / spread  # w.x >= b, and w.x <= b turned
    sign = np.concatenate([np.ones(len(yes)), -np.ones(len(no))])
    d = rows.shape[1]
    # variables (w, b, margin): the widest margin with |w| <= 1 in every column
    best = linprog(
        np.append(np.zeros(d + 1), -1.0),
        A_ub=np.column_stack([-rows, sign, np.ones(len(rows))]),
        b_ub=np.zeros(len(rows)),
        bounds=[(-1.0, 1.0)] * d + [(None, None), (None, 1.0)],
    ).x
    if best is None or best[-1] <= 0.0:
        raise BadData(
            "no half-space explains these decisions; give the classifier itself as 'accepts'"
        )
    u = best[:d] / np.linalg.norm(best[:d])
    complement = np.linalg.svd(u[None, :])[2][1:].T
    near = np.argsort(np.abs(rows @ best[:d] - sign * best[d]))[: max(50, len(rows) // 50)]
    origin = (sign[near, None] * rows[near]).mean(axis=0)  # where z and b are told apart best
    shifted = rows - sign[:, None] * origin
    turned = np.column_stack([-shifted @ complement, sign])
    ends = [
        linprog(unit, A_ub=turned, b_ub=shifted @ u, bounds=(None, None)).fun
        for unit in np.vstack([np.eye(d), -np.eye(d)])
    ]
    if None in ends:
        raise BadData(
            f"{len(yes)} approved and {len(no)} denied people leave the half-space's direction "
            "open; learn from more"
        )
    low, high = np.array(ends[:d]), -np.array(ends[d:])
    middle, half = (low + high) / 2.0, (high - low) / 2.0 * (1.0 + 1e-9) + 1e-12
    normal = u + complement @ middle[:-1]

    def value(X: Array, side: float) -> Array:
        x = (X - centre) / spread - origin
        doubt = np.abs(x @ complement) @ half[:-1] + half[-1]
        return np.asarray(x @ normal - middle[-1] - side * doubt)

    return lambda X: value(X, 1.0) >= 0.0, lambda X: value(X, -1.0) < 0.0
