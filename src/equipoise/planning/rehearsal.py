"""Adaptive audits rehearsed before anything is paid: run on a computer, case by case.

Each case says what the denied would have done. The real past data are used as they are, people's
outcomes are drawn, and the audit itself is run to its end, so that a rehearsal costs what such an
audit costs. No verdict ever rests on a rehearsal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise._json import JsonValue
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.cells import Cells
from equipoise.display import Progress, silent
from equipoise.planning.scenarios import Scenario
from equipoise.question import Verdict
from equipoise.rates import clopper_pearson
from equipoise.simulation.loop import InBlocks, let_come
from equipoise.simulation.spread import spread

__all__ = ["CAP", "LEVELS", "Quantile", "Rehearsal", "arrivals", "rehearse"]

Array = NDArray[np.float64]

LEVELS = (0.1, 0.5, 0.9)
CAP = 20_000  # labels after which a rehearsal is broken off
CONFIDENCE = 0.9  # of the range in which a quantile lies
BATCH = 8  # rehearsals that one process does at a time
FEW = 4  # rehearsals broken off, and none that ended: the case is not rehearsed further


@dataclass(frozen=True)
class Quantile(JsonValue):
    """A quantile of rehearsed costs, and the range that holds the true one nine times in ten.

    None stands for more than any rehearsal reached.
    """

    value: float | None
    low: float
    high: float | None


@dataclass(frozen=True)
class Rehearsal(JsonValue):
    """What audits of one case cost.

    Attributes
    ----------
    audits
        How many were rehearsed.
    verdicts
        Share of each verdict, and "none" for those broken off.
    cost
        "0.1", "0.5", "0.9" -> what that share of the audits stays below.
    labels
        Per group, the labels that half of the audits stay below.
    people
        How many people have to arrive, about, approved ones included: enough denied people of
        every group for the median's labels.
    wrong
        Share of verdicts that are wrong in this case.
    rests_on
        What the figures rest on, where it is not rehearsals of this case; ``audits`` is 0 then.

    Examples
    --------
    >>> case = Scenario("the denied succeed as you say", {"A": 0.3}, 0.1, "FAIR")
    >>> cost = {"0.1": Quantile(50.0, 40.0, 60.0), "0.5": Quantile(110.0, 90.0, 130.0)}
    >>> Rehearsal(case, 40, {"FAIR": 0.9, "none": 0.1}, cost, {"A": 150.0}, 400.0, 0.0).decides
    0.9
    """

    scenario: Scenario
    audits: int
    verdicts: Mapping[str, float]
    cost: Mapping[str, Quantile]
    labels: Mapping[str, float]
    people: float
    wrong: float
    rests_on: str = ""

    @property
    def decides(self) -> float:
        """The share of audits that end with a verdict."""
        if not self.audits:
            return float(self.cost["0.5"].value is not None)
        return sum(self.verdicts.get(v, 0.0) for v in (Verdict.FAIR, Verdict.UNFAIR))


@dataclass(frozen=True)
class Trial:
    """One rehearsed audit; ``verdict`` is None if it was broken off."""

    verdict: Verdict | None
    labels: Array
    cost: float


def rehearse(
    audit: AdaptiveAudit,
    cases: Sequence[Scenario],
    *,
    audits: int,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Progress = silent,
) -> tuple[Rehearsal, ...]:
    """Run an audit that has not begun so many times for every case; it stays as it is.

    All cases meet the same luck, so that their differences are not chance alone.

    Examples
    --------
    >>> from equipoise.planning.scenarios import scenarios
    >>> from equipoise.question import Costs, Question
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    >>> question = Question("equal_opportunity", gamma=0.2, epsilon=0.3)
    >>> audit = AdaptiveAudit(world.past(), question, Costs())
    >>> (seen,) = rehearse(audit, scenarios(audit.cells, question)[:1], audits=4)
    >>> seen.audits, seen.decides
    (4, 1.0)
    """
    from joblib import delayed

    seeds = np.random.SeedSequence(seed).spawn(audits)
    first, *more = [seeds[start : start + BATCH] for start in range(0, audits, BATCH)]
    found: list[list[Trial]] = []
    done, work = 0, len(cases) * (1 + len(more))
    for trials in spread((delayed(_try_some)(audit, case, first) for case in cases), n_jobs):
        found.append(trials)
        done += 1 if len(trials) == len(first) else 1 + len(more)
        progress(done / work)
    left = [(i, part) for i, tried in enumerate(found) if len(tried) == len(first) for part in more]
    tasks = (delayed(_run_some)(audit, cases[i], part) for i, part in left)
    for (i, _), trials in zip(left, spread(tasks, n_jobs), strict=True):
        found[i] = found[i] + trials
        done += 1
        progress(done / work)
    return tuple(_summary(audit, case, trials) for case, trials in zip(cases, found, strict=True))


def _try_some(
    audit: AdaptiveAudit, case: Scenario, seeds: Sequence[np.random.SeedSequence]
) -> list[Trial]:
    """Rehearse, but no more if the first few did not end: the next ones hardly would."""
    trials = _run_some(audit, case, seeds[:FEW])
    if all(trial.verdict is None for trial in trials):
        return trials
    return trials + _run_some(audit, case, seeds[FEW:])


def _run_some(
    audit: AdaptiveAudit, case: Scenario, seeds: Sequence[np.random.SeedSequence]
) -> list[Trial]:
    return [_run(audit, case, np.random.default_rng(seed)) for seed in seeds]


def _run(audit: AdaptiveAudit, case: Scenario, rng: np.random.Generator) -> Trial:
    copy = deepcopy(audit, {id(audit.history): audit.history})
    r = np.array([case.r[group] for group in audit.groups])
    denied = np.array([audit.cells[group].denied for group in audit.groups], dtype=float)
    let_come(InBlocks(copy, denied, r, rng), CAP)
    verdict = None if copy.finding is None else copy.finding.verdict
    labels = np.array([spent.labels for spent in copy.spending.values()], dtype=float)
    return Trial(verdict, labels, copy.cost)


def _summary(audit: AdaptiveAudit, case: Scenario, trials: Sequence[Trial]) -> Rehearsal:
    names = ["none" if t.verdict is None else t.verdict.value for t in trials]
    costs = np.array([np.inf if t.verdict is None else t.cost for t in trials])
    labels = np.median([t.labels for t in trials], axis=0)
    right = case.expect.split(" or ")
    wrong = [name not in (*right, "none", Verdict.INCONCLUSIVE) for name in names]
    return Rehearsal(
        scenario=case,
        audits=len(trials),
        verdicts={name: names.count(name) / len(names) for name in sorted(set(names))},
        cost={f"{level:g}": _quantile(costs, level) for level in LEVELS},
        labels=dict(zip(audit.cells, labels.tolist(), strict=True)),
        people=arrivals(audit.cells, labels),
        wrong=float(np.mean(wrong)),
    )


def _quantile(costs: Array, level: float) -> Quantile:
    """Return a quantile and, from the values' order alone, the range that holds the true one."""
    ordered, n = np.sort(costs), len(costs)
    below = [clopper_pearson(k, n, (1.0 - CONFIDENCE) / 2.0) for k in range(n + 1)]
    low = max((k for k in range(n + 1) if below[k][1] < level), default=0)
    high = min((k for k in range(n + 1) if below[k][0] > level), default=n)
    return Quantile(
        _finite(float(ordered[_place(level, n)])),
        float(ordered[min(low, n - 1)]) if low else 0.0,
        _finite(float(ordered[high - 1])) if high < n else None,
    )


def _place(level: float, n: int) -> int:
    """Return which of n ordered values stands for a quantile of the next one.

    Among n + 1 audits every place is equally likely for the next. Rounded outwards, the 10% and the
    90% quantile hold it with probability 0.8 at least, as far as n values reach.
    """
    place = level * (n + 1)
    return min(max(math.floor(place) if level < 0.5 else math.ceil(place), 1), n) - 1


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def arrivals(cells: Cells, labels: Array) -> float:
    """Return how many people have to arrive for so many labels of every group."""
    denied = np.array([c.denied for c in cells.values()]) / cells.total
    waits = [n / share for n, share in zip(labels, denied, strict=True) if n > 0.0 and share > 0.0]
    return float(max(waits, default=0.0))
