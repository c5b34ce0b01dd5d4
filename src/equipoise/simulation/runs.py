"""Runs of a simulation: as rows of numbers, and what they come to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise._arrays import Array
from equipoise._json import JsonValue
from equipoise.audits.base import Audit
from equipoise.display import Row, Shown
from equipoise.finding import Interval
from equipoise.question import Costs, Question, Verdict
from equipoise.rates import clopper_pearson

Ints = NDArray[np.int64]

NAMES = ("verdict", "cost", "labels", "features", "estimate", "lower", "upper")
RUN = np.dtype({"names": NAMES, "formats": ("U12", "f8", "i8", "i8", "f8", "f8", "f8")})
"""A run; its estimate is NaN where an audit had none."""
NOTHING = (Verdict.INCONCLUSIVE.value, 0.0, 0, 0, math.nan, 0.0, 1.0)
"""A run that established nothing at no cost."""
Runs = NDArray[np.void]
"""Runs side by side, each a :data:`RUN`."""


def run_of(audit: Audit) -> tuple[object, ...]:
    """Return what an audit spent and found, as a :data:`RUN`."""
    # The audit's own books, not the finding's: labels pending at the verdict cost money too.
    books = (audit.cost, audit.labels, audit.features)
    if (found := audit.finding) is None:
        return (NOTHING[0], *books, *NOTHING[4:])
    estimate = math.nan if found.estimate is None else found.estimate
    return (found.verdict.value, *books, estimate, found.lower, found.upper)


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
