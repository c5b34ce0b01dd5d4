"""What the recovered parameters are good for: the best classifier, and what fairness costs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.errors import InvalidInput, MissingExtra, UnknownName, require_in_open_unit
from equipoise.mixture.family import Array
from equipoise.mixture.model import MixtureModel
from equipoise.mixture.weights import log_ratio

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
    """

    model: MixtureModel
    q: Mapping[str, float]

    def __post_init__(self) -> None:
        for group, share in self.q.items():
            self.model.of(group)
            require_in_open_unit(f"q of group {group}", share)

    def score(self, X: ArrayLike, group: str) -> Array:
        """Return ``P[Y=1 | X=x]`` by the model."""
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(self._log_odds(X, group), -700, 700))))

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
    """The best accuracy for each tolerated equalized-odds difference, by the model.

    Attributes
    ----------
    difference
        Equalized-odds difference of each point, falling accuracy first to last reversed: sorted.
    accuracy
        Accuracy over everybody.
    thresholds
        Group -> log-odds threshold of each point.
    """

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
        if axes is None:
            try:
                from matplotlib.figure import Figure
            except ImportError:
                raise MissingExtra("matplotlib", extra="report", purpose="plots") from None
            axes = Figure(figsize=(6.0, 4.0), layout="constrained").subplots()
        axes.step(self.difference, self.accuracy, where="post")
        axes.set_xlabel("largest difference between groups (equalized odds)")
        axes.set_ylabel("accuracy over everybody")
        return axes


def trade_off(
    classifier: BayesClassifier,
    shares: Mapping[str, float],
    *,
    size: int = 20_000,
    thresholds: int = 61,
    seed: int = 0,
) -> TradeOff:
    """Return the best accuracy for each equalized-odds difference that group thresholds can reach.

    Every group gets its own threshold on the model's log odds; all combinations are compared (two
    groups) and those kept that no other beats in both accuracy and difference.

    Parameters
    ----------
    shares
        Each group's share of everybody.
    size
        Draws per group and outcome behind each rate.
    thresholds
        Thresholds tried per group.
    """
    groups = tuple(classifier.q)
    if len(groups) != 2:
        raise InvalidInput(f"the trade-off compares two groups; got {len(groups)}")
    rng = np.random.default_rng(seed)
    rates = {g: _rates(classifier, g, size, thresholds, rng) for g in groups}
    (cut_a, tpr_a, fpr_a), (cut_b, tpr_b, fpr_b) = (rates[g] for g in groups)
    total = sum(shares[g] for g in groups)
    accuracy = np.add.outer(
        *(
            shares[g] / total * (classifier.q[g] * t + (1.0 - classifier.q[g]) * (1.0 - f))
            for g, (_, t, f) in rates.items()
        )
    )
    gap = np.maximum(
        np.abs(np.subtract.outer(tpr_a, tpr_b)), np.abs(np.subtract.outer(fpr_a, fpr_b))
    )
    order = np.lexsort((-accuracy.ravel(), gap.ravel()))
    best = np.maximum.accumulate(accuracy.ravel()[order])
    keep = order[np.concatenate([[True], best[1:] > best[:-1]])]
    row, column = np.unravel_index(keep, accuracy.shape)
    return TradeOff(
        gap.ravel()[keep],
        accuracy.ravel()[keep],
        {groups[0]: cut_a[row], groups[1]: cut_b[column]},
    )


def _rates(
    classifier: BayesClassifier, group: str, size: int, count: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return thresholds on the log odds with their TPR and FPR, the Bayes threshold 0 included."""
    odds = [
        np.sort(classifier._log_odds(fit.family.sample(fit.theta, size, rng), group))
        for fit in classifier.model.of(group)
    ]
    pooled = np.quantile(np.concatenate(odds), np.linspace(0.0, 1.0, count))
    cuts = np.unique(np.concatenate([[-np.inf, 0.0, np.inf], pooled]))
    false_positive, true_positive = (1.0 - np.searchsorted(o, cuts) / size for o in odds)
    return cuts, true_positive, false_positive
