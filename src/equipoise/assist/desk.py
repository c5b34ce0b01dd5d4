"""The desk where people are looked at: what it has seen, and whom it would ask.

Everything it says about a person to come follows from people settled before. So the sizes of bets
are fixed before the next score is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from equipoise.assist.calibration import calibrate
from equipoise.assist.design import Design, make_design
from equipoise.assist.options import Assist
from equipoise.evidence.observation import Observation, Sizing

__all__ = ["Desk", "Looked"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Flags = NDArray[np.bool_]

RECENT = 1_000  # people whose scores and prices a design goes by
FADE = 0.9  # of what was seen of the observations' width is kept at a plan
ENOUGH = 50  # observations before their width is judged
EXCESS = 1.5  # standard errors that a width must be beyond


@dataclass(frozen=True)
class Looked:
    """People as they were looked at: guesses, chances, and who is asked."""

    scores: Array
    prices: Array
    m: Array
    pi: Array
    asked: Flags

    def ends(self) -> Array:
        """Return Z for the outcomes 0 and 1, shape (n, 2)."""
        ends = [self.m + np.where(self.asked, (y - self.m) / self.pi, 0.0) for y in (0, 1)]
        return np.stack(ends, axis=1)

    def observation(self) -> Observation:
        """Return the only one."""
        return Observation(float(self.m[0]), float(self.pi[0]), asked=bool(self.asked[0]))


@dataclass
class _Group:
    """What is known of one group's people."""

    scores: list[float] = field(default_factory=list)  # of everybody looked at
    prices: list[float] = field(default_factory=list)
    labels: dict[int, tuple[float, int]] = field(default_factory=dict)  # score, outcome
    design: Design | None = None
    width: Array = field(default_factory=lambda: np.zeros(3))  # sums of 1, d, d^2

    def seen(self) -> tuple[Array, Array]:
        """Return scores and prices of some of the people, evenly spread over all."""
        step = -(-len(self.scores) // RECENT) or 1
        return np.array(self.scores[::-step]), np.array(self.prices[::-step])

    def inflation(self) -> float:
        """Return by how much observations are clearly wider than was expected."""
        n, first, second = self.width
        if n <= ENOUGH:
            return 1.0
        mean = first / n
        error = np.sqrt(max(second / n - mean * mean, 0.0) / n)
        return float(np.clip(mean - EXCESS * error, 1.0, 4.0))


class Desk:
    """Looks at people of all groups; see :class:`~equipoise.evidence.observation.Sizer`.

    Parameters
    ----------
    assist
        What it is told.
    feature_costs
        What a look costs, per group.
    """

    def __init__(self, assist: Assist, feature_costs: Sequence[float]) -> None:
        self._assist = assist
        self._features = list(feature_costs)
        self._groups = [_Group() for _ in self._features]

    @property
    def designs(self) -> list[Design | None]:
        """The rules in force, per group; None: everybody is asked."""
        return [group.design for group in self._groups]

    def look(self, group: int, scores: Array, prices: Array, draws: Array) -> Looked:
        """Return whom of a group's people to ask; nothing is remembered yet."""
        design = self._groups[group].design
        if design is None:
            m, pi = np.zeros_like(prices), np.ones_like(prices)
        else:
            m, pi = design.rule(scores, prices)
        return Looked(scores, prices, m, pi, draws < pi)

    def remember(self, group: int, looked: Looked) -> None:
        """Note people who were looked at."""
        own = self._groups[group]
        own.scores.extend(looked.scores.tolist())
        own.prices.extend(looked.prices.tolist())
        self._measure(group, looked.m[~looked.asked])

    def learn(self, group: int, number: int, score: float, outcome: int, z: float) -> None:
        """Take in a label."""
        self._groups[group].labels[number] = (score, outcome)
        self._measure(group, np.array([z]))

    def look_at_all(self, groups: Ints, scores: Array, prices: Array, draws: Array) -> Looked:
        """Look at people of several groups at once."""
        m, pi = np.zeros(len(groups)), np.ones(len(groups))
        for group in range(len(self._groups)):
            own = groups == group
            looked = self.look(group, scores[own], prices[own], draws[own])
            m[own], pi[own] = looked.m, looked.pi
        return Looked(scores, prices, m, pi, draws < pi)

    def learn_all(self, groups: Ints, number: int, looked: Looked, outcomes: Ints) -> None:
        """Remember people and take in their labels, the first having this request's number."""
        z = np.where(outcomes == 1, looked.ends()[:, 1], looked.ends()[:, 0])
        for group, known in enumerate(self._groups):
            own = groups == group
            known.scores.extend(looked.scores[own].tolist())
            known.prices.extend(looked.prices[own].tolist())
            told = np.flatnonzero(own & looked.asked)
            labels = zip(looked.scores[told].tolist(), outcomes[told].tolist(), strict=True)
            known.labels.update(zip((told + number).tolist(), labels, strict=True))
            self._measure(group, z[own])

    def relearn(self, group: int, number: int, score: float, outcome: int) -> None:
        """Take in another outcome, or another score, of a label."""
        self._groups[group].labels[number] = (score, outcome)

    def sizings(self) -> list[Sizing | None]:
        """Make all rules anew; return how bets on each group are sized from now on."""
        for own, feature in zip(self._groups, self._features, strict=True):
            seen, prices = own.seen()
            rows = list(own.labels.values())
            scores, outcomes = np.array(rows, dtype=np.float64).reshape(-1, 2).T
            strata = calibrate(seen, scores, outcomes)
            was_on, own_design = own.design is not None, None
            if strata is not None:
                wide = own.inflation()
                own_design = make_design(
                    *(strata, seen, prices, feature, self._assist), was_on=was_on, inflation=wide
                )
            own.design = own_design
            own.width *= FADE
        return [None if own.design is None else own.design.sizing for own in self._groups]

    def _measure(self, group: int, z: Array) -> None:
        own = self._groups[group]
        if own.design is not None and len(z):
            d = (z - own.design.sizing.mean) ** 2 / own.design.variance
            own.width += len(z), d.sum(), (d * d).sum()
