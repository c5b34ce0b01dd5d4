"""Metrics: named sets of rates in which groups are compared, and the gap between groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from equipoise.cells import Cells
from equipoise.comparison import Comparison, GapScale, as_comparison
from equipoise.errors import BadData, InvalidInput
from equipoise.rates import RATES, Rate


class _Metrics(dict[str, "Metric"]):
    """Metrics by name; ``"a+b"`` is the one that compares groups in the rates of both."""

    def __missing__(self, name: str) -> Metric:
        if "+" not in name:
            raise KeyError(name)
        metrics = [self[part] for part in name.split("+")]
        rates = {rate.name: rate for metric in metrics for rate in metric.rates}  # each once
        # Not stored, so that the registry lists what was registered, and no combination.
        asks = " ".join(metric.asks for metric in metrics)
        return Metric(name, tuple(rates.values()), asks)


METRICS = _Metrics()
"""Every metric by name."""


@dataclass(frozen=True)
class Metric:
    """A named set of rates: groups are compared in each of them.

    Parameters
    ----------
    name
        How a question calls it, such as ``"equal_opportunity"``.
    rates
        One or more.
    asks
        The question in plain words, for the report.
    """

    name: str
    rates: tuple[Rate, ...]
    asks: str

    def __post_init__(self) -> None:
        if not self.rates or len({rate.name for rate in self.rates}) < len(self.rates):
            raise InvalidInput(f"the metric {self.name!r} needs one or more rates, each once")

    @property
    def words(self) -> str:
        """The name as people write it."""
        return self.name.replace("_", " ").replace("+", " and ")

    @property
    def is_free(self) -> bool:
        """Whether no outcome of a denied person is needed."""
        return all(rate.trend == 0 for rate in self.rates)


def register(metric: Metric) -> None:
    """Make a metric and its rates known by name, in this process.

    Raises
    ------
    InvalidInput
        If the metric's name, or one of its rates', stands for something else.
    """
    # Registering the same metric again is no mistake: a notebook's cell may be run twice.
    if METRICS.get(metric.name, metric) != metric:
        raise InvalidInput(f"there is another metric called {metric.name!r}; take another name")
    for rate in metric.rates:
        if RATES.get(rate.name, rate) != rate:
            raise InvalidInput(f"there is another rate called {rate.name!r}; take another name")
    METRICS[metric.name] = metric
    RATES.update({rate.name: rate for rate in metric.rates})


def rates_given_r(cells: Cells, r: Mapping[str, float], metric: str) -> dict[str, dict[str, float]]:
    """Return every group's rates when ``r`` is known, as rate -> group -> value.

    Raises
    ------
    BadData
        If a rate has an empty denominator in some group.
    """
    rates: dict[str, dict[str, float]] = {}
    for rate in METRICS[metric].rates:
        rates[rate.name] = {}
        for group, counts in cells.items():
            p1, p0, s = counts.shares
            fn = s * r[group]
            tn = s * (1.0 - r[group])
            numerator, denominator = rate.fraction(p1, p0, fn, tn)
            if denominator == 0.0:
                raise BadData(
                    f"the {rate.words} of group {group!r} has an empty denominator; "
                    "merge the group with another or leave it out"
                )
            rates[rate.name][group] = numerator / denominator
    return rates


def gap_given_r(
    cells: Cells,
    r: Mapping[str, float],
    metric: str,
    compare: str | Comparison = GapScale.DIFFERENCE,
) -> float:
    """Return the largest gap over the metric's rates and the groups that are compared.

    Parameters
    ----------
    cells
        Counts of every group.
    r
        Group -> share of good outcomes among the denied.
    metric
        A name of :data:`METRICS`.
    compare
        How groups are compared; see :class:`equipoise.comparison.Comparison`.

    Raises
    ------
    BadData
        If a rate of a compared group has an empty denominator.

    Examples
    --------
    >>> from equipoise.cells import GroupCells
    >>> cells = Cells({"A": GroupCells(30, 10, 60), "B": GroupCells(10, 5, 85)})
    >>> round(gap_given_r(cells, {"A": 0.2, "B": 0.1}, "equal_opportunity"), 4)
    0.1737
    >>> round(gap_given_r(cells, {"A": 0.2, "B": 0.1}, "equal_opportunity", "ratio"), 4)
    0.2432
    """
    comparison = as_comparison(compare).resolve(cells)
    compared_groups = [cells.groups[position] for position in comparison.groups]
    # Only the compared groups have to have defined rates.
    rates = rates_given_r(Cells({group: cells[group] for group in compared_groups}), r, metric)
    values = np.full((len(rates), len(cells)), np.nan)  # axes: rate, group
    for row, by_group in zip(values, rates.values(), strict=True):
        row[list(comparison.groups)] = list(by_group.values())
    return float(comparison.gap(values).max())


# -- the registry ----------------------------------------------------------------------------------

_DEFINITIONS = {
    "equalized_odds": (
        "true_positive_rate false_positive_rate",
        "Among people who would turn out well, and among people who would turn out badly, is every "
        "group approved equally often?",
    ),
    "equal_opportunity": (
        "true_positive_rate",
        "Among people who would turn out well, is every group approved equally often?",
    ),
    "predictive_equality": (
        "false_positive_rate",
        "Among people who would turn out badly, is every group approved equally often?",
    ),
    "demographic_parity": ("selection_rate", "Is every group approved equally often?"),
    "false_omission_parity": (
        "false_omission_rate",
        "Among the people who are turned down, would equally many of every group have turned out "
        "well?",
    ),
    "accuracy_parity": ("accuracy", "Is the decision right equally often in every group?"),
    "predictive_parity": (
        "precision",
        "Among the people who are approved, do equally many of every group turn out well?",
    ),
    "false_negative_parity": (
        "false_negative_rate",
        "Among people who would turn out well, is every group turned down equally often?",
    ),
    "true_negative_parity": (
        "true_negative_rate",
        "Among people who would turn out badly, is every group turned down equally often?",
    ),
    "error_rate_balance": (
        "false_negative_rate false_positive_rate",
        "Does every group bear both kinds of mistakes equally often: being turned down among those "
        "who would turn out well, being approved among those who would turn out badly?",
    ),
    "negative_predictive_parity": (
        "negative_predictive_value",
        "Among the people who are turned down, would equally many of every group have turned out "
        "badly?",
    ),
    "conditional_use_accuracy": (
        "precision negative_predictive_value",
        "Is an approval right equally often in every group, and a denial as well?",
    ),
    "error_rate_parity": ("error_rate", "Is the decision wrong equally often in every group?"),
}
"""Metric -> its rates, and the question in plain words."""

for _metric, (_rates, _asks) in _DEFINITIONS.items():
    register(Metric(_metric, tuple(RATES[rate] for rate in _rates.split()), _asks))
