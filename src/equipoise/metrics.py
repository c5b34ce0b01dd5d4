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
        parts = [self[part] for part in name.split("+")]
        every = {rate.name: rate for metric in parts for rate in metric.rates}
        asks = " ".join(metric.asks for metric in parts)
        return Metric(name, tuple(every.values()), asks)


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
        The question as somebody would ask it, for the report.
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
    out: dict[str, dict[str, float]] = {}
    for rate in METRICS[metric].rates:
        out[rate.name] = {}
        for group, counts in cells.items():
            p1, p0, s = counts.shares
            part, whole = rate.fraction(p1, p0, s * r[group], s * (1.0 - r[group]))
            if whole == 0.0:
                raise BadData(
                    f"the {rate.words} of group {group!r} has an empty denominator; "
                    "merge the group with another or leave it out"
                )
            out[rate.name][group] = part / whole
    return out


def gap_given_r(
    cells: Cells,
    r: Mapping[str, float],
    metric: str,
    compare: str | Comparison = GapScale.DIFFERENCE,
) -> float:
    """Return the gap, the largest one over the metric's rates and the groups that are compared.

    Examples
    --------
    >>> from equipoise.cells import GroupCells
    >>> cells = Cells({"A": GroupCells(30, 10, 60), "B": GroupCells(10, 5, 85)})
    >>> round(gap_given_r(cells, {"A": 0.2, "B": 0.1}, "equal_opportunity"), 4)
    0.1737
    >>> round(gap_given_r(cells, {"A": 0.2, "B": 0.1}, "equal_opportunity", "ratio"), 4)
    0.2432
    """
    asked = as_comparison(compare).resolve(cells)
    inside = [cells.groups[at] for at in asked.groups]
    by_rate = rates_given_r(Cells({group: cells[group] for group in inside}), r, metric)
    values = [[by_group.get(group, np.nan) for group in cells] for by_group in by_rate.values()]
    return float(asked.gap(np.array(values)).max())


for _name, (_rates, _asks) in {
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
}.items():
    register(Metric(_name, tuple(RATES[rate] for rate in _rates.split()), _asks))
