"""What the recovered parameters are good for: the best classifier, and what fairness costs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from equipoise.display import styled
from equipoise.errors import InvalidInput, UnknownName, require_in_open_unit
from equipoise.mixture.families import Array
from equipoise.mixture.model import MixtureModel
from equipoise.mixture.weights import log_ratio
from equipoise.rates import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BayesClassifier", "TradeOff", "trade_off"]


@dataclass(frozen=True, eq=False)
class BayesClassifier:
    """Approve where ``q E_1(x) >= (1 - q) E_0(x)``: the fewest mistakes that any rule can make.

    Parameters
    ----------
    model
        The laws of both outcomes per group.
    q
        ``P[Y=1]`` per group.

    Its error exceeds the best possible one by the order of the errors of theta and q.

    Examples
    --------
    >>> from equipoise.mixture import Gaussian, HalfSpace, known_law
    >>> family, cut = Gaussian("spherical"), HalfSpace([1.0])
    >>> laws = tuple(known_law(family, family.pack([m], [[1.0]]), cut) for m in (0.0, 2.0))
    >>> from equipoise.mixture import MixtureModel
    >>> best = BayesClassifier(MixtureModel({"A": laws}), q={"A": 0.5})
    >>> best([[0.9], [1.1]], "A").tolist()
    [False, True]
    """

    model: MixtureModel
    q: Mapping[str, float]

    def __post_init__(self) -> None:
        for group, share in self.q.items():
            self.model.of(group)
            require_in_open_unit(f"q of group {group}", share)

    def score(self, X: ArrayLike, group: str) -> Array:
        """Return ``P[Y=1 | X=x]`` by the model."""
        return np.asarray(expit(self._log_odds(X, group)))

    def __call__(self, X: ArrayLike, group: str) -> NDArray[np.bool_]:
        """Say for every row whether it is approved; fits as ``accepts`` of a world."""
        return np.asarray(self._log_odds(X, group) >= 0.0)

    def _log_odds(self, X: ArrayLike, group: str) -> Array:
        if group not in self.q:
            raise UnknownName("group", group, self.q)
        share = self.q[group]
        return np.asarray(log_ratio(self.model.of(group), X) + np.log(share) - np.log1p(-share))


@dataclass(frozen=True, eq=False)
class TradeOff:
    """The best accuracy for each tolerated difference between groups, by the model.

    Attributes
    ----------
    metric
        What is compared between the groups.
    difference
        Largest difference of each point, rising.
    accuracy
        Accuracy over everybody, rising too.
    thresholds
        Group -> log-odds threshold of each point.

    Examples
    --------
    >>> curve = TradeOff("equal_opportunity", np.array([0.0, 0.1]), np.array([0.8, 0.9]), {})
    >>> curve.best(0.05)
    0.8
    """

    metric: str
    difference: Array
    accuracy: Array
    thresholds: Mapping[str, Array]

    def best(self, tolerance: float) -> float:
        """Return the best accuracy whose difference is at most ``tolerance``."""
        allowed = self.difference <= tolerance
        if not allowed.any():
            raise InvalidInput(
                f"no rule on the curve has a difference of at most {tolerance!r}; the smallest "
                f"is {self.difference.min():.4g}"
            )
        return float(self.accuracy[allowed].max())

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw accuracy against the difference."""
        with styled():
            if axes is None:
                from matplotlib.figure import Figure

                axes = Figure(figsize=(6.0, 4.0), layout="constrained").subplots()
            axes.step(self.difference, self.accuracy, where="post")
            axes.set_xlabel(f"largest difference between groups ({METRICS[self.metric].words})")
            axes.set_ylabel("accuracy over everybody")
        return axes


def trade_off(
    classifier: BayesClassifier,
    shares: Mapping[str, float],
    metric: str = "equalized_odds",
    *,
    size: int = 20_000,
    thresholds: int = 61,
    seed: int = 0,
) -> TradeOff:
    """Return the best accuracy for each difference between groups that thresholds can reach.

    Every group gets its own threshold on the model's log odds. All groups' rates lie within t of
    each other exactly when they lie in ``[level, level + t]`` for some level per rate of the
    metric; given levels and t the groups choose apart from each other. Levels and t run over
    grids; points that another one beats in accuracy and difference are left out.

    Parameters
    ----------
    shares
        Each group's share of everybody.
    metric
        A metric of the registry, :data:`equipoise.rates.METRICS`.
    size
        Draws per group and outcome behind each rate.
    thresholds
        Thresholds tried per group, and levels per rate.

    Examples
    --------
    >>> from equipoise.worlds import MixtureWorld
    >>> best = BayesClassifier(MixtureWorld.synthetic(4.0).model, q={"1": 0.7, "0": 0.4})
    >>> shares = {"1": 0.7, "0": 0.3}
    >>> curve = trade_off(best, shares, "equal_opportunity", size=500, thresholds=11)
    >>> curve.best(0.05) <= curve.best(0.5)
    True
    """
    if metric not in METRICS:
        raise UnknownName("metric", metric, METRICS)
    groups = list(classifier.q)
    if missing := [g for g in groups if g not in shares]:
        raise InvalidInput(f"'shares' must name every group; {missing[0]!r} is missing")
    if len(groups) < 2:
        raise InvalidInput("a trade-off compares groups; 'q' of the classifier has only one")
    rng = np.random.default_rng(seed)
    sides = [_at_thresholds(classifier, g, metric, size, thresholds, rng) for g in groups]
    cuts, rates, accuracy = zip(*sides, strict=True)
    grid = np.linspace(0.0, 1.0, thresholds)
    levels = [np.unique(np.quantile(np.concatenate(r), grid)) for r in zip(*rates, strict=True)]
    corners = np.stack([x.ravel() for x in np.meshgrid(*levels, indexing="ij")])
    picks = np.concatenate([_best_within(rates, accuracy, corners, t) for t in grid**2]).T
    chosen = np.stack([r[:, pick] for r, pick in zip(rates, picks, strict=True)])
    gaps = np.ptp(chosen, axis=0).max(axis=0)
    weights = np.array([shares[g] for g in groups]) / sum(shares[g] for g in groups)
    right = weights @ np.stack([a[pick] for a, pick in zip(accuracy, picks, strict=True)])
    order = np.lexsort((-right, gaps))
    best = np.maximum.accumulate(right[order])
    keep = order[np.concatenate([[True], best[1:] > best[:-1]])]
    chosen_cuts = {g: cuts[k][picks[k, keep]] for k, g in enumerate(groups)}
    return TradeOff(metric, gaps[keep], right[keep], chosen_cuts)


def _best_within(
    rates: Sequence[Array], accuracy: Sequence[Array], corners: Array, width: float
) -> NDArray[np.intp]:
    """Return for every corner of levels each group's best threshold, where all have one."""
    picks, reachable = [], np.ones(corners.shape[1], dtype=bool)
    low, high = corners[:, :, None] - 1e-12, corners[:, :, None] + width + 1e-12
    for of_group, right in zip(rates, accuracy, strict=True):
        inside = ((of_group[:, None] >= low) & (of_group[:, None] <= high)).all(axis=0)
        value = np.where(inside, right, -1.0)
        picks.append(value.argmax(axis=1))
        reachable &= np.any(inside, axis=1)
    return np.stack(picks, axis=1)[reachable]


def _at_thresholds(
    classifier: BayesClassifier,
    group: str,
    metric: str,
    size: int,
    count: int,
    rng: np.random.Generator,
) -> tuple[Array, Array, Array]:
    """Return thresholds on a group's log odds, 0 among them, and the rates and accuracy at each."""
    odds = [
        np.sort(classifier._log_odds(fit.family.sample(fit.theta, size, rng), group))
        for fit in classifier.model.of(group)
    ]
    pooled = np.quantile(np.concatenate(odds), np.linspace(0.0, 1.0, count))
    cuts = np.unique(np.concatenate([[-np.inf, 0.0, np.inf], pooled]))
    fpr, tpr = (1.0 - np.searchsorted(o, cuts) / size for o in odds)
    q = classifier.q[group]
    table = (q * tpr, (1.0 - q) * fpr, q * (1.0 - tpr), (1.0 - q) * (1.0 - fpr))
    rates = []
    for rate in METRICS[metric].rates:
        above, below = (np.broadcast_to(x, cuts.shape) for x in rate.fraction(*table))
        rates.append(np.divide(above, below, out=np.zeros(len(cuts)), where=below > 0.0))
    return cuts, np.array(rates), table[0] + table[3]
