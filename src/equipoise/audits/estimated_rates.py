"""The paper's estimates of ``P[f=1 | Y=y, A=a]``: the threshold tau, what it buys, and the verdict.

Baseline, RS-Audit and Exp-Audit estimate these rates as ratios of counts up to the tau-th success
and compare them (:mod:`equipoise.audits.tau_audit`, :mod:`equipoise.audits.exp_audit`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace

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
    proven = not by_features or question.comparison == Comparison()
    rates = {rate.name for rate in metric.rates}
    return metric.is_free or (proven and rates <= set(RATE_OF_OUTCOME.values()))


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
        answered = ", ".join(name for name in METRICS if can_answer(Question(name)))
        raise InvalidInput(
            "Baseline, RS-Audit and Exp-Audit compare P[f=1 | Y=y, A=a] and cannot answer "
            f"'metric' {question.metric!r}; use one of {answered}, or another audit"
        )
    names = {rate.name for rate in METRICS[question.metric].rates}
    return tuple(y for y, name in RATE_OF_OUTCOME.items() if name in names)


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
    return 24.0 * math.sqrt(-math.log(tau_event_level(question, groups)) / tau)


def describe_missing_rows(
    history: Past, goals: Sequence[Goal], tau: int, within_group: bool
) -> tuple[str, ...]:
    """Say how many past rows are missing, about, until ``tau`` approved people meet each goal.

    Of the goals that the same rows serve (a group's own, or all) the scarcest is named: rows
    enough for it are enough for the others.
    """
    counts = {
        (y, a): history.cells[a].approved_positive if y else history.cells[a].approved_negative
        for y, a in goals
    }
    lines: dict[str, str] = {}
    for (outcome, group), found in sorted(counts.items(), key=lambda one: one[1]):
        who = f"people of group {group!r} who were approved and had outcome {outcome}"
        read, kind = history.cells.total, "any group"
        if within_group:
            read, kind = history.cells[group].total, f"group {group!r}"
        if found == 0:
            lines.setdefault(kind, f"{who}: none were found, and {tau:,} are needed")
        elif found < tau and not history.exact:
            more = f"about {read * (tau / found - 1.0):,.0f} more past rows of {kind}"
            lines.setdefault(kind, f"{more}: {found:,.0f} {who}, and {tau:,} are needed")
    rest = len(lines) - MAX_GROUPS_NAMED
    last = [f"and likewise of {rest} more groups that lack less"] if rest > 0 else []
    return (*list(lines.values())[:MAX_GROUPS_NAMED], *last)


def parse_count(given: object, default: int, name: str = "tau") -> int:
    """Return a count that is a whole number of at least 1 and that a float holds exactly."""
    tau = default if given is None else given
    if isinstance(tau, bool) or not isinstance(tau, int | np.integer) or not 1 <= tau < 2**53:
        shown = "a larger one" if isinstance(tau, int) and tau > 1 else repr(tau)
        raise InvalidInput(
            f"{name!r} must be a whole number of at least 1, below 2**53; got {shown}"
        )
    return int(tau)


# -- findings from estimated rates -------------------------------------------------------------


def finding_from_rates(
    audit: Audit, p_hat: Array, q_hat: Array, rates: Array, low: Array, high: Array
) -> Finding:
    """Return the paper's verdict: UNFAIR if the estimate is above ``gamma + epsilon/2``.

    All arrays have shape (outcomes of the metric, groups), NaN of groups that are not compared:
    ``P[f=1, Y=y | a]`` and ``P[Y=y | a]``, the rates, and bounds of these.
    """
    question, groups = audit.question, audit.cells.groups
    found = compare_rates(rates, low, high, question.resolve(groups))
    estimate, lower, upper = (float(x) for x in found)
    limit = question.gamma + question.epsilon / 2.0
    verdict, side = (Verdict.UNFAIR, "above") if estimate > limit else (Verdict.FAIR, "at most")
    scale = f"the estimated {question.gap_scale.noun} {estimate:.4g}"
    reason = f"{scale} is {side} gamma + epsilon/2 = {limit:g}"
    outcomes = outcomes_to_estimate(question)
    intervals: dict[str, dict[str, Interval]] = {}
    for y, *row in zip(outcomes, low, high, rates, strict=True):
        ends = zip(*(column.tolist() for column in row), strict=True)
        known = [Interval(*own) if own[2] >= 0.0 else Interval(0.0, 1.0) for own in ends]
        intervals[RATE_OF_OUTCOME[y]] = dict(zip(groups, known, strict=True))

    def named(table: Array) -> dict[str, dict[str, float]]:
        rows = (zip(groups, row, strict=True) for row in table.tolist())
        values = ({group: x for group, x in row if x >= 0.0} for row in rows)
        return dict(zip(map(str, outcomes), values, strict=True))

    finding = Finding(question, verdict, lower, upper, reason, estimate, intervals)
    return audit.with_spending(replace(finding, p_hat=named(p_hat), q_hat=named(q_hat)))


def finding_of_free_check(audit: Audit) -> Finding:
    """Return the free check's answer as an audit's, which can be read back as a finding."""
    return Finding(**{f.name: getattr(audit.known_for_free, f.name) for f in fields(Finding)})


def inconclusive_finding(audit: Audit, why: str, missing: tuple[str, ...]) -> Finding:
    """Return what the past alone establishes, and what is missing."""
    free = finding_of_free_check(audit)
    free = replace(free, verdict=Verdict.INCONCLUSIVE, estimate=None, decided_by=None, warnings=())
    return audit.with_spending(replace(free, reason=f"{why}; {free.reason}", missing=missing))


def rate_bounds(ratios: Array, error: float) -> tuple[Array, Array]:
    """Return bounds of the rates when every count N is within ``(1 ± error)`` of its mean.

    No rate exceeds 1, so a lower bound of 1 says that no population explains the counts.

    Examples
    --------
    >>> low, high = rate_bounds(np.array([0.5, 1.1]), 0.1)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.409, 0.9], [0.611, 1.0])
    """
    if error >= 1.0:
        return np.zeros_like(ratios), np.ones_like(ratios)
    factor = (1.0 + error) / (1.0 - error)
    return np.clip(ratios / factor, 0.0, 1.0), np.clip(ratios * factor, 0.0, 1.0)


def compare_rates(
    ratios: Array, low: Array, high: Array, compare: ResolvedComparison
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
    estimate, lower, upper = (
        compare.gap(ratios),
        compare.least_gap(low, high),
        compare.largest_gap(low, high),
    )
    return estimate.max(axis=-1), lower.max(axis=-1), upper.max(axis=-1)
