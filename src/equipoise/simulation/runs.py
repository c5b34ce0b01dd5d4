"""Runs of a simulation: as rows of numbers, and what they come to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from equipoise._arrays import Array
from equipoise._json import JsonValue
from equipoise.audits.base import Audit
from equipoise.display import FAIR, UNDECIDED, UNFAIR, Displayable, Row, format_number, wrap_caption
from equipoise.finding import Interval
from equipoise.question import Costs, Question, Verdict
from equipoise.rates import clopper_pearson

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Ints = NDArray[np.int64]

RUN_FIELDS = (
    "verdict",
    "cost",
    "labels",
    "features",
    "estimate",
    "lower",
    "upper",
    "fallback_reason",
)
RUN_FORMATS = ("U12", "f8", "i8", "i8", "f8", "f8", "f8", "O")
RUN_DTYPE = np.dtype({"names": RUN_FIELDS, "formats": RUN_FORMATS})
"""A run; its estimate is NaN where an audit had none, its fallback reason "" where it had none."""
UNDECIDED_RUN = (Verdict.INCONCLUSIVE.value, 0.0, 0, 0, math.nan, 0.0, 1.0, "")
"""A run that established nothing at no cost."""
SUMMARY_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of the cost
Runs = NDArray[np.void]
"""Runs side by side, each a :data:`RUN_DTYPE`."""


def run_record(audit: Audit) -> tuple[object, ...]:
    """Return what an audit spent and found, as a :data:`RUN_DTYPE`."""
    # The audit's own books, not the finding's: labels pending at the verdict cost money too.
    spent = (audit.cost, audit.labels, audit.features)
    finding = audit.finding
    fallback_reason = audit.fallback_reason or ""
    if finding is None:
        return (UNDECIDED_RUN[0], *spent, *UNDECIDED_RUN[4:7], fallback_reason)
    estimate = math.nan if finding.estimate is None else finding.estimate
    bounds = finding.lower, finding.upper
    return (finding.verdict.value, *spent, estimate, *bounds, fallback_reason)


@dataclass(frozen=True, eq=False)
class Simulation(JsonValue, Displayable):
    """Many runs of one audit in one world; ``to_frame`` has a row per run.

    Attributes
    ----------
    verdict, cost, labels, features, estimate, lower, upper
        Arrays with one entry per repeat. Verdicts are the strings FAIR, UNFAIR, INCONCLUSIVE.
    fallback_reason
        Per repeat, why Exp-Audit let labels decide; "" where it decided by features, and for
        other audits.
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
    fallback_reason: NDArray[np.object_]
    audit: str
    question: Question
    costs: Costs
    gap: float

    def __len__(self) -> int:
        return len(self.verdict)

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which runs gave a wrong verdict; INCONCLUSIVE is not wrong."""
        # Between gamma and gamma + epsilon both verdicts are right.
        not_wrong = self.question.truth(self.gap) | {Verdict.INCONCLUSIVE}
        return ~np.isin(self.verdict, [verdict.value for verdict in not_wrong])

    def summary(self) -> Summary:
        """Return the simulation in a few numbers."""
        repeats = len(self)
        wrong_runs = int(self.wrong.sum())
        is_covered = (self.lower <= self.gap) & (self.gap <= self.upper)
        # One run has no deviation; 0 keeps the summary writable.
        deviation = float(np.std(self.cost, ddof=1)) if repeats > 1 else 0.0
        verdict_shares = {}
        for verdict in Verdict:
            verdict_shares[str(verdict.value)] = float(np.mean(self.verdict == verdict.value))
        cost_quantiles = {}
        for quantile in SUMMARY_QUANTILES:
            cost_quantiles[f"{quantile:g}"] = float(np.quantile(self.cost, quantile))
        low, high = clopper_pearson(wrong_runs, repeats, 0.025)  # each end, so 95% in all
        reasons = [reason for reason in self.fallback_reason.tolist() if reason]
        return Summary(
            audit=self.audit,
            question=self.question,
            costs=self.costs,
            repeats=repeats,
            gap=self.gap,
            verdicts=verdict_shares,
            errors=wrong_runs,
            error_rate=Interval(low, high, estimate=wrong_runs / repeats),
            coverage=float(is_covered.mean()),
            mean_cost=float(self.cost.mean()),
            standard_error=deviation / repeats**0.5,
            cost_quantiles=cost_quantiles,
            mean_labels=float(self.labels.mean()),
            mean_features=float(self.features.mean()),
            decided_by_labels=len(reasons) / repeats if self.audit == "exp" else None,
            fallback_reason=reasons[0] if reasons else None,
        )

    def __str__(self) -> str:
        return str(self.summary())

    def _rows(self) -> Sequence[Row]:
        # Only Exp-Audit has reasons to fall back.
        names = RUN_FIELDS if self.audit == "exp" else RUN_FIELDS[:-1]
        columns = [getattr(self, name).tolist() for name in names]
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]

    def _draw(self, ax: Axes) -> None:
        """Draw how many runs cost how much, by verdict."""
        colours = {"FAIR": FAIR, "UNFAIR": UNFAIR, "INCONCLUSIVE": UNDECIDED}
        reached = [name for name in colours if (self.verdict == name).any()]
        costs = [self.cost[self.verdict == name] for name in reached]
        ax.hist(
            costs,
            bins=min(30, max(5, len(self) // 10)),
            stacked=True,
            color=[colours[name] for name in reached],
            label=[f"{name}, {np.mean(self.verdict == name):.0%} of the runs" for name in reached],
        )
        ax.set_xlabel("cost of a run")
        ax.set_ylabel("runs")
        ax.legend()
        gap = format_number(100 * self.gap, 3)
        title = f"{self.audit} audit, {len(self):,} runs, true gap {gap} points"
        ax.set_title(wrap_caption(title), loc="left")

    def _table(self) -> Sequence[Row]:
        return ()  # a notebook shows the summary


@dataclass(frozen=True)
class Summary(JsonValue):
    """A simulation in a few numbers.

    ``error_rate`` has a 95% Clopper-Pearson interval; ``coverage`` is the share of runs whose
    interval for the gap held the truth; ``standard_error`` belongs to ``mean_cost``.
    ``decided_by_labels`` is the share of runs in which Exp-Audit went over to labels (None for
    other audits), and ``fallback_reason`` says why, for the first such run.

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
    decided_by_labels: float | None = None
    fallback_reason: str | None = None

    def __str__(self) -> str:
        truth = " or ".join(sorted(self.question.truth(self.gap)))
        verdict_shares = ", ".join(
            f"{verdict} {share:.1%}" for verdict, share in self.verdicts.items() if share
        )
        error_rate = self.error_rate
        # The adaptive audit has no features: there it counts people whose label was not asked for.
        has_scores = self.audit == "adaptive" and self.mean_features > 0.0
        features_noun = "more people looked at" if has_scores else "feature vectors"
        by_labels = []
        if self.decided_by_labels:
            by_labels.append(
                f"  by labels   {self.decided_by_labels:.1%} of the runs were decided by labels, "
                f"not by features; for example because {self.fallback_reason}"
            )
        return "\n".join(
            [
                f"{self.audit}: {self.repeats:,} runs, true gap {self.gap:.4f} ({truth})",
                f"  question    {self.question}",
                f"  verdicts    {verdict_shares}",
                f"  wrong       {self.errors:,} of {self.repeats:,}: {error_rate.estimate:.2%}, "
                f"95% interval [{error_rate.lower:.2%}, {error_rate.upper:.2%}]",
                f"  coverage    {self.coverage:.1%} of the intervals held the gap",
                f"  cost        mean {format_number(self.mean_cost)} ± "
                f"{format_number(self.standard_error, 3)}, median "
                f"{format_number(self.cost_quantiles['0.5'])}, "
                f"90% between {format_number(self.cost_quantiles['0.05'])} and "
                f"{format_number(self.cost_quantiles['0.95'])}",
                f"  asked       {format_number(self.mean_labels)} labels and "
                f"{format_number(self.mean_features)} {features_noun} on average",
                *by_labels,
            ]
        )
