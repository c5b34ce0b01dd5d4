"""Run a setting's audit once per repeat, over as many processes as wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.random import SeedSequence

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.display import Progress, silent
from equipoise.errors import BadData
from equipoise.history.past import Past
from equipoise.simulation.drive import InBlocks, drive, run
from equipoise.simulation.result import Draws, Run
from equipoise.simulation.setting import Setting
from equipoise.simulation.spread import spread

__all__ = ["run_repeats"]


def run_repeats(
    setting: Setting, *, n_jobs: int | None = None, progress: Progress = silent
) -> Draws:
    """Run a setting's audit once per repeat, in blocks where it can, else person by person."""
    from joblib import delayed

    seeds = SeedSequence(setting.seed).spawn(setting.repeats)
    pasts: Sequence[Past | None] = setting.pasts or [None] * setting.repeats
    alike = replace(setting, pasts=None)
    work = (delayed(_run_once)(alike, seed, past) for seed, past in zip(seeds, pasts, strict=True))
    runs = []
    for one in spread(work, n_jobs):
        runs.append(one)
        progress(len(runs) / setting.repeats)
    return Draws.of(runs)


def _run_once(setting: Setting, seed: SeedSequence, past: Past | None) -> Run:
    rng = np.random.default_rng(seed)
    try:
        past = past or setting.world.past(setting.history_size, rng)
    except BadData:  # a past without one of the groups: nothing can be said
        return Run()
    audit = setting.audit(past, setting.question, setting.costs, **setting.options)  # type: ignore[arg-type]
    at_once = setting.delay is None and setting.people is None and audit.budget is None
    if type(audit) is AdaptiveAudit and at_once:
        drive(InBlocks.of(audit, setting.world, rng))
        audit.conclude()
    else:
        run(audit, setting.world, rng, delay=setting.delay, people=setting.people)
    return Run.of(audit)
