"""Who is compared with whom, and how: all pairs of groups or each against one, within strata.

A question names groups (:class:`Comparison`). Applied to the groups of some data it becomes a set
of pairs of positions (:class:`ResolvedComparison`): a higher and a lower group, the same pairs for
every rate of a metric. The gap is the largest value, over rates and pairs, of how far the lower
group's rate is below the higher group's rate, and 0 if it is nowhere below.

The pairs come in blocks, one per stratum, and no group is in two blocks. In a block no gap exceeds
c exactly when there is a rate level such that every group's rate lies in a range around it
(:meth:`Block.rate_ranges`). The free check, the evidence and C* need no more than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import permutations
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from equipoise._arrays import Array
from equipoise._json import JsonValue
from equipoise.display import format_number
from equipoise.errors import InvalidInput, UnknownName, require_kind

WITHIN = " | "
"""Between the stratum and the group in the name of a group that is compared within strata."""

Number = TypeVar("Number", float, Array)

# Null cells are laid out as if rates below this were equal, because a ratio has no scale near 0.
# Only the layout uses it, so no guarantee rests on it.
_SMALLEST_RATE = 1e-3


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

    @property
    def unit(self) -> str:
        """The unit in which hundredths of a gap are given."""
        is_difference = self is GapScale.DIFFERENCE
        return "percentage points" if is_difference else "percent of the highest rate"

    def format_gap(self, gap: float, figures: int = 6) -> str:
        """Write a gap with its unit, with so many significant figures at most.

        Examples
        --------
        >>> GapScale.DIFFERENCE.format_gap(0.05), GapScale.RATIO.format_gap(0.2)
        ('5 points', '20% of the highest rate')
        """
        hundredths = format_number(100.0 * gap, figures)
        if self is GapScale.RATIO:
            return f"{hundredths}% of the highest rate"
        return f"{hundredths} point{'' if hundredths == '1' else 's'}"

    def gap(self, low: ArrayLike, high: ArrayLike) -> Array:
        """Return how far a lower and a higher rate are apart; not positive where low >= high.

        ``low`` and ``high`` broadcast.
        """
        low = np.asarray(low, dtype=float)
        high = np.asarray(high, dtype=float)
        if self is GapScale.DIFFERENCE:
            return np.asarray(high - low)
        # Where the higher rate is 0 both are, and a ratio of 1 stands for "no gap".
        ratios = np.ones(np.broadcast(low, high).shape)
        np.divide(low, high, out=ratios, where=high > 0.0)
        return np.asarray(1.0 - ratios)

    def above(self, rate: Number, gap: Number | float) -> Number:
        """Return the least rate that is ``gap`` above a rate."""
        return rate + gap if self is GapScale.DIFFERENCE else rate / (1.0 - gap)

    def below(self, rate: Number, gap: Number | float) -> Number:
        """Return the largest rate that is ``gap`` below a rate."""
        return rate - gap if self is GapScale.DIFFERENCE else rate * (1.0 - gap)

    def half_gap(self, gap: Array) -> Array:
        """Return the smallest c for which two rates with this gap can both be c from a third."""
        if self is GapScale.DIFFERENCE:
            return np.asarray(gap / 2.0)
        return np.asarray(1.0 - np.sqrt(1.0 - gap))

    def reversed_gap(self, gap: float) -> float:
        """Return the gap that leads back: ``below(x, c) = above(x, reversed_gap(c))``."""
        return -gap if self is GapScale.DIFFERENCE else -gap / (1.0 - gap)

    def rate_per_gap(self, rate: Array) -> Array:
        """Return about how far a rate moves when its gap to another rate moves by 1."""
        if self is GapScale.DIFFERENCE:
            return np.ones_like(rate)
        return np.maximum(rate, _SMALLEST_RATE)

    def to_gap_units(self, rate: Array) -> Array:
        """Return a rate in units in which equal steps are equal gaps: itself, or its logarithm."""
        if self is GapScale.DIFFERENCE:
            return rate
        return np.log(np.maximum(rate, _SMALLEST_RATE))


@dataclass(frozen=True)
class Comparison(JsonValue):
    """Which groups are compared, if it is not every group with every other.

    Users construct it as ``equipoise.Compare``.

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

    Raises
    ------
    InvalidInput
        If a value has the wrong type, ``direction`` is given without ``against``, or the group in
        ``against`` is left out.

    Examples
    --------
    >>> from equipoise import Question
    >>> print(Question("equal_opportunity", compare=Comparison(against="White", direction="below")))
    equal opportunity: FAIR if the gap (the largest difference between groups, each against White,
    where it is below) is at most 5 points, UNFAIR if it is above 10 points, error probability at
    most 5%
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
        # A text is a sequence as well: without this, "White" would be five groups.
        names = (self.leave_out,) if isinstance(self.leave_out, str) else tuple(self.leave_out)
        for name in names:
            require_kind("leave_out", name, str, "the name of a group, or several")
        if self.against in names:
            raise InvalidInput(f"'against' {self.against!r} is left out by 'leave_out'")
        # A frozen dataclass can be filled in here only by this detour.
        object.__setattr__(self, "leave_out", names)

    @property
    def words(self) -> str:
        """Who is compared, as the end of a sentence; empty for every group with every other."""
        clauses = []
        if self.against is not None:
            clauses.append(f"each against {self.against}")
        if self.direction != "both":
            clauses.append(f"where it is {self.direction}")
        if self.within:
            clauses.append("within each stratum")
        if self.leave_out:
            clauses.append(f"{' and '.join(self.leave_out)} left out")
        return "".join(f", {clause}" for clause in clauses)

    @property
    def opposite(self) -> Comparison:
        """The same comparison with the other direction; itself if both directions count."""
        opposites: Mapping[str, Literal["below", "above"]] = {"below": "above", "above": "below"}
        if self.direction == "both":
            return self
        return replace(self, direction=opposites[self.direction])

    def resolve(self, groups: Iterable[str]) -> ResolvedComparison:
        """Return who is compared among these groups, by position.

        A stratum takes part if two of its groups remain after ``leave_out``, and with ``against``
        only if that group is one of them. Names in ``leave_out`` need not be among the groups
        (:meth:`require_left_out_exist` checks that).

        Raises
        ------
        InvalidInput
            If the names of the groups do not fit ``within``, if no group is called as ``against``
            says, or if no stratum takes part.

        Examples
        --------
        >>> names = ["car | A", "car | B", "home | A", "home | B", "boat | A"]
        >>> resolved = Comparison(within=True).resolve(names)
        >>> resolved.pairs, resolved.left_out
        (((0, 1), (1, 0), (2, 3), (3, 2)), ('boat | A',))
        """
        names = tuple(groups)
        strata = self._split_strata(names)
        self._require_reference(strata)
        blocks = []
        for stratum, positions in strata.items():
            block = self._make_block(stratum, positions, names)
            if block is not None:
                blocks.append(block)
        if not blocks:
            reference = "" if self.against is None else f", {self.against!r} among them"
            raise InvalidInput(
                f"nobody can be compared{self.words}: that takes two groups{reference}; the groups "
                f"are {', '.join(map(repr, names))}"
            )
        in_blocks = {position for block in blocks for position in block.groups}
        left_out = tuple(name for index, name in enumerate(names) if index not in in_blocks)
        return ResolvedComparison(GapScale(self.by), tuple(blocks), left_out)

    def require_left_out_exist(self, groups: Iterable[str]) -> None:
        """Raise unless every name in ``leave_out`` is a group, or a group of some stratum."""
        allowed_names = set(groups)
        if self.within:  # "A" leaves out that group in every stratum, "car | A" in one
            allowed_names |= {name.partition(WITHIN)[2] for name in allowed_names}
        for name in self.leave_out:
            if name not in allowed_names:
                raise UnknownName("group in 'leave_out'", name, sorted(allowed_names))

    def _split_strata(self, names: Sequence[str]) -> _Strata:
        """Return every stratum's groups with their positions; one stratum "" without ``within``."""
        if not self.within:
            # Otherwise people of different strata would be compared without a warning.
            if names and all(WITHIN in name for name in names):
                raise InvalidInput(
                    f"groups such as {names[0]!r} were read within strata: ask with "
                    "compare=Compare(within=True), or read all of the columns as 'group' to "
                    "compare their intersections"
                )
            return {"": {name: position for position, name in enumerate(names)}}
        strata: dict[str, dict[str, int]] = {}
        for position, name in enumerate(names):
            stratum, separator, group = name.partition(WITHIN)
            if not separator:
                raise InvalidInput(
                    f"'within' compares groups inside each stratum, and the group {name!r} has "
                    f"none: read the past with within=..., or call groups 'stratum{WITHIN}group'"
                )
            strata.setdefault(stratum, {})[group] = position
        return strata

    def _require_reference(self, strata: _Strata) -> None:
        """Raise unless some stratum has the group that others are compared with."""
        if self.against is None:
            return
        group_names = list(dict.fromkeys(group for groups in strata.values() for group in groups))
        if self.against not in group_names:
            raise UnknownName("group in 'against'", self.against, group_names)

    def _make_block(
        self, stratum: str, positions: Mapping[str, int], names: Sequence[str]
    ) -> Block | None:
        """Return the block of a stratum; None if it has too few groups, or not the reference.

        ``leave_out`` may give a group's name in its stratum or its full name, with the stratum.
        """
        compared = {
            group: position
            for group, position in positions.items()
            if group not in self.leave_out and names[position] not in self.leave_out
        }
        if len(compared) < 2 or (self.against is not None and self.against not in compared):
            return None
        reference = None if self.against is None else compared[self.against]
        return Block(stratum, tuple(compared.values()), reference, self.direction)


Compare = Comparison  # the name under which users construct one

_DIRECTIONS = ("both", "below", "above")
_Strata = Mapping[str, Mapping[str, int]]  # stratum -> group -> position of the group


def as_comparison(compare: str | Comparison) -> Comparison:
    """Return a comparison; ``"difference"`` or ``"ratio"`` compares all pairs of groups."""
    if isinstance(compare, Comparison):
        return compare
    return Comparison(GapScale(compare).value)


@dataclass(frozen=True)
class Block:
    """Groups of one stratum, by position: all pairs of them, or each against the reference."""

    stratum: str
    groups: tuple[int, ...]
    reference: int | None = None
    direction: str = "both"

    @cached_property  # asked for once per pair where there are many groups
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The higher and the lower group of every gap that counts."""
        return tuple(pair for pair in permutations(self.groups, 2) if self._counts(*pair))

    def _counts(self, higher: int, lower: int) -> bool:
        """Say whether the question asks how far the second group is below the first."""
        if self.reference is None:
            return True
        if higher == self.reference:
            return self.direction != "above"
        return lower == self.reference and self.direction != "below"

    def rate_ranges(
        self, scale: GapScale, low: ArrayLike, high: ArrayLike, gap: float
    ) -> tuple[Array, Array]:
        """Return each group's range of rates, given the rate level's range and the largest gap.

        The rate level is the lowest rate of the block, or the reference's rate. ``low`` and
        ``high`` broadcast; the results have one more axis, the last, for the groups of the block.
        Ends are infinite where the rate may be anything.
        """
        low, high = (np.array(end)[..., None] for end in np.broadcast_arrays(low, high))
        # Without a reference the rate level is the lowest rate, so no rate lies below it.
        is_reference = np.array([group == self.reference for group in self.groups])
        starts_at_level = is_reference | (self.reference is None)
        # A direction that does not count (see Comparison) leaves its side of the range open.
        lowest_others = -np.inf if self.direction == "above" else scale.below(low, gap)
        highest_others = np.inf if self.direction == "below" else scale.above(high, gap)
        return (
            np.where(starts_at_level, low, lowest_others),
            np.where(is_reference, high, highest_others),
        )

    def largest_gap(self, scale: GapScale, low: Array, high: Array) -> Array:
        """Return the largest gap of rates that lie in these ranges; the last axis is the group."""
        if self.reference is not None:
            columns = {group: column for column, group in enumerate(self.groups)}
            # With a reference there are only two pairs per other group, so all are tried.
            higher, lower = np.array([[columns[g] for g in pair] for pair in self.pairs]).T
            return np.asarray(scale.gap(low[..., lower], high[..., higher]).max(axis=-1))
        # The highest upper end against the lowest lower end. Where one group has both, it is one of
        # them against the next group.
        lowest, next_lowest = np.moveaxis(np.partition(low, 1, axis=-1)[..., :2], -1, 0)
        next_highest, highest = np.moveaxis(np.partition(high, -2, axis=-1)[..., -2:], -1, 0)
        among_others = np.maximum(scale.gap(lowest, next_highest), scale.gap(next_lowest, highest))
        is_one_group = low.argmin(axis=-1) == high.argmax(axis=-1)
        return np.where(is_one_group, among_others, scale.gap(lowest, highest))

    def least_gap(self, scale: GapScale, low: Array, high: Array) -> Array:
        """Return the least gap of rates that lie in these ranges; the last axis is the group.

        It is not positive where rates without a gap fit into the ranges. Against a reference, two
        groups whose ranges are apart cannot both be near it, which is a bound of its own.
        """
        if self.reference is None:
            return scale.gap(high.min(axis=-1), low.max(axis=-1))
        # Two ranges force a gap if the upper end of one is below the lower end of the other.
        column = self.groups.index(self.reference)
        lowest_high = np.delete(high, column, axis=-1).min(axis=-1)
        highest_low = np.delete(low, column, axis=-1).max(axis=-1)
        gap_below = scale.gap(lowest_high, low[..., column])
        gap_above = scale.gap(high[..., column], highest_low)
        if self.direction == "below":
            return gap_below
        if self.direction == "above":
            return gap_above
        # The reference lies somewhere between two others, so one of them is half of their gap away.
        gap_between_others = scale.half_gap(scale.gap(lowest_high, highest_low))
        return np.maximum(np.maximum(gap_below, gap_above), gap_between_others)


@dataclass(frozen=True)
class ResolvedComparison:
    """A comparison applied to a list of groups: its blocks, and the groups that are in no block.

    Groups are positions in that list. Arrays of rates have the group as their last axis.

    Examples
    --------
    >>> import numpy as np
    >>> below = Comparison(against="A", direction="below").resolve(["A", "B", "C"])
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
        gaps = []
        for block in self.blocks:
            # Within a block groups are counted by their place in it.
            block_low = low[..., block.groups]
            block_high = high[..., block.groups]
            gaps.append(block.largest_gap(self.scale, block_low, block_high))
        return np.asarray(np.maximum(np.max(gaps, axis=0), 0.0))

    def least_gap(self, low: Array, high: Array) -> Array:
        """Return the least gap of rates that lie in these ranges."""
        gaps = []
        for block in self.blocks:
            block_low = low[..., block.groups]
            block_high = high[..., block.groups]
            gaps.append(block.least_gap(self.scale, block_low, block_high))
        return np.asarray(np.maximum(np.max(gaps, axis=0), 0.0))
