"""Run any audit in any world, many times: drawn at once where that can be, else run by run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng
from numpy.typing import NDArray

from equipoise._arrays import Array
from equipoise._json import JsonValue
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.base import Audit
from equipoise.audits.catalogue import audit_class, check_options
from equipoise.display import Progress, Row, Shown, silent
from equipoise.errors import BadData, InvalidInput, require_n_jobs, require_whole
from equipoise.finding import Interval
from equipoise.history.past import Past
from equipoise.question import Costs, Question, Verdict, require_asked
from equipoise.rates import clopper_pearson
from equipoise.simulation.drive import Delay, Denied, require_prices_paid, run, run_in_blocks
from equipoise.worlds import World
from equipoise.worlds.world import require_world

Ints = NDArray[np.int64]

NAMES = ("verdict", "cost", "labels", "features", "estimate", "lower", "upper")
RUN = np.dtype({"names": NAMES, "formats": ("U12", "f8", "i8", "i8", "f8", "f8", "f8")})
"""A run; its estimate is NaN where an audit had none."""
NOTHING = (Verdict.INCONCLUSIVE.value, 0.0, 0, 0, math.nan, 0.0, 1.0)
"""A run that established nothing at no cost."""
Runs = NDArray[np.void]
"""Runs side by side, each a :data:`RUN`."""


def simulate(
    audit: str | type[Audit],
    world: World,
    question: Question,
    costs: Costs,
    *,
    repeats: int = 200,
    seed: int = 0,
    history_size: int | None = None,
    delay: Delay | None = None,
    people: int | None = None,
    n_jobs: int | None = None,
    progress: Progress = silent,
    **options: object,
) -> Simulation:
    """Run an audit many times in a world whose truth is known.

    Baseline and RS-Audit are drawn from the exact distributions of their stopping times, so any
    precision takes milliseconds; Exp-Audit draws its counts, and features where it needs them. The
    adaptive audit runs block by block, exactly as it would person by person; audits of your own,
    and runs with a delay, a budget or a limit of people, go person by person.

    Parameters
    ----------
    audit
        "baseline", "rs", "exp", "adaptive", or an audit class.
    repeats, seed
        How many independent runs, and where their randomness starts.
    history_size
        That many past people (all groups together), drawn anew in every run; unlimited if None.
        A run whose past lacks a group altogether is INCONCLUSIVE.
    delay
        From an outcome and a generator to the number of further arrivals after which that outcome
        is told, None for somebody who vanishes. At once if left out.
    people
        How many people will ever arrive; the audit has to conclude with them.
    n_jobs
        Processes to spread the runs over, as in joblib: -1 for all processors, None for what
        :func:`joblib.parallel_config` says, else one.
    progress
        Is called with the share of the runs that are done.
    options
        What the audit takes besides question, costs and history: ``tau``, ``reuse_labels``,
        ``budget`` …

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> sim = simulate("rs", world, Question(epsilon=0.001), Costs(), repeats=100)
    >>> sim.summary().verdicts
    {'FAIR': 0.0, 'UNFAIR': 1.0, 'INCONCLUSIVE': 0.0}
    """
    require_n_jobs(n_jobs)
    setting = Setting(
        *(audit_class(audit), world, question, costs, repeats, seed),
        *(history_size, delay, people, options),
    )
    runs = run_setting(setting, n_jobs=n_jobs, progress=progress)
    return Simulation(
        **{name: runs[name] for name in NAMES},
        audit=setting.audit.name,
        question=question,
        costs=costs,
        gap=world.gap(question.metric, question.compare),
    )


@dataclass(frozen=True)
class Setting:
    """Everything that defines a simulation; see :func:`equipoise.simulation.simulate`.

    ``pasts`` has the past data of each repeat; they are drawn if it is None.
    """

    audit: type[Audit]
    world: World
    question: Question
    costs: Costs
    repeats: int
    seed: int
    history_size: int | None
    delay: Delay | None
    people: int | None
    options: Mapping[str, object]
    pasts: Sequence[Past] | None = None

    @property
    def at_once(self) -> bool:
        """Whether outcomes are told at once, and neither people nor money run out."""
        return self.delay is None and self.people is None and self.options.get("budget") is None

    def __post_init__(self) -> None:
        require_world(self.world)
        require_asked(self.question, self.costs)
        for name in ("repeats", "history_size", "people"):
            require_whole(name, getattr(self, name))
        require_whole("seed", self.seed, least=0)
        if self.delay is not None and not callable(self.delay):
            raise InvalidInput(
                f"'delay' must be a function of an outcome and a generator; got {self.delay!r}"
            )
        check_options(self.audit, self.options)
        require_prices_paid(self.world, self.costs, self.options.get("assist"))

    def begin(self, past: Past) -> Audit:
        """Return the audit of a past."""
        return self.audit(past, self.question, self.costs, **self.options)  # type: ignore[arg-type]

    def begin_repeat(self, repeat: int, rng: Generator) -> Audit | None:
        """Return the audit of a repeat; None if its past lacks a group, and nothing can be said."""
        try:
            past = self.pasts[repeat] if self.pasts else self.world.past(self.history_size, rng)
        except BadData:
            return None
        return self.begin(past)


def run_setting(
    setting: Setting, *, n_jobs: int | None = None, progress: Progress = silent
) -> Runs:
    """Return all runs of a setting: drawn at once where its audit can, else made one by one."""
    from joblib import Parallel, delayed

    name = setting.audit.name
    drawn = name in ("baseline", "rs", "exp") and setting.audit is audit_class(name)
    if drawn and setting.at_once:
        from equipoise.simulation.draws import draw_exp, draw_tau

        found = draw_exp(setting) if name == "exp" else draw_tau(setting)
        if found is not None:
            return found
    seeds = SeedSequence(setting.seed).spawn(setting.repeats)
    work = (delayed(_run_once)(setting, at, seed) for at, seed in enumerate(seeds))
    runs = []
    for one in Parallel(n_jobs=n_jobs, return_as="generator")(work):
        runs.append(one)
        progress(len(runs) / setting.repeats)
    return np.array(runs, dtype=RUN)


def _run_once(setting: Setting, repeat: int, seed: SeedSequence) -> tuple[object, ...]:
    rng = default_rng(seed)
    if (audit := setting.begin_repeat(repeat, rng)) is None:
        return NOTHING
    if type(audit) is AdaptiveAudit and setting.at_once:
        run_in_blocks(audit, Denied.of(audit, setting.world), rng)
        audit.conclude()
    else:
        run(audit, setting.world, rng, delay=setting.delay, people=setting.people)
    return run_of(audit)


def run_of(audit: Audit) -> tuple[object, ...]:
    """Return what an audit spent and found, as a :data:`RUN`."""
    # The audit's own books, not the finding's: labels pending at the verdict cost money too.
    books = (audit.cost, audit.labels, audit.features)
    if (found := audit.finding) is None:
        return (NOTHING[0], *books, *NOTHING[4:])
    estimate = math.nan if found.estimate is None else found.estimate
    return (found.verdict.value, *books, estimate, found.lower, found.upper)


# -- what was found --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Simulation(JsonValue, Shown):
    """Many runs of one audit in one world; ``to_frame`` has a row per run.

    Attributes
    ----------
    verdict, cost, labels, features, estimate, lower, upper
        Arrays with one entry per repeat. Verdicts are the strings FAIR, UNFAIR, INCONCLUSIVE.
    audit, question, costs
        What was run.
    gap
        The true gap of the world.

    Examples
    --------
    >>> from equipoise import simulate, worlds
    >>> world = worlds.CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> runs = simulate("rs", world, Question(), Costs(), repeats=50, tau=2000)
    >>> len(runs), runs.cost.shape, bool(runs.wrong.any())
    (50, (50,), False)
    """

    verdict: NDArray[np.str_]
    cost: Array
    labels: Ints
    features: Ints
    estimate: Array
    lower: Array
    upper: Array
    audit: str
    question: Question
    costs: Costs
    gap: float

    def __len__(self) -> int:
        return len(self.verdict)

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which runs gave a wrong verdict; INCONCLUSIVE is not wrong."""
        right = self.question.truth(self.gap) | {Verdict.INCONCLUSIVE}
        return ~np.isin(self.verdict, sorted(v.value for v in right))

    def summary(self) -> Summary:
        """Return the simulation in a few numbers."""
        n, errors, levels = len(self), int(self.wrong.sum()), (0.05, 0.25, 0.5, 0.75, 0.95)
        covered = (self.lower <= self.gap) & (self.gap <= self.upper)
        spread = float(np.std(self.cost, ddof=1)) if n > 1 else 0.0
        return Summary(
            audit=self.audit,
            question=self.question,
            costs=self.costs,
            repeats=n,
            gap=self.gap,
            verdicts={str(v.value): float(np.mean(self.verdict == v.value)) for v in Verdict},
            errors=errors,
            error_rate=Interval(*clopper_pearson(errors, n, 0.025), estimate=errors / n),
            coverage=float(covered.mean()),
            mean_cost=float(self.cost.mean()),
            standard_error=spread / n**0.5,
            cost_quantiles={f"{q:g}": float(np.quantile(self.cost, q)) for q in levels},
            mean_labels=float(self.labels.mean()),
            mean_features=float(self.features.mean()),
        )

    def __str__(self) -> str:
        return str(self.summary())

    def _rows(self) -> Sequence[Row]:
        columns = [getattr(self, name).tolist() for name in NAMES]
        return [dict(zip(NAMES, run, strict=True)) for run in zip(*columns, strict=True)]

    def _table(self) -> Sequence[Row]:
        return ()  # a notebook shows the summary


@dataclass(frozen=True)
class Summary(JsonValue):
    """A simulation in a few numbers.

    ``error_rate`` has a 95% Clopper-Pearson interval; ``coverage`` is the share of runs whose
    interval for the gap held the truth; ``standard_error`` belongs to ``mean_cost``.

    Examples
    --------
    >>> from equipoise import simulate, worlds
    >>> world = worlds.CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> summary = simulate("rs", world, Question(), Costs(), repeats=50, tau=2000).summary()
    >>> summary.repeats, summary.errors
    (50, 0)
    """

    audit: str
    question: Question
    costs: Costs
    repeats: int
    gap: float
    verdicts: dict[str, float]
    errors: int
    error_rate: Interval
    coverage: float
    mean_cost: float
    standard_error: float
    cost_quantiles: dict[str, float]
    mean_labels: float
    mean_features: float

    def __str__(self) -> str:
        truth = " or ".join(sorted(self.question.truth(self.gap)))
        shares = ", ".join(f"{v} {share:.1%}" for v, share in self.verdicts.items() if share)
        low, middle, high = (self.cost_quantiles[q] for q in ("0.05", "0.5", "0.95"))
        rate = self.error_rate
        # The adaptive audit has no features: there it counts people whose label was not asked for.
        scored = self.audit == "adaptive" and self.mean_features > 0.0
        more = "more people looked at" if scored else "feature vectors"
        return "\n".join(
            [
                f"{self.audit}: {self.repeats:,} runs, true gap {self.gap:.4f} ({truth})",
                f"  question    {self.question}",
                f"  verdicts    {shares}",
                f"  wrong       {self.errors:,} of {self.repeats:,}: {rate.estimate:.2%}, "
                f"95% interval [{rate.lower:.2%}, {rate.upper:.2%}]",
                f"  coverage    {self.coverage:.1%} of the intervals held the gap",
                f"  cost        mean {self.mean_cost:,.6g} ± {self.standard_error:,.3g}, "
                f"median {middle:,.6g}, 90% between {low:,.6g} and {high:,.6g}",
                f"  asked       {self.mean_labels:,.6g} labels and "
                f"{self.mean_features:,.6g} {more} on average",
            ]
        )
