"""What fairness costs in accuracy, by the recovered parameters (paper, remark after Algorithm 2).

Every group gets its own threshold on the posterior probability of outcome 1. A rule is a threshold
for each group. The frontier holds the rules that no other rule beats in both accuracy and gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise._arrays import Array, Flags, Ints
from equipoise.errors import InvalidInput, MissingExtra, UnknownName, require_whole
from equipoise.metrics import METRICS, Metric
from equipoise.mixture.bayes_classifier import BayesClassifier, Weights, normalised_group_shares
from equipoise.mixture.decision_maker import sobol
from equipoise.mixture.model import MixtureModel
from equipoise.rates import Rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RATE_DRAWS = 2**14  # Sobol points per law behind each group's rates
WINDOW_SLACK = 1e-12  # rates are compared with windows that they define themselves


@dataclass(frozen=True)
class Rule:
    """A classifier by the model: its accuracy over everybody and its gap between groups."""

    accuracy: float
    gap: float


@dataclass(frozen=True, eq=False)
class FairnessAccuracyCurve:
    """The frontier between accuracy and fairness, and the audited classifier beside it.

    Attributes
    ----------
    metric
        The metric in which groups are compared.
    gap
        The largest difference between groups of each rule, rising.
    accuracy
        Its accuracy over everybody, rising too.
    thresholds
        Group -> the posterior probability from which on each rule approves.
    audited
        The decision-maker of the model: its acceptances give its rates.

    Examples
    --------
    >>> audited = Rule(accuracy=0.75, gap=0.2)
    >>> gap, accuracy = np.array([0.0, 0.1]), np.array([0.8, 0.9])
    >>> FairnessAccuracyCurve("equal_opportunity", gap, accuracy, {}, audited).best_accuracy(0.05)
    0.8
    """

    metric: str
    gap: Array
    accuracy: Array
    thresholds: Mapping[str, Array]
    audited: Rule

    def best_accuracy(self, tolerance: float) -> float:
        """Return the best accuracy whose gap is at most ``tolerance``."""
        is_allowed = self.gap <= tolerance
        if not is_allowed.any():
            raise InvalidInput(
                f"no rule on the curve has a gap of at most {tolerance!r}; the smallest is "
                f"{self.gap.min():.4g}"
            )
        return float(self.accuracy[is_allowed].max())

    def table(self) -> list[dict[str, float]]:
        """Return a row for each rule: gap, accuracy, and each group's threshold."""
        rows = []
        for position, (gap, accuracy) in enumerate(zip(self.gap, self.accuracy, strict=True)):
            row = {"gap": float(gap), "accuracy": float(accuracy)}
            for group, thresholds in self.thresholds.items():
                row[f"threshold of {group}"] = float(thresholds[position])
            rows.append(row)
        return rows

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw accuracy against the gap, with the audited classifier as a point."""
        if axes is None:
            try:
                from matplotlib.figure import Figure
            except ImportError:
                raise MissingExtra("matplotlib", extra="report", purpose="plots") from None
            axes = Figure(figsize=(6.0, 4.0), layout="constrained").subplots()
        axes.step(100.0 * self.gap, 100.0 * self.accuracy, where="post", label="best rules")
        axes.plot(
            100.0 * self.audited.gap, 100.0 * self.audited.accuracy, "o", label="audited classifier"
        )
        axes.set_xlabel(f"gap in {METRICS[self.metric].words}, percentage points")
        axes.set_ylabel("accuracy over everybody, %")
        axes.legend()
        return axes


def fairness_accuracy_curve(
    model: MixtureModel,
    weights: Weights,
    metric: str = "equalized_odds",
    *,
    group_shares: Mapping[str, float] | None = None,
    n_thresholds: int = 101,
) -> FairnessAccuracyCurve:
    """Return the best accuracy for each gap that group thresholds on the posterior can reach.

    All groups' rates lie within t of each other exactly if, for each rate of the metric, they lie
    in a window ``[low, low + t]``. Given the windows, each group chooses the threshold that is best
    for itself. Windows and thresholds run over grids, so a rule between two grid points is missed:
    with the default ``n_thresholds`` accuracy may be about 0.01 below the exact frontier at small
    tolerances (equalized odds, normal laws 2 and 1 apart, shares 0.6 and 0.3, tolerance 0.05: 0.659
    in place of 0.670), and more at a tolerance of 0. More thresholds come nearer.

    Parameters
    ----------
    model
        The laws of both outcomes of every group, as :class:`PastFeatures` or Exp-Audit gives them.
    weights
        Group -> ``P[Y=1]`` of the group: a number in (0, 1), or a :class:`Weight`.
    metric
        A name of the registry of metrics.
    group_shares
        Group -> its share of everybody, or its size: finite, at least 0; equal if left out.
    n_thresholds
        Thresholds per group, besides the Bayes classifier's one half.

    Examples
    --------
    >>> from equipoise.mixture import Gaussian, HalfSpace, MixtureModel, known_law
    >>> family, cut = Gaussian("spherical"), HalfSpace([1.0])
    >>> laws = tuple(known_law(family, family.pack([m], [[1.0]]), cut) for m in (0.0, 2.0))
    >>> model = MixtureModel({"A": laws, "B": laws})
    >>> curve = fairness_accuracy_curve(model, {"A": 0.5, "B": 0.2}, "equal_opportunity")
    >>> curve.best_accuracy(0.02) < curve.best_accuracy(0.3)
    True
    """
    if metric not in METRICS:
        raise UnknownName("metric", metric, METRICS)
    require_whole("n_thresholds", n_thresholds)
    classifier = BayesClassifier(model, weights)
    if len(classifier.weights) < 2:
        raise InvalidInput("a gap compares groups; 'weights' has only one")
    shares = normalised_group_shares(classifier.weights, group_shares)
    options = [
        _GroupOptions.from_model(classifier, group, METRICS[metric], n_thresholds)
        for group in classifier.weights
    ]
    rules = _candidate_rules(options, n_thresholds)
    gap = _gaps(options, rules)
    accuracy = np.zeros(len(rules))
    for position, (group, option) in enumerate(zip(shares, options, strict=True)):
        accuracy += shares[group] * option.accuracy[rules[:, position]]
    on_frontier = _frontier(gap, accuracy)
    thresholds = {}
    for position, (group, option) in enumerate(zip(shares, options, strict=True)):
        thresholds[group] = option.thresholds[rules[on_frontier, position]]
    audited = _audited_rule(classifier, METRICS[metric], shares)
    return FairnessAccuracyCurve(
        metric, gap[on_frontier], accuracy[on_frontier], thresholds, audited
    )


@dataclass(frozen=True)
class _GroupOptions:
    """One group at each of its thresholds: rates of the metric (rate, threshold), and accuracy."""

    thresholds: Array
    rates: Array
    accuracy: Array

    @classmethod
    def from_model(
        cls, classifier: BayesClassifier, group: str, metric: Metric, n_thresholds: int
    ) -> _GroupOptions:
        law_zero, law_one = classifier.model.of(group)
        uniforms = sobol(law_zero.family.dimension(law_zero.theta), RATE_DRAWS, seed=0)
        people_zero = law_zero.family.from_uniforms(law_zero.theta, uniforms)
        people_one = law_one.family.from_uniforms(law_one.theta, uniforms)
        # Sorted, so that a search finds how many lie below a threshold.
        odds_of_zeros = np.sort(classifier.log_odds(people_zero, group))
        odds_of_ones = np.sort(classifier.log_odds(people_one, group))
        log_odds = _thresholds(np.concatenate([odds_of_zeros, odds_of_ones]), n_thresholds)
        fpr = 1.0 - np.searchsorted(odds_of_zeros, log_odds) / RATE_DRAWS
        tpr = 1.0 - np.searchsorted(odds_of_ones, log_odds) / RATE_DRAWS
        q = classifier.weights[group]
        rates = np.array([_rate_values(rate, q, tpr, fpr) for rate in metric.rates])
        accuracy = q * tpr + (1.0 - q) * (1.0 - fpr)
        return cls(1.0 / (1.0 + np.exp(-log_odds)), rates, accuracy)


def _thresholds(log_odds: Array, n_thresholds: int) -> Array:
    """Return thresholds that spread over people's log odds, and the three that are always there."""
    spread_out = np.quantile(log_odds, np.linspace(0.0, 1.0, n_thresholds))
    # Always: approve everybody, the Bayes classifier's one half, approve nobody.
    return np.unique(np.concatenate([[-np.inf, 0.0, np.inf], spread_out]))


def _rate_values(rate: Rate, q: float, tpr: Array, fpr: Array) -> Array:
    """Return a rate at every threshold; 0 where nobody is in its denominator."""
    sizes = {
        "tp": q * tpr,
        "fp": (1.0 - q) * fpr,
        "fn": q * (1.0 - tpr),
        "tn": (1.0 - q) * (1.0 - fpr),
    }
    numerator = np.sum([sizes[cell] for cell in rate.part], axis=0)
    denominator = np.sum([sizes[cell] for cell in rate.whole], axis=0)
    is_defined = denominator > 0.0
    return np.asarray(np.divide(numerator, denominator, out=np.zeros(len(tpr)), where=is_defined))


def _candidate_rules(options: Sequence[_GroupOptions], n_windows: int) -> Ints:
    """Return rules, a row each: the position of every group's threshold."""
    grid = np.linspace(0.0, 1.0, n_windows)
    lows_per_rate = []
    # A window is best pushed up until its lower end is some group's rate.
    for rate in range(len(options[0].rates)):
        values = np.concatenate([option.rates[rate] for option in options])
        lows_per_rate.append(np.unique(np.quantile(values, grid)))
    # all combinations of the windows' lower ends, shape (rates, windows)
    lows = np.stack([axis.ravel() for axis in np.meshgrid(*lows_per_rate, indexing="ij")])
    rules = [_best_rules(options, lows, width) for width in grid**2]  # narrow windows matter most
    return np.unique(np.concatenate(rules), axis=0)


def _best_rules(options: Sequence[_GroupOptions], lows: Array, width: float) -> Ints:
    """Return the best rule inside each combination of windows, where every group has one."""
    choices = []
    is_possible: Flags = np.ones(lows.shape[1], dtype=bool)
    low = lows[:, :, None] - WINDOW_SLACK
    high = lows[:, :, None] + width + WINDOW_SLACK
    for option in options:
        rates = option.rates[:, None, :]  # axes: rate, window, threshold
        is_inside: Flags = np.all((low <= rates) & (rates <= high), axis=0)
        accuracy = np.where(is_inside, option.accuracy, -1.0)  # below any that is inside
        choices.append(accuracy.argmax(axis=1))
        is_possible &= is_inside.any(axis=1)
    return np.stack(choices, axis=1)[is_possible]


def _gaps(options: Sequence[_GroupOptions], rules: Ints) -> Array:
    """Return each rule's largest difference between two groups, over all rates."""
    gaps = np.zeros(len(rules))
    for rate in range(len(options[0].rates)):
        values = np.stack([option.rates[rate][rules[:, k]] for k, option in enumerate(options)])
        gaps = np.maximum(gaps, values.max(axis=0) - values.min(axis=0))
    return gaps


def _frontier(gap: Array, accuracy: Array) -> Ints:
    """Return the rules that no other beats in both, by rising gap."""
    # By gap, of equal gaps the most accurate first: a rule is on the frontier if it is more
    # accurate than all before it.
    order = np.lexsort((-accuracy, gap))
    best_so_far = np.maximum.accumulate(accuracy[order])
    is_better = np.concatenate([[True], best_so_far[1:] > best_so_far[:-1]])
    return np.asarray(order[is_better])


def _audited_rule(classifier: BayesClassifier, metric: Metric, shares: Mapping[str, float]) -> Rule:
    """Return the accuracy and the gap of the decision-maker who is audited, by the model."""
    rates_by_group = []
    accuracy = 0.0
    for group, share in shares.items():
        fpr, tpr = classifier.model.free_rates(group)
        q = classifier.weights[group]
        accuracy += share * (q * tpr + (1.0 - q) * (1.0 - fpr))
        # The decision-maker is one point of the curve, so there is one value for each rate.
        values = [_rate_values(rate, q, np.array([tpr]), np.array([fpr])) for rate in metric.rates]
        rates_by_group.append(np.concatenate(values))
    rates = np.stack(rates_by_group)  # axes: group, rate
    gap = (rates.max(axis=0) - rates.min(axis=0)).max()
    return Rule(float(accuracy), float(gap))
