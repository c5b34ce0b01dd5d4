"""The population of the paper's synthetic experiment."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from equipoise.errors import MissingExtra
from equipoise.mixture import Gaussian, HalfSpace
from equipoise.worlds.mixture import GroupMixture, MixtureWorld

__all__ = ["VARIANCE", "distance", "find_world", "make_world"]

DIMENSION = 5
VARIANCE = 4.0
TRAINING_ROWS = 1000
# The paper's correctness table has FAIR at epsilon = 0.25, and answers of UNFAIR there that the
# text explains by a true EOD above epsilon/2: so it lies between.
EOD = (0.125, 0.25)


def distance(variance: float = VARIANCE, epsilon: float = 0.001) -> float:
    """Return the distance of the two means, ``variance sqrt(log(50/epsilon) / 2)``.

    The paper gives its order only, Omega(sqrt(log 1/epsilon)); this is the authors' code.
    """
    return variance * math.sqrt(0.5 * math.log(50.0 / epsilon))


@cache
def find_world() -> tuple[MixtureWorld, int]:
    """Return the first population, and its seed, whose true EOD is what the paper's table tells."""
    seed = 0
    while True:
        world = make_world(seed)
        if EOD[0] < world.difference("equalized_odds") < EOD[1]:
            return world, seed
        seed += 1


def make_world(seed: int) -> MixtureWorld:
    """Draw means as the paper says and train a logistic regression on (X, A) of 1000 people."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise MissingExtra("scikit-learn", extra="ml", purpose="classifiers") from None
    rng = np.random.default_rng(seed)
    shares, q = {"1": 0.7, "0": 0.3}, {"1": 0.7, "0": 0.4}
    means = {}
    for name in shares:
        good = rng.uniform(-1.0, 1.0, DIMENSION)
        direction = rng.standard_normal(DIMENSION)
        means[name] = (good + distance() * direction / np.linalg.norm(direction), good)
    group = (rng.random(TRAINING_ROWS) < shares["1"]).astype(int)
    outcome = (rng.random(TRAINING_ROWS) < np.where(group == 1, q["1"], q["0"])).astype(int)
    centres = np.array([means["0"], means["1"]])[group, outcome]
    X = centres + math.sqrt(VARIANCE) * rng.standard_normal(centres.shape)
    model = LogisticRegression(max_iter=1000).fit(np.column_stack([X, group]), outcome)
    normal, of_group = model.coef_[0][:-1], model.coef_[0][-1]
    family, sigma = Gaussian("full"), VARIANCE * np.eye(DIMENSION)
    mixtures = {}
    for name, share in shares.items():
        cut = HalfSpace(normal, -float(model.intercept_[0] + of_group * int(name)))
        bad, good = means[name]
        thetas = family.pack(bad, sigma), family.pack(good, sigma)
        mixtures[name] = GroupMixture.of(share, q[name], family, thetas, cut)
    return MixtureWorld(mixtures)
