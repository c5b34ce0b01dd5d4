"""Trial runs, which sharpen a forecast.

The real past data are used as they are, outcomes are drawn as the case says, and the audit itself
is run to its end, so that a trial run costs what such an audit costs. A run that ends without a
verdict, or is broken off, has not finished: it counts as one that costs more than any other. No
verdict ever rests on a trial run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

import numpy as np

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.display import Progress, silent
from equipoise.history.past import Past
from equipoise.planning.forecasts import COST_QUANTILES, DECIDED_VERDICTS, Forecast, arrivals_needed
from equipoise.planning.scenarios import Scenario, pick_usual_case, scenarios
from equipoise.question import Costs, Question
from equipoise.simulation.drive import DeniedPeople, run_in_blocks

MAX_TRIAL_LABELS = 20_000  # after which a trial run is broken off
FIRST_RUNS = 4  # of a case; if none of them ends with a verdict the case is not tried further


class Trial(NamedTuple):
    """One trial run.

    Attributes
    ----------
    verdict
        Its verdict; "none" if it was broken off.
    cost
        What it cost; infinite if it did not end with FAIR or UNFAIR.
    labels
        The labels of each group.
    """

    verdict: str
    cost: float
    labels: list[int]

    @property
    def is_decided(self) -> bool:
        """Whether the run ended with FAIR or UNFAIR."""
        return self.cost < math.inf


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
    >>> (tried,) = run_trials(audit, first, 4)
    >>> tried.trial_runs, tried.decides
    (4, 1.0)
    """
    from joblib import Parallel, delayed

    if audit.finding is not None:
        return cases
    # The same seeds for all cases, and in every plan: a plan made again gives the same figures.
    seeds = np.random.SeedSequence(0).spawn(trial_runs)
    trials_by_case: list[list[Trial]] = [[] for _ in cases]
    for seed_block in (seeds[:FIRST_RUNS], seeds[FIRST_RUNS:]):
        tried_cases = []  # the index of the case of every task
        tasks = []
        for index, trials in enumerate(trials_by_case):
            if trials and not any(trial.is_decided for trial in trials):
                continue
            for seed in seed_block:
                tried_cases.append(index)
                rng = np.random.default_rng(seed)
                tasks.append(delayed(run_trial)(audit, cases[index].scenario, rng))
        finished = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
        for index, trial in zip(tried_cases, finished, strict=True):
            trials_by_case[index].append(trial)
            progress(sum(map(len, trials_by_case)) / (len(cases) * trial_runs))
    progress(1.0)
    pairs = zip(cases, trials_by_case, strict=True)
    return tuple(_summarize_trials(audit, case, trials) for case, trials in pairs)


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
    # The historical data do not change, so the copy shares them.
    trial_audit = deepcopy(audit, {id(audit.history): audit.history})
    r = np.array([case.r[group] for group in audit.groups])
    denied = np.array([audit.cells[group].denied for group in audit.groups], dtype=float)
    run_in_blocks(trial_audit, DeniedPeople(denied, r, []), rng, max_labels)
    verdict = None if trial_audit.finding is None else trial_audit.finding.verdict
    return Trial(
        verdict="none" if verdict is None else verdict.value,
        # Infinite without a verdict, so that it counts above every quantile that was reached.
        cost=trial_audit.cost if verdict in DECIDED_VERDICTS else math.inf,
        labels=[trial_audit.spending[group].labels for group in audit.cells],
    )


def _summarize_trials(
    audit: AdaptiveAudit, forecast: Forecast, trials: Sequence[Trial]
) -> Forecast:
    """Return the forecast of a case with the figures of its trial runs."""
    costs = sorted(trial.cost for trial in trials)
    cost_by_quantile: dict[str, float | None] = {}
    for quantile in COST_QUANTILES:
        cost = costs[_quantile_place(quantile, len(costs))]
        cost_by_quantile[f"{quantile:g}"] = None if cost == math.inf else cost
    median_labels = np.median([trial.labels for trial in trials], axis=0)
    labels = dict(zip(audit.cells, median_labels.tolist(), strict=True))
    verdicts = Counter(sorted(trial.verdict for trial in trials))
    return replace(
        forecast,
        cost=cost_by_quantile,
        labels=labels,
        people=arrivals_needed(audit.cells, labels),
        trial_runs=len(trials),
        verdicts={verdict: count / len(trials) for verdict, count in verdicts.items()},
    )


def _quantile_place(quantile: float, count: int) -> int:
    """Return the index, among ``count`` ordered values, of a quantile of the next value.

    Every place among the others is equally likely for the next value. Places are rounded outwards,
    so the 10% and the 90% quantile hold it with probability at least 0.8, as far as the values
    reach.
    """
    place = quantile * (count + 1)
    rounded = math.floor(place) if quantile < 0.5 else math.ceil(place)
    return min(max(rounded, 1), count) - 1
