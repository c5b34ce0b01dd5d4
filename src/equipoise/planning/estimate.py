"""What the adaptive audit would cost with many groups, where rehearsals would take too long.

No audit costs less than C* on average (:func:`equipoise.lower_bound`), and the adaptive audit costs
a multiple of it. The multiple is measured: audits of the few groups that C* spends most on are
rehearsed on the past data as they are. Then each case costs about C* of all groups times that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.bounds import LowerBound, lower_bound
from equipoise.cells import Cells
from equipoise.display import Progress, silent
from equipoise.evidence.evidence import PILOT
from equipoise.history import History
from equipoise.history.past import Past
from equipoise.planning.rehearsal import LEVELS, Quantile, Rehearsal, arrivals, rehearse
from equipoise.planning.scenarios import Scenario
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld

__all__ = ["estimate"]

FEW = 4  # groups of a rehearsal that measures the multiple
AUDITS = 3  # … how many audits of them in a case
CASES = 2  # … in how many cases, those where C* is least


def estimate(
    history: Past,
    question: Question,
    costs: Costs,
    cases: Sequence[Scenario],
    progress: Progress = silent,
    n_jobs: int | None = None,
) -> tuple[Rehearsal, ...]:
    """Return what audits of each case would cost, about."""
    bounds = []
    for case in cases:
        bounds.append(_bound(history.cells, case, question, costs))
        progress(0.6 * len(bounds) / len(cases))
    multiples = []
    paid = sorted((b for b in bounds if 0.0 < b.cost < np.inf), key=lambda b: b.cost)
    for done, bound in enumerate(paid[:CASES]):
        case = cases[bounds.index(bound)]
        multiples += _multiples(history, question, costs, case, bound, n_jobs)
        progress(0.6 + 0.3 * (done + 1) / len(paid[:CASES]))
    progress(1.0)
    return tuple(
        _estimated(history.cells, case, bound, costs, np.array(multiples))
        for case, bound in zip(cases, bounds, strict=True)
    )


def _bound(cells: Cells, case: Scenario, question: Question, costs: Costs) -> LowerBound:
    return lower_bound(CellWorld(cells.like_known, case.r), question, costs)


def _multiples(
    history: Past,
    question: Question,
    costs: Costs,
    case: Scenario,
    bound: LowerBound,
    n_jobs: int | None,
) -> list[float]:
    """Rehearse audits of the groups that cost most; return each one's cost over their C*."""
    most = sorted(bound.budget, key=lambda group: -bound.budget[group])[:FEW]
    cells = Cells({group: c for group, c in history.cells.items() if group in most})
    own = Costs(costs.feature, costs.label, {g: c for g, c in costs.groups.items() if g in most})
    some = Scenario(case.name, {g: case.r[g] for g in cells}, case.difference, case.expect)
    least = _bound(cells, some, question, own).cost
    audit = AdaptiveAudit(History.from_cells(cells), question, own)
    if audit.finding is not None or not 0.0 < least < np.inf:
        return []
    (seen,) = rehearse(audit, [some], audits=AUDITS, n_jobs=n_jobs)
    return [np.inf if q.value is None else q.value / least for q in seen.cost.values()]


def _estimated(
    cells: Cells,
    case: Scenario,
    bound: LowerBound,
    costs: Costs,
    multiples: NDArray[np.float64],
) -> Rehearsal:
    measured = multiples if len(multiples) else np.ones(1)
    low, middle, high = np.quantile(measured, LEVELS, method="higher").tolist()
    words = (
        f"times {middle:.2g} ({low:.2g} to {high:.2g}), what rehearsed audits of {FEW} of the "
        "groups cost in multiples of their C*"
        if len(multiples)
        else "alone, for no multiple of it could be measured"
    )
    start = sum(costs.of(group).expected(case.r[group]) for group in cells) * PILOT
    # where an unlimited past would decide C* is 0, whatever the multiple
    prices = [
        max(bound.cost * m, start) if bound.cost > 0.0 else start for m in (low, middle, high)
    ]
    labels = np.array([bound.labels[g] * middle if bound.cost > 0.0 else 0.0 for g in cells])
    labels = np.maximum(np.where(np.isfinite(labels), labels, 0.0), PILOT)
    return Rehearsal(
        scenario=case,
        audits=0,
        verdicts={},
        cost={
            f"{level:g}": Quantile(price if np.isfinite(price) else None, 0.0, None)
            for level, price in zip(LEVELS, prices, strict=True)
        },
        labels=dict(zip(cells, labels.tolist(), strict=True)),
        people=arrivals(cells, labels),
        wrong=0.0,
        rests_on=f"C* (the least that any audit costs) = {bound.cost:,.3g} {words}, and at least "
        f"the {PILOT} labels per group with which an audit begins",
    )
