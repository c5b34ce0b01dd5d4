"""Trial runs, which sharpen a forecast.

The real past data are used as they are, outcomes are drawn as the case says, and the audit itself
is run to its end, so that a trial run costs what such an audit costs. A run that ends without a
verdict, or is broken off, has not finished: it counts as one that costs more than any other. No
verdict ever rests on a trial run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.display import Progress, silent
from equipoise.history.past import Past
from equipoise.planning.forecasts import DECIDED, LEVELS, Forecast, arrivals
from equipoise.planning.scenarios import Scenario, scenarios, usual_case
from equipoise.question import Costs, Question
from equipoise.simulation.drive import Denied, run_in_blocks

if TYPE_CHECKING:
    pass

CAP = 20_000  # labels after which a trial run is broken off
FEW = 4  # first runs of a case; if none of them ends with a verdict the case is not tried further


class Trial(NamedTuple):
    """One trial run."""

    verdict: str  # "none" if it was broken off
    cost: float  # infinite if it did not end with FAIR or UNFAIR
    labels: list[int]  # of each group


def run_trials(
    audit: AdaptiveAudit,
    cases: tuple[Forecast, ...],
    trial_runs: int,
    n_jobs: int | None = None,
    progress: Progress = silent,
) -> tuple[Forecast, ...]:
    """Run copies of an audit that has not begun, so many for every case.

    All cases have the same random numbers, so that their differences are not chance alone. A case
    whose first few runs came to no verdict is not tried further: the next hardly would.

    Examples
    --------
    >>> from equipoise.planning import forecast
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    >>> question = Question("equal_opportunity", gamma=0.2, epsilon=0.3)
    >>> audit = AdaptiveAudit(world.past(), question, Costs())
    >>> first = forecast(world.past(), question, Costs(), scenarios(audit.cells, question)[:1])
    >>> (seen,) = run_trials(audit, first, 4)
    >>> seen.trial_runs, seen.decides
    (4, 1.0)
    """
    from joblib import Parallel, delayed

    if audit.finding is not None:
        return cases
    seeds = np.random.SeedSequence(0).spawn(trial_runs)
    found: list[list[Trial]] = [[] for _ in cases]
    for some in (seeds[:FEW], seeds[FEW:]):
        going = [i for i, own in enumerate(found) if not own or min(t.cost for t in own) < math.inf]
        runs = [(i, np.random.default_rng(seed)) for i in going for seed in some]
        tasks = (delayed(run_trial)(audit, cases[i].scenario, rng) for i, rng in runs)
        made = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
        for (i, _), trial in zip(runs, made, strict=True):
            found[i].append(trial)
            progress(sum(map(len, found)) / (len(cases) * trial_runs))
    progress(1.0)
    return tuple(_summary(audit, case, trials) for case, trials in zip(cases, found, strict=True))


def say_how_long(
    history: Past,
    question: Question,
    costs: Costs,
    trial_runs: int,
    denied_rate: Mapping[str, float] | None = None,
) -> str:
    """Say about how long so many trial runs take on this machine, by a run of the usual case."""
    audit = AdaptiveAudit(history, question, costs)
    if audit.finding is not None:
        return "no trial runs: the past data decide, or no label can"
    cases = scenarios(history.cells, question, denied_rate)
    start = perf_counter()
    run_trial(audit, usual_case(cases), np.random.default_rng(0))
    seconds = (perf_counter() - start) * trial_runs * len(cases)
    return f"{trial_runs} trial runs of {len(cases)} cases: about {seconds:,.0f} CPU seconds"


def run_trial(
    audit: AdaptiveAudit, case: Scenario, rng: np.random.Generator, most: int = CAP
) -> Trial:
    """Run a copy of an audit in a case, on at most so many labels."""
    copy = deepcopy(audit, {id(audit.history): audit.history})
    r = np.array([case.r[group] for group in audit.groups])
    denied = np.array([audit.cells[group].denied for group in audit.groups], dtype=float)
    run_in_blocks(copy, Denied(denied, r, []), rng, most)
    verdict = None if copy.finding is None else copy.finding.verdict
    return Trial(
        verdict="none" if verdict is None else verdict.value,
        cost=copy.cost if verdict in DECIDED else math.inf,
        labels=[copy.spending[group].labels for group in audit.cells],
    )


def _summary(audit: AdaptiveAudit, first: Forecast, trials: Sequence[Trial]) -> Forecast:
    names, costs, counts = zip(*trials, strict=True)
    labels = dict(zip(audit.cells, np.median(counts, axis=0).tolist(), strict=True))
    quantiles = {level: sorted(costs)[_place(level, len(costs))] for level in LEVELS}
    return replace(
        first,
        cost={f"{q:g}": None if cost == math.inf else cost for q, cost in quantiles.items()},
        labels=labels,
        people=arrivals(audit.cells, labels),
        trial_runs=len(trials),
        verdicts={name: names.count(name) / len(names) for name in sorted(set(names))},
    )


def _place(level: float, n: int) -> int:
    """Return which of n ordered values stands for a quantile of the next one.

    Among n + 1 audits every place is equally likely for the next. Rounded outwards, the 10% and the
    90% quantile hold it with probability 0.8 at least, as far as n values reach.
    """
    place = level * (n + 1)
    return min(max(math.floor(place) if level < 0.5 else math.ceil(place), 1), n) - 1
