"""Run any audit in any world, many times."""

from __future__ import annotations

from dataclasses import fields

from equipoise.audits.base import Audit
from equipoise.audits.catalogue import audit_class
from equipoise.display import Progress, silent
from equipoise.errors import InvalidInput, require_n_jobs
from equipoise.history.past import Past, require_past
from equipoise.question import Costs, Question
from equipoise.simulation.repeats import run_repeats
from equipoise.simulation.result import Draws, Simulation
from equipoise.simulation.setting import Delay, Setting, draw_at_once
from equipoise.worlds import World

__all__ = ["simulate"]


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
    precision takes milliseconds. The adaptive audit runs block by block, exactly as it would person
    by person; other audits, and runs with a delay, a budget or a limit of people, go person by
    person.

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
        _every_run(past, history_size, repeats),
    )
    draws = draw_at_once(setting) or run_repeats(setting, n_jobs=n_jobs, progress=progress)
    return Simulation(
        **{f.name: getattr(draws, f.name) for f in fields(Draws)},
        audit=setting.audit.name,
        question=question,
        costs=costs,
        difference=world.difference(question.metric, question.compare),
    )


def _every_run(past: Past | None, history_size: int | None, repeats: int) -> list[Past] | None:
    if past is None:
        return None
    require_past(past)
    if past.exact or history_size is not None:
        raise InvalidInput(
            "'past' must be a finite past, given without 'history_size'; leave both out for an "
            "unlimited past"
        )
    return [past] * repeats
