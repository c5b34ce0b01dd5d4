"""The stopping threshold tau of the paper's audits, and the precision that a threshold buys.

Waiting for tau successes takes ``N`` people with ``|N q / tau - 1| <= e`` except with probability
``2 exp(-tau e^2 / 4)`` (paper, concentration of the negative binomial). Baseline and RS-Audit wait
4K times (K groups, two outcomes, online and past), so all of them hold together with probability
``1 - delta`` when ``e = sqrt(4 log(8K/delta) / tau)``. The paper asks for ``e = epsilon/12``.
"""

from __future__ import annotations

import math

from equipoise.comparison import GapScale
from equipoise.errors import InvalidInput
from equipoise.question import Question
from equipoise.rates import METRICS

__all__ = [
    "RATE_OF_OUTCOME",
    "can_answer",
    "level_of",
    "outcomes_of",
    "paper_epsilon",
    "paper_tau",
    "relative_error",
]

RATE_OF_OUTCOME = {0: "false_positive_rate", 1: "true_positive_rate"}
"""``P[f=1 | Y=y, A=a]`` by y: the rates that the paper's audits estimate, in their order."""


def can_answer(question: Question, *, by_features: bool = False) -> bool:
    """Say whether Baseline and RS-Audit can answer a question, or Exp-Audit (``by_features``).

    Examples
    --------
    >>> can_answer(Question("equal_opportunity")), can_answer(Question("accuracy_parity"))
    (True, False)
    """
    metric = METRICS[question.metric]
    if metric.is_free:
        return True
    if by_features and question.comparison is GapScale.RATIO:
        return False
    return {rate.name for rate in metric.rates} <= set(RATE_OF_OUTCOME.values())


def outcomes_of(question: Question, *, by_features: bool = False) -> tuple[int, ...]:
    """Return the outcomes y whose ``P[f=1 | Y=y, A=a]`` have to be estimated, a phase for each.

    None of them for a metric that needs no outcome of the denied: the free check answers it.
    """
    if can_answer(question) and not can_answer(question, by_features=by_features):
        raise InvalidInput(
            "Exp-Audit is proven for differences and not for ratios; ask with "
            "compare='difference', or use another audit"
        )
    if not can_answer(question):
        raise InvalidInput(
            f"Baseline, RS-Audit and Exp-Audit compare P[f=1 | Y=y, A=a] and cannot answer "
            f"'metric' {question.metric!r}; use one of {', '.join(_answered())}, or another audit"
        )
    names = {rate.name for rate in METRICS[question.metric].rates}
    return tuple(y for y, name in RATE_OF_OUTCOME.items() if name in names)


def _answered() -> list[str]:
    return [name for name in METRICS if can_answer(Question(name))]


def level_of(question: Question) -> float:
    """Return the error level that covers both mistakes: the smaller one."""
    return min(question.level_wrong_fair, question.level_wrong_unfair)


def paper_tau(question: Question, groups: int) -> int:
    """Return ``tau = 576 log(8K/delta) / epsilon^2``, rounded up.

    Examples
    --------
    >>> paper_tau(Question(epsilon=0.05, delta=0.05), groups=2)
    1329022
    """
    return math.ceil(576.0 * math.log(8.0 * groups / level_of(question)) / question.epsilon**2)


def paper_epsilon(tau: int, question: Question, groups: int) -> float:
    """Return the epsilon for which ``tau`` is the paper's choice; above 1 it proves nothing.

    Examples
    --------
    >>> round(paper_epsilon(1000, Question(delta=0.01), groups=2), 2)
    2.06
    """
    return 24.0 * math.sqrt(math.log(8.0 * groups / level_of(question)) / tau)


def relative_error(tau: int, question: Question, groups: int) -> float:
    """Return e such that every N is within ``(1 ± e) tau/q`` with probability ``1 - delta``.

    Examples
    --------
    >>> relative_error(4_000, Question(), 2) > relative_error(400_000, Question(), 2)
    True
    """
    return paper_epsilon(tau, question, groups) / 12.0
