"""What the report, the dashboard and the command line say in sentences."""

from __future__ import annotations

from equipoise.comparison import GapScale
from equipoise.errors import few_of
from equipoise.finding import Finding, Interval
from equipoise.free_check import Check
from equipoise.ledger import Status
from equipoise.metrics import METRICS
from equipoise.planning import Forecast
from equipoise.planning.scenarios import USUAL
from equipoise.question import Question, Verdict
from equipoise.rates import RATES
from equipoise.report.content import Report
from equipoise.report.selection import four_fifths_state


def in_words(question: Question) -> str:
    """Return the question as somebody would ask it, and who is compared if it is not everybody."""
    words = question.comparison.words.removeprefix(", ")
    return METRICS[question.metric].asks + (f" Groups are compared {words}." if words else "")


def guarantee(report: Report) -> str:
    """Return what the verdict promises."""
    finding, question = report.finding, report.finding.question
    if not finding.guaranteed and finding.verdict is not Verdict.INCONCLUSIVE:
        return (
            "This audit was run with a smaller threshold than its theorem asks for. Its answer "
            "is the published algorithm's, but no error probability is proven for it."
        )
    return (
        f"If the gap is truly at most {_size(question, question.gamma)}, this audit "
        f"says UNFAIR with probability at most {question.level_wrong_unfair:.1%}. If it is truly "
        f"more than {_size(question, question.threshold)}, it says FAIR with probability at most "
        f"{question.level_wrong_fair:.1%}. In between both answers are right. This holds whatever "
        "the outcomes of the people who were turned down, as long as the assumptions below hold, "
        "and however often somebody looked at the evidence on the way."
    )


def formula(question: Question) -> str:
    """Return what the gap is, as a formula in plain text."""
    listed = " and of the ".join(rate.phrase for rate in METRICS[question.metric].rates)
    who = question.comparison.words
    if question.gap_scale is GapScale.RATIO:
        return f"gap = largest 1 - lowest / highest over groups of the {listed}{who}"
    return f"gap = largest difference between groups of the {listed}{who}"


def headline(report: Report) -> str:
    """Return the answer in one sentence."""
    finding, question = report.finding, report.finding.question
    span = f"between {_size(question, finding.lower)} and {_size(question, finding.upper)}"
    if report.status.finding is None:
        return f"The audit is in progress. The gap between groups is {span} so far."
    if finding.verdict is Verdict.INCONCLUSIVE:
        return f"The audit ended without an answer: the gap between groups is {span}."
    if not finding.guaranteed:
        return (
            "The gap between groups is estimated to be "
            f"{_size(question, finding.estimate or 0.0)}; no error probability is proven for it."
        )
    word = "at most" if finding.verdict is Verdict.FAIR else "more than"
    limit = question.threshold if finding.verdict is Verdict.FAIR else question.gamma
    return (
        f"The gap between groups is {word} {_size(question, limit)}. Audits like this one answer "
        f"wrongly with probability at most {question.strictest:.1%}."
    )


def looking(report: Report) -> str:
    """Return how the audit looks before it asks, empty if it does not."""
    if report.assist is None:
        return ""
    looked = sum(group.scored for group in report.status.groups.values())
    asked = looked - report.status.states.get("SCORE_ONLY", 0)
    each = f", {looked / asked:.1f} people per label" if asked else ""
    people = "person was" if looked == 1 else "people were"
    said = (
        "This audit looks before it asks: a score or a price sets a person's chance of being "
        f"asked for the outcome, and a draw decides. {looked:,} {people} looked at and {asked:,} "
        f"asked{each}. Those who were asked are no fair sample, so shares of good outcomes among "
        "them are not the groups'; ranges and best guesses allow for everybody's chance."
    )
    if report.assist.max_price is None:
        return said
    most = report.status.money(report.assist.max_price)
    return (
        f"{said} People may have prices of their own, up to {most}. Whoever would cost more is not "
        "observed at all: the answer speaks of those who cost no more than that."
    )


def naive(question: Question, gap: float | None) -> str:
    """Return the gap by a way of counting that leaves somebody out."""
    return "undefined" if gap is None else _size(question, gap)


def reading(rate: str) -> str:
    """Return what a rate means."""
    return f"{RATES[rate].words.capitalize()}: {RATES[rate].phrase}."


def sentence(words: str) -> str:
    """Return words as a sentence."""
    return f"{words[:1].upper()}{words[1:].removesuffix('.')}."


def unit(question: Question) -> str:
    """Return what a hundredth of the gap is."""
    ratio = question.gap_scale is GapScale.RATIO
    return "percent of the highest rate" if ratio else "percentage points"


def every_rate(finding: Finding) -> str:
    """Return what holds of the table of every rate and metric, and how surely."""
    asked = finding.question
    level, what = asked.delta, "These ranges"
    if not isinstance(finding, Check):
        level = max(level, asked.level_wrong_fair, asked.level_wrong_unfair)
        what += " and the verdict"
    return (
        f"The same data bound every other rate. {what} are all right together with probability at "
        f"least {1 - level:.1%}. They are wider than those above, which are made for the question, "
        "so that even the range of its own metric may reach beyond the verdict here. In brackets "
        "the best guess, where there is one."
    )


def four_fifths(ratio: Interval, level: float) -> str:
    """Return what past data say about the four-fifths rule, in one sentence."""
    span = f"between {ratio.lower:.1%} and {ratio.upper:.1%}"
    if ratio.upper - ratio.lower < 1e-9:
        span = f"{ratio.lower:.1%}"
    state = {"met": "is met", "below": "is broken", "undecided": "is undecided"}
    return (
        f"The lowest approval rate is {span} of the highest: the four-fifths rule "
        f"{state[four_fifths_state(ratio)]} (wrong with probability at most {level:.1%})."
    )


MANY = 100  # people after whom it is remarkable that a group has not come


def expected(forecast: Forecast, status: Status) -> str:
    """Return what an audit like this one costs from its first to its last request."""
    given = (
        "given what was learnt: the denied succeed as often as observed so far, in groups without "
        f"outcomes {USUAL:.0%} as often as the approved"
    )
    if not forecast.is_decidable:
        return f"An audit like this one {forecast.missing}, {given}."
    low, middle, high = map(status.money, forecast.in_all(status.spent))
    said = f"Expected in all: {middle}, eight times in ten {low} to {high}, {given}."
    if status.spent > (forecast.median or 0.0):
        half = status.money(forecast.median or 0.0)
        said += (
            f" This audit has already spent more than the {half} that half of such audits stay "
            "below; what it still needs is not forecast."
        )
    needed = [group for group, labels in forecast.labels.items() if labels > 0.0]
    away = [group for group in needed if not status.groups[group].denied]
    if away and status.people >= MANY:
        said += (
            f" Of {few_of(away)} no denied person has come yet, among {status.people:,} people. An "
            "audit needs labels of every group that it compares, and waits for them; one that was "
            "begun with such a group left out (--leave-out) does not."
        )
    return said


def _size(question: Question, share: float) -> str:
    points = share * 100.0
    if question.gap_scale is GapScale.RATIO:
        return f"{points:.3g}% of the highest rate"
    return f"{points:.3g} percentage point{'' if points == 1 else 's'}"
