"""Whether a score will help: trial runs with people who have scores, before anybody is asked.

Nobody knows what the score says about the denied. Until labels tell, what it says about the
approved of the same group is carried over to the scores of the denied, and the level moved so that
the denied succeed as often as the case at hand says. That is an extrapolation, and called so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise._json import JsonValue
from equipoise.assist import Assist
from equipoise.assist.sampler import FEW, START, slope_of
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.bounds import most_efficient
from equipoise.cells import Cells
from equipoise.errors import InvalidInput, require_kind
from equipoise.history import History
from equipoise.history.other_columns import Scores
from equipoise.history.past import Past
from equipoise.planning.cases import Scenario
from equipoise.planning.forecasts import arrivals
from equipoise.planning.trials import Trial, run_trial
from equipoise.question import Costs, Question
from equipoise.simulation.simulate_audit import spread

__all__ = ["ScoreSavings", "require_scores", "try_scores"]

Array = NDArray[np.float64]

EXTRAPOLATED = "carried over to the denied"
RUNS = 12  # audits with help, and as many without
PEOPLE = 4_000  # denied people of a group that a trial run draws from


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
    at_best
        What the ratio could be if it were known from the start what the score says: the
        efficiency bound of :func:`equipoise.bounds.most_efficient`.
    people_per_label
        People looked at per label: the price in calendar time.
    people
        How many people have to arrive, about, approved ones included.

    Examples
    --------
    >>> seen = ScoreSavings("as you say", {"A": "40 labels"}, False, 0.6, 0.1, 0.5, 5.2, 900)
    >>> print(str(seen).partition(";")[0])
    looking first costs 0.60 (± 0.10) times as much (at best 0.50)
    """

    scenario: str
    rests_on: Mapping[str, str]
    extrapolated: bool
    ratio: float
    error: float
    at_best: float
    people_per_label: float
    people: float

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about these figures."""
        if not self.extrapolated:
            return ()
        return (
            "what the score says of the denied is an extrapolation from the approved; the audit "
            "learns from its own labels what it is worth, and leaves a useless score alone",
        )

    def __str__(self) -> str:
        if self.people_per_label < 1.05:
            return "looking first changes hardly anything: the score is left alone"
        return (
            f"looking first costs {self.ratio:.2f} (± {self.error:.2f}) times as much (at best "
            f"{self.at_best:.2f}); {self.people_per_label:.1f} people are looked at per label"
        )


def require_scores(history: Past, assist: Assist) -> Mapping[str, Scores]:
    """Return the scores that a plan of an audit that looks needs, or say how to give them."""
    require_kind("assist", assist, Assist, "an Assist, such as Assist()")
    scores = history.scores if isinstance(history, History) else None
    if scores is None:
        raise InvalidInput("'assist' needs scores of past people: History.read(..., score=COLUMN)")
    return scores


def try_scores(
    history: Past,
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

    scores = require_scores(history, assist)
    cells, luck = history.cells, np.random.default_rng(0)
    told = {group: _rates(scores[group], case.r[group]) for group in cells}
    made = [
        AdaptiveAudit(History.from_cells(cells), question, costs, assist=one)
        for one in (assist, None)
    ]
    scored = [_people(*told[group][:2], luck) for group in made[0].groups]
    pairs = max(trial_runs or RUNS, 2)  # one alone has no standard error
    seeds = np.random.SeedSequence(1).spawn(pairs)
    tasks = (
        delayed(run_trial)(audit, case, np.random.default_rng(seed), scored=people)
        for audit, people in zip(made, (scored, ()), strict=True)
        for seed in seeds
    )
    trials: list[Trial] = list(spread(tasks, n_jobs))
    helped, uniform = np.array([trial.cost for trial in trials]).reshape(2, pairs)
    labels, seen = (np.array([getattr(t, n) for t in trials[:pairs]]) for n in ("labels", "seen"))
    ratio = helped.mean() / max(uniform.mean(), 1e-300)
    apart = (helped - ratio * uniform).std(ddof=1)
    spent = np.mean([trial.labels for trial in trials[pairs:]], axis=0)
    return ScoreSavings(
        scenario=case.name,
        rests_on={group: told[group][2] for group in cells},
        extrapolated=any(EXTRAPOLATED in told[group][2] for group in cells),
        ratio=float(ratio),
        error=float(apart / max(uniform.mean(), 1e-300) / np.sqrt(pairs)),
        at_best=_at_best([told[group][1] for group in cells], spent, costs, cells, assist),
        people_per_label=float(seen.sum() / max(labels.sum(), 1.0)),
        people=arrivals(cells, np.median(seen, axis=0)),
    )


def _at_best(
    rates: Sequence[Array], labels: Array, costs: Costs, cells: Cells, assist: Assist
) -> float:
    """Return the efficiency bound over the cost without help, for so many labels per group."""
    least = whole = 0.0
    for group, own, n in zip(cells, rates, labels, strict=True):
        price = costs.of(group)
        strata = np.array([part.mean() for part in np.array_split(np.sort(own), min(20, len(own)))])
        shares = np.full(len(strata), 1.0 / len(strata))
        best = most_efficient(
            shares, strata, price.label * (1.0 - strata), price.feature, assist.people_per_label
        )
        least += n * best.price
        whole += n * price.expected(float(strata.mean()))
    return least / whole if whole > 0.0 else 1.0


def _rates(scores: Scores, r: float) -> tuple[Array, Array, str]:
    """Return scores of the denied, what they are taken to say, and from whom that is known."""
    denied = scores.denied
    if not len(denied):
        return np.array([np.nan]), np.array([r]), "no scores of denied people: it says nothing"
    ones = scores.labels.sum()
    if len(scores.labels) >= START and min(ones, len(scores.labels) - ones) >= FEW:
        slope = slope_of(scores.labelled, scores.labels)
        words = f"labels of {len(scores.labels):,} denied people"
    else:
        slope = slope_of(scores.approved, scores.outcomes)
        words = f"{len(scores.outcomes):,} approved people, {EXTRAPOLATED}"
    return denied, _rates_at(slope * np.clip(denied, *np.quantile(denied, [0.01, 0.99])), r), words


def _rates_at(odds: Array, r: float) -> Array:
    """Return rates with these log odds up to a common step, that have a mean of r."""
    from scipy.optimize import bisect
    from scipy.special import expit

    centred = np.clip(odds - odds.mean(), -50.0, 50.0)
    mean = np.clip(r, 1e-9, 1.0 - 1e-9)
    step = bisect(lambda x: expit(centred + x).mean() - mean, -100.0, 100.0)
    return np.asarray(expit(centred + step))


def _people(scores: Array, rates: Array, rng: np.random.Generator) -> Array:
    """Return outcomes, scores and prices (none) of denied people, a row each."""
    rows = rng.integers(len(scores), size=max(PEOPLE, len(scores)))
    outcome = (rng.random(len(rows)) < rates[rows]).astype(np.float64)
    return np.stack([outcome, scores[rows], np.full(len(rows), np.nan)])
