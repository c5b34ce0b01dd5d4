"""The rule by which one group's people are asked for labels, by score and price.

Labels bought so far calibrate the score (:func:`calibrate_score`): a logistic curve gives the
order, strata of it the rates, both drawn towards one common rate as far as labels are few. With
rates right, a person's observation has variance ``Var m + E[r(1-r)/pi]`` and costs
``c_feat + E[pi price (1-r)]`` on average. Their product is least for sampling probabilities
proportional to ``sqrt(r / price)``. :func:`fit_sampling_rule` searches the factor of proportion
``kappa``, with a floor, since rare large observations make bets small, and a limit on people scored
per label.

A wrong rate is a wrong guess: it costs money, and never touches the guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from equipoise._arrays import Array, Ints
from equipoise.evidence.observation import BetScale

MIN_LABELS = 15  # labels of a group before its score is used
MIN_LABELS_PER_OUTCOME = 3
STRATA_COUNT = 6
MIN_SLOPE_SIGNIFICANCE = 2.0  # the slope's square over its variance, at least
SLOPE_SHRINKAGE = 0.5  # standard errors taken off the slope
CURVE_LABELS = 12.0  # labels that the curve's rate counts as, in a stratum
COMMON_RATE_LABELS = 3.0  # labels of the rarer outcome that the common rate counts as
RATE_RANGE = (0.003, 0.997)  # of the rates of strata: nobody's outcome is certain
MIN_CHANCE_SHARE = 0.15  # the least chance of asking, as a share of the largest
_KAPPAS = np.geomspace(0.02, 3.0, 30)  # factors to try: the largest chance, before it is cut at 1
_LOGISTIC_STEPS = 6
_TINY = 1e-300  # in place of 0 in a denominator


@dataclass(frozen=True)
class ScoredPeople:
    """People of one group who were scored: arrays with one entry each, scores NaN for none."""

    scores: Array
    prices: Array


@dataclass(frozen=True)
class LabelledScores:
    """People of one group whose outcome is known: arrays with one entry each, NaN for no score."""

    scores: Array
    outcomes: Array


@dataclass(frozen=True)
class SamplingLimits:
    """What a sampling rule must keep to.

    Parameters
    ----------
    people_per_label
        The largest number of people scored per label.
    max_cost_share
        The largest cost, as a share of what asking everybody costs for as much information.
    max_price
        The largest price that a person to come may have; None for the largest seen so far.
    feature_price
        What a score costs.
    """

    people_per_label: float
    max_cost_share: float
    max_price: float | None
    feature_price: float


@dataclass(frozen=True)
class SamplingRule:
    """One group's rule: guess and chance by score and price, and the bets' scale that goes with it.

    Whatever score and price come, a chance is at least ``min_chances`` of the stratum and so an
    observation within the bet scale's range.
    """

    strata: Strata
    kappa: float
    min_chances: Array  # per stratum
    bet_scale: BetScale
    variance: float  # as expected, not inflated by what was observed

    def guess_and_chance(self, scores: Array, prices: Array) -> tuple[Array, Array]:
        """Return everybody's guessed outcome, m, and chance of being asked, pi."""
        strata = self.strata.find_strata(scores)
        guesses = self.strata.rates[strata]
        chances = np.clip(_raw_chance(self.kappa, guesses, prices), self.min_chances[strata], 1.0)
        return guesses, chances


def fit_sampling_rule(
    labels: LabelledScores,
    people: ScoredPeople,
    limits: SamplingLimits,
    *,
    inflation: float = 1.0,
) -> SamplingRule | None:
    """Return the rule that costs least by the people seen; None if asking everybody is as good.

    Parameters
    ----------
    labels
        The labels that calibrate the score.
    people
        The people for whom the rule should be cheap, at least one if there are labels.
    limits
        What the rule must keep to.
    inflation
        By which factor observations turned out wider than rules before this one expected.

    Examples
    --------
    >>> scores = np.linspace(0.0, 1.0, 200)
    >>> labels = LabelledScores(scores, np.float64(scores + np.sin(50.0 * scores) / 4.0 > 0.7))
    >>> people = ScoredPeople(scores, np.ones(200))
    >>> rule = fit_sampling_rule(labels, people, SamplingLimits(8.0, 0.85, None, 0.0))
    >>> _, chances = rule.guess_and_chance(np.array([0.1, 0.9]), np.ones(2))
    >>> chances.round(2).tolist()
    [0.04, 0.27]
    """
    strata = calibrate_score(people.scores, labels)
    if strata is None:
        return None
    rates = strata.rates[strata.find_strata(people.scores)]
    uniform_cost = limits.feature_price + float((people.prices * (1.0 - rates)).mean())
    if uniform_cost <= 0.0:  # labels are free, so nothing is saved by not asking
        return None
    candidate = _cheapest_candidate(rates, people.prices, limits)
    if candidate is None:
        return None
    mean = float(rates.mean())
    label_variance = mean * (1.0 - mean)
    uniform_work = max(label_variance * uniform_cost, _TINY)
    # Written so that a work which is not a number is refused as well.
    if not candidate.work * inflation / uniform_work <= limits.max_cost_share:
        return None
    # Bets are sized for whoever may come next, at the highest price and so the least chance: only
    # thus is their size fixed before the next person's score is read (guarantees, 3.16).
    max_price = limits.max_price or float(people.prices.max())
    min_chances = candidate.min_chances(strata.rates, max_price)
    wide_variance = candidate.variance * inflation
    bet_scale = BetScale(
        mean=mean,
        variance=wide_variance,
        third_moment=_third_moment(rates, candidate.chances, mean),
        low=float((strata.rates * (1.0 - 1.0 / min_chances)).min()),
        high=float((strata.rates + (1.0 - strata.rates) / min_chances).max()),
        price=candidate.cost * wide_variance / label_variance,
        share_asked=float(candidate.chances.mean()),
    )
    return SamplingRule(strata, candidate.kappa, min_chances, bet_scale, candidate.variance)


@dataclass(frozen=True)
class _Candidate:
    """What a rule with one ``kappa`` would be like for the people seen."""

    kappa: float
    floor: float  # the least chance of asking anybody
    chances: Array  # of asking each person
    variance: float  # of an observation
    cost: float  # of an observation, on average

    @property
    def work(self) -> float:
        """Cost times variance: what information costs, in any unit."""
        return self.variance * self.cost

    def min_chances(self, rates: Array, max_price: float) -> Array:
        """Return the least chance in strata of these rates, whatever the price."""
        return np.clip(_raw_chance(self.kappa, rates, np.array(max_price)), self.floor, 1.0)


def _cheapest_candidate(rates: Array, prices: Array, limits: SamplingLimits) -> _Candidate | None:
    """Return the candidate of the least work; None if all of them score too many people."""
    largest_chance = float(_raw_chance(1.0, rates, prices).max())
    kappas = _KAPPAS / max(largest_chance, _TINY)
    # One row per kappa, one column per person.
    chances = np.minimum(_raw_chance(kappas[:, None], rates, prices), 1.0)
    floors = MIN_CHANCE_SHARE * chances.max(axis=1)
    chances = np.maximum(chances, floors[:, None])
    variances = (rates * (1.0 - rates) / chances).mean(axis=1) + rates.var()
    costs = limits.feature_price + (chances * prices * (1.0 - rates)).mean(axis=1)
    keeps_pace = chances.mean(axis=1) >= 1.0 / limits.people_per_label
    if not keeps_pace.any():
        return None
    best = int(np.where(keeps_pace, variances * costs, np.inf).argmin())
    return _Candidate(
        kappa=float(kappas[best]),
        floor=float(floors[best]),
        chances=chances[best],
        variance=float(variances[best]),
        cost=float(costs[best]),
    )


def _raw_chance(kappa: float | Array, rates: Array, prices: Array) -> Array:
    """Return the chance of asking that costs least, before floor and ceiling."""
    return np.asarray(kappa * np.sqrt(rates / np.maximum(prices, 1e-9)))


def _third_moment(rates: Array, chances: Array, mean: float) -> float:
    """Return the third central moment of observations ``m + asked (Y - m) / pi``, m being right."""
    good = rates + (1.0 - rates) / chances - mean  # asked, and the outcome is 1
    bad = rates - rates / chances - mean
    if_asked = chances * (rates * good**3 + (1.0 - rates) * bad**3)
    return float((if_asked + (1.0 - chances) * (rates - mean) ** 3).mean())


# -- calibration of the score ----------------------------------------------------------------------


@dataclass(frozen=True)
class Strata:
    """Rates of outcome 1 by score: ``rates[h]`` between ``cuts[h-1]`` and ``cuts[h]``.

    People without a score belong to the last of the rates, the common one.
    """

    cuts: Array
    rates: Array

    def find_strata(self, scores: Array) -> Ints:
        """Return everybody's stratum."""
        strata = np.searchsorted(self.cuts, scores, side="right")
        return np.where(np.isnan(scores), len(self.rates) - 1, strata)


@dataclass(frozen=True)
class _ScoreUnit:
    """The unit in which scores are fitted: outliers cut off, mean 0 and standard deviation 1."""

    low: float
    high: float
    centre: float
    scale: float

    @classmethod
    def fit(cls, scores: Array) -> Self | None:
        """Return the unit of these scores; None if they are all alike."""
        low, high = np.quantile(scores, [0.01, 0.99])
        clipped = np.sort(np.clip(scores, low, high))
        centre = clipped.mean()
        scale = clipped.std()
        if not np.isfinite(scale) or scale <= 1e-12 * max(abs(centre), _TINY):
            return None
        return cls(low, high, centre, scale)

    def standardize(self, scores: Array) -> Array:
        return np.asarray((np.clip(scores, self.low, self.high) - self.centre) / self.scale)


def calibrate_score(people_scores: Array, labels: LabelledScores) -> Strata | None:
    """Return strata with rates; a single one if the score tells nothing; None if it is too early.

    Parameters
    ----------
    people_scores
        Scores of people who came, NaN for those without.
    labels
        Those whose outcome is known.
    """
    n_labels = len(labels.outcomes)
    n_ones = labels.outcomes.sum()
    n_rarer = min(n_ones, n_labels - n_ones)
    if n_labels < MIN_LABELS or n_rarer < MIN_LABELS_PER_OUTCOME:
        return None
    # Half a label of either outcome is added, so that no rate is 0 or 1.
    common_rate = (n_ones + 0.5) / (n_labels + 1.0)
    one_stratum = Strata(np.zeros(0), np.array([common_rate, common_rate]))
    scored_people = people_scores[~np.isnan(people_scores)]
    has_score = ~np.isnan(labels.scores)
    if len(scored_people) < MIN_LABELS or has_score.sum() < MIN_LABELS:
        return one_stratum
    unit = _ScoreUnit.fit(scored_people)
    if unit is None:
        return one_stratum
    label_x = unit.standardize(labels.scores[has_score])
    people_x = unit.standardize(np.sort(scored_people))
    trust = n_rarer / (COMMON_RATE_LABELS + n_rarer)
    strata = _fit_strata(people_x, label_x, labels.outcomes[has_score], trust)
    if strata is None:
        return one_stratum
    return Strata(strata.cuts * unit.scale + unit.centre, strata.rates)


def _fit_strata(people_x: Array, label_x: Array, outcomes: Array, trust: float) -> Strata | None:
    """Return strata by scores in their unit; None if the score tells nothing.

    ``people_x`` are sorted. ``trust``, in (0, 1), is the weight of a stratum's own rate, the rest
    that of the common rate.
    """
    level, slope = _fit_logistic(label_x, outcomes)
    if slope == 0.0:
        return None
    curve = 1.0 / (1.0 + np.exp(-(level + slope * people_x)))
    cuts = _cut_evenly(people_x, curve)
    # Few labels say little of a stratum, so its rate is drawn to the curve and to the common one.
    own_rates, common_rate = _rates_of_strata(cuts, people_x, curve, label_x, outcomes)
    rates = np.clip(trust * own_rates + (1.0 - trust) * common_rate, *RATE_RANGE)
    return Strata(cuts, np.append(rates, common_rate))


def _cut_evenly(people_x: Array, curve: Array) -> Array:
    """Return cuts between strata that hold the same sum of ``sqrt(r(1-r))``, Neyman's weights.

    ``people_x`` are sorted, ``curve`` is everybody's rate.
    """
    mass = np.cumsum(np.sqrt(curve * (1.0 - curve)))
    ends = np.searchsorted(mass, mass[-1] * np.arange(1, STRATA_COUNT) / STRATA_COUNT)
    return np.unique(people_x[ends])


def _rates_of_strata(
    cuts: Array, people_x: Array, curve: Array, label_x: Array, outcomes: Array
) -> tuple[Array, float]:
    """Return each stratum's rate, its labels and the curve taken together, and the common rate."""
    n_strata = len(cuts) + 1
    people_strata = np.searchsorted(cuts, people_x, side="right")
    n_people = np.maximum(np.bincount(people_strata, minlength=n_strata), 1e-9)
    curve_rates = np.bincount(people_strata, curve, minlength=n_strata) / n_people
    label_strata = np.searchsorted(cuts, label_x, side="right")
    n_ones = np.bincount(label_strata, outcomes, minlength=n_strata)
    n_labels = np.bincount(label_strata, minlength=n_strata)
    rates = (n_ones + CURVE_LABELS * curve_rates) / (n_labels + CURVE_LABELS)
    return rates, float(n_people @ rates / n_people.sum())


def _fit_logistic(x: Array, outcomes: Array) -> tuple[float, float]:
    """Return level and slope of a logistic curve, the slope drawn to 0 a little.

    A part of its standard error is taken off the slope, which is 0 if it may be chance.
    """
    n_ones = outcomes.sum()
    start = np.array([np.log((n_ones + 0.5) / (len(outcomes) - n_ones + 0.5)), 0.0])
    design = np.column_stack([np.ones_like(x), x])
    prior = np.diag([0.01, 1.0])
    theta = start
    for _ in range(_LOGISTIC_STEPS):  # Newton's method
        p = 1.0 / (1.0 + np.exp(-design @ theta))
        curvature = design.T @ (design * (p * (1.0 - p) + 1e-9)[:, None]) + prior
        gradient = design.T @ (outcomes - p) - prior @ (theta - start)
        theta = theta + np.clip(np.linalg.solve(curvature, gradient), -2.0, 2.0)
    level, slope = theta.tolist()
    standard_error = float(np.sqrt(np.linalg.inv(curvature)[1, 1]))
    if slope * slope < MIN_SLOPE_SIGNIFICANCE * standard_error * standard_error:
        return level, 0.0
    return level, float(np.sign(slope) * max(abs(slope) - SLOPE_SHRINKAGE * standard_error, 0.0))
