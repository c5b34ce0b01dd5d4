"""Who is compared with whom, and how: all pairs of groups or each against one, within strata.

A comparison is a set of pairs (higher group, lower group), the same for every rate of a metric. Its
gap is the largest over rates and pairs of how far the lower group's rate is below the higher one's,
0 if none is. Pairs come in blocks, one per stratum, that share no group; and of a block no gap
exceeds c exactly when there is a level around which every group's rate lies in a range of its own:
so a block is all that the free check, the evidence and C* need to know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import permutations
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from equipoise._arrays import Array
from equipoise._json import JsonValue
from equipoise.errors import InvalidInput, UnknownName, require_kind

WITHIN = " | "
"""Between the stratum and the group in the name of a group that is compared within strata."""

Number = TypeVar("Number", float, Array)

_LEAST = 1e-3  # rates below are alike when cells are laid out; validity does not rest on it


class GapScale(StrEnum):
    """The gap between a lower and a higher rate: ``high - low``, or ``1 - low/high``.

    The ratio's gap is 0 for 0/0 and 1 for 0/x. Between two rates the gap is at least ``c`` exactly
    when the higher one is at least ``above(low, c)``, and exactly when the lower one is at most
    ``below(high, c)`` (for 0/0 the ratio's bounds hold for every c: limits of 0/x).

    Examples
    --------
    >>> float(GapScale.RATIO.gap(0.25, 0.5)), float(GapScale.RATIO.gap(0.0, 0.0))
    (0.5, 0.0)
    >>> GapScale.RATIO.above(0.25, 0.5), GapScale.RATIO.below(0.5, 0.5)
    (0.5, 0.25)
    """

    DIFFERENCE = "difference"
    RATIO = "ratio"

    @property
    def noun(self) -> str:
        """What the gap is called: a difference, or how much the lower rate falls short."""
        return "difference" if self is GapScale.DIFFERENCE else "shortfall"

    def gap(self, low: ArrayLike, high: ArrayLike) -> Array:
        """Return how far apart a lower and a higher rate are; not positive where low >= high."""
        low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
        if self is GapScale.DIFFERENCE:
            return np.asarray(high - low)
        same = np.ones(np.broadcast(low, high).shape)
        return np.asarray(1.0 - np.divide(low, high, out=same, where=high > 0.0))

    def above(self, rate: Number, gap: Number | float) -> Number:
        """Return the least rate that is ``gap`` above a rate."""
        return rate + gap if self is GapScale.DIFFERENCE else rate / (1.0 - gap)

    def below(self, rate: Number, gap: Number | float) -> Number:
        """Return the largest rate that is ``gap`` below a rate."""
        return rate - gap if self is GapScale.DIFFERENCE else rate * (1.0 - gap)

    def halved(self, gap: Array) -> Array:
        """Return the least gap that two rates so far apart can both have to a third one."""
        if self is GapScale.DIFFERENCE:
            return np.asarray(gap / 2.0)
        return np.asarray(1.0 - np.sqrt(1.0 - gap))

    def opposite(self, gap: float) -> float:
        """Return the gap that leads back: ``below(x, c) = above(x, opposite(c))``."""
        return -gap if self is GapScale.DIFFERENCE else -gap / (1.0 - gap)

    def unit(self, rate: Array) -> Array:
        """Return how far a rate moves when its gap to another moves by 1, about."""
        return np.ones_like(rate) if self is GapScale.DIFFERENCE else np.maximum(rate, _LEAST)

    def scale(self, rate: Array) -> Array:
        """Return a rate on the scale on which equal steps are equal gaps."""
        return rate if self is GapScale.DIFFERENCE else np.log(np.maximum(rate, _LEAST))


@dataclass(frozen=True)
class Comparison(JsonValue):
    """Who is compared with whom, where it is not every group with every other.

    Parameters
    ----------
    by
        ``"difference"`` or ``"ratio"``.
    against
        Each group is compared with this one only; with every other if None.
    direction
        With ``against``: ``"below"`` counts only how far a group's rate is below that of the one
        it is compared with, ``"above"`` only how far it is above.
    within
        Groups are compared inside each stratum only. ``History.read(..., within="product")`` reads
        strata; elsewhere a group is called ``"stratum | group"``.
    leave_out
        Groups that are counted and not compared.

    Examples
    --------
    >>> from equipoise import Question
    >>> print(Question("equal_opportunity", compare=Comparison(against="White", direction="below")))
    equal opportunity: FAIR if the gap (the largest difference between groups, each against White,
    where it is below) <= 0.05, UNFAIR if the gap > 0.1, wrong with probability <= 0.05
    """

    by: Literal["difference", "ratio"] = "difference"
    against: str | None = None
    direction: Literal["both", "below", "above"] = "both"
    within: bool = False
    leave_out: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.by not in list(GapScale):
            raise UnknownName("way to 'compare'", self.by, GapScale)
        if self.direction not in _DIRECTIONS:
            raise UnknownName("'direction'", self.direction, _DIRECTIONS)
        if self.against is not None:
            require_kind("against", self.against, str, "the name of a group")
        elif self.direction != "both":
            raise InvalidInput(
                f"'direction' {self.direction!r} needs 'against', the group to compare others with"
            )
        require_kind("within", self.within, bool, "true or false")
        require_kind("leave_out", self.leave_out, Sequence, "a list of groups")
        names = (self.leave_out,) if isinstance(self.leave_out, str) else tuple(self.leave_out)
        for name in names:
            require_kind("leave_out", name, str, "the name of a group, or several")
        if self.against in names:
            raise InvalidInput(f"'against' {self.against!r} is left out by 'leave_out'")
        object.__setattr__(self, "leave_out", names)

    @property
    def words(self) -> str:
        """Who is compared, as the end of a sentence; empty for every group with every other."""
        parts = [
            f"each against {self.against}" if self.against is not None else "",
            f"where it is {self.direction}" if self.direction != "both" else "",
            "within each stratum" if self.within else "",
            f"{' and '.join(self.leave_out)} left out" if self.leave_out else "",
        ]
        return "".join(f", {part}" for part in parts if part)


Compare = Comparison  # the name under which users construct one

_DIRECTIONS = ("both", "below", "above")


@dataclass(frozen=True)
class Block:
    """Groups of one stratum, by position: all pairs of them, or each against the reference."""

    stratum: str
    groups: tuple[int, ...]
    reference: int | None = None
    direction: str = "both"

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The higher and the lower group of every gap that counts."""
        return tuple(
            (high, low)
            for high, low in permutations(self.groups, 2)
            if self.reference is None
            or (high == self.reference and self.direction != "above")
            or (low == self.reference and self.direction != "below")
        )

    def rate_ranges(
        self, scale: GapScale, low: ArrayLike, high: ArrayLike, gap: float
    ) -> tuple[Array, Array]:
        """Return where each group's rate lies if a level is in [low, high], no gap above ``gap``.

        The level is the lowest rate, or the reference's. The last axis of both results is the group
        of the block; ends are infinite where the rate may be anything.
        """
        low, high = (np.array(end)[..., None] for end in np.broadcast_arrays(low, high))
        at = np.array([group == self.reference for group in self.groups])
        least = -np.inf if self.direction == "above" else scale.below(low, gap)
        most = np.inf if self.direction == "below" else scale.above(high, gap)
        return np.where(at | (self.reference is None), low, least), np.where(at, high, most)

    def least_gap(self, scale: GapScale, low: Array, high: Array) -> Array:
        """Return the least gap of rates that lie in these ranges; the last axis is the group.

        Not positive where there need be none. Against a reference, groups whose ranges are apart
        cannot both be near it.
        """
        if self.reference is None:
            return scale.gap(high.min(axis=-1), low.max(axis=-1))
        at = self.groups.index(self.reference)
        lowest = np.delete(high, at, axis=-1).min(axis=-1)
        highest = np.delete(low, at, axis=-1).max(axis=-1)
        below, above = scale.gap(lowest, low[..., at]), scale.gap(high[..., at], highest)
        if self.direction != "both":
            return below if self.direction == "below" else above
        return np.maximum(np.maximum(below, above), scale.halved(scale.gap(lowest, highest)))


@dataclass(frozen=True)
class ResolvedComparison:
    """A comparison of so many groups, by position: its blocks, and who is in none of them.

    Examples
    --------
    >>> import numpy as np
    >>> below = resolve(Comparison(against="A", direction="below"), ["A", "B", "C"])
    >>> below.pairs, float(below.gap(np.array([0.5, 0.4, 0.9])).round(3))
    (((0, 1), (0, 2)), 0.1)
    """

    scale: GapScale
    blocks: tuple[Block, ...]
    left_out: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The higher and the lower group of every gap that counts."""
        return tuple(pair for block in self.blocks for pair in block.pairs)

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """The groups that are compared."""
        return tuple(sorted(group for block in self.blocks for group in block.groups))

    def gap(self, rates: Array) -> Array:
        """Return the largest gap, 0 if there is none; the last axis is the group."""
        return self.largest_gap(rates, rates)

    def largest_gap(self, low: Array, high: Array) -> Array:
        """Return the largest gap of rates that lie in these ranges."""
        higher, lower = np.array(self.pairs).T
        gaps = self.scale.gap(low[..., lower], high[..., higher])
        return np.asarray(np.maximum(gaps.max(axis=-1), 0.0))

    def least_gap(self, low: Array, high: Array) -> Array:
        """Return the least gap of rates that lie in these ranges."""
        gaps = [
            block.least_gap(self.scale, low[..., block.groups], high[..., block.groups])
            for block in self.blocks
        ]
        return np.asarray(np.maximum(np.max(gaps, axis=0), 0.0))


def resolve(compare: str | Comparison, groups: Iterable[str]) -> ResolvedComparison:
    """Return who is compared among these groups.

    Whoever is to be left out need not be among them. Strata without two groups, or without the
    group that others are compared with, are left out.

    Examples
    --------
    >>> names = ["car | A", "car | B", "home | A", "home | B", "boat | A"]
    >>> found = resolve(Comparison(within=True), names)
    >>> found.pairs, found.left_out
    (((0, 1), (1, 0), (2, 3), (3, 2)), ('boat | A',))
    """
    compare = compare if isinstance(compare, Comparison) else Comparison(GapScale(compare).value)
    names, against, strata = tuple(groups), compare.against, dict[str, dict[str, int]]()
    for at, name in enumerate(names):
        stratum, mark, group = name.partition(WITHIN) if compare.within else ("", WITHIN, name)
        if not mark:
            raise InvalidInput(
                f"'within' compares groups inside each stratum, and the group {name!r} has none: "
                f"read the past with within=..., or call groups 'stratum{WITHIN}group'"
            )
        strata.setdefault(stratum, {})[group] = at
    if not compare.within and names and all(WITHIN in name for name in names):
        raise InvalidInput(
            f"groups such as {names[0]!r} were read within strata: ask with "
            "compare=Compare(within=True) (--within on the command line), or read all of the "
            "columns as 'group' to compare their intersections"
        )
    known = list(dict.fromkeys(group for own in strata.values() for group in own))
    if against is not None and against not in known:
        raise UnknownName("group in 'against'", against, known)
    blocks = []
    for stratum, own in strata.items():
        left = {*compare.leave_out}
        inside = {group: at for group, at in own.items() if not {group, names[at]} & left}
        if len(inside) >= 2 and (against is None or against in inside):
            reference = None if against is None else inside[against]
            blocks.append(Block(stratum, (*inside.values(),), reference, compare.direction))
    if not blocks:
        whom = "" if against is None else f", {against!r} among them"
        raise InvalidInput(
            f"nobody can be compared{compare.words}: that takes two groups{whom}; the groups are "
            f"{', '.join(map(repr, names))}"
        )
    within = {at for block in blocks for at in block.groups}
    left_out = tuple(name for at, name in enumerate(names) if at not in within)
    return ResolvedComparison(GapScale(compare.by), tuple(blocks), left_out)
