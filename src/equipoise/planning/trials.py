"""Trial runs: the adaptive audit run on a computer, case by case, before anything is paid.

Each case says what the denied would have done. The real past data are used as they are, people's
outcomes are drawn, and the audit itself is run to its end, so that a trial run costs what such an
audit costs. No verdict ever rests on a trial run. A run that ends without a verdict, or is broken
off, has not finished: it counts as one that costs more than any other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.display import Progress, silent
from equipoise.history.past import Past
from equipoise.planning.cases import Scenario, scenarios, usual_case
from equipoise.planning.forecasts import DECIDED, LEVELS, Forecast, arrivals
from equipoise.question import Costs, Question, Verdict
from equipoise.simulation.drive import Denied, run_in_blocks
from equipoise.simulation.simulate_audit import spread

__all__ = ["CAP", "Trial", "run_trial", "run_trials", "say_how_long", "try_cases"]

Array = NDArray[np.float64]

CAP = 20_000  # labels after which a trial run is broken off
FEW = 4  # runs without a verdict, and none with one: the case is not tried further


@dataclass(frozen=True)
class Trial:
    """One trial run: labels and people seen per group; no verdict if it was broken off."""

    verdict: Verdict | None
    labels: Array
    seen: Array
    cost: float

    @property
    def decides(self) -> bool:
        """Whether it ended with a verdict."""
        return self.verdict in DECIDED


def run_trials(
    audit: AdaptiveAudit,
    cases: Sequence[Forecast],
    *,
    trial_runs: int,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Progress = silent,
) -> tuple[Forecast, ...]:
    """Run an audit that has not begun so many times for every case; it stays as it is.

    All cases meet the same luck, so that their differences are not chance alone.

    Examples
    --------
    >>> from equipoise.planning.cases import scenarios
    >>> from equipoise.planning.forecasts import forecast
    >>> from equipoise.question import Costs, Question
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    >>> question = Question("equal_opportunity", gamma=0.2, epsilon=0.3)
    >>> audit = AdaptiveAudit(world.past(), question, Costs())
    >>> first = forecast(world.past(), question, Costs(), scenarios(audit.cells, question)[:1])
    >>> (seen,) = run_trials(audit, first, trial_runs=4)
    >>> seen.trial_runs, seen.decides
    (4, 1.0)
    """
    seeds = np.random.SeedSequence(seed).spawn(trial_runs)
    asked = [case.scenario for case in cases]
    found = try_cases(audit, asked, seeds, n_jobs=n_jobs, progress=progress)
    return tuple(_summary(audit, case, trials) for case, trials in zip(cases, found, strict=True))


def try_cases(
    audit: AdaptiveAudit,
    cases: Sequence[Scenario],
    seeds: Sequence[np.random.SeedSequence],
    *,
    most: int = CAP,
    n_jobs: int | None = None,
    progress: Progress = silent,
) -> list[list[Trial]]:
    """Run an audit once for every case and seed, on at most so many labels.

    A case whose first few runs came to no verdict is not tried further: the next hardly would.
    """
    from joblib import delayed

    found: list[list[Trial]] = [[] for _ in cases]
    total = len(cases) * len(seeds)
    for some in (seeds[:FEW], seeds[FEW:]):
        going = [i for i, own in enumerate(found) if not own or any(t.decides for t in own)]
        runs = [(i, np.random.default_rng(seed)) for i in going for seed in some]
        tasks = (delayed(run_trial)(audit, cases[i], rng, most) for i, rng in runs)
        for (i, _), trial in zip(runs, spread(tasks, n_jobs), strict=True):
            found[i].append(trial)
            progress(sum(map(len, found)) / total)
    progress(1.0)
    return found


def say_how_long(
    history: Past,
    question: Question,
    costs: Costs,
    trial_runs: int,
    denied_rate: Mapping[str, float] | None = None,
) -> str:
    """Say how much computing so many trial runs take here, by a run of the usual case."""
    audit = AdaptiveAudit(history, question, costs)
    if audit.finding is not None:
        return "no trial runs: the past data decide, or no label can"
    cases = scenarios(history.cells, question, denied_rate)
    start = perf_counter()
    run_trial(audit, usual_case(cases), np.random.default_rng(0))
    seconds = (perf_counter() - start) * trial_runs * len(cases)
    return f"{trial_runs} trial runs of {len(cases)} cases: about {seconds:,.0f} CPU seconds"


def run_trial(
    audit: AdaptiveAudit,
    case: Scenario,
    rng: np.random.Generator,
    most: int = CAP,
    scored: Sequence[Array] = (),
) -> Trial:
    """Run an audit of a case once, on at most so many labels; ``scored`` has people with scores."""
    copy = deepcopy(audit, {id(audit.history): audit.history})
    r = np.array([case.r[group] for group in audit.groups])
    denied = np.array([audit.cells[group].denied for group in audit.groups], dtype=float)
    per_label = 1.0 if audit.assist is None else audit.assist.people_per_label
    run_in_blocks(copy, Denied(denied, r, [*scored]), rng, int(most * per_label))
    verdict = None if copy.finding is None else copy.finding.verdict
    spent = [copy.spending[group] for group in audit.cells]
    labels = np.array([one.labels for one in spent], dtype=float)
    return Trial(verdict, labels, labels + [one.features for one in spent], copy.cost)


def _summary(audit: AdaptiveAudit, first: Forecast, trials: Sequence[Trial]) -> Forecast:
    names = ["none" if t.verdict is None else t.verdict.value for t in trials]
    costs = np.sort([t.cost if t.decides else np.inf for t in trials])
    labels = np.median([t.labels for t in trials], axis=0)
    quantiles = {level: float(costs[_place(level, len(costs))]) for level in LEVELS}
    return Forecast(
        scenario=first.scenario,
        cost={f"{q:g}": cost if np.isfinite(cost) else None for q, cost in quantiles.items()},
        labels=dict(zip(audit.cells, labels.tolist(), strict=True)),
        people=arrivals(audit.cells, labels),
        rows=first.rows,
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
