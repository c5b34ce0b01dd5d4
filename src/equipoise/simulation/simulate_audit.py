"""Run any audit in any world, many times: drawn at once where that can be, else run by run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng

from equipoise._seeds import accepts_random_state
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.base import Audit
from equipoise.audits.catalogue import audit_class, check_options
from equipoise.display import Progress, silent
from equipoise.errors import BadData, InvalidInput, require_n_jobs, require_whole
from equipoise.history.past import Past
from equipoise.question import Costs, Question, require_question_and_costs
from equipoise.simulation.drive import Delay, DeniedPeople, require_prices_paid, run, run_in_blocks
from equipoise.simulation.runs import (
    RUN_DTYPE,
    RUN_FIELDS,
    UNDECIDED_RUN,
    Runs,
    Simulation,
    run_record,
)
from equipoise.worlds import World
from equipoise.worlds.world import require_world


@accepts_random_state
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
        audit=audit_class(audit),
        world=world,
        question=question,
        costs=costs,
        repeats=repeats,
        seed=seed,
        history_size=history_size,
        delay=delay,
        people=people,
        options=options,
    )
    runs = run_setting(setting, n_jobs=n_jobs, progress=progress)
    return Simulation(
        **{name: runs[name] for name in RUN_FIELDS},
        audit=setting.audit.name,
        question=question,
        costs=costs,
        gap=world.gap(question.metric, question.comparison),
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

    # Formulas and blocks know of no delay and no end, so that such runs go person by person.
    @property
    def at_once(self) -> bool:
        """Whether outcomes are told at once, and neither people nor money run out."""
        return self.delay is None and self.people is None and self.options.get("budget") is None

    def __post_init__(self) -> None:
        require_world(self.world)
        require_question_and_costs(self.question, self.costs)
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
        except BadData:  # a small past may hold nobody of a group
            return None
        return self.begin(past)


def run_setting(
    setting: Setting, *, n_jobs: int | None = None, progress: Progress = silent
) -> Runs:
    """Return all runs of a setting: drawn at once where its audit can, else made one by one."""
    from joblib import Parallel, delayed

    name = setting.audit.name
    # A class of the user's own may have the same name, and is not what the formulas describe.
    has_draw = name in ("baseline", "rs", "exp") and setting.audit is audit_class(name)
    if has_draw and setting.at_once:
        from equipoise.simulation.draw_exp_audit import draw_exp
        from equipoise.simulation.draw_tau_audits import draw_tau

        drawn_runs = draw_exp(setting) if name == "exp" else draw_tau(setting)
        if drawn_runs is not None:
            return drawn_runs
    # A seed for each run, so that results do not depend on how many processes there are.
    seeds = SeedSequence(setting.seed).spawn(setting.repeats)
    tasks = (delayed(_run_once)(setting, repeat, seed) for repeat, seed in enumerate(seeds))
    runs = []
    for run_values in Parallel(n_jobs=n_jobs, return_as="generator")(tasks):
        runs.append(run_values)
        progress(len(runs) / setting.repeats)
    return np.array(runs, dtype=RUN_DTYPE)


def _run_once(setting: Setting, repeat: int, seed: SeedSequence) -> tuple[object, ...]:
    rng = default_rng(seed)
    audit = setting.begin_repeat(repeat, rng)
    if audit is None:
        return UNDECIDED_RUN
    # Not isinstance: an audit of the user's own goes person by person, even if it is a subclass.
    if type(audit) is AdaptiveAudit and setting.at_once:
        run_in_blocks(audit, DeniedPeople.of_world(audit, setting.world), rng)
        audit.conclude()
    else:
        run(audit, setting.world, rng, delay=setting.delay, people=setting.people)
    return run_record(audit)
