"""What an answer says, derived from a finding once.

:func:`build_answer` collects the verdict, its error level, the range of the gap, the groups that
differ and the assumptions. Terminal, report, dashboard, notebook and ``str`` lay the parts out.
None of them derives anything from the rates of a finding itself, so that all of them say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.comparison import WITHIN, GapScale
from equipoise.display import format_level, format_number, round_down, round_up
from equipoise.finding import Finding, Interval, ProofStatus, Separation, compared_pairs
from equipoise.metrics import METRICS
from equipoise.question import Question, Verdict
from equipoise.rates import CONFUSION_CELLS, RATES, Rate


@dataclass(frozen=True)
class GroupDifference:
    """Two groups that the question compares, and how much they differ in a rate.

    Attributes
    ----------
    pair
        The rate, the higher group and the lower one.
    is_established
        Whether the ranges of the two groups do not meet.
    estimate
        The best guess at their gap, None if one of their rates has none.
    """

    pair: Separation
    is_established: bool
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
    range_level
        The probability, at most, with which the verdict is wrong or the range misses the gap.
    proof
        Whether the two levels are proven, and under which kind of assumptions.
    gap
        The range that is established for the gap, with the estimate: the one range of the answer.
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
    contradiction
        Which data contradict what is assumed; then the range holds without the assumption.
    """

    question: Question
    verdict: Verdict | None
    error_level: float | None
    range_level: float
    proof: ProofStatus
    gap: Interval
    reason: str
    differences: tuple[GroupDifference, ...]
    decided_by: GroupDifference | None
    largest_estimated: GroupDifference | None
    missing: tuple[str, ...]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    contradiction: str | None = None

    @property
    def title(self) -> str:
        """The verdict as a heading."""
        return "NO VERDICT YET" if self.verdict is None else str(self.verdict)

    @property
    def summary(self) -> str:
        """The whole answer in a line: the verdict, its meaning, and the groups that differ most."""
        return f"{self.title}. {self.details}"

    @property
    def details(self) -> str:
        """What follows the verdict in that line."""
        if not self.who:
            return self.sentence
        return f"{self.sentence} {self.who[0].upper()}{self.who[1:]}."

    @property
    def sentence(self) -> str:
        """What the verdict says, in words, with its error probability."""
        if self.verdict is Verdict.FAIR or self.verdict is Verdict.UNFAIR:
            return f"{state_verdict(self.question, self.verdict)} ({self.error_clause})."
        # The range is written "2 to 7 points", and a sentence has "between 2 and 7 points".
        gap_range = self.gap_range.replace(" to ", " and ")
        gap = f"gap is between {gap_range} ({self.error_clause})"
        if self.contradiction is not None:
            return (
                "The data contradict an assumption, so there is no verdict. Without the assumption "
                f"the {gap}."
            )
        subject = "So far the" if self.verdict is None else "The"
        return f"{subject} {gap}{self._end_without_verdict()}"

    def _end_without_verdict(self) -> str:
        """Return how a sentence about the range goes on: what it leaves open, and the full stop."""
        right_answers = self._right_throughout
        if not right_answers:
            return ", so both answers are possible."
        # A range and a verdict are computed each on its own, so a range may lie where an answer is
        # right although that answer was not given.
        subject = "Both answers are"
        if len(right_answers) == 1:
            subject = f"{right_answers[0]} is"
        consequence = "the audit gave no verdict"
        if self.verdict is None:
            consequence = "there is no verdict yet"
        return f". {subject} right for every gap in this range, but {consequence}."

    @property
    def _right_throughout(self) -> tuple[Verdict, ...]:
        """The verdicts that are right for every gap in the range."""
        verdicts = []
        # Between tolerance and threshold both are right, so both conditions may hold.
        if self.gap.upper <= self.question.threshold:
            verdicts.append(Verdict.FAIR)
        if self.gap.lower > self.question.gamma:
            verdicts.append(Verdict.UNFAIR)
        return tuple(verdicts)

    @property
    def error_clause(self) -> str:
        """The error probability of the verdict, or of the range where there is no verdict."""
        if self.proof is ProofStatus.NOT_PROVEN:
            return "no error probability is proven"
        # Without a verdict there is only the range to be wrong about.
        level = self.range_level if self.error_level is None else self.error_level
        clause = f"error probability at most {format_level(level)}"
        if self.proof is ProofStatus.UNDER_ASSUMPTIONS:
            clause += " if the stated assumptions hold"
        return clause

    @property
    def range_note(self) -> str:
        """The error probability of the range, where it is not the verdict's; else nothing."""
        if self.error_level is None or self.error_level == self.range_level:
            return ""
        return f"error probability of this range at most {format_level(self.range_level)}"

    @property
    def gap_range(self) -> str:
        """The range of the gap with its unit, rounded outwards."""
        is_ratio = self.question.gap_scale is GapScale.RATIO
        return f"{self.gap.hundredths}{'% of the highest rate' if is_ratio else ' points'}"

    @property
    def is_who_estimated(self) -> bool:
        """Whether :attr:`who` rests on estimates, which pictures show as a hollow dot."""
        return self.largest_estimated is not None and self.largest_estimated.estimate is not None

    @property
    def who(self) -> str:
        """The two groups that differ most, as a clause without a full stop; or nothing.

        Where there are estimates it gives the largest estimated difference. The verdict does not
        prove which groups differ, so no bound is given for a pair.
        """
        largest = self.largest_estimated
        if largest is not None and largest.estimate is not None:
            # The finding's own estimate goes first: no page may show two numbers for one gap.
            estimate = largest.estimate if self.gap.estimate is None else self.gap.estimate
            if estimate <= 0.0:
                return ""
            return f"largest estimated difference: {self._describe_pair(largest.pair, estimate)}"
        if self.decided_by is not None:
            return f"the ranges do not overlap: {self._describe_pair(self.decided_by.pair)}"
        if self.verdict is Verdict.UNFAIR:
            return "no rate by itself tells two groups apart, all of them together do"
        return ""

    def _describe_pair(self, pair: Separation, gap: float | None = None) -> str:
        """Return who is below or above whom, and by how much if it is known."""
        question = self.question
        reference = question.comparison.against
        # The group that the reader asks about comes first: not the reference, or the worse one.
        begins_with_lower = not RATES[pair.rate].is_worse_if_higher
        if reference is not None:
            begins_with_lower = _is_reference(pair.higher, reference)
        side = "below" if begins_with_lower else "above"
        distance = _describe_distance(question.gap_scale, gap, side)
        # With one rate only, the metric has said which rate it is.
        has_several_rates = len(METRICS[question.metric].rates) > 1
        rate = f" in the {RATES[pair.rate].words}" if has_several_rates else ""
        if begins_with_lower:
            return f"{pair.lower}, {distance}below {pair.higher}{rate}"
        return f"{pair.higher}, {distance}above {pair.lower}{rate}"

    @property
    def meaning(self) -> str:
        """What the verdict means and what it does not mean, in a sentence."""
        gamma = format_gap(self.question, self.question.gamma)
        threshold = format_gap(self.question, self.question.threshold)
        zone = f"between {gamma} and {threshold} either answer is right"
        if self.verdict is Verdict.FAIR:
            return f"FAIR establishes a gap of at most {threshold}; {zone}"
        if self.verdict is Verdict.UNFAIR:
            return f"UNFAIR establishes a gap of more than {gamma}; {zone}"
        if self.verdict is None:
            return f"FAIR is right up to {gamma}, UNFAIR above {threshold}; {zone}"
        return "INCONCLUSIVE establishes the range of the gap only"

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
    Some group is approved more than 10 points less often than another (error probability at most
    5%).
    >>> [str(difference.pair) for difference in answer.differences]
    ['the selection rate of A is above that of B']
    """
    compared = _compare_groups(finding)
    verdict = finding.verdict if is_final else None
    # The finding names the pair alone. With its estimate it is one of those compared.
    decided_by = None
    for difference in compared:
        if difference.pair == finding.decided_by:
            decided_by = difference
    assert finding.range_level is not None  # a finding fills it in
    return Answer(
        question=finding.question,
        verdict=verdict,
        error_level=finding.error_level if is_final else None,
        range_level=finding.range_level,
        proof=finding.proof,
        gap=Interval(finding.lower, finding.upper, finding.estimate),
        reason=finding.reason,
        differences=tuple(difference for difference in compared if difference.is_established),
        decided_by=decided_by,
        largest_estimated=_largest_estimated(compared),
        missing=finding.missing,
        assumptions=finding.assumptions,
        warnings=finding.warnings,
        contradiction=finding.contradiction,
    )


def _compare_groups(finding: Finding) -> list[GroupDifference]:
    """Return every pair of groups that the question compares, in each rate and direction."""
    scale = finding.question.gap_scale
    pairs = compared_pairs(finding.rates, finding.question.comparison)
    differences = []
    for pair, higher, lower in pairs:
        estimate = None
        if lower.estimate is not None and higher.estimate is not None:
            estimate = float(scale.gap(lower.estimate, higher.estimate))
        is_established = higher.lower > lower.upper
        differences.append(GroupDifference(pair, is_established, estimate))
    return differences


def _largest_estimated(compared: Sequence[GroupDifference]) -> GroupDifference | None:
    """Return the pair with the largest estimated gap, None if an estimate is missing."""
    largest = None
    largest_estimate = float("-inf")
    for difference in compared:
        if difference.estimate is None:  # this pair may be the one with the largest gap
            return None
        if difference.estimate > largest_estimate:
            largest = difference
            largest_estimate = difference.estimate
    return largest


# -- a verdict in words ---------------------------------------------------------------------------

_PEOPLE = {
    frozenset({"tp", "fn"}): "people who would turn out well",
    frozenset({"fp", "tn"}): "people who would turn out badly",
    frozenset({"tp", "fp"}): "approved people",
    frozenset({"fn", "tn"}): "denied people",
}
"""The cells of a rate's denominator -> who they are. All four cells are everybody."""

_EVENTS = {
    frozenset({"tp", "fp"}): "is approved",
    frozenset({"fn", "tn"}): "is denied",
    frozenset({"tp", "fn"}): "turns out well",
    frozenset({"fp", "tn"}): "turns out badly",
    frozenset({"tp", "tn"}): "is decided correctly",
    frozenset({"fp", "fn"}): "is decided wrongly",
}
"""The cells of which a rate's numerator is the part inside its denominator -> what happens."""


def state_verdict(question: Question, verdict: Verdict) -> str:
    """Return what FAIR or UNFAIR says about the groups, without a full stop.

    Examples
    --------
    >>> print(state_verdict(Question("equal_opportunity"), Verdict.UNFAIR))
    Among people who would turn out well, some group is approved more than 5 points less often than
    another
    """
    # Rates that count the same event share one statement, which lists their people.
    people_by_event: dict[tuple[str, str], list[str]] = {}
    for rate in METRICS[question.metric].rates:
        event = _event_of(rate)
        if event is None:
            return _state_by_names(question, verdict)
        kind = _PEOPLE.get(frozenset(rate.whole), "")
        people_by_event.setdefault((event, _frequency_word(question, rate)), []).append(kind)
    is_fair = verdict is Verdict.FAIR
    # FAIR holds of every rate. UNFAIR establishes that one of them differs, and not which.
    conjunction = "and" if is_fair else "or"
    statements = []
    for (event, frequency), people in people_by_event.items():
        among = f" {conjunction} ".join(f"among {kind}" for kind in people if kind)
        statement = (
            f"{'no' if is_fair else 'some'} group {event} more than "
            f"{_verdict_bound(question, verdict, frequency)} often than {_other_group(question)}"
        )
        statements.append(f"{among}, {statement}" if among else statement)
    text = f", {conjunction} ".join(statements)
    return f"{text[0].upper()}{text[1:]}"


def _event_of(rate: Rate) -> str | None:
    """Return what a rate counts, such as "is approved"; None for a rate that a user registered."""
    if frozenset(rate.whole) not in _PEOPLE and rate.whole != CONFUSION_CELLS:
        return None
    for cells, event in _EVENTS.items():
        if rate.part == cells & rate.whole:
            # A denied person had no chance to turn out in any way.
            is_denied = rate.whole == {"fn", "tn"}
            return event.replace("turns", "would turn") if is_denied else event
    return None


def name_rate_axis(name: str) -> str:
    """Return what a rate counts, as the title of an axis in hundredths.

    Examples
    --------
    >>> name_rate_axis("true_positive_rate"), name_rate_axis("selection_rate")
    ('Approved, of 100 people who would turn out well', 'Approved, of 100 people')
    """
    rate = RATES[name]
    event = _event_of(rate)
    if event is None:
        return f"{rate.words.capitalize()} (%)"
    event_words = (
        event.removeprefix("is ").replace("would turn", "turning").replace("turns", "turning")
    )
    people = _PEOPLE.get(frozenset(rate.whole), "people")
    return f"{event_words[0].upper()}{event_words[1:]}, of 100 {people}"


def _frequency_word(question: Question, rate: Rate) -> str:
    """Return which side of the other group the question asks about."""
    comparison = question.comparison
    if comparison.against is None:
        return "more" if rate.is_worse_if_higher else "less"
    return {"below": "less", "above": "more", "both": "less or more"}[comparison.direction]


def _verdict_bound(question: Question, verdict: Verdict, side: str) -> str:
    """Return the gap that FAIR excludes or that UNFAIR exceeds, and the side: "5 points less".

    A ratio's gap is a share of the higher rate. Seen from the lower rate, the same gap is a larger
    share: 20% less is 25% more.
    """
    is_fair = verdict is Verdict.FAIR
    gap = question.threshold if is_fair else question.gamma
    points = format_number(gap * 100.0)  # as the user gave it, so nothing is rounded
    if question.gap_scale is not GapScale.RATIO:
        return f"{points} point{'' if points == '1' else 's'} {side}"
    seen_from_higher = f"{points}%"
    seen_from_lower = ""
    share_of_lower = _share_of_lower(gap)
    if share_of_lower is not None:
        # FAIR excludes larger gaps and UNFAIR exceeds this one: each is rounded to its safe side.
        rounded = round_up(share_of_lower, 1) if is_fair else round_down(share_of_lower, 1)
        seen_from_lower = f"{rounded}%".replace(".0%", "%")
    # The words of a side are those of its two ends, such as "less or more".
    below_word, _, above_word = side.partition(" or ")
    if above_word:
        return f"{seen_from_higher} {below_word} or {seen_from_lower} {above_word}"
    if side in ("more", "above"):
        return f"{seen_from_lower} {side}"
    return f"{seen_from_higher} {side}"


def _share_of_lower(gap: float) -> float | None:
    """Return a ratio's gap in percent of the lower rate; None where that rate is 0."""
    return 100.0 * gap / (1.0 - gap) if gap < 1.0 else None


def _describe_distance(scale: GapScale, gap: float | None, side: str) -> str:
    """Return an estimated gap with a space behind it; nothing where it has no number."""
    if gap is None:
        return ""
    if scale is not GapScale.RATIO:
        points = format_number(gap * 100.0, 3)
        return f"{points} point{'' if points == '1' else 's'} "
    # The group that is named first is measured by the rate of the second.
    percent = _share_of_lower(gap) if side == "above" else 100.0 * gap
    if percent is None:
        return ""
    return f"{percent:,.0f}% " if percent >= 1000.0 else f"{format_number(percent, 3)}% "


def _other_group(question: Question) -> str:
    comparison = question.comparison
    name = "another" if comparison.against is None else comparison.against
    return f"{name} of the same stratum" if comparison.within else name


def _state_by_names(question: Question, verdict: Verdict) -> str:
    """Return a verdict on rates that have no words for people and events, by their names."""
    rates = " or ".join(rate.words for rate in METRICS[question.metric].rates)
    amount = "no" if verdict is Verdict.FAIR else "some"
    side = {"below": "below", "above": "above", "both": "from"}[question.comparison.direction]
    if side == "from":
        bound = _verdict_bound(question, verdict, "below or above")
        # By ratio each side has a number of its own, and then both words stay.
        bound = bound.replace(" below or above", " away from")
    else:
        bound = _verdict_bound(question, verdict, side)
    return f"In the {rates}, {amount} group is more than {bound} {_other_group(question)}"


def _is_reference(group: str, reference: str) -> bool:
    """Return whether a group is the one that others are compared with, in whatever stratum."""
    return group == reference or group.endswith(f"{WITHIN}{reference}")


# -- numbers in words -----------------------------------------------------------------------------


def name_gap_unit(question: Question) -> str:
    """Return the unit in which hundredths of the gap are given."""
    return question.gap_scale.unit


def format_gap(question: Question, share: float, figures: int = 6) -> str:
    """Return a gap in the unit of the question, with so many significant figures at most."""
    return question.gap_scale.format_gap(share, figures)
