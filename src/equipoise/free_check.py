"""What past data alone establish, at no cost.

As the unknown ``r = P[Y=1 | f=0]`` of every group ranges over [0, 1], Delta ranges over an
interval. If it lies below ``gamma + epsilon`` or above ``gamma``, the audit ends before it starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from equipoise.assume import Assume, Box, assumed_limits, contradiction, within
from equipoise.cells import Cells, GroupCells
from equipoise.comparison import GapScale
from equipoise.errors import BadData, few_of, require_kind
from equipoise.finding import Finding, Interval, separation
from equipoise.history.past import Past, require_past
from equipoise.question import Question, Verdict, require_asked
from equipoise.rates import (
    METRICS,
    RATES,
    Band,
    Bands,
    bands_from_cells,
    clopper_pearson,
    difference,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "ASSUMES_ALIKE",
    "ASSUMES_EXACT",
    "ASSUMES_LIKE_KNOWN",
    "ASSUMES_RANDOM_ACCEPTS",
    "Check",
    "JointGap",
    "assumptions_of",
    "bands_from_past",
    "bounds_of_a_piece",
    "check",
    "difference_bounds",
    "free_interval",
    "free_verdict",
    "rate_intervals",
    "simultaneous",
]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

_NARROWEST = 1e-7  # cells of levels are not halved any further
_MOST_CELLS = 100_000


class JointGap:
    """Two rates of every group as its r ranges over a box.

    A gap d of the first rate is possible where, for some level t, every group's rate fits between
    t and d above it. For t in a cell the two constraints are relaxed by the cell's two ends; what
    is impossible then is impossible for every t of the cell, others are halved.

    Parameters
    ----------
    falling
        Whether the first rate falls in r.
    first, second
        The rates' bands per group.
    boxes
        Where each group's r lies.
    """

    def __init__(
        self,
        falling: bool,
        first: Mapping[str, Band],
        second: Mapping[str, Band],
        boxes: Mapping[str, tuple[float, float]],
        compare: GapScale,
    ) -> None:
        self._falling, self._compare = falling, compare
        self._first, self._second = (Band.stack([b[g] for g in first]) for b in (first, second))
        self._start, self._end = np.array([boxes[g] for g in first]).T

    def exceeds(self, gap: float) -> bool:
        """Say whether both gaps are certainly larger than ``gap``, whatever r in the boxes."""
        low, high = _cells()
        while True:
            middle = (low + high) / 2.0
            if self._possible(middle, middle, gap).any():
                return False
            live = self._possible(low, high, gap)
            if not live.any():
                return True
            if (high - low).max() < _NARROWEST or live.sum() > _MOST_CELLS:
                return False
            low, high = _halves(low, middle, high, live)

    def least(self, floor: float, ceiling: float, tolerance: float) -> float:
        """Return the least d that both gaps can have at once, never too much.

        ``floor`` is the least d of the rates one by one, which often says as much.
        """
        if not self.exceeds(floor + tolerance):
            return floor
        least, largest = floor + tolerance, ceiling
        while largest - least > tolerance:
            middle = (least + largest) / 2.0
            least, largest = (middle, largest) if self.exceeds(middle) else (least, middle)
        return least

    def _possible(self, t_low: Array, t_high: Array, d: float) -> Flags:
        top = self._compare.above(t_high, d)
        since, until = self._first.between(t_low[:, None], top[:, None], falling=self._falling)
        since, until = np.maximum(self._start, since), np.minimum(self._end, until)
        at = np.clip(np.stack([since, until]), 0.0, 1.0)
        lowest, highest = self._second.low.value(at), self._second.high.value(at)
        gap = self._compare.gap(
            highest.max(axis=0).min(axis=-1),
            lowest.min(axis=0).max(axis=-1),
        )
        return np.asarray((since <= until).all(axis=-1) & (gap <= d))


def _cells() -> tuple[Array, Array]:
    edges = np.linspace(0.0, 1.0, 65)
    return edges[:-1], edges[1:]


def _halves(low: Array, middle: Array, high: Array, live: Flags) -> tuple[Array, Array]:
    return (
        np.concatenate([low[live], middle[live]]),
        np.concatenate([middle[live], high[live]]),
    )


ASSUMES_ALIKE = (
    "past and present people come from the same population, and past rows are independent"
)
ASSUMES_LIKE_KNOWN = (
    "outcomes of approved people that are not known yet are like the known ones of the same group "
    "(and cohort)"
)
ASSUMES_RANDOM_ACCEPTS = (
    "the test programme accepted every denied person of a group with the same chance (untested, "
    "unless the notes on the past data say otherwise)"
)
ASSUMES_EXACT = "the past data are so many that their shares are the population's"


@dataclass(frozen=True)
class Check(Finding):
    """What is known for free, next to what a toolkit that ignores the problem would say.

    Attributes
    ----------
    unlimited
        The interval for Delta if the past shares were the population's: what no amount of past
        data can narrow further.
    approved_only
        Delta computed from approved rows alone, None where a denominator is empty.
    denied_as_failures
        Delta computed with every denial counted as a failure, None where a denominator is empty.

    Examples
    --------
    >>> from equipoise import History, check
    >>> counts = {"approved_positive": 60, "approved_negative": 20, "denied": 20}
    >>> found = check(History.from_cells({"A": counts, "B": counts}), Question("equal_opportunity"))
    >>> found.approved_only, found.lower, round(found.upper, 2)
    (0.0, 0.0, 0.37)
    """

    unlimited: Interval = field(default_factory=lambda: Interval(0.0, 1.0))
    approved_only: float | None = None
    denied_as_failures: float | None = None

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *self._more()])

    def opinion(self, delta: float | None) -> str:
        """Say what to think of an answer that somebody gives in place of the interval."""
        if delta is None:
            return "no answer"
        if not self.lower <= delta <= self.upper:
            return "wrong: the data rule it out"
        if self.lower == self.upper:
            return "right"
        return "a guess: the data allow others"

    def _more(self) -> list[str]:
        return [
            f"  unlimited   past data without end would leave Delta in {self.unlimited}",
            f"  naive       approved rows only: {_shown(self.approved_only)}; "
            f"denials as failures: {_shown(self.denied_as_failures)}",
        ]

    def _lines(self) -> Sequence[str]:
        return [*super()._lines(), *self._more()]

    def _draw(self, ax: Axes) -> None:
        super()._draw(ax)
        naive = (
            (self.approved_only, "x", "approved rows only"),
            (self.denied_as_failures, "+", "denials as failures"),
        )
        for value, mark, words in naive:
            if value is not None:
                ax.plot([value], [0], mark, color="black", ms=9, label=words, clip_on=False)
        ax.legend(loc="lower left", title="naive answers", fontsize=8.5)


def bands_from_past(past: Past, metric: str, alpha: float | None) -> Bands:
    """Return the bands of a metric's rates.

    Parameters
    ----------
    alpha
        Each of the two curves of a band is on its right side with probability at least
        ``1 - alpha`` (exact, for any sample size). None reads the counts as the population; so
        does a past that is exact.
    """
    return bands_from_cells(past.cells, metric, None if past.exact else alpha)


def check(history: Past, question: Question, *, assume: Assume | None = None) -> Check:
    """Return what past data alone say about the question, at no cost.

    The reported interval holds with probability at least ``1 - delta`` whatever the population
    (exact Clopper-Pearson sets, simultaneous over groups and rates); the verdict is wrong with at
    most the question's error probability.

    Parameters
    ----------
    assume
        What may be taken for granted of the denied; nothing if None. The answer holds under it, and
        is INCONCLUSIVE where past data contradict it.

    Examples
    --------
    >>> from equipoise import History
    >>> past = History.from_cells({
    ...     "A": {"approved_positive": 700, "approved_negative": 50, "denied": 250},
    ...     "B": {"approved_positive": 300, "approved_negative": 50, "denied": 650},
    ... })
    >>> check(past, Question("equal_opportunity")).verdict  # the denied may be anything
    <Verdict.INCONCLUSIVE: 'INCONCLUSIVE'>
    >>> check(past, Question("demographic_parity")).verdict  # all that it needs is known
    <Verdict.UNFAIR: 'UNFAIR'>
    """
    require_past(history)
    require_asked(question)
    if assume is not None:
        require_kind("assume", assume, Assume, "an Assume, such as Assume(denied_no_better=True)")
    cells = history.cells
    bands, boxes, limits = _bands(history, question, assume)
    against = contradiction(boxes, limits)
    boxes = within(boxes, limits)
    lower, upper = difference_bounds(bands, boxes, compare=question.comparison)
    verdict = (
        Verdict.INCONCLUSIVE
        if against
        else free_verdict(history, question, 1.0, use_labels=True, assume=assume)
    )
    rates = rate_intervals(bands, boxes)
    return Check(
        question=question,
        verdict=verdict,
        lower=lower,
        upper=upper,
        reason=against
        or _reason(verdict, lower, upper, question, assume, _has_random_accepts(cells)),
        rates=rates,
        decided_by=separation(rates) if verdict is Verdict.UNFAIR else None,
        missing=_missing(verdict, cells, question, bands),
        assumptions=(*assumptions_of(history), *_lines_of(assume)),
        warnings=(against,) if against else (),
        unlimited=Interval(*_unlimited(history, question, assume)),
        approved_only=_naive(
            {
                g: GroupCells(c.approved_positive, c.approved_negative, 0)
                for g, c in cells.items()
                if c.approved > c.approved_unknown
            },
            question,
        ),
        denied_as_failures=_naive(dict(cells.alike), question),
    )


def _unlimited(history: Past, question: Question, assume: Assume | None) -> tuple[float, float]:
    """Return the interval for Delta if the past's shares were the population's."""
    limits = assumed_limits(history.cells, assume, None)
    return difference_bounds(
        bands_from_past(history, question.metric, None),
        within(dict.fromkeys(history.cells, (0.0, 1.0)), limits),
        compare=question.comparison,
        tolerance=1e-4,
    )


def assumptions_of(history: Past) -> tuple[str, ...]:
    """Return what is assumed of past data."""
    cells = history.cells.values()
    return (
        ASSUMES_EXACT if history.exact else ASSUMES_ALIKE,
        *([ASSUMES_LIKE_KNOWN] if any(c.cohorts for c in cells) else []),
        *([ASSUMES_RANDOM_ACCEPTS] if any(c.random_accepts for c in cells) else []),
    )


def _lines_of(assume: Assume | None) -> tuple[str, ...]:
    return () if assume is None else tuple(f"{x} (granted)" for x in assume.lines)


def free_interval(history: Past, question: Question) -> tuple[float, float]:
    """Return the interval for Delta that :func:`check` reports if nothing is assumed."""
    bands, boxes, _ = _bands(history, question, None)
    return difference_bounds(bands, boxes, compare=question.comparison)


def free_verdict(
    history: Past,
    question: Question,
    share: float,
    *,
    use_labels: bool = False,
    assume: Assume | None = None,
) -> Verdict:
    """Return the verdict that follows from past data, using ``share`` of each error level.

    A wrong FAIR needs one true piece (a rate, a group above, a group below) to be missed, so two
    one-sided bounds at half the level suffice for any number of groups. A wrong UNFAIR needs all
    rates of all groups to be bounded on both sides at once. With ``use_labels`` the outcomes of a
    test programme bound every r as well: two more bounds for FAIR, two per group for UNFAIR. If the
    denied are no better than the approved, two more precisions for FAIR, all of them for UNFAIR.
    """
    return _free_verdict(history.cells, history.exact, question, share, use_labels, assume)


@lru_cache(maxsize=64)  # many simulated audits start from the same population
def _free_verdict(
    cells: Cells,
    exact: bool,
    question: Question,
    share: float,
    use_labels: bool,
    assume: Assume | None,
) -> Verdict:
    metric, compare = question.metric, question.comparison
    random_accepts = use_labels and _has_random_accepts(cells)
    contradictory = False

    def known(alpha: float) -> tuple[Bands, Box]:
        nonlocal contradictory
        bands = bands_from_cells(cells, metric, None if exact else alpha)
        boxes = label_boxes(cells, alpha) if random_accepts else dict.fromkeys(cells, (0.0, 1.0))
        limits = assumed_limits(cells, assume, None if exact else alpha)
        contradictory |= contradiction(boxes, limits) is not None
        return bands, within(boxes, limits)

    _, upper = _one_by_one(
        *known(share * question.level_wrong_fair / bounds_of_a_piece(assume, random_accepts)),
        compare,
    )
    both_sided = known(
        simultaneous(
            share * question.level_wrong_unfair, cells, metric, labels=random_accepts, assume=assume
        )
    )
    if contradictory:
        return Verdict.INCONCLUSIVE
    fair, unfair = upper <= question.threshold, _exceeds(*both_sided, question.gamma, compare)
    if fair and unfair:  # both are right; name the nearer one
        lower, _ = difference_bounds(*both_sided, compare=compare)
        fair = lower + upper <= 2.0 * question.gamma + question.epsilon
    if fair:
        return Verdict.FAIR
    return Verdict.UNFAIR if unfair else Verdict.INCONCLUSIVE


def label_boxes(cells: Cells, alpha: float) -> dict[str, tuple[float, float]]:
    """Return bounds of every group's r from a test programme, each missed with at most ``alpha``.

    An outcome that is not known may be either.
    """
    boxes = {}
    for group, counts in cells.items():
        good, bad, unknown = counts.random_accepts or (0.0, 0.0, 0.0)
        people = good + bad + unknown
        low, _ = clopper_pearson(good, people, alpha)
        _, high = clopper_pearson(good + unknown, people, alpha)
        boxes[group] = (low, high)
    return boxes


def _has_random_accepts(cells: Cells) -> bool:
    return any(counts.random_accepts for counts in cells.values())


def difference_bounds(
    bands: Bands,
    boxes: Box | None = None,
    *,
    compare: GapScale = GapScale.DIFFERENCE,
    tolerance: float = 1e-6,
) -> tuple[float, float]:
    """Return certified bounds of Delta as every group's r ranges over its box ([0, 1] by default).

    The lower bound never exceeds the true infimum; for one or two rates it is within ``tolerance``
    of it.
    """
    ends = dict.fromkeys(next(iter(bands.values())), (0.0, 1.0)) if boxes is None else boxes
    floor, ceiling = _one_by_one(bands, ends, compare)
    for pair in _pairs_of_rates(bands, ends, compare):
        floor = max(floor, pair.least(floor, ceiling, tolerance))
    return min(floor, 1.0), min(ceiling, 1.0)


def _exceeds(bands: Bands, boxes: Box, gap: float, compare: GapScale) -> bool:
    """Say whether Delta is certainly larger than a gap, which takes less than its bounds."""
    floor, _ = _one_by_one(bands, boxes, compare)
    return floor > gap or any(pair.exceeds(gap) for pair in _pairs_of_rates(bands, boxes, compare))


def _pairs_of_rates(bands: Bands, boxes: Box, compare: GapScale) -> Iterator[JointGap]:
    for one, other in combinations(bands, 2):
        yield JointGap(RATES[one].falls, bands[one], bands[other], boxes, compare)


def _one_by_one(bands: Bands, boxes: Box, compare: GapScale) -> tuple[float, float]:
    """Return bounds of Delta from each rate alone; the upper one is exact."""
    floor, ceiling = 0.0, 0.0
    for by_group in bands.values():
        ranges = [_range_over(band, *boxes[group]) for group, band in by_group.items()]
        lowest, highest = min(high for _, high in ranges), max(low for low, _ in ranges)
        floor = max(floor, float(compare.gap(lowest, highest)))
        ceiling = max(ceiling, _largest_gap(ranges, compare))
    return floor, ceiling


def rate_intervals(bands: Bands, boxes: Box | None = None) -> dict[str, dict[str, Interval]]:
    """Return the range of every group's rates as r ranges over its box."""
    return {
        rate: {
            group: Interval(*_range_over(band, *((0.0, 1.0) if boxes is None else boxes[group])))
            for group, band in by_group.items()
        }
        for rate, by_group in bands.items()
    }


def _range_over(band: Band, start: float, end: float) -> tuple[float, float]:
    low = min(float(band.low.value(start)), float(band.low.value(end)))
    high = max(float(band.high.value(start)), float(band.high.value(end)))
    return low, high


def _largest_gap(ranges: Sequence[tuple[float, float]], compare: GapScale) -> float:
    return max(
        (float(compare.gap(low[0], high[1])) for high, low in permutations(ranges, 2)),
        default=0.0,
    )


def _bands(
    history: Past, question: Question, assume: Assume | None
) -> tuple[Bands, Box, Box | None]:
    """Return the rates' bands, where labels put every r, and where it is assumed to be."""
    cells, metric = history.cells, question.metric
    random_accepts = _has_random_accepts(cells)
    alpha = simultaneous(question.delta, cells, metric, labels=random_accepts, assume=assume)
    boxes = label_boxes(cells, alpha) if random_accepts else dict.fromkeys(cells, (0.0, 1.0))
    limits = assumed_limits(cells, assume, None if history.exact else alpha)
    return bands_from_past(history, metric, alpha), boxes, limits


def simultaneous(
    level: float,
    cells: Cells,
    metric: str,
    *,
    labels: bool = False,
    assume: Assume | None = None,
) -> float:
    """Return the level of one bound when all rates of all groups get two at once.

    With ``labels`` so does every group's r, and one more where its precision bounds it.
    """
    per_group = 2 * (len(METRICS[metric].rates) + labels) + _by_precision(assume)
    return level / (per_group * len(cells))


def bounds_of_a_piece(assume: Assume | None = None, labels: bool = False) -> int:
    """Return how many bounds of past data a truth that is unfair by one rate and pair needs."""
    return 2 * (1 + labels + _by_precision(assume))


def _by_precision(assume: Assume | None) -> bool:
    return assume is not None and assume.denied_no_better


def _naive(cells: Mapping[str, GroupCells], question: Question) -> float | None:
    if not cells:
        return None
    try:
        nobody = dict.fromkeys(cells, 0.0)
        return difference(Cells(cells), nobody, question.metric, question.compare)
    except BadData:
        return None


def _reason(
    verdict: Verdict,
    lower: float,
    upper: float,
    question: Question,
    assume: Assume | None,
    random_accepts: bool,
) -> str:
    whatever = "under what is assumed" if assume else "whatever the denied would have done"
    if random_accepts and verdict is not Verdict.INCONCLUSIVE:
        bound = (
            f"at most {question.threshold:g}"
            if verdict is Verdict.FAIR
            else f"above {question.gamma:g}"
        )
        return f"with what the test programme says of the denied, Delta is {bound}"
    if verdict is Verdict.FAIR:
        return f"{whatever}, Delta is at most {question.threshold:g}"
    if verdict is Verdict.UNFAIR:
        return f"{whatever}, Delta is above {question.gamma:g}"
    return f"the past data leave Delta anywhere between {lower:.3f} and {upper:.3f}"


def _missing(verdict: Verdict, cells: Cells, question: Question, bands: Bands) -> tuple[str, ...]:
    if verdict is not Verdict.INCONCLUSIVE:
        return ()
    needs_labels = [
        g for g in cells if any(by_group[g].depends_on_r for by_group in bands.values())
    ]
    unknown = [f"outcomes of {cells.unknown:,g} approved people"] if cells.unknown else []
    if needs_labels:
        return (f"outcomes of denied people in {few_of(needs_labels)}", *unknown)
    if unknown:
        return tuple(unknown)
    return (f"more past rows: {METRICS[question.metric].words} needs no outcome of the denied",)


def _shown(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"
