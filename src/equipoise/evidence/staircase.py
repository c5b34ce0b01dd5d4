"""Evidence against a wrong answer: a staircase of cells, each with its own e-process.

A cell's evidence is a mixture of likelihood ratios at corners of a box around it. At every point of
the cell it is a supermartingale that starts at 1, so it ever reaches ``1/delta`` with probability
at most delta if the truth lies in the cell, whatever rule chose whom to label. A cell that has
reached its threshold is refuted for good; when all cells of a set are refuted, so is the set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.bets import AIMED, Sizes, alternatives, plug_in, ratios, trust
from equipoise.evidence.corners import CornerRule, Corners
from equipoise.evidence.geometry import Pair, grid

__all__ = ["Staircase", "Standing"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Flags = NDArray[np.bool_]

FINENESS = 0.16  # first cells: b's rates move by at most this many epsilons
RESTART = 0.1  # of a cell's stake is divided anew at every plan
DOUBT = 0.5  # nats that a group's labels must have gathered for half the hope in more of them
_DRIFT = 0.15  # aim the set bets anew when a planned share has changed by this much (log)
_SPLIT_GAIN = 1.03  # halve a cell if both halves give more information than this times its own
_BLOCK = 100_000  # numbers to work on at a time: what fits a processor's cache
_NEAR = 0.4  # … and its refutation takes at least this share of the longest one's time


@dataclass
class _Rows:
    """Cells as parallel arrays; the first axis is the cell, q corners and J bets at each."""

    pair: Ints
    start: Array
    end: Array
    half: Ints
    box: Array  # (n, 4)
    prior: Array  # (n, bets): how a stake is divided at first
    stake: Array
    a_one: Array
    a_zero: Array
    b_one: Array
    b_zero: Array

    def take(self, which: Ints | Flags) -> _Rows:
        return _Rows(*(getattr(self, f.name)[which] for f in fields(self)))

    def join(self, other: _Rows) -> _Rows:
        return _Rows(
            *(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self))
        )


@dataclass(frozen=True)
class Standing:
    """What stands between the audit and a refutation: one entry per live cell.

    ``info_a`` and ``info_b`` are the information that a label of either group carries against the
    cell (nats, at the current estimates), ``missing`` the nats to go.
    """

    pair: Ints
    a: Ints
    b: Ints
    info_a: Array
    info_b: Array
    missing: Array

    def doubted(self, counts: Array) -> Standing:
        """Return the same with less hope in what is known from few labels only.

        Information that a group's labels seem to carry counts by how much of it they have gathered.
        """
        gathered_a, gathered_b = counts[self.a] * self.info_a, counts[self.b] * self.info_b
        return replace(
            self,
            info_a=self.info_a * gathered_a / (gathered_a + DOUBT),
            info_b=self.info_b * gathered_b / (gathered_b + DOUBT),
        )


class Staircase:
    """All cells of one wrong answer and the evidence against each.

    Parameters
    ----------
    pairs
        The pairs of groups whose cells cover the set.
    rule
        How a cell's corners follow from its interval.
    sizes, epsilon
        How far bets move.
    thresholds
        Per pair, the evidence that refutes one of its cells.
    shares
        Planned share of labels per group, to aim the first bets by.
    halves
        1, or 2 where the rule splits every interval in two.
    fineness
        Width of the first cells, in epsilons of movement of b's rates.
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        rule: CornerRule,
        sizes: Sizes,
        epsilon: float,
        thresholds: Sequence[float] | Array,
        shares: Array,
        *,
        halves: int = 1,
        fineness: float = FINENESS,
    ) -> None:
        self.pairs = list(pairs)
        self.thresholds = np.asarray(thresholds, dtype=float)
        self._rule, self._sizes, self._epsilon = rule, sizes, epsilon
        self._a = np.array([pair.a for pair in self.pairs])
        self._b = np.array([pair.b for pair in self.pairs])
        # per pair: (rate, group a or b, coefficient)
        self._curves = np.array(
            [[[(c.a, c.b, c.c, c.d) for c in rate] for rate in p.curves()] for p in self.pairs]
        )
        starts, ends, halfs, owners = [], [], [], []
        for index, pair in enumerate(self.pairs):
            edges = grid(pair, fineness * epsilon)
            for half in range(halves):
                starts.append(edges[:-1])
                ends.append(edges[1:])
                halfs.append(np.full(len(edges) - 1, half))
                owners.append(np.full(len(edges) - 1, index))
        self._aimed_by = shares
        self._rows = self._build(
            np.concatenate(owners),
            np.concatenate(starts),
            np.concatenate(ends),
            np.concatenate(halfs),
        )
        self._reindex()

    # -- evidence -------------------------------------------------------------------------------

    def update(self, group: int, outcome: int | None) -> None:
        """Count one label; None is one that stays unknown, taken at its worst by every bet."""
        rows = self._rows
        if outcome is None:
            as_a = np.minimum(rows.a_one, rows.a_zero)
            as_b = np.minimum(rows.b_one, rows.b_zero)
        elif outcome:
            as_a, as_b = rows.a_one, rows.b_one
        else:
            as_a, as_b = rows.a_zero, rows.b_zero
        for index, ratio in ((self._rows_of_a[group], as_a), (self._rows_of_b[group], as_b)):
            stake = rows.stake[index] * ratio[index]
            out = stake @ self._ones >= self._bar[index]
            if out.any():
                stake[out] = 0.0  # would grow without bound
                bar = self._bar[index]
                bar[out] = np.inf  # refuted for good
                self._bar[index] = bar
                self._live -= np.bincount(rows.pair[index][out], minlength=len(self.pairs))
                self._dead += int(out.sum())
            rows.stake[index] = stake
        if self._dead > 0.3 * len(rows.pair):
            self._drop_refuted()

    def update_block(self, groups: Ints, outcomes: Ints) -> Ints:
        """Count labels as :meth:`update` would, one after the other, but all at once.

        Return, per pair, after how many of them all of its cells were refuted; one more than there
        are where some still stand.
        """
        self._drop_refuted()
        when = np.ones(len(self.pairs), dtype=np.intp)  # noticed at the first label, if not before
        edges = np.searchsorted(self._rows.pair, np.arange(len(self.pairs) + 1))
        for pair in np.flatnonzero(self._live):
            a, b = self._a[pair], self._b[pair]
            mine = np.flatnonzero((groups == a) | (groups == b))
            kind = 2 * (groups[mine] == b) + (outcomes[mine] == 0)
            first = self._follow(slice(edges[pair], edges[pair + 1]), kind)
            out = int((first < len(mine)).sum())
            when[pair] = mine[first.max()] + 1 if out == len(first) else len(groups) + 1
            self._live[pair] -= out
            self._dead += out
        return when

    def _follow(self, rows: slice, kind: Ints) -> Ints:
        """Multiply some rows' stakes label by label; return when each row reached its bar.

        ``kind`` is 0 for a's label 1, 1 for a's label 0, 2 and 3 for b's.
        """
        table = self._rows
        factors = np.stack(
            [table.a_one[rows], table.a_zero[rows], table.b_one[rows], table.b_zero[rows]]
        )
        stake, bar = table.stake[rows], self._bar[rows]
        first = np.full(len(bar), len(kind), dtype=np.intp)
        step = max(1, _BLOCK // max(stake.size, 1))
        for start in range(0, len(kind), step):
            path = factors[kind[start : start + step]]
            path[0] *= stake
            with np.errstate(over="ignore", invalid="ignore"):  # past its bar a row may run away
                np.multiply.accumulate(path, axis=0, out=path)
                beyond = path @ self._ones >= bar
            hit = beyond.any(axis=0) & (first == len(kind))
            first[hit] = start + beyond[:, hit].argmax(axis=0)
            stake[:] = path[-1]
            stake[hit], bar[hit] = 0.0, np.inf
        return first

    @property
    def boxes(self) -> tuple[Ints, Array]:
        """The cells that are not refuted: their pairs, and (n, 4) ends of their boxes."""
        live = np.isfinite(self._bar)
        return self._rows.pair[live], self._rows.box[live]

    @property
    def refuted(self) -> Flags:
        """Per pair: whether all of its cells are refuted."""
        return np.asarray(self._live == 0)

    def refuted_with(self, ones: Array, zeros: Array, unknown: Array) -> Flags:
        """Per pair: whether its cells would all be refuted after further labels of each group.

        Of ``unknown`` labels each bet takes the worst value, so the answer holds however they turn
        out.
        """
        rows = self._rows
        log = np.zeros_like(rows.stake)
        for group, one, zero in (
            (self._a[rows.pair], rows.a_one, rows.a_zero),
            (self._b[rows.pair], rows.b_one, rows.b_zero),
        ):
            log_one, log_zero = np.log(one), np.log(zero)
            log += ones[group][:, None] * log_one + zeros[group][:, None] * log_zero
            log += unknown[group][:, None] * np.minimum(log_one, log_zero)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            refuted = (rows.stake * np.exp(log)) @ self._ones >= self._bar
        standing = ~refuted & np.isfinite(self._bar)  # also where 0 * inf leaves no number
        return np.asarray(np.bincount(rows.pair[standing], minlength=len(self.pairs)) == 0)

    # -- epochs ---------------------------------------------------------------------------------

    def standing(self, estimates: Array) -> Standing:
        """Return what is left to refute and how informative each group's labels are for it."""
        self._drop_refuted()
        rows = self._rows
        info_a, info_b = _information(rows.box, *self._at(rows, estimates))
        return Standing(
            rows.pair, self._a[rows.pair], self._b[rows.pair], info_a, info_b, self._missing()
        )

    def refine(self, estimates: Array, counts: Array, shares: Array, levels: int = 3) -> None:
        """Divide stakes anew in part, halve cells whose corner gives information away, aim bets.

        Dividing leaves a cell's total as it is. Children are subsets of their parent and start from
        its stakes. So the evidence remains a supermartingale at every point of every cell.
        """
        self._drop_refuted()
        rows = self._rows
        wealth = rows.stake.sum(axis=1, keepdims=True)
        rows.stake = (1.0 - RESTART) * rows.stake + RESTART * wealth * rows.prior
        rows.stake[rows.stake < 1e-200] = 0.0  # hopeless bets; denormal numbers are slow
        if np.abs(np.log(shares / self._aimed_by)).max() > _DRIFT:
            self._aimed_by = shares
            self._rows = self._build(rows.pair, rows.start, rows.end, rows.half, rows.stake)
        for _ in range(levels):
            wide = self._worth_halving(estimates, shares)
            if not wide.any():
                break
            rows, parents = self._rows.take(~wide), self._rows.take(wide)
            middle = (parents.start + parents.end) / 2.0
            self._rows = rows.join(
                self._build(
                    np.tile(parents.pair, 2),
                    np.concatenate([parents.start, middle]),
                    np.concatenate([middle, parents.end]),
                    np.tile(parents.half, 2),
                    np.tile(parents.stake, (2, 1)),
                )
            )
            self._reindex()
        self._reindex()
        self.aim(estimates, counts)

    def aim(self, estimates: Array, counts: Array) -> None:
        """Point the bets that follow the estimates at where they are now."""
        rows = self._rows
        a, b = self._a[rows.pair], self._b[rows.pair]
        info_a, info_b = _information(rows.box, estimates[a], estimates[b])
        gathered = counts[a] * info_a + counts[b] * info_b
        way = trust(gathered, np.add(info_a > 0.0, info_b > 0.0, dtype=float))
        rows.a_one[:, -AIMED:], rows.a_zero[:, -AIMED:] = plug_in(
            rows.box[:, 0], rows.box[:, 1], estimates[a], way
        )
        rows.b_one[:, -AIMED:], rows.b_zero[:, -AIMED:] = plug_in(
            rows.box[:, 2], rows.box[:, 3], estimates[b], way
        )

    # -- inside ---------------------------------------------------------------------------------

    def _build(
        self, pair: Ints, start: Array, end: Array, half: Ints, stake: Array | None = None
    ) -> _Rows:
        """Build cells with their bets; cells with nothing in them are left out."""
        shares = self._aimed_by
        corners = self._corners(pair, start, end, half)
        full = ~corners.empty
        pair, start, end, half = pair[full], start[full], end[full], half[full]
        n, q = corners.lam_a[full].shape
        lam_a, lam_b = corners.lam_a[full].ravel(), corners.lam_b[full].ravel()
        side, active = corners.side[full].ravel(), corners.active[full].ravel()
        owner = np.repeat(pair, q)
        steps = self._epsilon * np.asarray(self._sizes.steps)[None, :]
        rho_a, rho_b = alternatives(
            lam_a,
            lam_b,
            side,
            self._curves[owner, active, 0].T,
            self._curves[owner, active, 1].T,
            shares[self._a[owner]],
            shares[self._b[owner]],
            steps + corners.extra[full].ravel()[:, None],
        )
        box = corners.box[full]
        none = np.ones((n, AIMED))
        factors = [
            np.hstack([fixed.reshape(n, q * fixed.shape[1]), none])
            for fixed in (*ratios(rho_a, lam_a), *ratios(rho_b, lam_b))
        ]
        fixed = corners.weight[full].ravel()[:, None] * np.asarray(self._sizes.weights)[None, :]
        prior = np.hstack(
            [
                (1.0 - self._sizes.aimed) * fixed.reshape(n, q * fixed.shape[1]),
                np.full((n, AIMED), self._sizes.aimed / AIMED),
            ]
        )
        stake = prior.copy() if stake is None else stake[full]  # updated in place
        return _Rows(pair, start, end, half, box, prior, np.ascontiguousarray(stake), *factors)

    def _corners(self, pair: Ints, start: Array, end: Array, half: Ints) -> Corners:
        parts, places = [], []
        for index in np.unique(pair) if pair.size else [0]:
            place = np.flatnonzero(pair == index)
            places.append(place)
            parts.append(self._rule(self.pairs[index], start[place], end[place], half[place]))
        back = np.argsort(np.concatenate(places))
        return Corners(
            *(
                np.concatenate([getattr(part, f.name) for part in parts])[back]
                for f in fields(Corners)
            )
        )

    def _reindex(self) -> None:
        if (np.diff(self._rows.pair) < 0).any():
            self._rows = self._rows.take(np.argsort(self._rows.pair, kind="stable"))
        rows = self._rows
        a, b = self._a[rows.pair], self._b[rows.pair]
        groups = range(1 + int(max(self._a.max(), self._b.max())))
        self._rows_of_a = [_as_slice(np.flatnonzero(a == g)) for g in groups]
        self._rows_of_b = [_as_slice(np.flatnonzero(b == g)) for g in groups]
        self._bar = self.thresholds[rows.pair]
        self._live = np.bincount(rows.pair, minlength=len(self.pairs))
        self._dead = 0
        self._ones = np.ones(rows.stake.shape[1])

    def _drop_refuted(self) -> None:
        if self._dead:
            self._rows = self._rows.take(np.isfinite(self._bar))
            self._reindex()

    def _missing(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._bar) - np.log(self._rows.stake @ self._ones))

    def _at(self, rows: _Rows, estimates: Array) -> tuple[Array, Array]:
        return estimates[self._a[rows.pair]], estimates[self._b[rows.pair]]

    def _worth_halving(self, estimates: Array, shares: Array) -> Flags:
        rows = self._rows
        info_a, info_b = _information(rows.box, *self._at(rows, estimates))
        own = shares[self._a[rows.pair]] * info_a + shares[self._b[rows.pair]] * info_b
        with np.errstate(divide="ignore"):
            time = self._missing() / own
        finite = time[np.isfinite(time)]
        near = np.flatnonzero(time >= _NEAR * (finite.max() if finite.size else 0.0))
        pair, start, end, half = rows.pair[near], rows.start[near], rows.end[near], rows.half[near]
        a, b = self._a[pair], self._b[pair]
        middle = (start + end) / 2.0
        corners = self._corners(
            np.tile(pair, 2),
            np.concatenate([start, middle]),
            np.concatenate([middle, end]),
            np.tile(half, 2),
        )
        a, b = np.tile(a, 2), np.tile(b, 2)
        info_a, info_b = _information(corners.box, estimates[a], estimates[b])
        info = np.where(corners.empty, np.inf, shares[a] * info_a + shares[b] * info_b)
        halves = info.reshape(2, -1).min(axis=0)
        wide = np.zeros(len(own), dtype=bool)
        wide[near[halves > _SPLIT_GAIN * own[near]]] = True
        return wide


def _information(box: Array, r_a: Array, r_b: Array) -> tuple[Array, Array]:
    """Return the information that a label of a and of b carries against each box."""
    return (
        _kl(r_a, np.clip(r_a, box[:, 0], box[:, 1])),
        _kl(r_b, np.clip(r_b, box[:, 2], box[:, 3])),
    )


def _kl(r: Array, lam: Array) -> Array:
    safe = np.clip(lam, 1e-12, 1.0 - 1e-12)
    return np.asarray(r * np.log(r / safe) + (1.0 - r) * np.log((1.0 - r) / (1.0 - safe)))


def _as_slice(index: Ints) -> Ints | slice:
    """Return the same rows as a slice where they are consecutive: views are cheaper than copies."""
    if index.size == 0:
        return slice(0, 0)
    if index[-1] - index[0] + 1 == index.size:
        return slice(int(index[0]), int(index[-1]) + 1)
    return index
