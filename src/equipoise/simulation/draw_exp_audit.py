"""All runs of Exp-Audit at once: counts where they suffice, people where features are needed.

Counts are drawn for the coarse phase and for how often the MAP oracle says 1 among R people; people
are drawn for likelihood weights and self-checks. How many of the R people were denied is drawn
independently of what the oracle said of them, so verdict and cost have the right distribution each,
but not jointly. How often the oracle says 1 is measured on points that fill each law evenly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

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
from equipoise.worlds import CellWorld, TableWorld, World
from equipoise.worlds.mixture import GroupMixture, MixtureWorld

_MAX_PEOPLE_AT_ONCE = 1_000_000  # whose features are in memory together
_POINTS_PER_LAW = 2**17  # on which the MAP oracle is measured


def draw_exp(setting: Setting) -> Runs | None:
    """Draw every repeat of Exp-Audit where people have features; None for other settings.

    In a mixture world, or in a table with features if the audit is given a ``model``.
    """
    populations = _populations(setting.world)
    if populations is None:
        return None
    runs = np.array([UNDECIDED_RUN] * setting.repeats, dtype=RUN_DTYPE)
    unfinished = {}
    # A seed for each run, so that a run stays the same however many there are.
    seeds = SeedSequence(setting.seed).spawn(setting.repeats)
    for repeat, seed in enumerate(seeds):
        audit = _run_exp(setting, repeat, populations, default_rng(seed))
        if audit is not None:
            runs[repeat] = run_record(audit)
            if audit.finding is None:
                unfinished[repeat] = audit
    if unfinished:
        _run_fallbacks(setting, unfinished, runs)
    return runs


# -- who is drawn ----------------------------------------------------------------------------------


class _Population(ABC):
    """One group whose people are drawn.

    Attributes
    ----------
    q
        P[Y=1].
    denied_shares
        P[f=0 | Y=0] and P[f=0 | Y=1].
    """

    q: float
    denied_shares: tuple[float, float]

    @abstractmethod
    def draw(self, size: int, rng: Generator, outcome: int | None = None) -> Array:
        """Return the features of so many people of one outcome, or of both outcomes (None)."""

    @abstractmethod
    def points(self) -> list[tuple[float, Array]]:
        """Return the parts of the group: each part's share, and features that fill it evenly."""

    @property
    def denied_share(self) -> float:
        """P[f=0]."""
        denied_bad, denied_good = self.denied_shares
        return self.q * denied_good + (1.0 - self.q) * denied_bad

    def draw_labelled(self, sizes: Ints, rng: Generator) -> Labelled:
        """Return so many people of outcome 0 and of outcome 1, with their outcomes."""
        people = [self.draw(int(size), rng, outcome) for outcome, size in enumerate(sizes)]
        # The people of outcome 0 come first, as they were drawn.
        outcomes = np.repeat(np.array([0, 1], dtype=np.int8), sizes)
        return Labelled(np.concatenate(people), outcomes)

    def map_share(self, counts: FeatureCounts) -> float:
        """Return the share of the group of whom the MAP oracle says 1."""
        least_log_ratio = -np.log(counts.odds)
        total = 0.0
        for share, features in self.points():
            says_one = log_ratio(counts.fits, features) > least_log_ratio
            total += share * float(np.mean(says_one))
        return total


class _MixturePopulation(_Population):
    """A group whose features follow one law per outcome."""

    def __init__(self, mixture: GroupMixture) -> None:
        self._law_of_zero, self._law_of_one = mixture.laws
        self._points: list[tuple[float, Array]] = []
        self.q = mixture.q
        self.denied_shares = 1.0 - self._law_of_zero.acceptance, 1.0 - self._law_of_one.acceptance

    def draw(self, size: int, rng: Generator, outcome: int | None = None) -> Array:
        n_ones = int(rng.binomial(size, self.q)) if outcome is None else size * outcome
        n_zeros = size - n_ones
        features_of_one = self._law_of_one.family.sample(self._law_of_one.theta, n_ones, rng)
        features_of_zero = self._law_of_zero.family.sample(self._law_of_zero.theta, n_zeros, rng)
        return np.concatenate([features_of_one, features_of_zero])

    def points(self) -> list[tuple[float, Array]]:
        if not self._points:  # made when first needed, and kept: they serve all repeats
            dimension = self._law_of_zero.family.dimension(self._law_of_zero.theta)
            uniforms = sobol(dimension, _POINTS_PER_LAW, seed=0)
            parts = ((self.q, self._law_of_one), (1.0 - self.q, self._law_of_zero))
            for share, law in parts:
                self._points.append((share, law.family.from_uniforms(law.theta, uniforms)))
        return self._points


class _TablePopulation(_Population):
    """A group whose people are drawn from the rows of a table."""

    def __init__(self, world: TableWorld, features: Array, group: str) -> None:
        is_member = world.group == world.groups.index(group)
        outcomes = world.outcome[is_member]
        is_denied = world.decision[is_member] == 0
        members = features[is_member]
        self._features_by_outcome: dict[int | None, Array] = {
            None: members,
            0: members[outcomes == 0],
            1: members[outcomes == 1],
        }
        self.q = float(outcomes.mean())
        denied_bad = float(is_denied[outcomes == 0].mean())
        denied_good = float(is_denied[outcomes == 1].mean())
        self.denied_shares = denied_bad, denied_good

    def draw(self, size: int, rng: Generator, outcome: int | None = None) -> Array:
        features = self._features_by_outcome[outcome]
        # With replacement: the rows are the population.
        return features[rng.integers(len(features), size=size)]

    def points(self) -> list[tuple[float, Array]]:
        return [(1.0, self._features_by_outcome[None])]


def _populations(world: World) -> dict[str, _Population] | None:
    """Return the groups of a world with features; None if its people have none."""
    if isinstance(world, MixtureWorld):
        return {group: _MixturePopulation(mixture) for group, mixture in world.mixtures.items()}
    if isinstance(world, TableWorld) and world.features is not None:
        features = world.features
        return {group: _TablePopulation(world, features, group) for group in world.groups}
    return None


# -- one run ---------------------------------------------------------------------------------------


def _run_exp(
    setting: Setting, repeat: int, populations: dict[str, _Population], rng: Generator
) -> ExpAudit | None:
    """Run one Exp-Audit until its finding, or until it goes over to labels.

    None if its past lacks a group, so that there is no audit.
    """
    audit = setting.begin_repeat(repeat, rng)
    if not isinstance(audit, ExpAudit):
        return None
    if audit.finding is None and audit.phase == "coarse":
        _draw_coarse_phase(audit, populations, rng)
    if audit.finding is None and audit.phase == "features":
        for group, population in populations.items():
            _add_features(audit, population, group, rng)
        audit.finish_feature_phase()
    return audit


def _draw_coarse_phase(
    audit: ExpAudit, populations: dict[str, _Population], rng: Generator
) -> None:
    """Label people of every group until enough of outcome 0 came, then until enough of 1 did."""
    # A generator of its own, so that how many features are drawn does not change the counts.
    feature_rng = rng.spawn(1)[0]
    lengths = {}
    labelled = {}
    for group, population in populations.items():
        shares = np.array([1.0 - population.q, population.q])
        spending = audit.spending[group]
        phases = []
        for goal in (0, 1):
            by_goal = draw_counts_in_unlimited_past(rng, audit.coarse_tau, [goal], shares, 1)
            counts = by_goal[0, 0]  # people of outcome 0 and of outcome 1
            phases.append(counts)
            # Approved people are labelled as well, but only denied ones cost something.
            denied_bad = int(rng.binomial(counts[0], population.denied_shares[0]))
            denied_good = int(rng.binomial(counts[1], population.denied_shares[1]))
            spending.labels += denied_bad + denied_good
            spending.failures += denied_bad
        until_zero, until_one = phases
        lengths[group] = until_zero.sum(), until_one.sum()
        labelled[group] = population.draw_labelled(until_zero + until_one, feature_rng)
    audit.finish_coarse_phase(lengths, labelled)


def _add_features(audit: ExpAudit, population: _Population, group: str, rng: Generator) -> None:
    """Count the features of the people of a group whom its branch still needs."""
    branch = audit.branches[group]
    counts = audit.feature_counts[group]
    people_left = branch.features - counts.size  # past people's features were free
    if people_left <= 0:
        return
    # The first ones are kept whole by the audit, so they are drawn with their features.
    kept_people = min(people_left, SUBSAMPLE)
    counts.add(population.draw(kept_people, rng, None))
    if branch.way == "map":
        uncounted = people_left - kept_people
        n_ones = int(rng.binomial(uncounted, population.map_share(counts)))
        counts.add_counts(uncounted, n_ones)
    else:
        for start in range(kept_people, people_left, _MAX_PEOPLE_AT_ONCE):
            size = min(people_left - start, _MAX_PEOPLE_AT_ONCE)
            counts.add(population.draw(size, rng, None))
    # Features of approved people are free; those of denied people are paid.
    audit.spending[group].features += int(rng.binomial(people_left, population.denied_share))


def _run_fallbacks(setting: Setting, unfinished: dict[int, ExpAudit], runs: Runs) -> None:
    """Let the fall-back audit finish the runs that went over to labels."""
    repeats = list(unfinished)
    audits = list(unfinished.values())
    fallback = str(setting.options.get("fallback", "rs"))
    tau = setting.options.get("tau") if fallback == "rs" else None
    fallback_runs = run_setting(
        replace(
            setting,
            audit=audit_class(fallback),
            world=CellWorld(setting.world.cells, setting.world.r),
            question=audits[0].fallback_question,
            repeats=len(repeats),
            seed=setting.seed + 1,  # other people than those of the first phase
            options={"tau": tau} if tau else {},
            pasts=None if audits[0].history.exact else [audit.history for audit in audits],
        )
    )
    # What was spent before the fall-back is spent all the same; what was found is the fall-back's.
    for name in ("cost", "labels", "features"):
        runs[name][repeats] += fallback_runs[name]
    for name in ("verdict", "estimate", "lower", "upper"):
        runs[name][repeats] = fallback_runs[name]
