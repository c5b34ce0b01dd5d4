"""What the report says in sentences."""

from __future__ import annotations

import shlex

from equipoise.metrics import METRICS, RATES
from equipoise.question import Question, Verdict
from equipoise.report.content import Report

__all__ = ["formula", "guarantee", "headline", "in_words", "quoted", "reading", "reason"]

_METRIC_WORDS = {
    "equalized_odds": "Among people who would turn out well, and among people who would turn out "
    "badly, is every group approved equally often?",
    "equal_opportunity": "Among people who would turn out well, is every group approved equally "
    "often?",
    "predictive_equality": "Among people who would turn out badly, is every group approved "
    "equally often?",
    "demographic_parity": "Is every group approved equally often?",
    "false_omission_parity": "Among the people who are turned down, would equally many of every "
    "group have turned out well?",
    "accuracy_parity": "Is the decision right equally often in every group?",
    "predictive_parity": "Among the people who are approved, do equally many of every group turn "
    "out well?",
}


def in_words(question: Question) -> str:
    """Return the question as somebody would ask it."""
    return _METRIC_WORDS[question.metric]


def guarantee(report: Report) -> str:
    """Return what the verdict promises."""
    question = report.question
    if not report.proven:
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
    rates = {
        "true_positive_rate": "P[f=1 | Y=1, A=a]",
        "false_positive_rate": "P[f=1 | Y=0, A=a]",
        "selection_rate": "P[f=1 | A=a]",
        "false_omission_rate": "P[Y=1 | f=0, A=a]",
        "accuracy": "P[f=Y | A=a]",
        "precision": "P[Y=1 | f=1, A=a]",
    }
    names = METRICS[question.metric]
    listed = " and ".join(rates[name] for name in names)
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
    if not report.proven:
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
    return f"{rate.replace('_', ' ').capitalize()}: {RATES[rate]}."


def reason(report: Report) -> str:
    """Return why the verdict is what it is, with money as people read it."""
    text = report.finding.reason
    if report.status.cap is not None:
        text = text.replace(f"{float(report.status.cap):,.10g}", report.money(report.status.cap))
    return text[:1].upper() + text[1:]


def _points(share: float) -> str:
    points = share * 100.0
    return f"{points:.3g} percentage point{'' if points == 1 else 's'}"
