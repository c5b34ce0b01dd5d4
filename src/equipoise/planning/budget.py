"""What a budget buys: the chance of a verdict, what is known without one, and the epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from equipoise._json import JsonValue
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.history.past import Past
from equipoise.planning.cases import Scenario, usual_case
from equipoise.planning.forecasts import LEVELS, Forecast, forecast
from equipoise.question import Costs, Question, Verdict
from equipoise.simulation import run
from equipoise.worlds.world import CellWorld

__all__ = ["Affordable", "Afforded", "what_a_budget_buys"]

STEPS = tuple(2.0**k for k in (-2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3))  # epsilons that are tried


@dataclass(frozen=True)
class Afforded(JsonValue):
    """What a budget buys in one case.

    ``decides`` is the share of audits with a verdict; ``lower`` and ``upper`` are the median ends
    of the gap's interval among the others, where there were trial runs.
    """

    scenario: Scenario
    decides: float
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True)
class Affordable(JsonValue):
    """What a budget buys.

    Attributes
    ----------
    budget
        The money.
    cases
        What it buys case by case.
    epsilon
        The smallest epsilon tried at which half of the audits of the usual case keep within the
        budget; None if even the largest is too expensive.

    Examples
    --------
    >>> case = Scenario("the denied succeed as you say", {"A": 0.3}, 0.1, "FAIR")
    >>> bought = Affordable(500.0, (Afforded(case, 0.75),), epsilon=0.1)
    >>> bought.cases[0].decides
    0.75
    """

    budget: float
    cases: tuple[Afforded, ...]
    epsilon: float | None


def what_a_budget_buys(
    history: Past,
    question: Question,
    costs: Costs,
    budget: float,
    cases: tuple[Forecast, ...],
    *,
    trial_runs: int = 0,
) -> Affordable:
    """Say what the budget buys by the forecasts, or by trial runs that end when it is spent."""
    found = [
        _tried(history, question, costs, budget, seen.scenario, trial_runs)
        if trial_runs
        else Afforded(seen.scenario, _share_within(seen, budget))
        for seen in cases
    ]
    usual = usual_case(tuple(seen.scenario for seen in cases))
    return Affordable(budget, tuple(found), _epsilon(history, question, costs, budget, usual))


def _share_within(seen: Forecast, budget: float) -> float:
    """Return the share of audits that end within a budget, between the quantiles by log cost."""
    costs = [seen.cost[f"{level:g}"] for level in LEVELS]
    known = [
        (math.log(max(c, 1e-9)), q) for c, q in zip(costs, LEVELS, strict=True) if c is not None
    ]
    if not known or budget <= 0.0:
        return 0.0
    at, shares = zip(*known, strict=True)
    wide = 0.5 * (at[-1] - at[0])  # how far the tails reach beyond the quantiles
    return float(np.interp(math.log(budget), [at[0] - wide, *at, at[-1] + wide], [0, *shares, 1]))


def _tried(
    history: Past, question: Question, costs: Costs, budget: float, case: Scenario, trial_runs: int
) -> Afforded:
    world = CellWorld(history.cells.like_known, case.r)
    ends = [
        run(AdaptiveAudit(history, question, costs, budget=budget), world, seed)
        for seed in range(trial_runs)
    ]
    undecided = [end for end in ends if end.verdict is Verdict.INCONCLUSIVE]
    return Afforded(
        scenario=case,
        decides=1.0 - len(undecided) / len(ends),
        lower=float(np.median([end.lower for end in undecided or ends])),
        upper=float(np.median([end.upper for end in undecided or ends])),
    )


def _epsilon(
    history: Past, question: Question, costs: Costs, budget: float, case: Scenario
) -> float | None:
    for epsilon in (question.epsilon * step for step in STEPS):
        if question.gamma + epsilon >= 1.0:
            return None
        (seen,) = forecast(history, replace(question, epsilon=epsilon), costs, [case])
        if seen.median is not None and seen.median <= budget:
            return epsilon
    return None
