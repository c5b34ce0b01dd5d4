"""All runs of Exp-Audit at once: counts where they suffice, people where features are needed.

Counts are drawn for the coarse phase and for how often the MAP oracle says 1 among R people; people
are drawn for likelihood weights and self-checks. How many of the R people were denied is drawn
independently of what the oracle said of them, so verdict and cost have the right distribution each,
but not jointly. How often the oracle says 1 is measured on points that fill each law evenly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng

from equipoise._arrays import Array
from equipoise.audits.catalogue import audit_class
from equipoise.audits.exp_audit import ExpAudit
from equipoise.history.rows_until import draw_counts_in_unlimited_past
from equipoise.mixture.decision_maker import sobol
from equipoise.mixture.likelihood_weights import SUBSAMPLE, log_ratio
from equipoise.mixture.map_weights import FeatureCounts, Labelled
from equipoise.simulation.runs import RUN_DTYPE, UNDECIDED_RUN, Ints, Runs, run_record
from equipoise.simulation.simulate_audit import Setting, run_setting
from equipoise.worlds import CellWorld, TableWorld
from equipoise.worlds.mixture import GroupMixture, MixtureWorld

_MAX_PEOPLE_AT_ONCE = 1_000_000
_POINTS_PER_LAW = 2**17  # of each law, on which the MAP oracle is measured


def draw_exp(setting: Setting) -> Runs | None:
    """Draw every repeat of Exp-Audit where people have features; None for other settings.

    In a mixture world, or in a table with features if the audit is given a ``model``.
    """
    world = setting.world
    if isinstance(world, MixtureWorld):
        populations = {g: _describe_mixture(m) for g, m in world.mixtures.items()}
    elif isinstance(world, TableWorld) and world.features is not None:
        populations = {g: _describe_rows(world, world.features, g) for g in world.groups}
    else:
        return None
    seeds = SeedSequence(setting.seed).spawn(setting.repeats)
    runs = [_run_exp(setting, at, populations, default_rng(seed)) for at, seed in enumerate(seeds)]
    draws = np.array(
        [UNDECIDED_RUN if audit is None else run_record(audit) for audit in runs], dtype=RUN_DTYPE
    )
    going = {i: audit for i, audit in enumerate(runs) if audit and audit.finding is None}
    if going:
        _run_fallbacks(setting, going, draws)
    return draws


@dataclass(frozen=True)
class _Population:
    """One group: P[Y=1], P[f=0 | Y=0] and P[f=0 | Y=1], and people's features.

    ``draw`` returns the features of so many people of one outcome, or of both (None). ``points``
    are features that fill each part of the group evenly, with the part's share.
    """

    q: float
    denied: tuple[float, float]
    draw: Callable[[int, Generator, int | None], Array]
    points: Callable[[], list[tuple[float, Array]]]

    def label(self, sizes: Ints, rng: Generator) -> Labelled:
        """Return so many people of outcome 0 and 1."""
        people = [self.draw(int(size), rng, outcome) for outcome, size in enumerate(sizes)]
        return Labelled(np.concatenate(people), np.repeat(np.array([0, 1], dtype=np.int8), sizes))

    def map_share(self, counts: FeatureCounts) -> float:
        """Return the share of the group of whom the MAP oracle says 1."""
        limit = -np.log(counts.odds)
        return sum(w * float(np.mean(log_ratio(counts.fits, x) > limit)) for w, x in self.points())


def _describe_mixture(mixture: GroupMixture) -> _Population:
    q, (zero, one) = mixture.q, mixture.laws

    def sample(size: int, rng: Generator, outcome: int | None = None) -> Array:
        ones = int(rng.binomial(size, q)) if outcome is None else size * outcome
        parts = ((one, ones), (zero, size - ones))
        return np.concatenate([law.family.sample(law.theta, n, rng) for law, n in parts])

    @cache
    def points() -> list[tuple[float, Array]]:
        uniforms = sobol(zero.family.dimension(zero.theta), _POINTS_PER_LAW, seed=0)
        parts = ((q, one), (1.0 - q, zero))
        return [(share, law.family.from_uniforms(law.theta, uniforms)) for share, law in parts]

    return _Population(q, (1.0 - zero.acceptance, 1.0 - one.acceptance), sample, points)


def _describe_rows(world: TableWorld, features: Array, group: str) -> _Population:
    here = world.group == world.groups.index(group)
    own, outcome, refused = features[here], world.outcome[here], world.decision[here] == 0
    zero, one = (float(refused[outcome == y].mean()) for y in (0, 1))
    rows: dict[int | None, Array] = {None: own, 0: own[outcome == 0], 1: own[outcome == 1]}

    def draw(size: int, rng: Generator, outcome: int | None = None) -> Array:
        return rows[outcome][rng.integers(len(rows[outcome]), size=size)]

    return _Population(float(outcome.mean()), (zero, one), draw, points=lambda: [(1.0, own)])


def _run_exp(
    setting: Setting, repeat: int, populations: dict[str, _Population], rng: Generator
) -> ExpAudit | None:
    """Run one Exp-Audit until its finding, or until it goes over to labels."""
    audit = setting.begin_repeat(repeat, rng)
    if not isinstance(audit, ExpAudit):
        return None
    if audit.finding is None and audit.phase == "coarse":
        apart, lengths, labelled = rng.spawn(1)[0], {}, {}
        for group, population in populations.items():
            shares, phases = np.array([1.0 - population.q, population.q]), []
            for outcome in (0, 1):  # until enough of outcome 0 are labelled, then of 1
                by_goal = draw_counts_in_unlimited_past(rng, audit.coarse_tau, [outcome], shares, 1)
                counts = by_goal[0, 0]
                phases.append(counts)
                asked = [int(rng.binomial(counts[y], population.denied[y])) for y in (0, 1)]
                audit.spending[group].labels += sum(asked)
                audit.spending[group].failures += asked[0]
            zero, one = phases
            lengths[group] = zero.sum(), one.sum()
            labelled[group] = population.label(zero + one, apart)
        audit.finish_coarse_phase(lengths, labelled)
    if audit.finding is None and audit.phase == "features":
        for group, population in populations.items():
            _add_features(audit, population, group, rng)
        audit.finish_feature_phase()
    return audit


def _add_features(audit: ExpAudit, population: _Population, group: str, rng: Generator) -> None:
    branch, counts = audit.branches[group], audit.counts[group]
    left = branch.features - counts.size  # past people's features were free
    if left <= 0:
        return
    some = min(left, SUBSAMPLE)  # these are kept whole, so they come first and complete
    counts.add(population.draw(some, rng, None))
    if branch.way == "map":
        counts.add_counts(left - some, int(rng.binomial(left - some, population.map_share(counts))))
    else:
        for start in range(some, left, _MAX_PEOPLE_AT_ONCE):
            counts.add(population.draw(min(left - start, _MAX_PEOPLE_AT_ONCE), rng, None))
    s = population.q * population.denied[1] + (1.0 - population.q) * population.denied[0]
    audit.spending[group].features += int(rng.binomial(left, s))


def _run_fallbacks(setting: Setting, going: dict[int, ExpAudit], draws: Runs) -> None:
    """Let the fall-back audit finish the runs that went over to labels."""
    rows, audits = list(going), list(going.values())
    kind = str(setting.options.get("fallback", "rs"))
    tau = setting.options.get("tau") if kind == "rs" else None
    done = run_setting(
        replace(
            setting,
            audit=audit_class(kind),
            world=CellWorld(setting.world.cells, setting.world.r),
            question=audits[0].fallback_question,
            repeats=len(rows),
            seed=setting.seed + 1,
            options={"tau": tau} if tau else {},
            pasts=None if audits[0].history.exact else [a.history for a in audits],
        )
    )
    for name in ("cost", "labels", "features"):
        draws[name][rows] += done[name]
    for name in ("verdict", "estimate", "lower", "upper"):
        draws[name][rows] = done[name]
