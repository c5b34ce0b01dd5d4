"""Adult behind a neural network: a 10-dimensional embedding and a linear classifier on it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import MissingExtra
from equipoise.mixture import Gaussian, HalfSpace
from equipoise.mixture.model import MixtureModel, fit_model
from equipoise.worlds import TableWorld
from paper.classifiers import read_people

__all__ = ["Embedded", "embed_adult"]

LAYERS = (64, 32, 10)
TRAINED_ON = 0.7
CLASSIFIER_ROWS = 1000

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Embedded:
    """Adult as the audits see it, with the classifier per group and the network's accuracy."""

    world: TableWorld
    accepts: dict[str, HalfSpace]
    accuracy: float
    epochs: int

    def fit_past(self, rows: int, rng: np.random.Generator) -> MixtureModel:
        """Fit a Gaussian per group and outcome to the approved among so many random rows."""
        world = self.world
        assert world.features is not None
        drawn = rng.integers(len(world), size=rows)
        drawn = drawn[world.decision[drawn] == 1]
        names = np.array(world.groups)[world.group[drawn]]
        features, outcomes = world.features[drawn], world.outcome[drawn]
        return fit_model(features, names, outcomes, self.accepts, Gaussian("full"))


def embed_adult(epochs: int, seed: int) -> Embedded:
    """Train the network on 70% of Adult, embed everybody, train the classifier on 1000 rows.

    The hidden units are tanh: with rectified ones several of the ten are 0 for everybody, and a
    Gaussian of full covariance does not exist.
    """
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression
        from sklearn.neural_network import MLPClassifier
    except ImportError:
        raise MissingExtra("scikit-learn", extra="ml", purpose="embeddings") from None
    people = read_people("adult")
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(people))
    training, rest = np.split(order, [int(TRAINED_ON * len(people))])
    network = MLPClassifier(
        LAYERS, activation="tanh", solver="adam", max_iter=epochs, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is intended
        network.fit(people.features[training], people.outcome[training])
    embedding: Floats = people.features
    for weights, shift in zip(network.coefs_[:-1], network.intercepts_[:-1], strict=True):
        embedding = np.tanh(embedding @ weights + shift)
    few = rng.choice(len(people), CLASSIFIER_ROWS, replace=False)
    seen = np.column_stack([embedding, people.protected])
    model = LogisticRegression(max_iter=1000).fit(seen[few], people.outcome[few])
    normal, of_group = model.coef_[0][:-1], float(model.coef_[0][-1])
    groups = ("female", "male")
    accepts = {
        g: HalfSpace(normal, -(float(model.intercept_[0]) + of_group * a))
        for a, g in enumerate(groups)
    }
    women, men = (accepts[g](embedding) for g in groups)
    decision = np.where(people.protected == 1, men, women)
    world = TableWorld(
        groups,
        people.protected.astype(np.intp),
        decision.astype(np.int8),
        people.outcome,
        embedding,
    )
    accuracy = float(network.score(people.features[rest], people.outcome[rest]))
    return Embedded(world, accepts, accuracy, int(network.n_iter_))
