"""Forecast of the adaptive audit: rehearsed, since what it costs depends on what it finds."""

from __future__ import annotations

import math
from collections.abc import Mapping

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.bounds import Price
from equipoise.cells import Cells
from equipoise.display import Progress, silent
from equipoise.free_check import bands_from_past, free_verdict
from equipoise.history import History
from equipoise.history.past import Past
from equipoise.levels import ErrorBudget
from equipoise.planning.estimate import estimate
from equipoise.planning.forecast import Forecast
from equipoise.planning.guessing import MANY
from equipoise.planning.rehearsal import Rehearsal, rehearse
from equipoise.planning.scenarios import USUAL, Scenario, scenarios
from equipoise.question import Costs, Question, Verdict

__all__ = ["by_counts", "forecast_adaptive", "is_undecided", "rehearsals", "usual_case"]


def forecast_adaptive(
    history: Past,
    question: Question,
    costs: Costs,
    progress: Progress = silent,
    *,
    denied_rate: Mapping[str, float] | None = None,
    audits: int | None = None,
    n_jobs: int | None = None,
) -> Forecast:
    """Return the adaptive audit's forecast; every metric has one."""
    cases: tuple[Rehearsal, ...] = ()
    missing: tuple[str, ...] = ()
    if len(history.cells) > MANY and audits is None and is_undecided(history, question):
        wanted = scenarios(history.cells, question, denied_rate)
        cases = estimate(history, question, costs, wanted, progress, n_jobs)
        if not any(seen.decides for seen in cases):
            missing = ("more past rows: in none of the cases tried do labels decide with these",)
        return _forecast(question, cases, missing)
    audit = AdaptiveAudit(by_counts(history), question, costs)
    if audit.finding is None:
        wanted = scenarios(history.cells, question, denied_rate)
        cases = rehearse(
            audit,
            wanted,
            audits=audits or rehearsals(len(history.cells)),
            n_jobs=n_jobs,
            progress=progress,
        )
        missing = _never_decided(history, question, costs, cases)
    elif audit.finding.verdict is Verdict.INCONCLUSIVE:
        missing = audit.finding.missing
    return _forecast(question, cases, missing)


def is_undecided(history: Past, question: Question) -> bool:
    """Say whether an audit would have to label people: it takes long to make one of many groups."""
    budget = ErrorBudget.of_audit(question, len(history.cells), exact=history.exact)
    bands = bands_from_past(history, question.metric, budget.past_intervals)
    needs_labels = any(band.depends_on_r for rate in bands.values() for band in rate.values())
    free = free_verdict(history, question, budget)
    return needs_labels and free is Verdict.INCONCLUSIVE


def _forecast(
    question: Question, cases: tuple[Rehearsal, ...], missing: tuple[str, ...]
) -> Forecast:
    least, guess, most = _range(cases)
    return Forecast(
        audit=AdaptiveAudit.name,
        guess=guess,
        least=least,
        most=most,
        guarantees=f"wrong with probability at most {question.strictest:g}, whatever the "
        "population (guarantees.md in the documentation)",
        assumes=("everybody comes from one population, past and present, independently",),
        missing=missing,
        cases=cases,
    )


def by_counts(history: Past) -> Past:
    """Return the same past without its table, which need not travel to other processes."""
    return history if history.exact else History.from_cells(history.cells)


def rehearsals(groups: int) -> int:
    """Return how many audits are rehearsed per case: fewer for many groups, which take longer."""
    return max(8, min(40, 120 // groups))


def usual_case(cases: tuple[Scenario, ...]) -> Scenario:
    """Return the case that single numbers are quoted for."""
    return next((c for c in cases if f"{USUAL:.0%}" in c.name), cases[0])


def _range(cases: tuple[Rehearsal, ...]) -> tuple[Price, Price, Price]:
    """Return the cheapest case's 10% quantile, the usual median and the dearest 90% quantile."""
    if not cases:
        return Price(), Price(), Price()
    usual = usual_case(tuple(seen.scenario for seen in cases))
    middle = next(seen for seen in cases if seen.scenario == usual)
    low = min(_known(seen.cost["0.1"].value) for seen in cases)
    high = max(_known(seen.cost["0.9"].value) for seen in cases)
    labels = sorted(sum(seen.labels.values()) for seen in cases)
    return (
        Price(labels=labels[0], cost=low),
        Price(labels=sum(middle.labels.values()), cost=_known(middle.cost["0.5"].value)),
        Price(labels=labels[-1], cost=high),
    )


def _known(value: float | None) -> float:
    return math.inf if value is None else value


def _never_decided(
    history: Past, question: Question, costs: Costs, cases: tuple[Rehearsal, ...]
) -> tuple[str, ...]:
    """Say what is missing if no case is decided half of the time, and which group is the cause."""
    if any(seen.decides >= 0.5 for seen in cases):
        return ()
    lines = ["more past rows: in none of the cases tried do labels decide with these"]
    cells = history.cells
    smallest = min(cells, key=lambda group: cells[group].total)
    rest = {group: counts for group, counts in cells.items() if group != smallest}
    if len(rest) >= 2:
        without = AdaptiveAudit(History.from_cells(Cells(rest)), question, _prices(costs, smallest))
        helps = without.finding is not None or any(
            seen.decides >= 0.5
            for seen in rehearse(without, scenarios(without.cells, question), audits=4)
        )
        then = "the others could be decided" if helps else "the others could not be decided either"
        count = f"{cells[smallest].total:,.0f} past rows"
        lines.append(f"the smallest group is {smallest!r} with {count}; without it {then}")
    return tuple(lines)


def _prices(costs: Costs, left_out: str) -> Costs:
    groups = {group: own for group, own in costs.groups.items() if group != left_out}
    return Costs(costs.feature, costs.label, groups)
