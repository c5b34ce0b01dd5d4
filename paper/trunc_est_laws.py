"""The laws by TruncEst (Algorithms 4 and 5) in the experiments, beside exact maximum likelihood.

The theorem's step counts cannot be run, so the counts are our own: up to half of an outcome's
approved people give the start, and the others are shared out among the repeats, a fresh person for
each step. Everything else is as printed. Where no candidate has a majority the printed algorithm
has no answer; the candidate with the most neighbours is used then, and counted as not settled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from equipoise.errors import BadData
from equipoise.mixture import (
    HalfSpace,
    MixtureModel,
    PastFeatures,
    StructuralConstants,
    TruncatedFit,
    known_law,
    trunc_est,
)
from equipoise.mixture.families import Family

PRECISION = 0.05  # epsilon/(2 beta) of Algorithm 2, line 4, at epsilon = 0.1 and beta = 1
LEAST_START_ROWS = 20
MOST_START_ROWS = 2_000
MOST_STEPS = 100  # of a repeat
ESTIMATORS = ("exact likelihood", "TruncEst")


@dataclass
class TruncEstLaws:
    """The laws of a past by TruncEst.

    Attributes
    ----------
    model
        The laws; groups whose data do not allow them are among its problems.
    settled
        For each law whether the majority of its candidates agrees.
    """

    model: MixtureModel = field(default_factory=lambda: MixtureModel({}, {}))
    settled: list[bool] = field(default_factory=list)

    @property
    def problem(self) -> str | None:
        """Why the past gives no model; None if it gives one."""
        return next(iter(self.model.problems.values()), None)


def fit_by_trunc_est(
    past: PastFeatures,
    accepts: Mapping[str, HalfSpace],
    family: Family,
    *,
    delta: float,
    eta: float,
    kappa: float,
) -> TruncEstLaws:
    """Return the laws of approved past people, one run of TruncEst for each group and outcome.

    Parameters
    ----------
    delta
        Error probability of the audit: each run has ``delta/(14 K)``.
    eta
        Size of a step.
    kappa
        Least curvature of W, which limits how far from its start a run may go.
    """
    points = np.asarray(past.X)
    groups = np.asarray(past.group)
    outcomes = np.asarray(past.outcome)
    approved = np.asarray(past.decision) == 1
    run_delta = delta / (14.0 * len(accepts))
    repeats = 10 * math.ceil(math.log(1.0 / run_delta))
    constants = StructuralConstants(kappa=kappa, lam=4.0, lipschitz=10.0, alpha=0.05)
    laws = TruncEstLaws()
    for group, accept in accepts.items():
        pair: list[TruncatedFit] = []
        try:
            for outcome in (0, 1):
                rows = points[approved & (groups == group) & (outcomes == outcome)]
                # half of the people for the start, or fewer if every repeat needs a step
                n_start = min(MOST_START_ROWS, len(rows) // 2, len(rows) - repeats)
                n_steps = min(MOST_STEPS, (len(rows) - max(n_start, 0)) // repeats)
                if n_start < LEAST_START_ROWS:
                    raise BadData(
                        f"group {group!r}, outcome {outcome}: {len(rows)} approved people are too "
                        f"few for the {repeats} repeats of TruncEst"
                    )
                run = trunc_est(
                    rows, accept, family, PRECISION, run_delta, constants,
                    n=n_start, m=n_steps, eta=eta, seed=past.seed,
                )  # fmt: skip
                laws.settled.append(run.settled)
                pair.append(known_law(family, run.theta, accept))
        except BadData as error:
            laws.model.problems[group] = str(error)
        else:
            laws.model.fits[group] = pair[0], pair[1]
    return laws
