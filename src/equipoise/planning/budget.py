"""What a budget buys: the chance of a verdict, what is known without one, and the epsilon."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from equipoise._json import JsonValue
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.display import Progress, silent
from equipoise.errors import InvalidInput, require_non_negative
from equipoise.history.past import Past
from equipoise.planning.adaptive_forecast import usual_case
from equipoise.planning.rehearsal import rehearse
from equipoise.planning.scenarios import Scenario
from equipoise.question import Costs, Question, Verdict
from equipoise.simulation.loop import run
from equipoise.worlds import CellWorld

__all__ = ["Affordable", "Afforded", "what_a_budget_buys"]

RUNS = 12  # audits under the budget, per case
STEPS = tuple(2.0**k for k in (-2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3))  # epsilons that are tried


@dataclass(frozen=True)
class Afforded(JsonValue):
    """What a budget buys in one case: the share of audits with a verdict, the gap without one."""

    scenario: Scenario
    decides: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Affordable(JsonValue):
    """What a budget buys.

    Attributes
    ----------
    cases
        Case by case, audits that end when the budget is spent: how many have a verdict by then,
        and the median ends of the gap's interval among the others.
    epsilon
        The smallest epsilon tried at which half of the audits of the usual case keep within the
        budget; None if even the largest is too dear.

    Examples
    --------
    >>> case = Scenario("the denied succeed as you say", {"A": 0.3}, 0.1, "FAIR")
    >>> bought = Affordable(500.0, 12, (Afforded(case, 0.75, 0.02, 0.2),), epsilon=0.1)
    >>> bought.cases[0].decides
    0.75
    """

    budget: float
    audits: int
    cases: tuple[Afforded, ...]
    epsilon: float | None


def what_a_budget_buys(
    history: Past,
    question: Question,
    costs: Costs,
    budget: float,
    cases: tuple[Scenario, ...],
    *,
    seed: int = 0,
    progress: Progress = silent,
) -> Affordable:
    """Run audits under the budget in every case, and look for the epsilon that it can pay."""
    require_non_negative("budget", budget)
    if not cases:
        raise InvalidInput("'budget' buys nothing here: past data decide, or no audit can run")
    found = []
    for done, case in enumerate(cases):
        found.append(_afforded(history, question, costs, budget, case, seed))
        progress(0.7 * (done + 1) / len(cases))
    epsilon = _epsilon(history, question, costs, budget, usual_case(cases))
    progress(1.0)
    return Affordable(budget, RUNS, tuple(found), epsilon)


def _afforded(
    history: Past, question: Question, costs: Costs, budget: float, case: Scenario, seed: int
) -> Afforded:
    world = CellWorld(history.cells.like_known, case.r)
    ends = [
        run(AdaptiveAudit(history, question, costs, budget=budget), world, seed + i)
        for i in range(RUNS)
    ]
    open_ended = [end for end in ends if end.verdict is Verdict.INCONCLUSIVE] or ends
    return Afforded(
        scenario=case,
        decides=float(np.mean([end.verdict is not Verdict.INCONCLUSIVE for end in ends])),
        lower=float(np.median([end.lower for end in open_ended])),
        upper=float(np.median([end.upper for end in open_ended])),
    )


def _epsilon(
    history: Past, question: Question, costs: Costs, budget: float, case: Scenario
) -> float | None:
    for step in STEPS:
        epsilon = question.epsilon * step
        if epsilon >= 1.0 or question.gamma + epsilon >= 1.0:
            return None
        audit = AdaptiveAudit(history, replace(question, epsilon=epsilon), costs)
        if audit.finding is not None and audit.finding.verdict is not Verdict.INCONCLUSIVE:
            return epsilon
        if audit.finding is None:
            (seen,) = rehearse(audit, [case], audits=RUNS)
            median = seen.cost["0.5"].value
            if seen.decides >= 0.5 and median is not None and median <= budget:
                return epsilon
    return None
