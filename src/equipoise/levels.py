"""How a question's error probabilities are divided: the only place that divides them.

A question allows a wrong FAIR with probability ``d_F`` and a wrong UNFAIR with ``d_U`` (both are
``delta`` unless it says otherwise). Whatever an answer rests on may fail, and what each part may
fail with adds up to ``d_F``, and to ``d_U``. The table is in section 3.9 of
``docs/understand/guarantees.md``, with the reasons; a test compares both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from equipoise.metrics import METRICS
from equipoise.question import Question

PAST_SHARE = 0.2  # of the level of an audit goes to the uncertainty of finite past data
INTERVAL_SHARE = 0.04  # of the level of an audit goes to the intervals reported beside the verdict
FALSE_ALARM = 1e-6  # probability that a test of approvals refuses a fair sample


def shares_of_audit(past_share: float) -> Mapping[str, tuple[float, float]]:
    """Return part -> its share of ``d_F`` and of ``d_U``, which add up to 1 each."""
    half = past_share / 2.0
    table = INTERVAL_SHARE / 2.0 if past_share else 0.0
    return {
        "past data, for the verdict": (half, half),
        "past data, for the intervals": (half, 0.0),  # UNFAIR rests on these bounds already
        "evidence": (1.0 - past_share - INTERVAL_SHARE, 1.0 - half - INTERVAL_SHARE),
        "past data, for all rates": (table, table),
        "labels, for the intervals": (INTERVAL_SHARE - table, INTERVAL_SHARE - table),
    }


@dataclass(frozen=True)
class ErrorBudget:
    """The level at which each part of an answer works: it fails with at most this probability.

    Attributes
    ----------
    past_fair
        Each one-sided bound of past data behind FAIR. A wrong FAIR needs one true piece (a rate, a
        group above, a group below) to be missed, so two bounds suffice for any number of groups.
    past_unfair
        Each one-sided bound of past data behind UNFAIR. A wrong UNFAIR is ruled out only if all
        rates of all groups are bounded on both sides at once.
    past_intervals
        Each one-sided bound of past data behind the reported intervals, which have to hold all at
        once as well.
    evidence_fair, evidence_unfair
        Evidence of labels, against the whole UNFAIR set and against the whole FAIR set. Several
        covers of a set are averaged and divide nothing.
    label_interval
        The interval of one group's r from labels, at all times together.
    past_table
        Each one-sided bound behind the table of all rates: of a group's share denied and of the
        share of good outcomes among its approved.

    Examples
    --------
    >>> budget = ErrorBudget.of_audit(Question("equal_opportunity"), groups=2, exact=True)
    >>> budget.evidence_fair, budget.past_fair
    (0.048, 0.0)
    >>> ErrorBudget.of_check(Question("equal_opportunity"), groups=5).past_unfair
    0.005
    """

    past_fair: float
    past_unfair: float
    past_intervals: float
    evidence_fair: float = 0.0
    evidence_unfair: float = 0.0
    label_interval: float = 0.0
    past_table: float = 0.0

    @classmethod
    def of_check(
        cls,
        question: Question,
        groups: int,
        *,
        labels: bool = False,
        precisions: bool = False,
        deciders: Sequence[int] = (),
    ) -> ErrorBudget:
        """Return the budget of a free check, which rests on past data alone.

        Parameters
        ----------
        labels
            Whether outcomes of random accepts bound every r as well: two more bounds for FAIR, two
            per group for all others.
        precisions
            Whether precisions bound every r: two more for FAIR, one per group for all others.
        deciders
            How many deciders of each group bound its share of good outcomes, each from below and
            from above. A wrong FAIR needs one side of two groups, so that those with most count.
        """
        a_piece = 2 * (1 + labels + precisions) + sum(sorted(deciders)[-2:])
        all_bounds = groups * (2 * (len(METRICS[question.metric].rates) + labels) + precisions)
        all_bounds += 2 * sum(deciders)
        return cls(
            question.level_wrong_fair / a_piece,
            question.level_wrong_unfair / all_bounds,
            question.delta / all_bounds,
            past_table=question.delta / (groups * (4 + 2 * labels + precisions)),
        )

    @classmethod
    def of_audit(cls, question: Question, groups: int, *, exact: bool) -> ErrorBudget:
        """Return the budget of an adaptive audit; an unlimited past (``exact``) uses nothing."""
        shares = shares_of_audit(0.0 if exact else PAST_SHARE)
        fair, unfair = question.level_wrong_fair, question.level_wrong_unfair
        verdict, (intervals, _), evidence, (table, _), (labels, _) = shares.values()
        all_bounds = 2 * len(METRICS[question.metric].rates) * groups
        return cls(
            verdict[0] * fair / 2,
            verdict[1] * unfair / all_bounds,
            intervals * question.strictest_level / all_bounds,
            fair * evidence[0],
            unfair * evidence[1],
            labels * question.strictest_level / groups,
            table * question.strictest_level / (4 * groups),
        )


def tau_event_level(question: Question, groups: int) -> float:
    """Return the probability with which each of 8K events behind Baseline and RS-Audit may fail.

    Per group and outcome there are four: online or past, too many or too few.
    """
    return question.strictest_level / (8.0 * groups)


def exp_event_level(delta: float, groups: int) -> float:
    """Return the probability with which each of 14K events of Exp-Audit's proof may fail."""
    return delta / (14.0 * groups)


def approval_level(groups: int) -> float:
    """Return the level of a group's test of approvals: two bounds of its past, one of arrivals."""
    return FALSE_ALARM / (3.0 * groups)


def exp_level(question: Question) -> float:
    """Return the level of each ending of Exp-Audit: by its model, or by RS-Audit if that fails."""
    return question.strictest_level / 2.0
