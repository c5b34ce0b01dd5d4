"""Trial runs: the adaptive audit run on a computer, case by case, before anything is paid.

Each case says what the denied would have done. The real past data are used as they are, people's
outcomes are drawn, and the audit itself is run to its end, so that a trial run costs what such an
audit costs. No verdict ever rests on a trial run. A run that ends without a verdict, or is broken
off, has not finished: it counts as one that costs more than any other.

Whether a score will help is tried the same way, with people who have scores. Nobody knows what the
score says about the denied. Until labels tell, what it says about the approved of the same group is
carried over to the scores of the denied, and the level moved so that the denied succeed as often as
the case at hand says. That is an extrapolation, and called so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from time import perf_counter
from typing import NamedTuple

import numpy as np

from equipoise._arrays import Array
from equipoise._json import JsonValue
from equipoise.assist import FEW as FEW_OF_A_KIND
from equipoise.assist import START, Assist, slope_of
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.cells import Cells
from equipoise.display import Progress, silent
from equipoise.history.other_columns import Scores
from equipoise.history.past import Past
from equipoise.planning.forecasts import (
    DECIDED,
    LEVELS,
    Forecast,
    Scenario,
    arrivals,
    scenarios,
    usual_case,
)
from equipoise.question import Costs, Question, Verdict
from equipoise.simulation.drive import Denied, run_in_blocks
from equipoise.simulation.simulate_audit import spread

CAP = 20_000  # labels after which a trial run is broken off
EXTRAPOLATED = "carried over to the denied"
RUNS = 12  # audits with help, and as many without
PEOPLE = 4_000  # denied people of a group that a trial run draws from
FEW = 4  # runs without a verdict, and none with one: the case is not tried further


class Trial(NamedTuple):
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

    All cases meet the same luck, so that their differences are not chance alone. A case whose first
    few runs came to no verdict is not tried further: the next hardly would.

    Examples
    --------
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
    from joblib import delayed

    seeds = np.random.SeedSequence(seed).spawn(trial_runs)
    found: list[list[Trial]] = [[] for _ in cases]
    for some in (seeds[:FEW], seeds[FEW:]):
        going = [i for i, own in enumerate(found) if not own or any(t.decides for t in own)]
        runs = [(i, np.random.default_rng(seed)) for i in going for seed in some]
        tasks = (delayed(run_trial)(audit, cases[i].scenario, rng) for i, rng in runs)
        for (i, _), trial in zip(runs, spread(tasks, n_jobs), strict=True):
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
    medians = np.median([t.labels for t in trials], axis=0).tolist()
    labels = dict(zip(audit.cells, medians, strict=True))
    quantiles = {level: float(costs[_place(level, len(costs))]) for level in LEVELS}
    return replace(
        first,
        cost={f"{q:g}": cost if np.isfinite(cost) else None for q, cost in quantiles.items()},
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


# -- trial runs with scores ------------------------------------------------------------------------


@dataclass(frozen=True)
class ScoreSavings(JsonValue):
    """What looking before asking would cost, in one case.

    Attributes
    ----------
    scenario
        The case.
    rests_on
        What the score is taken to say, and from whom that is known, per group.
    extrapolated
        Whether some of it is carried over from the approved.
    ratio, error
        Mean cost over that of the audit that does not look, and its standard error.
    people_per_label
        People looked at per label: the price in calendar time.
    people
        How many people have to arrive, about, approved ones included.

    Examples
    --------
    >>> print(ScoreSavings("as you say", {"A": "40 labels"}, False, 0.6, 0.1, 5.2, 900))
    looking first costs 0.60 (± 0.10) times as much; 5.2 people are looked at per label
    """

    scenario: str
    rests_on: Mapping[str, str]
    extrapolated: bool
    ratio: float
    error: float
    people_per_label: float
    people: float

    def __str__(self) -> str:
        if self.people_per_label < 1.05:
            return "looking first changes hardly anything: the score is left alone"
        return (
            f"looking first costs {self.ratio:.2f} (± {self.error:.2f}) times as much; "
            f"{self.people_per_label:.1f} people are looked at per label"
        )


def try_scores(
    cells: Cells,
    scores: Mapping[str, Scores],
    question: Question,
    costs: Costs,
    case: Scenario,
    assist: Assist,
    *,
    trial_runs: int | None = None,
    n_jobs: int | None = None,
) -> ScoreSavings:
    """Run audits of a case with help and without, the same luck for both."""
    from joblib import delayed

    luck = np.random.default_rng(0)
    told = {group: _rates(scores[group], case.r[group]) for group in cells}
    made = [AdaptiveAudit(Past(cells), question, costs, assist=one) for one in (assist, None)]
    scored = []  # outcomes, scores and prices (none) of denied people
    for score, rates, _ in (told[group] for group in made[0].groups):
        rows = luck.integers(len(score), size=max(PEOPLE, len(score)))
        outcome = (luck.random(len(rows)) < rates[rows]).astype(np.float64)
        scored.append(np.stack([outcome, score[rows], np.full(len(rows), np.nan)]))
    pairs = max(trial_runs or RUNS, 2)  # one alone has no standard error
    seeds = np.random.SeedSequence(1).spawn(pairs)
    tasks = (
        delayed(run_trial)(audit, case, np.random.default_rng(seed), scored=own)
        for audit, own in zip(made, (scored, ()), strict=True)
        for seed in seeds
    )
    trials: list[Trial] = list(spread(tasks, n_jobs))
    helped, uniform = np.array([trial.cost for trial in trials]).reshape(2, pairs)
    labels, seen = (np.array([getattr(t, n) for t in trials[:pairs]]) for n in ("labels", "seen"))
    ratio = helped.mean() / max(uniform.mean(), 1e-300)
    apart = (helped - ratio * uniform).std(ddof=1)
    return ScoreSavings(
        scenario=case.name,
        rests_on={group: told[group][2] for group in cells},
        extrapolated=any(EXTRAPOLATED in told[group][2] for group in cells),
        ratio=float(ratio),
        error=float(apart / max(uniform.mean(), 1e-300) / np.sqrt(pairs)),
        people_per_label=float(seen.sum() / max(labels.sum(), 1.0)),
        people=arrivals(cells, dict(zip(cells, np.median(seen, axis=0).tolist(), strict=True))),
    )


def _rates(scores: Scores, r: float) -> tuple[Array, Array, str]:
    """Return scores of the denied, what they are taken to say, and from whom that is known.

    The log odds follow the score; their level is such that the rates have a mean of r.
    """
    from scipy.optimize import bisect
    from scipy.special import expit

    denied = scores.denied
    if not len(denied):
        return np.array([np.nan]), np.array([r]), "no scores of denied people: it says nothing"
    ones = scores.labels.sum()
    if len(scores.labels) >= START and min(ones, len(scores.labels) - ones) >= FEW_OF_A_KIND:
        slope = slope_of(scores.labelled, scores.labels)
        words = f"labels of {len(scores.labels):,} denied people"
    else:
        slope = slope_of(scores.approved, scores.outcomes)
        words = f"{len(scores.outcomes):,} approved people, {EXTRAPOLATED}"
    odds = slope * np.clip(denied, *np.quantile(denied, [0.01, 0.99]))
    odds = np.clip(odds - odds.mean(), -50.0, 50.0)
    mean = np.clip(r, 1e-9, 1.0 - 1e-9)
    level = bisect(lambda x: expit(odds + x).mean() - mean, -100.0, 100.0)
    return denied, np.asarray(expit(odds + level)), words
