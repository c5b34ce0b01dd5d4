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
from equipoise.planning.forecasts import COST_QUANTILES, DECIDED_VERDICTS, Forecast, arrivals_needed
from equipoise.planning.scenarios import Scenario, pick_usual_case, scenarios
from equipoise.question import Costs, Question
from equipoise.simulation.drive import DeniedPeople, run_in_blocks

if TYPE_CHECKING:
    pass

MAX_TRIAL_LABELS = 20_000  # labels after which a trial run is broken off
FIRST_RUNS = (
    4  # first runs of a case; if none of them ends with a verdict the case is not tried further
)


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
    trials_by_case: list[list[Trial]] = [[] for _ in cases]
    for seed_block in (seeds[:FIRST_RUNS], seeds[FIRST_RUNS:]):
        open_cases = [
            index
            for index, case_trials in enumerate(trials_by_case)
            if not case_trials or min(trial.cost for trial in case_trials) < math.inf
        ]
        runs = [(index, np.random.default_rng(seed)) for index in open_cases for seed in seed_block]
        tasks = (delayed(run_trial)(audit, cases[index].scenario, rng) for index, rng in runs)
        finished = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
        for (index, _), trial in zip(runs, finished, strict=True):
            trials_by_case[index].append(trial)
            progress(sum(map(len, trials_by_case)) / (len(cases) * trial_runs))
    progress(1.0)
    return tuple(
        _summarize_trials(audit, case, trials)
        for case, trials in zip(cases, trials_by_case, strict=True)
    )


def estimate_trial_time(
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
    run_trial(audit, pick_usual_case(cases), np.random.default_rng(0))
    seconds = (perf_counter() - start) * trial_runs * len(cases)
    return f"{trial_runs} trial runs of {len(cases)} cases: about {seconds:,.0f} CPU seconds"


def run_trial(
    audit: AdaptiveAudit,
    case: Scenario,
    rng: np.random.Generator,
    max_labels: int = MAX_TRIAL_LABELS,
) -> Trial:
    """Run a copy of an audit in a case, on at most so many labels."""
    trial_audit = deepcopy(audit, {id(audit.history): audit.history})
    r = np.array([case.r[group] for group in audit.groups])
    denied = np.array([audit.cells[group].denied for group in audit.groups], dtype=float)
    run_in_blocks(trial_audit, DeniedPeople(denied, r, []), rng, max_labels)
    verdict = None if trial_audit.finding is None else trial_audit.finding.verdict
    return Trial(
        verdict="none" if verdict is None else verdict.value,
        cost=trial_audit.cost if verdict in DECIDED_VERDICTS else math.inf,
        labels=[trial_audit.spending[group].labels for group in audit.cells],
    )


def _summarize_trials(
    audit: AdaptiveAudit, forecast: Forecast, trials: Sequence[Trial]
) -> Forecast:
    verdicts, costs, label_counts = zip(*trials, strict=True)
    labels = dict(zip(audit.cells, np.median(label_counts, axis=0).tolist(), strict=True))
    quantiles = {
        level: sorted(costs)[_quantile_place(level, len(costs))] for level in COST_QUANTILES
    }
    return replace(
        forecast,
        cost={
            f"{quantile:g}": None if cost == math.inf else cost
            for quantile, cost in quantiles.items()
        },
        labels=labels,
        people=arrivals_needed(audit.cells, labels),
        trial_runs=len(trials),
        verdicts={name: verdicts.count(name) / len(verdicts) for name in sorted(set(verdicts))},
    )


def _quantile_place(level: float, count: int) -> int:
    """Return which of n ordered values stands for a quantile of the next one.

    Among n + 1 audits every place is equally likely for the next. Rounded outwards, the 10% and the
    90% quantile hold it with probability 0.8 at least, as far as n values reach.
    """
    place = level * (count + 1)
    return min(max(math.floor(place) if level < 0.5 else math.ceil(place), 1), count) - 1
