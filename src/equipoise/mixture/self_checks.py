"""Whether a mixture model is to be believed: its fits, and equations that it must satisfy.

Two equations hold if the laws are right where nobody was approved, and cost nothing to check:
``sum over y of P[f=1, Y=y] / P_theta_y[f=1] = 1`` before any features are bought, and
``q_y P_theta_y[f=1] = P[f=1, Y=y]`` for both outcomes after. Both are blind to denied people whose
outcomes are not what their features say; the labels behind the coarse weights are not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from equipoise.cells import GroupCells
from equipoise.history.past import Past
from equipoise.mixture.feature_counts import FeatureCounts
from equipoise.mixture.model import MixtureModel
from equipoise.mixture.weights import Weight, slopes_in_theta, theta_error

__all__ = ["ModelChecks", "SelfCheck", "laws_add_up"]

FALSE_ALARM = 0.01  # of all self-checks together


@dataclass(frozen=True)
class SelfCheck:
    """Whether quantities that the model makes equal are equal: ``residual`` should be 0.

    A residual passes within chance (a false alarm has probability ``level``), or if it is too
    small to matter (``slack``).

    Examples
    --------
    >>> print(SelfCheck("shares add up to 1", 0.03, 0.01, slack=0.0, level=0.05))
    shares add up to 1: off by +0.0300 ± 0.0100, FAILS
    """

    what: str
    residual: float
    standard_error: float
    slack: float
    level: float

    @property
    def passed(self) -> bool:
        """Whether the residual is within chance or slack."""
        reach = float(ndtri(1.0 - self.level / 2.0)) * self.standard_error
        return abs(self.residual) <= reach + self.slack

    def __str__(self) -> str:
        word = "holds" if self.passed else "FAILS"
        return f"{self.what}: off by {self.residual:+.4f} ± {self.standard_error:.4f}, {word}"


def laws_add_up(
    model: MixtureModel, group: str, cells: GroupCells, *, exact: bool, level: float, slack: float
) -> SelfCheck:
    """Check the first equation on a group's past counts, ``exact`` if they are the population."""
    fits = model.of(group)
    p = np.array([cells.shares[1], cells.shares[0]])
    alpha = np.array([max(fit.acceptance, 1e-9) for fit in fits])
    errors = np.array([fit.acceptance_error for fit in fits])
    terms = p / alpha
    variance = float(((terms * errors / alpha) ** 2).sum())
    if not exact:  # the two counts are one multinomial sample
        spread = float((terms**2 / np.maximum(p, 1e-300)).sum() - terms.sum() ** 2)
        variance += spread / cells.total
    return SelfCheck(
        f"P[f=1,Y=y]/P_theta[f=1] of group {group!r} add up to 1",
        float(terms.sum() - 1.0),
        float(np.sqrt(max(variance, 0.0))),
        slack,
        level,
    )


class ModelChecks:
    """The self-checks of a model on one history, as they are made.

    Deviations that could not change the verdict (``epsilon/36`` before, ``epsilon/12`` after
    features, relative) pass whatever their significance.
    """

    def __init__(self, model: MixtureModel, history: Past, epsilon: float) -> None:
        self.model = model
        self.history = history
        self.epsilon = epsilon
        self.made: list[SelfCheck] = []
        self._level = FALSE_ALARM / (
            5 * len(history.cells)
        )  # one free check, four later, per group

    @property
    def missing(self) -> str | None:
        """Why there is no model to speak of, None if there is."""
        for group in self.history.cells:
            if group not in self.model.fits:
                why = self.model.problems.get(group, "it was not fitted")
                return f"there is no model of group {group!r}: {why}"
        return None

    @property
    def broken(self) -> str | None:
        """Why the model is not to be believed, None if nothing speaks against it."""
        for group, pair in self.model.fits.items():
            for outcome, fit in enumerate(pair):
                if fit.diagnostics.plainly_wrong:
                    why = "; ".join(fit.diagnostics.warnings)
                    return f"the law of group {group!r}, outcome {outcome}, does not fit: {why}"
        failed = [c for c in self.made if not c.passed]
        return f"the model contradicts itself ({failed[0]})" if failed else None

    def check_for_free(self) -> None:
        """Check what needs no online data."""
        slack, exact = self.epsilon / 36.0, self.history.exact
        self.made += [
            laws_add_up(self.model, group, cells, exact=exact, level=self._level, slack=slack)
            for group, cells in self.history.cells.items()
        ]

    def check_weight(self, group: str, counts: FeatureCounts, weight: Weight) -> None:
        """Check a group's weight against the past: the second equation, on the log scale.

        An estimated acceptance errs by a factor, and upwards further than downwards.
        """
        cells, fits = self.history.cells[group], counts.fits
        q = float(np.clip(weight.estimate, 1e-9, 1.0 - 1e-9))
        slopes = slopes_in_theta(counts.some, fits, q)
        for y, fit in enumerate(fits):
            p, here = cells.shares[1 - y], (1.0 - q, q)[y]
            moves = [slope * (1.0 if y else -1.0) / here for slope in slopes]
            moves[y] = moves[y] + fit.acceptance_gradient / fit.acceptance
            past = 0.0 if self.history.exact else float(np.sqrt(1.0 / (p * cells.total)))
            laws = theta_error((moves[0], moves[1]), fits)
            self.made.append(
                SelfCheck(
                    f"q P_theta[f=1] = P[f=1,Y] of group {group!r}, outcome {y}",
                    float(np.log(here * max(fit.acceptance, 1e-9) / p)),
                    float(np.linalg.norm([laws, past, weight.sampling_error / here])),
                    self.epsilon / 12.0,
                    self._level,
                )
            )

    def check_labels(
        self, group: str, weight: Weight, coarse: tuple[float, float], tau: int
    ) -> None:
        """Check a group's weight against the coarse weights, which rest on tau labels each."""
        for y, counted in enumerate(coarse):
            here = max((1.0 - weight.estimate, weight.estimate)[y], 1e-9)
            counting = float(np.sqrt((1.0 - min(here, counted)) / tau))
            self.made.append(
                SelfCheck(
                    f"q from features = q from labels of group {group!r}, outcome {y}",
                    float(np.log(here / counted)),
                    float(np.hypot(counting, weight.standard_error / here)),
                    self.epsilon / 12.0,
                    self._level,
                )
            )
