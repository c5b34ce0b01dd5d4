"""Per group: the score's calibration and the sampling rule that follows for the next person.

Everything it says about a person to come follows from people settled before. So the sizes of bets
are fixed before the next score is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from equipoise.assist.calibration import calibrate
from equipoise.assist.options import Assist
from equipoise.assist.rule import SamplingRule, make_rule
from equipoise.evidence.observation import Observation, Sizing

__all__ = ["ScoreRecords", "ScoreSampler"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Flags = NDArray[np.bool_]

RECENT = 1_000  # people whose scores and prices a rule goes by
FADE = 0.9  # of what was seen of the observations' width is kept at a plan
ENOUGH = 50  # observations before their width is judged
EXCESS = 1.5  # standard errors that a width must be beyond


@dataclass(frozen=True)
class ScoreRecords:
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
    rule: SamplingRule | None = None
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


class ScoreSampler:
    """Samples people by score and price, a rule per group; a Sizer of the evidence.

    Parameters
    ----------
    assist
        What it is told.
    feature_costs
        What a score costs, per group.
    """

    def __init__(self, assist: Assist, feature_costs: Sequence[float]) -> None:
        self._assist = assist
        self._features = list(feature_costs)
        self._groups = [_Group() for _ in self._features]

    @property
    def rules(self) -> list[SamplingRule | None]:
        """The rules in force, per group; None: everybody is asked."""
        return [group.rule for group in self._groups]

    def sample(self, group: int, scores: Array, prices: Array, draws: Array) -> ScoreRecords:
        """Return whom of a group's people to ask; nothing is remembered yet."""
        rule = self._groups[group].rule
        if rule is None:
            m, pi = np.zeros_like(prices), np.ones_like(prices)
        else:
            m, pi = rule.rule(scores, prices)
        return ScoreRecords(scores, prices, m, pi, draws < pi)

    def remember(self, group: int, records: ScoreRecords) -> None:
        """Note people who were looked at."""
        own = self._groups[group]
        own.scores.extend(records.scores.tolist())
        own.prices.extend(records.prices.tolist())
        self._measure(group, records.m[~records.asked])

    def learn(self, group: int, number: int, score: float, outcome: int, z: float) -> None:
        """Take in a label."""
        self._groups[group].labels[number] = (score, outcome)
        self._measure(group, np.array([z]))

    def sample_all(self, groups: Ints, scores: Array, prices: Array, draws: Array) -> ScoreRecords:
        """Sample people of several groups at once."""
        m, pi = np.zeros(len(groups)), np.ones(len(groups))
        for group in range(len(self._groups)):
            own = groups == group
            records = self.sample(group, scores[own], prices[own], draws[own])
            m[own], pi[own] = records.m, records.pi
        return ScoreRecords(scores, prices, m, pi, draws < pi)

    def learn_all(self, groups: Ints, number: int, records: ScoreRecords, outcomes: Ints) -> None:
        """Remember people and take in their labels, the first having this request's number."""
        z = np.where(outcomes == 1, records.ends()[:, 1], records.ends()[:, 0])
        for group, known in enumerate(self._groups):
            own = groups == group
            known.scores.extend(records.scores[own].tolist())
            known.prices.extend(records.prices[own].tolist())
            told = np.flatnonzero(own & records.asked)
            labels = zip(records.scores[told].tolist(), outcomes[told].tolist(), strict=True)
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
            was_on, own_rule = own.rule is not None, None
            if strata is not None:
                wide = own.inflation()
                own_rule = make_rule(
                    *(strata, seen, prices, feature, self._assist), was_on=was_on, inflation=wide
                )
            own.rule = own_rule
            own.width *= FADE
        return [None if own.rule is None else own.rule.sizing for own in self._groups]

    def _measure(self, group: int, z: Array) -> None:
        own = self._groups[group]
        if own.rule is not None and len(z):
            d = (z - own.rule.sizing.mean) ** 2 / own.rule.variance
            own.width += len(z), d.sum(), (d * d).sum()
