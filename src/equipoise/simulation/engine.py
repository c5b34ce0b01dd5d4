"""Run any audit in any world, many times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields

from equipoise.audits.base import Audit
from equipoise.audits.catalogue import audit_class
from equipoise.question import Costs, Question
from equipoise.simulation.result import Draws, Simulation
from equipoise.simulation.runner import run_repeats
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
    delay: Delay | None = None,
    people: int | None = None,
    jobs: int = 1,
    progress: bool = False,
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
    delay
        From an outcome and a generator to the number of arrivals until that outcome is told, None
        for somebody who vanishes.
    people
        How many people arrive at most.
    jobs
        Processes to spread the runs over.
    progress
        Show a progress bar.
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
    )
    draws = _draw(setting, jobs, progress)
    return Simulation(
        **{f.name: getattr(draws, f.name) for f in fields(Draws)},
        audit=setting.audit.name,
        question=question,
        costs=costs,
        difference=world.difference(question.metric),
    )


def _draw(setting: Setting, jobs: int, progress: bool) -> Draws:
    draws = draw_at_once(setting)
    if draws is not None:
        return draws
    with _bar(setting, progress) as advance:
        return run_repeats(setting, jobs=jobs, on_done=advance)


@contextmanager
def _bar(setting: Setting, progress: bool) -> Iterator[Callable[[], object]]:
    if not progress:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"simulating {setting.audit.name}", total=setting.repeats)
        yield lambda: bar.advance(task)
