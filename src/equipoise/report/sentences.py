"""What the report says in sentences."""

from __future__ import annotations

import shlex

from equipoise.metrics import METRICS, RATES
from equipoise.question import Question, Verdict
from equipoise.report.content import Report

__all__ = ["formula", "guarantee", "headline", "in_words", "quoted", "reading", "reason"]


def in_words(question: Question) -> str:
    """Return the question as somebody would ask it."""
    return METRICS[question.metric].asks


def guarantee(report: Report) -> str:
    """Return what the verdict promises."""
    question = report.question
    if not report.finding.guaranteed:
        return (
            "This audit was run with a smaller threshold than its theorem asks for. Its answer "
            "is the published algorithm's, but no error probability is proven for it."
        )
    return (
        f"If the difference is truly at most {_points(question.gamma)}, this audit says UNFAIR "
        f"with probability at most {question.level_wrong_unfair:.1%}. If it is truly more than "
        f"{_points(question.threshold)}, it says FAIR with probability at most "
        f"{question.level_wrong_fair:.1%}. In between both answers are right. This holds whatever "
        "the outcomes of the people who were turned down, as long as the assumptions below hold, "
        "and however often somebody looked at the evidence on the way."
    )


def formula(question: Question) -> str:
    """Return the difference as a formula, in plain text."""
    listed = " and ".join(rate.probability for rate in METRICS[question.metric].rates)
    return f"Δ = largest difference over groups a, b of {listed}"


def headline(report: Report) -> str:
    """Return the answer in one sentence."""
    finding, question = report.finding, report.question
    level = min(question.level_wrong_fair, question.level_wrong_unfair)
    span = f"between {_points(finding.lower)} and {_points(finding.upper)}"
    if not report.decided:
        return f"The audit goes on. The difference is {span} so far."
    if finding.verdict is Verdict.INCONCLUSIVE:
        return f"The audit ended without an answer: the difference is {span}."
    if not report.finding.guaranteed:
        return (
            f"The difference between groups is estimated to be {_points(finding.estimate or 0.0)}; "
            "no error probability is proven for this answer."
        )
    word = "at most" if finding.verdict is Verdict.FAIR else "more than"
    limit = question.threshold if finding.verdict is Verdict.FAIR else question.gamma
    return (
        f"The difference between groups is {word} {_points(limit)}. Audits like this one answer "
        f"wrongly with probability at most {level:.1%}."
    )


def quoted(name: str) -> str:
    """Return a name as a shell takes it."""
    return shlex.quote(name)


def reading(rate: str) -> str:
    """Return what a rate means."""
    return f"{RATES[rate].words.capitalize()}: {RATES[rate].phrase}."


def reason(report: Report) -> str:
    """Return why the verdict is what it is, as a sentence begins."""
    text = report.finding.reason
    return text[:1].upper() + text[1:]


def _points(share: float) -> str:
    points = share * 100.0
    return f"{points:.3g} percentage point{'' if points == 1 else 's'}"
