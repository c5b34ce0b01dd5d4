"""Sweeps: audits in one world while one number of the question, the prices or tau changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, SupportsFloat

import numpy as np

from equipoise._arrays import Array
from equipoise._seeds import accepts_random_state
from equipoise.audits.catalogue import audit_class, options_of
from equipoise.display import (
    BLUE,
    FAIR,
    GREY,
    INK,
    UNFAIR,
    Displayable,
    Progress,
    Row,
    format_number,
    silent,
)
from equipoise.errors import InvalidInput
from equipoise.question import Costs, Question, require_question_and_costs
from equipoise.simulation.runs import Simulation
from equipoise.simulation.simulate_audit import simulate
from equipoise.worlds import World

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SWEPT_NAMES = ("epsilon", "gamma", "delta", "feature_cost", "label_cost", "tau")
PRICES = {"feature_cost": "feature", "label_cost": "label"}
"""Swept prices and their names in Costs."""
COLOURS = {"baseline": UNFAIR, "rs": INK, "exp": BLUE, "adaptive": FAIR}
MARKERS = {"baseline": "s", "rs": "o", "exp": "^", "adaptive": "D"}
QUANTITIES = {"cost": "cost", "estimate": "estimated gap"}


@dataclass(frozen=True, eq=False)
class Sweep(Displayable):
    """What audits cost and estimate over the values of one number; ``to_frame`` is tidy.

    Attributes
    ----------
    swept
        The number that changes: epsilon, gamma, delta, feature_cost, label_cost or tau.
    rows
        One per audit and value: means and standard deviations over the seeds of cost and estimate,
        mean labels and features, and the share of wrong verdicts.
    gap
        The true gap of the world.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> result = sweep(["rs"], world, Question(gamma=0.0), Costs(), epsilon=[0.2, 0.1], repeats=20)
    >>> [(row["audit"], row["epsilon"], row["runs"]) for row in result.rows]
    [('rs', 0.2, 20), ('rs', 0.1, 20)]
    """

    swept: str
    rows: tuple[Mapping[str, object], ...]
    gap: float

    def __str__(self) -> str:
        row_lines = [
            f"    {row['audit']}, {self.swept} = {_format_swept(row[self.swept])}: mean cost "
            f"{_format_swept(row['cost'])}, mean estimate {row['estimate']:.4f}"
            for row in self.rows
        ]
        return "\n".join([*self._lines(), *row_lines])

    def _lines(self) -> Sequence[str]:
        return [f"sweep over {self.swept}, true gap {self.gap:.4f}"]

    def _rows(self) -> Sequence[Row]:
        return self.rows

    def _draw(self, ax: Axes) -> None:
        self.draw(ax, "cost")

    def draw(self, ax: Axes, quantity: str = "cost") -> None:
        """Draw "cost" or "estimate" against the swept value, mean ± one standard deviation."""
        if quantity not in QUANTITIES:
            raise InvalidInput(f"'quantity' must be 'cost' or 'estimate'; got {quantity!r}")
        names = [_format_swept(row[self.swept]) for row in self.rows]
        # tau="exact" has no place among numbers: values then stand in their order.
        has_words = any(isinstance(row[self.swept], str) for row in self.rows)
        ticks = {name: place for place, name in enumerate(dict.fromkeys(names))}
        for audit in dict.fromkeys(str(row["audit"]) for row in self.rows):
            rows = [row for row in self.rows if row["audit"] == audit]
            places = [row[self.swept] for row in rows]
            if has_words:
                places = [ticks[_format_swept(place)] for place in places]
            _draw_audit(ax, audit, np.array(places, dtype=float), rows, quantity)
        if has_words:
            ax.set_xticks(list(ticks.values()), list(ticks))
        if quantity == "estimate":
            ax.axhline(self.gap, color=GREY, ls="--", label="true gap")
        else:
            ax.set_yscale("log")  # costs of two audits may differ a thousandfold
        ax.set(xlabel=self.swept, ylabel=QUANTITIES[quantity])
        ax.legend()


def _draw_audit(ax: Axes, audit: str, places: Array, rows: Sequence[Row], quantity: str) -> None:
    """Draw the line of one audit, one standard deviation to both sides; a row per place."""
    means = np.array([row[quantity] for row in rows], dtype=float)
    deviations = np.array([row[f"{quantity}_sd"] for row in rows], dtype=float)
    colour = COLOURS.get(audit, GREY)
    ax.fill_between(places, means - deviations, means + deviations, color=colour, alpha=0.18, lw=0)
    ax.plot(places, means, color=colour, marker=MARKERS.get(audit, "v"), label=audit)


@accepts_random_state
def sweep(
    audits: str | Sequence[str],
    world: World,
    question: Question,
    costs: Costs,
    *,
    epsilon: float | Sequence[float] | None = None,
    gamma: float | Sequence[float] | None = None,
    delta: float | Sequence[float] | None = None,
    feature_cost: float | Sequence[float] | None = None,
    label_cost: float | Sequence[float] | None = None,
    tau: int | str | Sequence[int | str] | None = None,
    repeats: int = 50,
    seed: int = 0,
    history_size: int | None = None,
    n_jobs: int | None = None,
    progress: Progress = silent,
    options: Mapping[str, Mapping[str, object]] | None = None,
) -> Sweep:
    """Simulate several audits while one number changes; return a tidy table with a plot.

    Parameters
    ----------
    audits
        Names of audits, such as ``["rs", "exp", "adaptive"]``, or one name.
    epsilon, gamma, delta, feature_cost, label_cost, tau
        The values of the number that changes, or one value; give exactly one of these. ``tau`` may
        be ``"exact"`` too. Audits without a threshold ignore ``tau``.
    repeats, seed, history_size, n_jobs
        As for :func:`equipoise.simulate`; every value and audit has the same seed.
    progress
        Is called with the share of the simulations that are done.
    options
        Audit -> its own options, such as ``{"exp": {"weights": "published"}}``.

    Raises
    ------
    InvalidInput
        If none or several numbers are swept, or a list is empty.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> costs = [
    ...     row["cost"]
    ...     for row in sweep(["rs"], world, Question(), Costs(), tau=[100, 1000], repeats=20).rows
    ... ]
    >>> bool(costs[1] > 5 * costs[0])
    True
    """
    require_question_and_costs(question, costs)
    arguments = (epsilon, gamma, delta, feature_cost, label_cost, tau)
    values_by_name = dict(zip(SWEPT_NAMES, arguments, strict=True))
    swept_lists = {
        name: _listed(values) for name, values in values_by_name.items() if values is not None
    }
    audits = [str(name) for name in _listed(audits)]
    if len(swept_lists) != 1 or not audits:
        raise InvalidInput(
            f"give at least one audit, and the values of exactly one of {', '.join(SWEPT_NAMES)}; "
            f"got audits {audits!r} and values of {', '.join(swept_lists) or 'none'}"
        )
    ((swept, values),) = swept_lists.items()  # the only one, as was just checked
    if not values:
        raise InvalidInput(f"{swept!r} must hold at least one value; it is empty")
    rows: list[Mapping[str, object]] = []
    simulation: Simulation | None = None
    for audit in audits:
        for value in values:
            # A copy, since tau is filled in for each value.
            audit_options = dict((options or {}).get(audit, {}))
            if swept == "tau" and "tau" in options_of(audit_class(audit)):
                audit_options["tau"] = value
            swept_question = _question_at(question, swept, value)
            prices = _costs_at(costs, swept, value)
            # One seed for all values, so that two points differ less by chance.
            simulation = simulate(
                audit, world, swept_question, prices, repeats=repeats, seed=seed,
                history_size=history_size, n_jobs=n_jobs, **audit_options,  # type: ignore[arg-type]
            )  # fmt: skip
            rows.append({"audit": audit, swept: value, **_means(simulation)})
            progress(len(rows) / (len(audits) * len(values)))
    assert simulation is not None
    return Sweep(swept, tuple(rows), simulation.gap)


def _question_at(question: Question, swept: str, value: object) -> Question:
    """Return the question at a value of the swept number, which may be none of its own."""
    if swept not in ("epsilon", "gamma", "delta"):
        return question
    return replace(question, **{swept: value})  # type: ignore[arg-type]


def _costs_at(costs: Costs, swept: str, value: object) -> Costs:
    """Return the costs at a value of the swept number, which may be none of theirs."""
    if swept not in PRICES:
        return costs
    return replace(costs, **{PRICES[swept]: value})  # type: ignore[arg-type]


def _listed(values: object) -> list[object]:
    """Return values as a list; one number or word is a list of one."""
    is_single = isinstance(values, str) or getattr(values, "ndim", 1) == 0
    return list(values) if isinstance(values, Iterable) and not is_single else [values]


def _format_swept(value: object) -> str:
    """Return a value as people read it."""
    return format_number(float(value)) if isinstance(value, SupportsFloat) else str(value)


def _means(simulation: Simulation) -> dict[str, object]:
    """Return means and standard deviations over the runs; runs without an estimate have no part."""
    # An audit that ended without an estimate says nothing of how far estimates are off.
    estimates = simulation.estimate[~np.isnan(simulation.estimate)]
    return {
        "runs": len(simulation),
        "cost": float(simulation.cost.mean()),
        "cost_sd": _deviation(simulation.cost),
        "estimate": float(estimates.mean()) if len(estimates) else float("nan"),
        "estimate_sd": _deviation(estimates),
        "labels": float(simulation.labels.mean()),
        "features": float(simulation.features.mean()),
        "wrong": float(simulation.wrong.mean()),
    }


def _deviation(values: Array) -> float:
    """Return the sample's standard deviation; NaN of fewer than two values."""
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")
