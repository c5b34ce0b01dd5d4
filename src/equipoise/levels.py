"""How a question's error probabilities are divided: the only place that divides them.

A question allows a wrong FAIR with probability ``d_F`` and a wrong UNFAIR with ``d_U`` (both are
``delta`` unless it says otherwise). An answer rests on several parts, such as bounds of past data,
and each of them may fail. The probabilities of the failures that cause a wrong FAIR add up to
``d_F``, those of the failures that cause a wrong UNFAIR to ``d_U``. Section 3.9 of
``docs/understand/guarantees.md`` has the table and the reasons; a test compares both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from equipoise.metrics import METRICS
from equipoise.question import Question, Verdict

PAST_SHARE = 0.2  # part of an audit's error level for the uncertainty of finite past data
INTERVAL_SHARE = 0.04  # part of an audit's error level for the intervals beside the verdict
CHECK_RANGE_SHARE = 0.2  # part of a free check's error level for the ranges beside the verdict
TAU_INTERVAL_SHARE = 0.1  # of an ending by labels of Baseline and RS-Audit with tau="exact"
FALSE_ALARM = 1e-6  # probability that a test of approvals refuses a fair sample

# The parts of an audit, as the guarantees call them.
FOR_VERDICT = "past data, for the verdict"
FOR_INTERVALS = "past data, for the intervals"
EVIDENCE = "evidence"
FOR_ALL_RATES = "past data, for all rates"
LABELS = "labels, for the intervals"


# -- what an answer states -------------------------------------------------------------------------


def verdict_level(question: Question, verdict: Verdict | None) -> float | None:
    """Return the probability, at most, with which a verdict is wrong; None if there is none.

    FAIR is wrong where UNFAIR is true, and a question may allow it another probability than the
    opposite mistake.

    Examples
    --------
    >>> question = Question(delta_wrong_fair=0.2, delta_wrong_unfair=0.001)
    >>> verdict_level(question, Verdict.FAIR), verdict_level(question, Verdict.UNFAIR)
    (0.2, 0.001)
    """
    if verdict is Verdict.FAIR:
        return question.level_wrong_fair
    if verdict is Verdict.UNFAIR:
        return question.level_wrong_unfair
    return None


def range_level(question: Question) -> float:
    """Return the probability, at most, with which a verdict or one of its ranges is wrong.

    It holds for the range of the gap and the ranges of rates together, and in an audit for the
    table of all rates as well. A wrong FAIR and a wrong UNFAIR exclude each other, and the ranges'
    shares of the smaller level are part of the sum of each. So the larger level covers all of it.
    """
    return max(question.level_wrong_fair, question.level_wrong_unfair)


# -- how it is divided -----------------------------------------------------------------------------


class Share(NamedTuple):
    """Which share of ``d_F`` and of ``d_U`` a part of an answer gets."""

    fair: float
    unfair: float


def shares_of_audit(past_share: float, *, by_rows: bool = False) -> Mapping[str, Share]:
    """Return which share of ``d_F`` and of ``d_U`` each part of an audit gets.

    Where past rows are evidence themselves (``by_rows``) no bound of theirs is behind a verdict.

    The shares of ``d_F`` add up to 1, and so do those of ``d_U``. ``past_share`` is the part of the
    error level that goes to past data, 0 if they are exact.
    """
    half = past_share / 2.0
    all_rates = INTERVAL_SHARE / 2.0 if past_share else 0.0
    labels = INTERVAL_SHARE - all_rates
    if by_rows:
        evidence = 1.0 - half - INTERVAL_SHARE
        return {
            FOR_VERDICT: Share(0.0, 0.0),
            FOR_INTERVALS: Share(half, half),
            EVIDENCE: Share(evidence, evidence),
            FOR_ALL_RATES: Share(all_rates, all_rates),
            LABELS: Share(labels, labels),
        }
    return {
        FOR_VERDICT: Share(half, half),
        FOR_INTERVALS: Share(half, 0.0),  # UNFAIR rests on these bounds already
        EVIDENCE: Share(1.0 - past_share - INTERVAL_SHARE, 1.0 - half - INTERVAL_SHARE),
        FOR_ALL_RATES: Share(all_rates, all_rates),
        LABELS: Share(labels, labels),
    }


@dataclass(frozen=True)
class ErrorBudget:
    """The error level of each part of an answer: it fails with at most this probability.

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
    >>> round(ErrorBudget.of_check(Question("equal_opportunity"), groups=5).past_unfair, 6)
    0.004
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
        uses_random_accepts: bool = False,
        uses_precisions: bool = False,
        n_deciders: Sequence[int] = (),
    ) -> ErrorBudget:
        """Return the budget of a free check, which rests on past data alone.

        Verdict and ranges share the error level; the table of all rates holds by itself.

        Parameters
        ----------
        question
            What is asked, with its error probabilities.
        groups
            How many groups are compared; groups that are left out get no share.
        uses_random_accepts
            Whether outcomes of random accepts bound every r as well: two more bounds for FAIR, two
            per group for all others.
        uses_precisions
            Whether precisions bound every r: two more for FAIR, one per group for all others.
        n_deciders
            How many deciders of each group bound its share of good outcomes, each from below and
            from above. A wrong FAIR needs one side of two groups, so that those with most count.
        """
        n_rates = len(METRICS[question.metric].rates)
        # A wrong FAIR needs two groups to be missed: one bound of each, and of each source of r.
        n_bounds_behind_fair = 2 * (1 + uses_random_accepts + uses_precisions) + sum(
            sorted(n_deciders)[-2:]
        )
        # A wrong UNFAIR is ruled out only if every bound of every group holds.
        n_bounds_per_group = 2 * (n_rates + uses_random_accepts) + uses_precisions
        n_bounds_behind_unfair = groups * n_bounds_per_group + 2 * sum(n_deciders)
        # The share denied and the share of good outcomes, each on both sides; then those of r.
        n_bounds_behind_table = groups * (4 + 2 * uses_random_accepts + uses_precisions)
        verdict_share = 1.0 - CHECK_RANGE_SHARE
        return cls(
            past_fair=verdict_share * question.level_wrong_fair / n_bounds_behind_fair,
            past_unfair=verdict_share * question.level_wrong_unfair / n_bounds_behind_unfair,
            # A missed range can go with either mistake, so it takes the smaller level.
            past_intervals=CHECK_RANGE_SHARE * question.strictest_level / n_bounds_behind_unfair,
            past_table=range_level(question) / n_bounds_behind_table,
        )

    @classmethod
    def of_audit(
        cls, question: Question, groups: int, *, exact: bool, by_rows: bool = False
    ) -> ErrorBudget:
        """Return the budget of an adaptive audit of so many compared groups.

        An unlimited past (``exact``) uses nothing. ``by_rows`` says whether past rows are evidence
        themselves; otherwise bounds are behind a verdict.
        """
        shares = shares_of_audit(0.0 if exact else PAST_SHARE, by_rows=by_rows)
        # UNFAIR and the intervals need both bounds of every rate in every group.
        n_bounds = 2 * len(METRICS[question.metric].rates) * groups
        verdict = shares[FOR_VERDICT]
        evidence = shares[EVIDENCE]
        # A missed interval or table can go with either mistake, so these take the smaller level.
        strictest = question.strictest_level
        return cls(
            past_fair=verdict.fair * question.level_wrong_fair / 2,
            past_unfair=verdict.unfair * question.level_wrong_unfair / n_bounds,
            past_intervals=shares[FOR_INTERVALS].fair * strictest / n_bounds,
            evidence_fair=question.level_wrong_fair * evidence.fair,
            evidence_unfair=question.level_wrong_unfair * evidence.unfair,
            label_interval=shares[LABELS].fair * strictest / groups,
            past_table=shares[FOR_ALL_RATES].fair * strictest / (4 * groups),
        )


def selection_level(question: Question, groups: int) -> float:
    """Return the error level of each of two bounds per group in the table of approvals.

    The table is beside the answer and holds by itself, all groups together, at ``delta``.
    """
    return question.delta / (2.0 * groups)


def tau_event_level(question: Question, groups: int) -> float:
    """Return the probability with which each of 8K events behind Baseline and RS-Audit may fail.

    Per group and outcome there are four: online or past, too many or too few.
    """
    return printed_tau_level(question) / (8.0 * groups)


def printed_tau_level(question: Question) -> float:
    """Return the level of each ending of Baseline and RS-Audit with the printed threshold.

    On finite historical data there are two endings, by labels and by the free check, so the audit
    is proven at twice this level.
    """
    return question.strictest_level


@dataclass(frozen=True)
class ExactTauLevels:
    """How the error probability is divided with ``tau="exact"``.

    Attributes
    ----------
    share_of_ending
        What an ending by labels may spend of the question's error probability. An audit on finite
        historical data may also end by the free check, which may spend the rest.
    wrong_fair, wrong_unfair
        The level of each verdict by labels.
    intervals
        The level of all rates' intervals together.
    """

    share_of_ending: float
    wrong_fair: float
    wrong_unfair: float
    intervals: float


def exact_tau_levels(question: Question, *, known_past: bool) -> ExactTauLevels:
    """Return the levels of Baseline and RS-Audit with ``tau="exact"``.

    Examples
    --------
    >>> round(exact_tau_levels(Question(delta=0.1), known_past=False).wrong_fair, 6)
    0.045
    """
    share = 1.0 if known_past else 0.5
    verdict_share = share * (1.0 - TAU_INTERVAL_SHARE)
    return ExactTauLevels(
        share_of_ending=share,
        wrong_fair=verdict_share * question.level_wrong_fair,
        wrong_unfair=verdict_share * question.level_wrong_unfair,
        intervals=share * TAU_INTERVAL_SHARE * question.strictest_level,
    )


def exp_event_level(delta: float, groups: int) -> float:
    """Return the probability with which each of 14K events of Exp-Audit's proof may fail."""
    return delta / (14.0 * groups)


def approval_level(groups: int) -> float:
    """Return the error level of each of three bounds in a group's test of approvals.

    Two of them bound the past share of approvals, one the share among arrivals.
    """
    return FALSE_ALARM / (3.0 * groups)


def exp_level(question: Question) -> float:
    """Return the error level of each of Exp-Audit's two endings: its model, or RS-Audit instead."""
    return question.strictest_level / 2.0
