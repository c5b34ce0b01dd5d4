"""What an audit will cost: C* times what audits were measured to cost in multiples of it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from equipoise._json import plain
from equipoise.bounds import lower_bound
from equipoise.history.past import Past
from equipoise.ledger import LiveAudit
from equipoise.planning import plan
from equipoise.planning.guessing import guess_r
from equipoise.question import Costs, Question
from equipoise.rates import METRICS
from equipoise.worlds import CellWorld

__all__ = ["MULTIPLES", "USUAL", "assumed", "forecast", "forecast_of"]

MULTIPLES = {2: (1.37, 1.80, 3.04), 4: (1.98, 2.92, 4.58), 8: (2.22, 3.67, 5.90)}
"""Groups -> the adaptive audit's mean cost over C*: smallest, geometric mean and largest of the
instances in docs/study.md (``python -m study multiples``). Others go by the next larger number."""

USUAL = 0.4  # the denied succeed so many times as often as the approved, if nothing is known


def forecast(
    past: Past, question: Question, costs: Costs, r: Mapping[str, float]
) -> dict[str, object]:
    """Return least, low, expected and high cost if the denied succeed at these rates.

    Examples
    --------
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    >>> made = forecast(world.past(), Question(epsilon=0.4), Costs(), {"A": 0.3, "B": 0.3})
    >>> made["low"] < made["expected"] < made["high"]
    True
    """
    if METRICS[question.metric].is_free:
        return _priced(0.0, 2, r)
    world = CellWorld(past.cells.like_known, dict(r))
    return _priced(float(lower_bound(world, question, costs)), len(past.cells), r)


def forecast_of(live: LiveAudit, *, rehearse: int = 0) -> dict[str, object]:
    """Return what an audit is expected to cost in all, with what it observed of the denied."""
    settings = live.settings
    r = assumed(settings.past, USUAL)
    observed = live.good_shares()
    r |= {group: one.estimate for group, one in observed.items() if one.estimate is not None}
    made = forecast(settings.past, settings.question, settings.costs, r)
    if rehearse:
        rows = plan(settings.past, settings.question, settings.costs, audits=rehearse)
        made["rehearsed"] = plain(rows.to_dict())
    return made


def assumed(past: Past, ratio: float) -> dict[str, float]:
    """Return each group's r if the denied succeed ``ratio`` times as often as the approved."""
    return {group: ratio * rate for group, rate in guess_r(past.cells).items()}


def _priced(least: float, groups: int, r: Mapping[str, float]) -> dict[str, object]:
    measured = next((k for k in MULTIPLES if k >= groups), max(MULTIPLES))
    low, middle, high = MULTIPLES[measured]
    known = math.isfinite(least)
    return {
        "least": least if known else None,
        "low": low * least if known else None,
        "expected": middle * least if known else None,
        "high": high * least if known else None,
        "assumes": dict(r),
        "rehearsed": None,
    }
