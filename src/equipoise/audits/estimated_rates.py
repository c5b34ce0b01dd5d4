"""The paper's estimates of ``P[f=1 | Y=y, A=a]``: the threshold tau, what it buys, and the verdict.

Baseline, RS-Audit and Exp-Audit estimate these rates as ratios of counts up to the tau-th success
and compare them (:mod:`equipoise.audits.tau_audit`, :mod:`equipoise.audits.exp_audit`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from equipoise._arrays import Array
from equipoise.audits.base import Audit
from equipoise.comparison import Comparison, ResolvedComparison
from equipoise.errors import InvalidInput
from equipoise.finding import Finding, Interval
from equipoise.history.past import Goal, Past
from equipoise.levels import tau_event_level
from equipoise.metrics import METRICS
from equipoise.question import Question, Verdict

RATE_OF_OUTCOME = {0: "false_positive_rate", 1: "true_positive_rate"}
"""``P[f=1 | Y=y, A=a]`` by y: the rates that the paper's audits estimate, in their order."""

MAX_GROUPS_NAMED = 6  # groups in a list of what is missing


# -- the threshold and what it buys ------------------------------------------------------------


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
    # The paper proves Exp-Audit for differences between all pairs of groups.
    is_proven = not by_features or question.comparison == Comparison()
    has_known_rates = {rate.name for rate in metric.rates} <= set(RATE_OF_OUTCOME.values())
    return is_proven and has_known_rates


def outcomes_to_estimate(question: Question, *, by_features: bool = False) -> tuple[int, ...]:
    """Return the outcomes y whose ``P[f=1 | Y=y, A=a]`` have to be estimated, a phase for each.

    None of them for a metric that needs no outcome of the denied: the free check answers it.
    """
    if can_answer(question) and not can_answer(question, by_features=by_features):
        raise InvalidInput(
            "Exp-Audit is proven for differences between all groups, not for ratios nor against "
            "one group or within strata; ask with compare='difference', or use another audit"
        )
    if not can_answer(question):
        answerable = ", ".join(name for name in METRICS if can_answer(Question(name)))
        raise InvalidInput(
            "Baseline, RS-Audit and Exp-Audit compare P[f=1 | Y=y, A=a] and cannot answer "
            f"'metric' {question.metric!r}; use one of {answerable}, or another audit"
        )
    rates = {rate.name for rate in METRICS[question.metric].rates}
    return tuple(y for y, rate in RATE_OF_OUTCOME.items() if rate in rates)


def paper_tau(question: Question, groups: int) -> int:
    """Return ``tau = 576 log(8K/delta) / epsilon^2``, rounded up.

    Examples
    --------
    >>> paper_tau(Question(epsilon=0.05, delta=0.05), groups=2)
    1329022
    """
    return math.ceil(-576.0 * math.log(tau_event_level(question, groups)) / question.epsilon**2)


def arrivals_in_turn(shares: Iterable[float], tau: float) -> float:
    """Return the mean number of arrivals until tau people of every share came, one after another.

    Examples
    --------
    >>> arrivals_in_turn([0.5, 0.1], tau=10)
    120.0
    """
    return sum((tau / share if share > 0.0 else math.inf for share in shares), 0.0)


def paper_epsilon(tau: int, question: Question, groups: int) -> float:
    """Return the epsilon for which ``tau`` is the paper's choice; above 1 it proves nothing.

    Every N is within ``(1 ± epsilon/12) tau/q`` then, with probability ``1 - delta``.

    Examples
    --------
    >>> round(paper_epsilon(1000, Question(delta=0.01), groups=2), 2)
    2.06
    """
    # The printed formula solved for epsilon: 576 is the square of 24.
    return 24.0 * math.sqrt(-math.log(tau_event_level(question, groups)) / tau)


def describe_missing_rows(
    history: Past, goals: Sequence[Goal], tau: int, within_group: bool
) -> tuple[str, ...]:
    """Say how many past rows are missing, about, until ``tau`` approved people meet each goal.

    Of the goals that the same rows serve (a group's own, or all) the scarcest is named: rows
    enough for it are enough for the others.
    """
    counts = {goal: _approved_with(history, goal) for goal in goals}
    lines: dict[str, str] = {}  # by the rows that serve the goal
    # The scarcest goal comes first, and setdefault keeps the first line of each kind.
    for (outcome, group), count in sorted(counts.items(), key=lambda goal_count: goal_count[1]):
        people = f"people of group {group!r} who were approved and had outcome {outcome}"
        n_rows = history.cells[group].total if within_group else history.cells.total
        kind = f"group {group!r}" if within_group else "any group"
        if count == 0:
            lines.setdefault(kind, f"{people}: none were found, and {tau:,} are needed")
        elif count < tau and not history.exact:
            rows = f"about {n_rows * (tau / count - 1.0):,.0f} more past rows of {kind}"
            lines.setdefault(kind, f"{rows}: {count:,.0f} {people}, and {tau:,} are needed")
    named = list(lines.values())[:MAX_GROUPS_NAMED]
    n_unnamed = len(lines) - len(named)
    if n_unnamed:
        named.append(f"and likewise of {n_unnamed} more groups that lack less")
    return tuple(named)


def _approved_with(history: Past, goal: Goal) -> float:
    """Return how many past people of a group were approved and had an outcome."""
    outcome, group = goal
    cells = history.cells[group]
    return cells.approved_positive if outcome else cells.approved_negative


def parse_count(value: object, default: int, name: str = "tau") -> int:
    """Return a count that is a whole number of at least 1 and that a float holds exactly.

    ``default`` stands in for None. Raises InvalidInput, which names the argument, for other values.
    """
    count = default if value is None else value
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count < 2**53:
        # Not its digits: a number may have thousands of them.
        value_text = "a larger one" if isinstance(count, int) and count > 1 else repr(count)
        raise InvalidInput(
            f"{name!r} must be a whole number of at least 1, below 2**53; got {value_text}"
        )
    return int(count)


# -- findings from estimated rates -------------------------------------------------------------


@dataclass(frozen=True)
class RateEstimates:
    """Estimated rates of all groups, and what they were made of.

    All arrays have shape (outcomes of the metric, groups), NaN of groups that are not compared.

    Attributes
    ----------
    p_hat, q_hat
        Estimates of ``P[f=1, Y=y | a]`` and ``P[Y=y | a]``.
    rates
        Estimates of ``P[f=1 | Y=y, a]``, their ratio.
    low, high
        Bounds of the rates.
    """

    p_hat: Array
    q_hat: Array
    rates: Array
    low: Array
    high: Array


def finding_from_rates(audit: Audit, estimates: RateEstimates) -> Finding:
    """Return the paper's verdict: UNFAIR if the estimate is above ``gamma + epsilon/2``.

    Algorithm 1, lines 6 and 7; Algorithm 2, lines 9 and 10; Algorithm 3, lines 7 and 8.
    """
    question = audit.question
    groups = audit.cells.groups
    gaps = compare_rates(estimates.rates, estimates.low, estimates.high, question.resolve(groups))
    estimate, lower, upper = map(float, gaps)
    scale = question.gap_scale
    limit = question.gamma + question.epsilon / 2.0
    is_unfair = estimate > limit
    side = "above" if is_unfair else "at most"
    finding = Finding(
        question=question,
        verdict=Verdict.UNFAIR if is_unfair else Verdict.FAIR,
        lower=lower,
        upper=upper,
        reason=f"the estimated {scale.noun} of {scale.format_gap(estimate, 3)} is {side} "
        f"{scale.format_gap(limit)} (tolerance plus half the margin)",
        estimate=estimate,
        rates=_interval_table(outcomes_to_estimate(question), groups, estimates),
        p_hat=_table_by_name(outcomes_to_estimate(question), groups, estimates.p_hat),
        q_hat=_table_by_name(outcomes_to_estimate(question), groups, estimates.q_hat),
    )
    return audit.with_spending(finding)


def _interval_table(
    outcomes: Sequence[int], groups: Sequence[str], estimates: RateEstimates
) -> dict[str, dict[str, Interval]]:
    """Return rate -> group -> interval; all of [0, 1] for a group that is not compared."""
    table: dict[str, dict[str, Interval]] = {}
    for row, outcome in enumerate(outcomes):
        by_group = table.setdefault(RATE_OF_OUTCOME[outcome], {})
        for column, group in enumerate(groups):
            place = row, column
            by_group[group] = Interval(0.0, 1.0)
            if not np.isnan(estimates.rates[place]):
                by_group[group] = Interval(
                    float(estimates.low[place]),
                    float(estimates.high[place]),
                    float(estimates.rates[place]),
                )
    return table


def _table_by_name(
    outcomes: Sequence[int], groups: Sequence[str], shares: Array
) -> dict[str, dict[str, float]]:
    """Return outcome -> group -> share, without groups that are not compared (NaN)."""
    table: dict[str, dict[str, float]] = {}
    for outcome, row in zip(outcomes, shares.tolist(), strict=True):
        named = zip(groups, row, strict=True)
        table[str(outcome)] = {group: share for group, share in named if not math.isnan(share)}
    return table


def finding_of_free_check(audit: Audit) -> Finding:
    """Return the free check's answer as an audit's, which can be read back as a finding."""
    return Finding(**{f.name: getattr(audit.known_for_free, f.name) for f in fields(Finding)})


def inconclusive_finding(
    audit: Audit, why: str, missing: tuple[str, ...], free: Finding | None = None
) -> Finding:
    """Return what the past alone establishes, and what is missing.

    ``free`` is the free check's answer, if it was made at another error probability.
    """
    if free is None:
        free = finding_of_free_check(audit)
    finding = replace(
        free,
        verdict=Verdict.INCONCLUSIVE,
        reason=f"{why}; {free.reason}",
        estimate=None,
        decided_by=None,
        missing=missing,
        warnings=(),
    )
    return audit.with_spending(finding)


def rate_bounds(ratios: Array, error: float) -> tuple[Array, Array]:
    """Return bounds of the rates when every count N is within ``(1 ± error)`` of its mean.

    No rate exceeds 1, so a lower bound of 1 says that no population explains the counts.

    Examples
    --------
    >>> low, high = rate_bounds(np.array([0.5, 1.1]), 0.1)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.409, 0.9], [0.611, 1.0])
    """
    if error >= 1.0:  # the factor would be infinite or negative: nothing is known
        return np.zeros_like(ratios), np.ones_like(ratios)
    # A rate is one count over another. The first may be too large and the second too small.
    factor = (1.0 + error) / (1.0 - error)
    return np.clip(ratios / factor, 0.0, 1.0), np.clip(ratios * factor, 0.0, 1.0)


def compare_rates(
    ratios: Array, low: Array, high: Array, comparison: ResolvedComparison
) -> tuple[Array, Array, Array]:
    """Return the gap's estimate and bounds from rates of shape (..., outcomes, groups).

    Examples
    --------
    >>> from equipoise.comparison import Comparison
    >>> rates = np.array([[0.5, 0.8]])
    >>> all_pairs = Comparison().resolve(["A", "B"])
    >>> [float(x.round(3)) for x in compare_rates(rates, rates - 0.1, rates + 0.1, all_pairs)]
    [0.3, 0.1, 0.5]
    """
    estimate = comparison.gap(ratios).max(axis=-1)
    lower = comparison.least_gap(low, high).max(axis=-1)
    upper = comparison.largest_gap(low, high).max(axis=-1)
    return estimate, lower, upper
