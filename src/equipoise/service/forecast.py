"""What an audit will cost in all: the forecast of a plan, for one stated case."""

from __future__ import annotations

from collections.abc import Mapping

from equipoise._json import plain
from equipoise.history.past import Past
from equipoise.ledger import LiveAudit
from equipoise.planning import forecast as forecast_cases
from equipoise.planning import plan
from equipoise.planning.cases import USUAL, as_often, scenarios
from equipoise.question import Costs, Question
from equipoise.rates import METRICS

__all__ = ["USUAL", "assumed", "forecast", "forecast_of"]


def forecast(
    past: Past, question: Question, costs: Costs, r: Mapping[str, float]
) -> dict[str, object]:
    """Return low, expected and high cost if the denied succeed at these rates, with this past.

    They are None where this past cannot decide; ``rows`` then says how many rows would.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    >>> made = forecast(world.past(), Question(epsilon=0.4), Costs(), {"A": 0.3, "B": 0.3})
    >>> made["low"] < made["expected"] < made["high"]
    True
    """
    made: dict[str, object] = {"assumes": dict(r), "rows": None, "trial_runs": None}
    if METRICS[question.metric].is_free:
        return {"low": 0.0, "expected": 0.0, "high": 0.0} | made
    (seen,) = forecast_cases(past, question, costs, scenarios(past.cells, question, r))
    low, middle, high = seen.cost.values()
    return made | {"low": low, "expected": middle, "high": high, "rows": seen.rows}


def forecast_of(live: LiveAudit, *, trial_runs: int = 0) -> dict[str, object]:
    """Return what an audit is expected to cost in all, with what it observed of the denied."""
    settings = live.settings
    r = assumed(settings.past, USUAL)
    observed = live.good_shares()
    r |= {group: one.estimate for group, one in observed.items() if one.estimate is not None}
    made = forecast(settings.past, settings.question, settings.costs, r)
    if trial_runs:
        rows = plan(settings.past, settings.question, settings.costs, trial_runs=trial_runs)
        made["trial_runs"] = plain(rows.to_dict())
    return made


def assumed(past: Past, ratio: float) -> dict[str, float]:
    """Return each group's r if the denied succeed ``ratio`` times as often as the approved."""
    return as_often(past.cells, ratio)
