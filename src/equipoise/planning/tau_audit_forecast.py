"""Forecasts of Baseline and RS-Audit."""

from __future__ import annotations

from collections.abc import Callable

from equipoise.audits.tau_audits import (
    BaselineAudit,
    RSAudit,
    TauAudit,
    can_answer,
    outcomes_of,
    paper_tau,
    rows_missing,
)
from equipoise.bounds import Price, baseline_bound, baseline_expectation, rs_bound, rs_expectation
from equipoise.display import Progress, silent
from equipoise.history.past import Past
from equipoise.planning.forecast import Forecast
from equipoise.planning.guessing import guess_r, price_range
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld

__all__ = ["forecast_baseline", "forecast_rs"]

Pricing = Callable[[CellWorld, Question, Costs], Price]


def forecast_baseline(
    history: Past, question: Question, costs: Costs, progress: Progress = silent
) -> Forecast | None:
    """Return the Baseline's forecast, None if it cannot answer the metric."""
    return _forecast(BaselineAudit, baseline_expectation, baseline_bound, history, question, costs)


def forecast_rs(
    history: Past, question: Question, costs: Costs, progress: Progress = silent
) -> Forecast | None:
    """Return RS-Audit's forecast, None if it cannot answer the metric."""
    return _forecast(RSAudit, rs_expectation, rs_bound, history, question, costs)


def _forecast(
    audit: type[TauAudit],
    expectation: Pricing,
    bound: Pricing,
    history: Past,
    question: Question,
    costs: Costs,
) -> Forecast | None:
    if not can_answer(question):
        return None
    guess = CellWorld(history.cells, guess_r(history.cells))
    least, most = price_range(
        lambda r: expectation(CellWorld(history.cells, r), question, costs), guess.r
    )
    return Forecast(
        audit=audit.name,
        guess=expectation(guess, question, costs),
        least=least,
        most=most,
        bound=bound(guess, question, costs),
        guarantees=_promise(audit, question),
        assumes=("everybody comes from one population, past and present, independently",),
        missing=rows_missing(
            history,
            [(y, a) for y in outcomes_of(question) for a in history.cells],
            paper_tau(question, len(history.cells)),
            audit.within_group,
        ),
    )


def _promise(audit: type[TauAudit], question: Question) -> str:
    if not outcomes_of(question):
        return "the free answer: this metric needs no outcome of the denied"
    theorem = "Theorem 2" if audit.within_group else "Theorem 1"
    level = question.strictest
    return f"wrong with probability at most {level:g}, whatever the population ({theorem})"
