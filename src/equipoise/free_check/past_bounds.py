"""What past data say of every group's rates and of its r, at a given error level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from equipoise.errors import InvalidInput
from equipoise.finding import GroupShares, Interval
from equipoise.free_check.assumptions import Assume, RangesOfR
from equipoise.free_check.deciders import BaseRateBounds, bound_base_rate, decider_band
from equipoise.history.past import Past
from equipoise.metrics import METRICS
from equipoise.rates import Bands, band_from_counts, clopper_pearson, good_share


@dataclass(frozen=True)
class CheckInputs:
    """What an answer from past data alone rests on.

    Attributes
    ----------
    past
        Counts of past decisions.
    uses_random_accepts
        Whether the outcomes of random accepts bound every group's r.
    assume
        What is granted of the denied.
    uses_deciders
        Whether deciders get cases as if at random, which bounds every group's P[Y=1].

    Raises
    ------
    InvalidInput
        If deciders are used together with random accepts or an assumption.
    """

    past: Past
    uses_random_accepts: bool = False
    assume: Assume = field(default_factory=Assume)
    uses_deciders: bool = False

    def __post_init__(self) -> None:
        if self.uses_deciders and (self.uses_random_accepts or self.assume):
            other = "random accepts" if self.uses_random_accepts else "assume"
            raise InvalidInput(
                f"'deciders' and {other!r} each bound how many of the denied would do well, and "
                "there is no proof for both together; leave out one"
            )


@dataclass(frozen=True)
class PastBounds:
    """What past data say at one error level.

    Attributes
    ----------
    bands
        Every rate's band in every group. With deciders a band is over the share of good outcomes in
        place of r, from its least (0) to its largest value (1).
    r_ranges
        Where every group's r lies, or, with deciders, [0, 1].
    contradiction
        Which data contradict what is assumed, in a sentence; None if none do.
    base_rates
        With deciders: where every group's share of good outcomes lies.
    """

    bands: Bands
    r_ranges: RangesOfR
    contradiction: str | None = None
    base_rates: Mapping[str, Interval] = field(default_factory=dict)


def past_bounds_at(inputs: CheckInputs, metric: str, alpha: float) -> PastBounds:
    """Return what past data say if each bound may fail with probability ``alpha``."""
    past = inputs.past
    bands = bands_from_past(past, metric, alpha)
    observed_ranges = _observed_r_ranges(inputs, alpha)
    # The sample is the population if the past is exact; the random accepts are always a sample.
    error_level = None if past.exact else alpha
    r_ranges = _intersect(observed_ranges, inputs.assume.limits(past.cells, error_level))
    base_rates = _bound_base_rates(inputs, error_level)
    contradiction = _contradiction_of_assumption(r_ranges) or _contradiction_of_deciders(base_rates)
    if contradiction is not None:  # then the assumption is left out of the reported ranges
        return PastBounds(bands, observed_ranges, contradiction)
    if not inputs.uses_deciders:
        return PastBounds(bands, r_ranges)
    base_rate_intervals = {group: bounds.interval for group, bounds in base_rates.items()}
    decider_bands = _bands_over_base_rates(past, metric, base_rate_intervals, error_level)
    return PastBounds(decider_bands, r_ranges, base_rates=base_rate_intervals)


def bands_from_past(past: Past, metric: str, alpha: float | None) -> Bands:
    """Return the bands of a metric's rates.

    Each of the two curves of a band is on its right side with probability at least ``1 - alpha``
    (exact, for any sample size). The counts are the population if the past is exact, or alpha None.
    """
    error_level = None if past.exact else alpha
    bands = {}
    for rate in METRICS[metric].rates:
        bands[rate.name] = {
            group: band_from_counts(rate, counts, error_level)
            for group, counts in past.cells.items()
        }
    return bands


def group_shares(past: Past, alpha: float, r: Mapping[str, Interval]) -> dict[str, GroupShares]:
    """Return what is established of every group's confusion matrix, from which every rate follows.

    Parameters
    ----------
    past
        Counts of past decisions.
    alpha
        The probability with which each of four bounds per group may fail: the share that is denied
        and the share of good outcomes among the approved, each from below and from above.
    r
        Group -> where its share of good outcomes among the denied lies.
    """
    error_level = None if past.exact else alpha
    shares = {}
    for group, counts in past.cells.items():
        denied_low, denied_high = clopper_pearson(counts.denied, counts.total, error_level)
        good_low, good_high = good_share(counts, error_level)
        imputed = counts.like_known
        good_estimate = imputed.approved_positive / imputed.approved if imputed.approved else None
        shares[group] = GroupShares(
            denied=Interval(denied_low, denied_high, counts.denied / counts.total),
            approved_good=Interval(good_low, good_high, good_estimate),
            denied_good=r[group],
        )
    return shares


def _observed_r_ranges(inputs: CheckInputs, alpha: float) -> RangesOfR:
    """Return where every group's r lies by the outcomes of random accepts, else [0, 1]."""
    r_ranges = {}
    for group, counts in inputs.past.cells.items():
        good, bad, unknown = 0.0, 0.0, 0.0
        if inputs.uses_random_accepts and counts.random_accepts:
            good, bad, unknown = counts.random_accepts
        # An unknown outcome may be either, so it widens the range on both sides.
        r_ranges[group] = clopper_pearson(good, good + bad + unknown, alpha, unknown)
    return r_ranges


def _intersect(observed: RangesOfR, assumed: RangesOfR) -> RangesOfR:
    """Return the ranges that keep to both; one whose ends are reversed is empty."""
    r_ranges = {}
    for group, (assumed_low, assumed_high) in assumed.items():
        observed_low, observed_high = observed[group]
        r_ranges[group] = max(observed_low, assumed_low), min(observed_high, assumed_high)
    return r_ranges


def _bound_base_rates(inputs: CheckInputs, error_level: float | None) -> dict[str, BaseRateBounds]:
    """Return where every group's share of good outcomes lies by its deciders, if they are used."""
    if not inputs.uses_deciders:
        return {}
    deciders_by_group = zip(inputs.past.cells, inputs.past.deciders, strict=True)
    return {group: bound_base_rate(deciders, error_level) for group, deciders in deciders_by_group}


def _bands_over_base_rates(
    past: Past, metric: str, base_rates: Mapping[str, Interval], error_level: float | None
) -> Bands:
    bands = {}
    for rate in METRICS[metric].rates:
        bands[rate.name] = {
            group: decider_band(rate, counts, base_rates[group], error_level)
            for group, counts in past.cells.items()
        }
    return bands


def _contradiction_of_assumption(r_ranges: RangesOfR) -> str | None:
    for group, (r_low, r_high) in r_ranges.items():
        if r_low > r_high:
            return (
                f"what is assumed does not hold for {group}: at least {r_low:.3f} and at most "
                f"{r_high:.3f} of its denied would do well, by the data and by what is assumed"
            )
    return None


def _contradiction_of_deciders(base_rates: Mapping[str, BaseRateBounds]) -> str | None:
    for group, bounds in base_rates.items():
        if bounds.interval.lower > bounds.interval.upper:
            return (
                f"cases do not fall to deciders as if at random in {group}: at least "
                f"{bounds.interval.lower:.3f} of all cases would do well by those of "
                f"{bounds.lower_from}, at most {bounds.interval.upper:.3f} by those of "
                f"{bounds.upper_from}"
            )
    return None
