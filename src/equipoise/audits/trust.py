"""Whether the mixture model is to be believed: its fits, and equations that it must satisfy."""

from __future__ import annotations

import numpy as np

from equipoise.history.past import Past
from equipoise.mixture.model import MixtureModel, SelfCheck
from equipoise.mixture.tally import FeatureTally
from equipoise.mixture.weights import Weight

__all__ = ["Trust"]

CHECK_LEVEL = 0.01  # of a false alarm, all self-checks together


class Trust:
    """The self-checks of a model on one history, as they are made.

    Deviations that could not change the verdict (``epsilon/36`` before, ``epsilon/12`` after
    features, relative) pass whatever their significance.
    """

    def __init__(self, model: MixtureModel, history: Past, epsilon: float) -> None:
        self.model = model
        self.history = history
        self.epsilon = epsilon
        self.checks: list[SelfCheck] = []

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
        failed = [c for c in self.checks if not c.passed]
        return f"the model contradicts itself ({failed[0]})" if failed else None

    def check_for_free(self) -> None:
        """Check what needs no online data."""
        for group, cells in self.history.cells.items():
            self.checks.append(
                self.model.self_check(
                    group,
                    cells,
                    exact=self.history.exact,
                    level=self._level,
                    slack=self.epsilon / 36.0,
                )
            )

    def check_weight(self, group: str, tally: FeatureTally, weight: Weight, seed: int) -> None:
        """Check a group's weight against the past."""
        p1, p0, _ = self.history.cells[group].shares
        errors = (0.0, 0.0)
        if not self.history.exact:
            total = self.history.cells[group].total
            errors = (float(np.sqrt(p0 / total)), float(np.sqrt(p1 / total)))
        self.checks += tally.self_check(
            group,
            weight,
            (p0, p1),
            errors,
            level=self._level,
            slack=self.epsilon / 12.0,
            seed=seed,
        )

    @property
    def _level(self) -> float:
        return CHECK_LEVEL / (3 * len(self.history.cells))  # one free check, two later, per group
