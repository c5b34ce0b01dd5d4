"""Exp-Audit drawn at once: stopping times and MAP counts from their distributions.

What needs no people is drawn (the coarse counts, and how often the MAP oracle says 1 among R
people); what needs features gets them (likelihood weights, self-checks). How many of the R people
were denied is drawn apart from what the oracle said of them: the verdict and the cost each have
their own distribution. How often the oracle says 1 is measured on points that fill each law evenly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.audits.catalogue import audit_class
from equipoise.audits.exp import ExpAudit
from equipoise.errors import BadData
from equipoise.history.past import endless_counts
from equipoise.mixture.rules import sobol
from equipoise.mixture.weights import SUBSAMPLE, FeatureCounts, log_ratio
from equipoise.simulation.repeats import run_repeats
from equipoise.simulation.result import Draws, Run
from equipoise.simulation.setting import Setting, draw_at_once
from equipoise.worlds import CellWorld, TableWorld
from equipoise.worlds.mixture import GroupMixture, MixtureWorld

__all__ = ["draw"]

_CHUNK = 1_000_000
_POINTS = 2**17  # of each law, on which the MAP oracle is measured

Points = NDArray[np.float64]


def draw(setting: Setting) -> Draws | None:
    """Draw every repeat of Exp-Audit where people have features; None for other settings.

    In a mixture world, or in a table with features if the audit is given a ``model``.
    """
    world = setting.world
    late = setting.delay is not None or setting.people is not None or setting.pasts is not None
    if late or "budget" in setting.options:
        return None
    crowds: dict[str, _Crowd]
    if isinstance(world, MixtureWorld):
        crowds = {g: _Mixture(m) for g, m in world.mixtures.items()}
    elif isinstance(world, TableWorld) and world.features is not None:
        crowds = {g: _Rows.of(world, g) for g in world.groups}
    else:
        return None
    runs = [
        _run(setting, world, crowds, np.random.default_rng(seed))
        for seed in np.random.SeedSequence(setting.seed).spawn(setting.repeats)
    ]
    return _collect(setting, world, runs)


class _Crowd(Protocol):
    """One group: the share of outcome 1, who is denied, and people's features."""

    @property
    def q(self) -> float: ...

    @property
    def denied(self) -> tuple[float, float]: ...

    def draw(self, size: int, rng: np.random.Generator) -> Points: ...

    def map_share(self, counts: FeatureCounts) -> float: ...


@dataclass(frozen=True)
class _Mixture:
    mixture: GroupMixture

    @cached_property
    def points(self) -> list[Points]:
        """Points that fill the law of outcome 0 and that of outcome 1."""
        return [
            law.family.from_uniforms(
                law.theta, sobol(law.family.dimension(law.theta), seed=0).random(_POINTS)
            )
            for law in self.mixture.laws
        ]

    @property
    def q(self) -> float:
        return self.mixture.q

    @property
    def denied(self) -> tuple[float, float]:
        zero, one = self.mixture.laws
        return 1.0 - zero.acceptance, 1.0 - one.acceptance

    def draw(self, size: int, rng: np.random.Generator) -> Points:
        ones = int(rng.binomial(size, self.q))
        zero, one = self.mixture.laws
        return np.concatenate(
            [
                one.family.sample(one.theta, ones, rng),
                zero.family.sample(zero.theta, size - ones, rng),
            ]
        )

    def map_share(self, counts: FeatureCounts) -> float:
        zero, one = (_map_share(counts, points) for points in self.points)
        return self.q * one + (1.0 - self.q) * zero


@dataclass(frozen=True)
class _Rows:
    features: Points
    q: float
    denied: tuple[float, float]

    @classmethod
    def of(cls, world: TableWorld, group: str) -> _Rows:
        assert world.features is not None
        here = world.group == world.groups.index(group)
        outcome, refused = world.outcome[here], world.decision[here] == 0
        zero, one = (float(refused[outcome == y].mean()) for y in (0, 1))
        return cls(world.features[here], float(outcome.mean()), (zero, one))

    def draw(self, size: int, rng: np.random.Generator) -> Points:
        return self.features[rng.integers(len(self.features), size=size)]

    def map_share(self, counts: FeatureCounts) -> float:
        return _map_share(counts, self.features)


def _map_share(counts: FeatureCounts, points: Points) -> float:
    """Return the share of these people of whom the MAP oracle says 1."""
    return float(np.mean(log_ratio(counts.fits, points) > -np.log(counts.odds)))


def _run(
    setting: Setting,
    world: MixtureWorld | TableWorld,
    crowds: dict[str, _Crowd],
    rng: np.random.Generator,
) -> ExpAudit | None:
    try:
        past = world.past(setting.history_size, rng)
    except BadData:  # a past without one of the groups
        return None
    audit = ExpAudit(past, setting.question, setting.costs, **setting.options)  # type: ignore[arg-type]
    if audit.finding is None and audit.stage == "coarse":
        audit.take_coarse({g: _coarse(audit, crowd, g, rng) for g, crowd in crowds.items()})
    if audit.finding is None and audit.stage == "features":
        audit.take_features({g: _features(audit, crowd, g, rng) for g, crowd in crowds.items()})
    return audit


def _coarse(
    audit: ExpAudit, crowd: _Crowd, group: str, rng: np.random.Generator
) -> tuple[int, int]:
    shares = np.array([1.0 - crowd.q, crowd.q])
    lengths = []
    for outcome in (0, 1):
        counts = endless_counts(rng, audit.coarse_tau, [outcome], shares, 1)[0, 0]
        lengths.append(int(counts.sum()))
        asked = [int(rng.binomial(counts[y], crowd.denied[y])) for y in (0, 1)]
        audit.book("coarse", group, labels=sum(asked), failures=asked[0], features=0)
    return lengths[0], lengths[1]


def _features(
    audit: ExpAudit, crowd: _Crowd, group: str, rng: np.random.Generator
) -> FeatureCounts:
    branch, counts = audit.branches[group], audit.counts(group)
    left = branch.features - counts.size  # past people's features were free
    if left <= 0:
        return counts
    some = min(left, SUBSAMPLE)  # these are kept whole, so they come first and complete
    counts.add_many(crowd.draw(some, rng))
    if branch.way == "map":
        share = crowd.map_share(counts)
        counts.add_counts(left - some, int(rng.binomial(left - some, share)))
    else:
        for start in range(some, left, _CHUNK):
            counts.add_many(crowd.draw(min(left - start, _CHUNK), rng))
    s = crowd.q * crowd.denied[1] + (1.0 - crowd.q) * crowd.denied[0]
    audit.book("features", group, labels=0, failures=0, features=int(rng.binomial(left, s)))
    return counts


def _collect(
    setting: Setting, world: MixtureWorld | TableWorld, runs: list[ExpAudit | None]
) -> Draws:
    draws = Draws.of([Run() if audit is None else Run.of(audit) for audit in runs])
    open_ended = [i for i, a in enumerate(runs) if a is not None and a.finding is None]
    if open_ended:
        _run_fallbacks(setting, world, runs, open_ended, draws)
    return draws


def _run_fallbacks(
    setting: Setting,
    world: MixtureWorld | TableWorld,
    runs: list[ExpAudit | None],
    rows: list[int],
    draws: Draws,
) -> None:
    """Let the fall-back audit finish the runs that went over to labels."""
    first = runs[rows[0]]
    assert first is not None
    own = [audit.history for audit in (runs[row] for row in rows) if audit is not None]
    options = {"tau": setting.options["tau"]} if setting.options.get("tau") else {}
    kind = str(setting.options.get("fallback", "rs"))
    inner = Setting(
        audit_class(kind),
        CellWorld(world.cells, world.r),
        first.fallback_question,
        setting.costs,
        repeats=len(rows),
        seed=setting.seed + 1,
        history_size=setting.history_size,
        options=options if kind == "rs" else {},
        pasts=None if setting.history_size is None else own,
    )
    done = draw_at_once(inner) or run_repeats(inner)
    for name in ("cost", "labels", "features"):
        getattr(draws, name)[rows] += getattr(done, name)
    for name in ("verdict", "estimate", "lower", "upper"):
        getattr(draws, name)[rows] = getattr(done, name)
