"""Run any audit in any world, many times: at once where an audit has a way to, else run by run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.base import Audit
from equipoise.audits.catalogue import audit_class, check_options
from equipoise.display import Progress, silent
from equipoise.errors import BadData, InvalidInput, require_n_jobs, require_whole
from equipoise.history.past import Past, require_past
from equipoise.question import Costs, Question, require_asked
from equipoise.simulation.drive import Delay, Denied, require_prices_paid, run, run_in_blocks
from equipoise.simulation.result import NOTHING, RUN, Runs, Simulation, run_of
from equipoise.worlds import World
from equipoise.worlds.world import require_world


def simulate(
    audit: str | type[Audit],
    world: World,
    question: Question,
    costs: Costs,
    *,
    repeats: int = 200,
    seed: int = 0,
    history_size: int | None = None,
    past: Past | None = None,
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
    past
        The past decisions of every run, as they are, in place of drawn ones; with
        ``CellWorld.from_past`` the world is what they show and what you guess of the denied.
    delay
        From an outcome and a generator to the number of arrivals until that outcome is told, None
        for somebody who vanishes.
    people
        How many people arrive at most.
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
    if past is not None:
        require_past(past)
        if past.exact or history_size is not None:
            raise InvalidInput(
                "'past' must be a finite past, given without 'history_size'; leave both out for an "
                "unlimited past"
            )
    setting = Setting(
        audit_class(audit),
        world,
        question,
        costs,
        repeats,
        seed,
        history_size,
        delay,
        people,
        options,
        None if past is None else [past] * repeats,
    )
    runs = run_setting(setting, n_jobs=n_jobs, progress=progress)
    return Simulation(
        **{name: runs[name] for name in RUN.names or ()},
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
    pasts: Sequence[Past] | None

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

    def begin(self, repeat: int, rng: np.random.Generator) -> Audit | None:
        """Return the audit of a repeat; None if its past lacks a group, and nothing can be said."""
        try:
            past = self.pasts[repeat] if self.pasts else self.world.past(self.history_size, rng)
        except BadData:
            return None
        return self.audit(past, self.question, self.costs, **self.options)  # type: ignore[arg-type]


def run_setting(
    setting: Setting, *, n_jobs: int | None = None, progress: Progress = silent
) -> Runs:
    """Return all runs of a setting: drawn at once where its audit can, else made one by one."""
    from joblib import delayed

    if (drawn := _draw_at_once(setting)) is not None:
        return drawn
    seeds = SeedSequence(setting.seed).spawn(setting.repeats)
    work = (delayed(_run_once)(setting, at, seed) for at, seed in enumerate(seeds))
    runs = []
    for one in spread(work, n_jobs):
        runs.append(one)
        progress(len(runs) / setting.repeats)
    return np.array(runs, dtype=RUN)


def _draw_at_once(setting: Setting) -> Runs | None:
    """Return all runs, drawn from their distributions; None where these are not known."""
    name = setting.audit.name
    known = name in ("baseline", "rs", "exp") and setting.audit is audit_class(name)
    if not known or not setting.at_once:
        return None
    from equipoise.simulation import exp_draws, tau_audit_draws

    return exp_draws.draw(setting) if name == "exp" else tau_audit_draws.draw(setting)


def _run_once(setting: Setting, repeat: int, seed: SeedSequence) -> tuple[object, ...]:
    rng = np.random.default_rng(seed)
    if (audit := setting.begin(repeat, rng)) is None:
        return NOTHING
    if type(audit) is AdaptiveAudit and setting.at_once:
        run_in_blocks(audit, Denied.of(audit, setting.world), rng)
        audit.conclude()
    else:
        run(audit, setting.world, rng, delay=setting.delay, people=setting.people)
    return run_of(audit)


def spread(tasks: Iterable[Any], n_jobs: int | None) -> Iterator[Any]:
    """Yield the results of joblib's delayed calls in their order, as soon as they are there.

    ``n_jobs=None`` follows :func:`joblib.parallel_config`. Backends that cannot hand out results
    one by one, such as Ray's, give them all at the end.

    Examples
    --------
    >>> from joblib import delayed
    >>> list(spread((delayed(abs)(x) for x in (-1, 2)), n_jobs=None))
    [1, 2]
    """
    from joblib import Parallel

    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:
        parallel = Parallel(n_jobs=n_jobs)
    yield from parallel(tasks)
