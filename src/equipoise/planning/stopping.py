"""Forecasts of Baseline and RS-Audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from equipoise.audits.baseline import BaselineAudit
from equipoise.audits.rs import RSAudit
from equipoise.audits.stopping import StoppingAudit, rows_missing
from equipoise.bounds import (
    Price,
    baseline_bound,
    baseline_expectation,
    can_answer,
    paper_tau,
    rs_bound,
    rs_expectation,
)
from equipoise.bounds.stopping import outcomes_of
from equipoise.cells import Cells
from equipoise.history.past import Past
from equipoise.planning.forecast import Forecast
from equipoise.progress import Progress, silent
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld

__all__ = ["forecast_baseline", "forecast_rs", "guess_r", "price_range"]

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
    audit: type[StoppingAudit],
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


def guess_r(cells: Cells) -> dict[str, float]:
    """Return each group's r if its denied were like its approved; 1/2 where nobody is approved.

    Examples
    --------
    >>> from equipoise.cells import GroupCells
    >>> guess_r(Cells({"A": GroupCells(30, 10, 60), "B": GroupCells(0, 0, 5)}))
    {'A': 0.75, 'B': 0.5}
    """
    return {
        group: c.approved_positive / c.approved if c.approved > 0 else 0.5
        for group, c in cells.items()
    }


def price_range(
    price: Callable[[Mapping[str, float]], Price], start: Mapping[str, float]
) -> tuple[Price, Price]:
    """Return the least and the most of each number as every r ranges over [0, 1].

    One r at a time is moved to its best place on a grid until nothing improves, from three
    starting points.
    """
    least, most = (
        Price(
            **{name: _extreme(price, name, sign, start) for name in ("labels", "features", "cost")}
        )
        for sign in (1.0, -1.0)
    )
    return least, most


def _extreme(
    price: Callable[[Mapping[str, float]], Price],
    name: str,
    sign: float,
    start: Mapping[str, float],
) -> float:
    def value(r: Mapping[str, float]) -> float:
        number = sign * float(getattr(price(r), name))
        return np.inf if np.isnan(number) else number

    best = value(start)
    if best == 0.0 and sign * value(dict.fromkeys(start, 0.5)) == 0.0:
        return 0.0  # a number that this audit never has
    for point in (start, dict.fromkeys(start, 0.0), dict.fromkeys(start, 1.0)):
        here, now = dict(point), value(point)
        for _ in range(3):
            before = now
            for group in here:
                for r in np.linspace(0.0, 1.0, 17):
                    there = value(moved := {**here, group: float(r)})
                    if there < now:
                        here, now = moved, there
            if now == before:
                break
        best = min(best, now)
    return sign * best


def _promise(audit: type[StoppingAudit], question: Question) -> str:
    if not outcomes_of(question):
        return "the free answer: this metric needs no outcome of the denied"
    theorem = "Theorem 2" if audit.within_group else "Theorem 1"
    level = min(question.level_wrong_fair, question.level_wrong_unfair)
    return f"wrong with probability at most {level:g}, whatever the population ({theorem})"
