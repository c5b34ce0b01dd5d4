"""What past data say of every group's rates and of its r, at a given error level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from equipoise.errors import InvalidInput
from equipoise.finding import GroupShares, Interval
from equipoise.free_check.assumptions import Assume, RangesOfR
from equipoise.free_check.deciders import bound_base_rate, decider_band
from equipoise.history.past import Past
from equipoise.metrics import METRICS
from equipoise.rates import Bands, band_from_counts, clopper_pearson, good_share


@dataclass(frozen=True)
class CheckInputs:
    """What an answer from past data alone rests on."""

    past: Past
    labels: bool = False  # whether the outcomes of random accepts bound every r
    assume: Assume = field(default_factory=Assume)  # what is granted of the denied
    deciders: bool = False  # whether they get cases as if at random, which bounds P[Y=1]

    def __post_init__(self) -> None:
        if self.deciders and (self.labels or self.assume):
            other = "random accepts" if self.labels else "assume"
            raise InvalidInput(
                f"'deciders' and {other!r} each bound how many of the denied would do well, and "
                "there is no proof for both together; leave out one"
            )


@dataclass(frozen=True)
class PastBounds:
    """Every rate's band, where each r lies, and which data contradict what is assumed, if any do.

    With deciders a band is over the share of good outcomes in place of r, from least to largest.
    """

    bands: Bands
    boxes: RangesOfR
    contradiction: str | None = None
    base_rates: Mapping[str, Interval] = field(default_factory=dict)


def past_bounds_at(given: CheckInputs, metric: str, alpha: float) -> PastBounds:
    """Return what past data say if each bound may fail with probability ``alpha``."""
    past, cells = given.past, given.past.cells
    level, bands = None if past.exact else alpha, bands_from_past(past, metric, alpha)
    boxes, limits = {}, given.assume.limits(cells, level)
    for group, counts in cells.items():  # an unknown outcome may be either
        good, bad, unknown = (given.labels and counts.random_accepts) or (0.0, 0.0, 0.0)
        boxes[group] = clopper_pearson(good, good + bad + unknown, alpha, unknown)
    inside = {g: (max(boxes[g][0], lo), min(boxes[g][1], hi)) for g, (lo, hi) in limits.items()}
    by_group = zip(cells, past.deciders, strict=True) if given.deciders else ()
    found = {group: bound_base_rate(own, level) for group, own in by_group}
    against = [
        f"what is assumed does not hold for {group}: at least {least:.3f} and at most {most:.3f} "
        "of its denied would do well, by the data and by what is assumed"
        for group, (least, most) in inside.items()
        if least > most
    ] + [
        f"cases do not fall to deciders as if at random in {group}: at least {q.lower:.3f} of all "
        f"cases would do well by those of {by_good}, at most {q.upper:.3f} by those of {by_bad}"
        for group, (q, by_good, by_bad) in found.items()
        if q.lower > q.upper
    ]
    if against:
        return PastBounds(bands, boxes, against[0])
    base_rates = {group: q for group, (q, _, _) in found.items()}
    if base_rates:
        bands = {
            rate.name: {g: decider_band(rate, n, base_rates[g], level) for g, n in cells.items()}
            for rate in METRICS[metric].rates
        }
    return PastBounds(bands, inside, None, base_rates)


def bands_from_past(past: Past, metric: str, alpha: float | None) -> Bands:
    """Return the bands of a metric's rates.

    Each of the two curves of a band is on its right side with probability at least ``1 - alpha``
    (exact, for any sample size). The counts are the population if the past is exact, or alpha None.
    """
    level = None if past.exact else alpha
    return {
        rate.name: {group: band_from_counts(rate, n, level) for group, n in past.cells.items()}
        for rate in METRICS[metric].rates
    }


def group_shares(history: Past, alpha: float, r: Mapping[str, Interval]) -> dict[str, GroupShares]:
    """Return what is established of every group's confusion matrix, from which every rate follows.

    Each of four bounds per group fails with probability at most ``alpha``.
    """
    found = {}
    for group, counts in history.cells.items():
        level, likely = None if history.exact else alpha, counts.like_known
        denied = clopper_pearson(counts.denied, counts.total, level)
        known = likely.approved_positive / likely.approved if likely.approved else None
        found[group] = GroupShares(
            Interval(*denied, counts.denied / counts.total),
            Interval(*good_share(counts, level), known),
            r[group],
        )
    return found
