"""How much information tells a group from the populations whose rates lie in given ranges.

A population of a group is (p', r'): the shares p' of approved people with outcome 1, of approved
people with outcome 0 and of denied people, and the share r' of outcome 1 among the denied. With n
past rows and N labels of denied people it takes ``n KL(p, p') + N kl(r, r')`` to tell it from the
true (p, r).

"The rate is at most t" means that ``W = [cell in part] - t [cell in whole]`` has a mean of at most
0. A denied row averages its two cells with r'. So for a fixed r' every end of a range is a linear
constraint on p', which has three entries that sum to 1. At the p' that is nearest to p no, one or
two constraints are met with equality:

- none: p' = p;
- one: ``p'_i = p_i / (1 + eta W_i)``, where eta solves a quadratic equation;
- two: p' is where two lines cross.

The problem is convex, so the nearest of these candidates that meets every constraint is the answer.
What remains is a search over the single number r'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import rel_entr

from equipoise._arrays import Array
from equipoise.bounds.maximin import kl
from equipoise.rates import Rate

_GRID = 11  # values of r' that are tried first, in [0, 1] and again where the answer is likely
_GOLDEN_STEPS = 26  # each keeps 0.618 of the bracket around the best of them
_GOLDEN_SHARE = (np.sqrt(5.0) - 1.0) / 2.0
_ROUNDING = 1e-12  # by which a constraint may be missed
_EMPTY_SHARE = 1e-15  # stands for a share of 0; KL changes by less than 1e-13


@dataclass(frozen=True)
class Distances:
    """What tells a group from the nearest populations of some ranges of its rates.

    Attributes
    ----------
    past
        n KL(p, p') in nats; infinite where no population has such rates.
    label
        kl(r, r') in nats, for each label.
    total
        n KL(p, p') + N kl(r, r').
    """

    past: Array
    label: Array
    total: Array


class GroupPopulation:
    """The true population of one group, and how many past rows show it.

    Parameters
    ----------
    shares
        p: approved with outcome 1, approved with outcome 0, denied; they sum to 1.
    r
        The share of outcome 1 among the denied.
    rows
        How many past rows the group has.
    rates
        The rates whose ranges are given to :meth:`distances`.
    """

    def __init__(
        self, shares: Sequence[float], r: float, rows: float, rates: Sequence[Rate]
    ) -> None:
        self.has_denied = shares[2] > 0.0
        self._r = r if self.has_denied else 0.5
        self._rows = rows
        self._rates = rates
        # A kind of people that the group lacks may exist in another population.
        p = np.maximum(np.array(shares, dtype=float), _EMPTY_SHARE)
        self._p = p / p.sum()

    def distances(
        self, labels: float, lowest: Array, highest: Array, likely: tuple[Array, Array]
    ) -> Distances:
        """Return how far the nearest populations are whose rates lie in given ranges.

        Parameters
        ----------
        labels
            N. If it is infinite r is known, and populations with another r' do not count. A group
            without denied people has no labels.
        lowest, highest
            The ends of the ranges, of shape (ranges, rates); infinite where a rate may be anything.
        likely
            The least and largest r' at which the answer is expected, of shape (ranges,).
        """
        if not self.has_denied:
            labels = 0.0
        if np.isinf(labels):
            r_prime = np.full(len(lowest), self._r)
        else:
            r_prime = self._best_r(labels, lowest, highest, likely)
        past = self._rows * self._past_distance(lowest, highest, r_prime[:, None])[:, 0]
        label = np.zeros(len(lowest))
        if self.has_denied and np.isfinite(labels):
            label = np.maximum(kl(self._r, r_prime), 0.0)
        return Distances(past, label, past + _multiply(labels, label))

    @property
    def r(self) -> float:
        """The share of outcome 1 among the denied; 0.5 where there are none."""
        return self._r

    def _best_r(
        self, labels: float, lowest: Array, highest: Array, likely: tuple[Array, Array]
    ) -> Array:
        """Return the r' at which the total information is least, of shape (ranges,)."""

        def total(r_prime: Array) -> Array:  # of shape (ranges, values of r')
            past = self._rows * self._past_distance(lowest, highest, r_prime)
            return past + _multiply(labels, np.maximum(kl(self._r, r_prime), 0.0))

        steps = np.linspace(0.0, 1.0, _GRID)
        start = np.clip(likely[0], 0.0, 1.0)[:, None]
        end = np.clip(likely[1], 0.0, 1.0)[:, None]
        everywhere = np.tile(steps, (len(lowest), 1))
        where_likely = start + (end - start) * steps
        where_likely[:, -1:] = end  # exactly, because this end may be the answer
        grid = np.concatenate([everywhere, where_likely], axis=1)
        best = np.take_along_axis(grid, total(grid).argmin(axis=1)[:, None], axis=1)
        # The bracket reaches to the next other values of the grid, which has some twice.
        bracket_start = np.where(grid < best, grid, 0.0).max(axis=1, keepdims=True)
        bracket_end = np.where(grid > best, grid, 1.0).min(axis=1, keepdims=True)
        refined = _golden_section(total, bracket_start, bracket_end)
        # Golden section only nears an end of the likely range, which may be the answer.
        candidates = np.concatenate([best, refined], axis=1)
        choice = total(candidates).argmin(axis=1)[:, None]
        return np.take_along_axis(candidates, choice, axis=1)[:, 0]

    def _past_distance(self, lowest: Array, highest: Array, r_prime: Array) -> Array:
        """Return KL(p, p') for the nearest p', of shape (ranges, values of r')."""
        constraints = self._constraints(lowest, highest, r_prime)
        with np.errstate(invalid="ignore", divide="ignore"):  # where a candidate does not exist
            candidates = self._candidates(constraints)
            # Axes: candidate, constraint, cell, range, value of r'.
            means = (candidates[:, None] * constraints).sum(axis=2)
            # A comparison with NaN is false.
            is_allowed = (means <= _ROUNDING).all(axis=1) & (candidates.min(axis=1) >= 0.0)
        p = self._p[:, None, None]
        allowed = np.where(is_allowed[:, None], candidates, p)
        distances = np.maximum(rel_entr(p, allowed).sum(axis=1), 0.0)
        return np.asarray(np.where(is_allowed, distances, np.inf).min(axis=0))

    def _constraints(self, lowest: Array, highest: Array, r_prime: Array) -> Array:
        """Return W of every end of a range: its mean under p' must not be above 0.

        The shape is (constraints, 3, ranges, values of r'); the second axis is that of p. The two
        ends of a rate follow each other. W is -1 where there is no end.
        """
        constraints = []
        for index, rate in enumerate(self._rates):
            low = lowest[:, index, None]
            high = highest[:, index, None]
            part_shares = _by_past_cell(rate.part, r_prime)
            whole_shares = _by_past_cell(rate.whole, r_prime)
            with np.errstate(invalid="ignore"):  # an infinite end times a cell that is not in whole
                too_low = low * whole_shares - part_shares
                too_high = part_shares - high * whole_shares
            constraints.append(np.where(np.isfinite(low), too_low, -1.0))
            constraints.append(np.where(np.isfinite(high), too_high, -1.0))
        return np.stack(constraints)

    def _candidates(self, constraints: Array) -> Array:
        """Return every p' that may be nearest; NaN or negative where there is no such p'.

        The shape is that of the constraints, with the candidate as the first axis.
        """
        unchanged = np.broadcast_to(self._p[:, None, None], constraints[:1].shape)
        candidates = [unchanged, self._on_line(constraints)]
        # Both ends of one range are never met at once, so only ends of two rates cross.
        pairs = combinations(range(len(constraints)), 2)
        crossing = [(first, second) for first, second in pairs if first // 2 != second // 2]
        if crossing:
            firsts, seconds = np.array(crossing).T
            candidates.append(_crossing(constraints[firsts], constraints[seconds]))
        return np.concatenate(candidates)

    def _on_line(self, excess: Array) -> Array:
        """Return the p' nearest to p among those under which W has mean 0; NaN if p meets it.

        ``p'_i = p_i / (1 + eta W_i)`` has that mean where ``sum_i p_i W_i / (1 + eta W_i) = 0``.
        Multiplied out that is ``a eta^2 + b eta + c = 0``; the least positive root counts. The
        entries of p are along the third axis from the end.
        """
        p = self._p[:, None, None]
        a = excess.prod(axis=-3)
        b = (p * excess * (excess.sum(axis=-3, keepdims=True) - excess)).sum(axis=-3)
        c = (p * excess).sum(axis=-3)
        # This form of the root also serves where a is 0.
        eta = 2.0 * c / (np.sqrt(b * b - 4.0 * a * c) - b)
        eta = np.where((c > 0.0) & (eta > 0.0), eta, np.nan)[..., None, :, :]
        p_prime = np.asarray(p / (1.0 + eta * excess))
        # The entry with the least W is what the others leave: its quotient may be of roundings.
        is_last = excess == excess.min(axis=-3, keepdims=True)
        other_shares = np.where(is_last, 0.0, p_prime)
        rest = (1.0 - other_shares.sum(axis=-3, keepdims=True)) / is_last.sum(
            axis=-3, keepdims=True
        )
        return np.where(is_last, rest, p_prime)


def _crossing(first_excess: Array, second_excess: Array) -> Array:
    """Return the p' under which two W have mean 0; NaN or infinite where there is none."""
    x1, y1, z1 = np.moveaxis(first_excess, -3, 0)
    x2, y2, z2 = np.moveaxis(second_excess, -3, 0)
    # p' is orthogonal to both W, so it is their cross product, scaled to sum to 1.
    entries = [y1 * z2 - z1 * y2, z1 * x2 - x1 * z2, x1 * y2 - y1 * x2]
    direction = np.stack(entries, axis=-3)
    return np.asarray(direction / direction.sum(axis=-3, keepdims=True))


def _by_past_cell(cells: AbstractSet[str], r_prime: Array) -> Array:
    """Return which share of each past cell lies in a set of cells of the confusion matrix.

    The first axis is that of p: approved with outcome 1, approved with outcome 0, denied.
    """
    approved_good = np.full(r_prime.shape, float("tp" in cells))
    approved_bad = np.full(r_prime.shape, float("fp" in cells))
    denied = r_prime * ("fn" in cells) + (1.0 - r_prime) * ("tn" in cells)
    return np.stack([approved_good, approved_bad, denied])


def _multiply(labels: float, information: Array) -> Array:
    """Return what so many labels tell: no label tells nothing, however much one would tell."""
    return np.zeros_like(information) if labels == 0.0 or np.isinf(labels) else labels * information


def _golden_section(
    function: Callable[[Array], Array], bracket_start: Array, bracket_end: Array
) -> Array:
    """Return where a function is least in brackets, each a row of the column vectors given."""
    width = bracket_end - bracket_start
    inner_left = bracket_end - _GOLDEN_SHARE * width
    inner_right = bracket_start + _GOLDEN_SHARE * width
    value_at_inner_left = function(inner_left)
    value_at_inner_right = function(inner_right)
    for _ in range(_GOLDEN_STEPS):
        goes_left = value_at_inner_left <= value_at_inner_right
        bracket_end = np.where(goes_left, inner_right, bracket_end)
        bracket_start = np.where(goes_left, bracket_start, inner_left)
        width = bracket_end - bracket_start
        # One of the two inner points is kept as the other one of the smaller bracket.
        new_point = np.where(
            goes_left, bracket_end - _GOLDEN_SHARE * width, bracket_start + _GOLDEN_SHARE * width
        )
        value_at_new_point = function(new_point)
        kept_point = np.where(goes_left, inner_left, inner_right)
        value_at_kept_point = np.where(goes_left, value_at_inner_left, value_at_inner_right)
        inner_left = np.where(goes_left, new_point, kept_point)
        value_at_inner_left = np.where(goes_left, value_at_new_point, value_at_kept_point)
        inner_right = np.where(goes_left, kept_point, new_point)
        value_at_inner_right = np.where(goes_left, value_at_kept_point, value_at_new_point)
    return np.asarray(
        np.where(value_at_inner_left <= value_at_inner_right, inner_left, inner_right)
    )
