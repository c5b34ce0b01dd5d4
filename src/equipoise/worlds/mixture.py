"""A world of features: every group a mixture of two laws, decided on by a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from equipoise._arrays import Array
from equipoise._seeds import accepts_random_state
from equipoise.cells import Cells, GroupCells
from equipoise.errors import few_of, require_in_open_unit
from equipoise.history.past import Past
from equipoise.mixture.decision_maker import Accepts, HalfSpace
from equipoise.mixture.families import Family
from equipoise.mixture.gaussian import Gaussian
from equipoise.mixture.model import MixtureModel, PastFeatures
from equipoise.mixture.truncated_fit import TruncatedFit, known_law
from equipoise.worlds.world import ByCells, CellWorld, People, Seed, past_of

NEGLIGIBLE_SHARE = 1e-12  # of a group: it counts as nobody


@dataclass(frozen=True, eq=False)
class GroupMixture:
    """One group: its share of everybody, P[Y=1], the laws of outcome 0 and 1, who is approved.

    Examples
    --------
    >>> from equipoise.mixture import Gaussian, HalfSpace
    >>> family = Gaussian("spherical")
    >>> thetas = tuple(family.pack([mean], [[1.0]]) for mean in (0.0, 2.0))
    >>> group = GroupMixture.of(0.5, 0.3, family, thetas, HalfSpace([1.0], offset=1.0))
    >>> [round(law.acceptance, 2) for law in group.laws]
    [0.16, 0.84]
    """

    share: float
    q: float
    laws: tuple[TruncatedFit, TruncatedFit]
    accepts: Accepts

    @classmethod
    def of(
        cls, share: float, q: float, family: Family, thetas: tuple[Array, Array], accepts: Accepts
    ) -> GroupMixture:
        """Build from a family and the parameters of outcome 0 and 1."""
        require_in_open_unit("q", q)
        theta_zero, theta_one = thetas
        law_zero = known_law(family, theta_zero, accepts)
        law_one = known_law(family, theta_one, accepts)
        return cls(share, q, (law_zero, law_one), accepts)


@dataclass(frozen=True, eq=False)
class MixtureWorld(ByCells):
    """A population whose features follow a mixture of two laws in every group.

    Parameters
    ----------
    mixtures
        Group -> :class:`GroupMixture`.
    feature_rows
        How many past people's features an unlimited past holds, and the laws are estimated from;
        None: the laws are known. (A past of finite size always estimates them from its own rows.)

    Examples
    --------
    >>> world = MixtureWorld.synthetic(separation=14.0, approval={"0": 0.5, "1": 0.5})
    >>> round(world.gap("equalized_odds"), 6)
    0.0
    >>> world.draw(3).features.shape
    (3, 5)
    """

    mixtures: Mapping[str, GroupMixture]
    feature_rows: int | None = None

    def __repr__(self) -> str:
        return f"<MixtureWorld of {len(self.mixtures)} groups: {few_of(tuple(self.mixtures))}>"

    @cached_property
    def as_cells(self) -> CellWorld:
        """The same population without its features."""
        cells = {}
        r = {}
        for group, mixture in self.mixtures.items():
            law_zero, law_one = mixture.laws
            p1 = _drop_negligible(mixture.q * law_one.acceptance)
            p0 = _drop_negligible((1.0 - mixture.q) * law_zero.acceptance)
            # Without tiny shares, because the rate of so few people is a quotient of roundings.
            s = 1.0 - p1 - p0
            size = mixture.share
            cells[group] = GroupCells(size * p1, size * p0, size * s)
            r[group] = float(np.clip((mixture.q - p1) / s, 0.0, 1.0)) if s > 0.0 else 0.0
        return CellWorld(Cells(cells), r)

    @classmethod
    def synthetic(
        cls,
        separation: float,
        *,
        approval: Mapping[str, float] | None = None,
        tilt: float = 0.0,
        dimension: int = 5,
        feature_rows: int | None = None,
        seed: int = 0,
    ) -> MixtureWorld:
        """Build the population of the paper's synthetic experiment.

        ``P[A=1] = 0.7``, ``q_{1|1} = 0.7``, ``q_{1|0} = 0.4``; spherical Gaussians of variance 4;
        the mean of outcome 1 is uniform on [-1, 1]^d, that of outcome 0 lies ``separation`` away in
        a random direction.

        Parameters
        ----------
        separation
            Distance of the means.
        approval
            Per group, the share of outcome 1 that the linear classifier approves (0.6 and 0.5 for
            groups "1" and "0" if left out).
        tilt
            Angle in radians between the classifier's normal and the plane in which the two laws
            look alike: 0 approves both outcomes equally often, pi/2 tells them apart best.
        """
        rng = np.random.default_rng(seed)
        rates = {"1": 0.6, "0": 0.5} if approval is None else dict(approval)
        family = Gaussian("spherical")
        mixtures = {}
        for group, share, q in (("1", 0.7, 0.7), ("0", 0.3, 0.4)):
            # Group "1" is drawn first: the order is part of what a seed stands for.
            require_in_open_unit(f"approval of group {group}", rates[group])
            mean_one = rng.uniform(-1.0, 1.0, dimension)
            direction = _unit_vector(rng.standard_normal(dimension))
            mean_zero = mean_one + separation * direction
            # A direction across the line between the means: along it the two laws look alike.
            across = rng.standard_normal(dimension)
            across = _unit_vector(across - (across @ direction) * direction)
            normal = np.cos(tilt) * across - np.sin(tilt) * direction
            # The standard deviation is 2, so this offset approves the wanted share of outcome 1.
            cut = HalfSpace(normal, float(normal @ mean_one - 2.0 * ndtri(rates[group])))
            covariance = 4.0 * np.eye(dimension)
            thetas = family.pack(mean_zero, covariance), family.pack(mean_one, covariance)
            mixtures[group] = GroupMixture.of(share, q, family, thetas, cut)
        return cls(mixtures, feature_rows)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups' names."""
        return tuple(self.mixtures)

    @cached_property
    def model(self) -> MixtureModel:
        """The true laws, as a model without uncertainty."""
        return MixtureModel({group: mixture.laws for group, mixture in self.mixtures.items()})

    @accepts_random_state
    def past(self, size: int | None = None, seed: Seed = 0) -> Past:
        """Return past decisions with a model of features: the true laws, or fitted ones."""
        generator = np.random.default_rng(seed)
        if size is None:
            counts = self.as_cells.past(None, generator)
            if self.feature_rows is None:
                return replace(counts, model=self.model)
            # Counts without limit, but features of a finite sample: the laws are estimated.
            people = self.draw(self.feature_rows, generator)
        else:
            people = self.draw(size, generator)
            counts = past_of(people)
        assert people.features is not None
        features = PastFeatures(
            people.features,
            np.array(self.groups)[people.group],
            people.decision,
            people.outcome,
            {group: mixture.accepts for group, mixture in self.mixtures.items()},
            self._any_law.family,
        )
        return replace(counts, model=features.model, features=features)

    @accepts_random_state
    def draw(self, size: int, seed: Seed = 0) -> People:
        """Let ``size`` people arrive, in random order."""
        generator = np.random.default_rng(seed)
        shares = np.array([mixture.share for mixture in self.mixtures.values()])
        group = generator.choice(len(shares), size=size, p=shares / shares.sum())
        outcome = np.zeros(size, dtype=np.int8)
        decision = np.zeros(size, dtype=np.int8)
        features = np.empty((size, self._any_law.family.dimension(self._any_law.theta)))
        for position, mixture in enumerate(self.mixtures.values()):
            rows = np.flatnonzero(group == position)
            outcome[rows] = generator.random(len(rows)) < mixture.q
            for y, law in enumerate(mixture.laws):
                rows_of_outcome = rows[outcome[rows] == y]
                people = law.family.sample(law.theta, len(rows_of_outcome), generator)
                features[rows_of_outcome] = people
                if len(people):
                    decision[rows_of_outcome] = mixture.accepts(people)
        return People(self.groups, group, decision, outcome, features)

    @property
    def _any_law(self) -> TruncatedFit:
        """One of the laws: all of them have the same family and dimension."""
        return next(iter(self.mixtures.values())).laws[0]


def _drop_negligible(share: float) -> float:
    return share if share > NEGLIGIBLE_SHARE else 0.0


def _unit_vector(vector: Array) -> Array:
    return np.asarray(vector / np.linalg.norm(vector))
