"""How often the free self-check of a mixture model refuses a model that is right."""

from __future__ import annotations

import argparse

import numpy as np
from rich.table import Table
from tests.support.tables import table

from equipoise.mixture.model_checks import FALSE_ALARM_PROBABILITY, ModelChecks
from equipoise.worlds import MixtureWorld
from study import _resumed
from study._resumed import Run, mean

SIZES = (1_000, 3_000, 10_000, 100_000)
TILTS = {"across": 0.0, "along": -1.2, "against": 0.8}
POINTS = {
    f"{name}, {size:,} past people": (tilt, size) for name, tilt in TILTS.items() for size in SIZES
}
EPSILON = 0.1
FRESH = 50_000  # seeds from here on: none was looked at while the check was made


def add_options(parser: argparse.ArgumentParser) -> None:
    _resumed.add_options(parser, runs=500)


def run(options: argparse.Namespace) -> Table:
    made = _resumed.collect(options, list(POINTS), one_run)
    out = table(
        f"false alarms at a level of {FALSE_ALARM_PROBABILITY:.0%} for all checks, laws 2 to 7 "
        f"standard deviations apart, {min(map(len, made.values()))} runs a row",
        *("classifier, past", "refused", "no model", "acceptance known to within"),
    )
    for point, runs in made.items():
        keys = "refused", "no model", "vague"
        out.add_row(point, *(f"{mean(runs, key):.3f}" for key in keys))
    return out


def one_run(point: str, number: int) -> Run:
    """Fit a past of its own and make the check that costs nothing."""
    tilt, size = POINTS[point]
    number += FRESH
    world = MixtureWorld.synthetic(
        4.0 + number % 3 * 5.0, approval={"1": 0.6, "0": 0.4}, tilt=tilt, dimension=2, seed=number
    )
    past = world.past(size, np.random.default_rng([number, 2]))
    checks = ModelChecks(past.model, past, EPSILON)
    if past.model.problems:
        return {"refused": 0.0, "no model": 1.0, "vague": 0.0}
    checks.check_for_free()
    fits = [fit for pair in past.model.fits.values() for fit in pair]
    vague = max(fit.acceptance_error / fit.acceptance for fit in fits)
    refused = any(not check.passed for check in checks.self_checks)
    return {"refused": float(refused), "no model": 0.0, "vague": min(vague, 10.0)}
