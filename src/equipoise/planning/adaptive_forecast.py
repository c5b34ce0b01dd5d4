"""Forecast of the adaptive audit: rehearsed, since what it costs depends on what it finds."""

from __future__ import annotations

import math

import numpy as np

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.bounds import Price
from equipoise.history.past import Past
from equipoise.planning.forecast import Forecast
from equipoise.planning.guessing import guess_r
from equipoise.planning.rehearsal import ASSUMED_R, outlook, rehearse
from equipoise.progress import Progress, silent
from equipoise.question import Costs, Question, Verdict

__all__ = ["forecast_adaptive"]

AT_GUESS = 4  # rehearsals with the denied like the approved


def forecast_adaptive(
    history: Past, question: Question, costs: Costs, progress: Progress = silent
) -> Forecast:
    """Return the adaptive audit's forecast; every metric has one."""
    audit = AdaptiveAudit(history, question, costs)
    guess = np.tile(list(guess_r(history.cells).values()), (AT_GUESS, 1))
    trials = rehearse(audit, guess)
    seen = outlook(audit, progress=progress)
    level = min(question.level_wrong_fair, question.level_wrong_unfair)
    return Forecast(
        audit=AdaptiveAudit.name,
        guess=Price(
            labels=float(np.mean([trial.labels.sum() for trial in trials])),
            cost=float(np.mean([trial.cost for trial in trials])),
        ),
        least=seen.quantiles["0.1"],
        most=seen.quantiles["0.9"],
        guarantees=f"wrong with probability at most {level:g}, whatever the population "
        "(guarantees.md in the documentation)",
        assumes=(
            "everybody comes from one population, past and present, independently",
            ASSUMED_R,
        ),
        missing=_missing(audit, seen.median),
        outlook=seen,
    )


def _missing(audit: AdaptiveAudit, median: Price) -> tuple[str, ...]:
    if audit.evidence is None and audit.finding is not None:
        undecided = audit.finding.verdict is Verdict.INCONCLUSIVE
        return audit.finding.missing if undecided else ()
    if math.isfinite(median.labels):
        return ()
    return (
        "more past rows: for most of the unknowns tried, no number of labels decides with these",
    )
