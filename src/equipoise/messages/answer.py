"""What an answer says, derived from a finding once.

:func:`build_answer` collects the verdict, its error level, the range of the gap, the groups that
differ and the assumptions. Terminal, report, dashboard, notebook and ``str`` lay the parts out.
None of them derives anything from the rates of a finding itself, so that all of them say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.comparison import GapScale
from equipoise.finding import Finding, Interval, Separation, compared_pairs
from equipoise.question import Question, Verdict


@dataclass(frozen=True)
class GroupDifference:
    """Two groups that the question compares, and how much they differ in a rate.

    Attributes
    ----------
    pair
        The rate, the higher group and the lower one.
    is_established
        Whether the ranges of the two groups do not meet.
    least
        The gap between them that is established, if one is, in the question's scale.
    estimate
        The best guess at their gap, None if one of their rates has none.
    """

    pair: Separation
    is_established: bool
    least: float
    estimate: float | None


@dataclass(frozen=True)
class Answer:
    """Everything that is said about a finding, as values; the properties are sentences.

    Attributes
    ----------
    question
        What was asked.
    verdict
        FAIR, UNFAIR or INCONCLUSIVE; None while an audit is in progress.
    error_level
        The probability, at most, with which this verdict is wrong. None if there is no verdict, or
        if no error probability is proven for it.
    gap
        The range that is established for the gap, with the best guess: the one range of the answer.
    reason
        Why this verdict, as a clause.
    differences
        The compared pairs of groups whose ranges do not meet, in the order of rates and groups.
    decided_by
        After UNFAIR, the pair that stands for the verdict, None if no pair does by itself.
    largest_estimated
        The compared pair with the largest estimated gap, None if an estimate is missing.
    missing, assumptions, warnings
        What would decide, what the answer rests on, and which assumptions the data speak against.
    """

    question: Question
    verdict: Verdict | None
    error_level: float | None
    gap: Interval
    reason: str
    differences: tuple[GroupDifference, ...]
    decided_by: GroupDifference | None
    largest_estimated: GroupDifference | None
    missing: tuple[str, ...]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The verdict and its reason in a line."""
        verdict = "no verdict yet" if self.verdict is None else str(self.verdict)
        return f"{verdict}: {self.reason}"

    @property
    def sentence(self) -> str:
        """The verdict of an audit in one or two sentences, with its error probability."""
        lower = format_gap(self.question, self.gap.lower)
        upper = format_gap(self.question, self.gap.upper)
        range_text = f"between {lower} and {upper}"
        if self.verdict is None:
            return f"The audit is in progress. The gap between groups is {range_text} so far."
        if self.verdict is Verdict.INCONCLUSIVE:
            return f"The audit ended without an answer: the gap between groups is {range_text}."
        # A verdict that rests on a model (Exp-Audit) or on a threshold that is too low for the
        # paper's proof.
        if self.error_level is None:
            estimate = format_gap(self.question, self.gap.estimate or 0.0)
            return (
                f"The gap between groups is estimated to be {estimate}; no error probability is "
                "proven for it."
            )
        if self.verdict is Verdict.FAIR:
            statement = f"at most {format_gap(self.question, self.question.threshold)}"
        else:
            statement = f"more than {format_gap(self.question, self.question.gamma)}"
        return (
            f"The gap between groups is {statement}. Audits like this one answer wrongly with "
            f"probability at most {format_level(self.error_level)}."
        )

    @property
    def who(self) -> str:
        """Who differs in which rate, which way and by how much; empty where no groups stand out.

        After UNFAIR the groups that the ranges separate, else those of the largest guessed gap.
        """
        if self.decided_by is not None:
            return self._describe_decided(self.decided_by)
        largest = self.largest_estimated
        if largest is not None and largest.estimate is not None:
            size = _format_gap_size(self.question.gap_scale, largest.estimate)
            return f"by the best guess {largest.pair} by {size}, the largest gap"
        if self.verdict is Verdict.UNFAIR:
            return "no rate by itself tells two groups apart; all of them together do"
        return ""

    def _describe_decided(self, difference: GroupDifference) -> str:
        """Return who differs by how much at least, after a verdict that intervals decided."""
        scale = self.question.gap_scale
        guess = ""
        if difference.estimate is not None:
            # The estimate is a plug-in value and may lie below what is established.
            likely = max(difference.estimate, difference.least)
            guess = f", {_format_gap_size(scale, likely)} by the best guess"
        least = _format_gap_size(scale, difference.least)
        return f"{difference.pair} by at least {least}{guess}"

    @property
    def meaning(self) -> str:
        """What the verdict says and what it does not, in a sentence."""
        if self.verdict is None or self.verdict is Verdict.INCONCLUSIVE:
            return (
                "INCONCLUSIVE says that neither is established; the range for the gap is, all the "
                "same"
            )
        gamma = f"{self.question.gamma:g}"
        threshold = f"{self.question.threshold:.10g}"
        if self.verdict is Verdict.FAIR:
            established = f"at most {threshold}"
            not_established = f"at most {gamma}"
        else:
            established = f"more than {gamma}"
            not_established = f"more than {threshold}"
        return (
            f"{self.verdict} says that the gap is {established}, not that it is {not_established}: "
            "between the two both answers are right, and the range may reach there"
        )

    @property
    def gap_unit(self) -> str:
        """The unit in which hundredths of the gap are given."""
        return name_gap_unit(self.question)


def build_answer(finding: Finding, *, is_final: bool = True) -> Answer:
    """Return what a finding says.

    Parameters
    ----------
    finding
        The finding of a check or an audit.
    is_final
        False for what an audit has established so far: then there is no verdict yet.

    Examples
    --------
    >>> rates = {"selection_rate": {"A": Interval(0.6, 0.7), "B": Interval(0.3, 0.4)}}
    >>> question = Question("demographic_parity", gamma=0.1, epsilon=0.1)
    >>> answer = build_answer(Finding(question, Verdict.UNFAIR, 0.2, 0.4, "x", rates=rates))
    >>> print(answer.sentence)
    The gap between groups is more than 10 percentage points. Audits like this one answer wrongly
    with probability at most 5.0%.
    >>> [str(difference.pair) for difference in answer.differences]
    ['the selection rate of A is above that of B']
    """
    question = finding.question
    compared = _compare_groups(finding)
    verdict = finding.verdict if is_final else None
    decided_by = None
    for difference in compared:
        if difference.pair == finding.decided_by:
            decided_by = difference
    return Answer(
        question=question,
        verdict=verdict,
        error_level=error_level(question, verdict) if finding.guaranteed else None,
        gap=Interval(finding.lower, finding.upper, finding.estimate),
        reason=finding.reason,
        differences=tuple(difference for difference in compared if difference.is_established),
        decided_by=decided_by,
        largest_estimated=_largest_estimated(compared),
        missing=finding.missing,
        assumptions=finding.assumptions,
        warnings=finding.warnings,
    )


def error_level(question: Question, verdict: Verdict | None) -> float | None:
    """Return the probability, at most, with which a verdict is wrong; None without a verdict.

    The question may allow another probability for a wrong FAIR than for a wrong UNFAIR.
    """
    if verdict is Verdict.FAIR:
        return question.level_wrong_fair
    if verdict is Verdict.UNFAIR:
        return question.level_wrong_unfair
    return None


def _compare_groups(finding: Finding) -> list[GroupDifference]:
    """Return every pair of groups that the question compares, in each rate and direction."""
    scale = finding.question.gap_scale
    pairs = compared_pairs(finding.rates, finding.question.comparison)  # pair, higher, lower
    has_one_pair = _is_one_pair([pair for pair, _, _ in pairs])
    differences = []
    for pair, higher, lower in pairs:
        least = float(scale.gap(lower.upper, higher.lower))
        # With one pair the gap of the finding is the gap of these groups, and its bound may be
        # better: it follows from both groups together.
        if has_one_pair:
            least = max(least, finding.lower)
        estimate = None
        if lower.estimate is not None and higher.estimate is not None:
            estimate = float(scale.gap(lower.estimate, higher.estimate))
        is_established = higher.lower > lower.upper
        differences.append(GroupDifference(pair, is_established, least, estimate))
    return differences


def _is_one_pair(pairs: Sequence[Separation]) -> bool:
    """Return whether one rate of two groups is all that is compared, in whatever order."""
    compared = {(pair.rate, frozenset({pair.higher, pair.lower})) for pair in pairs}
    return len(compared) == 1


def _largest_estimated(compared: Sequence[GroupDifference]) -> GroupDifference | None:
    """Return the pair with the largest estimated gap, None if an estimate is missing."""
    largest = None
    largest_estimate = float("-inf")
    for difference in compared:
        # The largest of the others need not be the largest of all.
        if difference.estimate is None:
            return None
        if difference.estimate > largest_estimate:
            largest = difference
            largest_estimate = difference.estimate
    return largest


# -- numbers in words -----------------------------------------------------------------------------


def name_gap_unit(question: Question) -> str:
    """Return the unit in which hundredths of the gap are given."""
    is_ratio = question.gap_scale is GapScale.RATIO
    return "percent of the highest rate" if is_ratio else "percentage points"


def format_gap(question: Question, share: float) -> str:
    """Return a gap in the unit of the question, with three significant figures."""
    points = share * 100.0
    if question.gap_scale is GapScale.RATIO:
        return f"{points:.3g}% of the highest rate"
    return f"{points:.3g} percentage point{'' if points == 1 else 's'}"


def format_level(level: float) -> str:
    """Return an error probability in percent."""
    return f"{level:.1%}"


def _format_gap_size(scale: GapScale, gap: float) -> str:
    """Return how far a lower rate is from a higher one."""
    points = f"{gap * 100.0:.3g}"
    if scale is GapScale.RATIO:
        return f"{points}% of it"
    return f"{points} percentage point{'' if points == '1' else 's'}"
