"""Scores before labels: a person's score and price decide, by a recorded draw, who is asked.

:class:`Assist` holds the options, :class:`ScoreSampler` asks one group's people by the rule of
:mod:`equipoise.audits.sampling_rule` and learns from their labels.

None of it touches the guarantee. A wrong guess of an outcome costs money at most. What is declared
about a person to come follows from people settled before, so the scale of bets is fixed before the
next score is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from equipoise._arrays import Array, Flags, Ints
from equipoise._json import JsonValue
from equipoise.audits.sampling_rule import (
    LabelledScores,
    SamplingLimits,
    SamplingRule,
    ScoredPeople,
    fit_sampling_rule,
)
from equipoise.errors import InvalidInput, plain_number, require_finite
from equipoise.evidence.observation import BetScale
from equipoise.protocol import ScoreRecord

MAX_PEOPLE_FITTED = 1_000  # people whose scores and prices a rule goes by
GATE_HYSTERESIS = 0.03  # a group stays assisted this far beyond the gate
SPREAD_KEPT = 0.9  # share of what was measured of the observations' spread that a new rule keeps
MIN_OBSERVATIONS = 50  # observations before their spread is judged
MIN_EXCESS = 1.5  # standard errors by which a spread must be larger than expected
MAX_INFLATION = 4.0


@dataclass(frozen=True)
class Assist(JsonValue):
    """Let an audit look at a score, or a price, before it asks for a label.

    Each person whose label would help is scored, and some are asked for the label. Nothing is
    assumed about the score. A score that turns out useless is not used.

    Parameters
    ----------
    people_per_label
        The largest number of people scored per label. It limits how much longer the audit takes.
    gate
        A group is assisted only while its projected cost is below this share of the uniform
        audit's.
    max_price
        The most that a label of outcome 0 may cost, where people have prices of their own; None
        if they all cost what the audit's costs say.
    seed
        Where the draws start. None draws a secret seed. The guarantee needs a secret one if the
        people who give scores and prices could compute the draws.

    Examples
    --------
    >>> Assist(max_price=20.0).people_per_label
    8.0
    >>> Assist(gate=1.5)
    Traceback (most recent call last):
    equipoise.errors.InvalidInput: 'gate' must be in (0, 1]; got 1.5
    """

    people_per_label: float = 8.0
    gate: float = 0.85
    max_price: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        numbers = {f.name: plain_number(getattr(self, f.name)) for f in fields(self)}
        for name, number in numbers.items():
            if number is not None:  # numpy's numbers are stored as plain ones
                object.__setattr__(self, name, number)
        if not (numbers["people_per_label"] or 0.0) >= 1.0:
            raise InvalidInput(
                f"'people_per_label' must be a number >= 1; got {self.people_per_label!r}"
            )
        if not 0.0 < (numbers["gate"] or 0.0) <= 1.0:
            raise InvalidInput(f"'gate' must be in (0, 1]; got {self.gate!r}")
        if self.max_price is not None and not (numbers["max_price"] or 0.0) > 0.0:
            raise InvalidInput(f"'max_price' must be a number > 0; got {self.max_price!r}")
        if self.seed is not None and (type(self.seed) is not int or self.seed < 0):
            raise InvalidInput(f"'seed' must be a whole number >= 0, or None; got {self.seed!r}")

    def require_label_cost(self, label_cost: float) -> None:
        """Raise unless people without a price of their own stay within the declared one."""
        if self.max_price is not None and self.max_price < label_cost:
            raise InvalidInput(
                f"'max_price' must be at least the label cost, {label_cost:g}, which people "
                f"without a price of their own cost; got {self.max_price!r}"
            )

    def require_price(self, price: float) -> None:
        """Raise unless a price of a person is within what was declared."""
        if self.max_price is None:
            raise InvalidInput(
                "'price' needs a largest price, declared before any is read: "
                f"Assist(max_price=...); got {price!r}"
            )
        if not 0.0 <= price <= self.max_price:
            raise InvalidInput(
                "'price' must be between 0 and the declared 'max_price', "
                f"{self.max_price:g}; got {price!r}"
            )

    def fill_prices(self, prices: Array, label_prices: Array) -> Array:
        """Return the price of each person: the label price for people without one (NaN).

        Raises InvalidInput if a price is not within what was declared.
        """
        has_price = ~np.isnan(prices)
        if has_price.any():
            self.require_price(float(prices[has_price].min()))
            self.require_price(float(prices[has_price].max()))
        return np.where(has_price, prices, label_prices)


def require_usable_score(assist: Assist | None, score: float | None, price: float | None) -> None:
    """Refuse scores and prices that an audit cannot use, whatever it would decide."""
    if assist is None:
        if score is not None or price is not None:
            unusable = "score" if score is not None else "price"
            raise InvalidInput(
                f"{unusable!r} is for audits that look before they ask: the adaptive one, made "
                "with assist=equipoise.Assist(...)"
            )
        return
    require_finite("score", score)
    require_finite("price", price)
    if price is not None:
        assist.require_price(float(price))


@dataclass(frozen=True)
class ScoreRecords:
    """Scored people as arrays; :class:`~equipoise.protocol.ScoreRecord` is one of them.

    ``scores`` are NaN for people without one; ``m`` is the guess of the outcome, ``pi`` the chance
    of asking, ``asked`` what the draws said.
    """

    scores: Array
    prices: Array
    m: Array
    pi: Array
    asked: Flags

    @classmethod
    def from_record(cls, record: ScoreRecord | None) -> ScoreRecords:
        """Return one person, whose ticket has a record since scores assist."""
        assert record is not None
        return cls(
            scores=np.array([record.score], dtype=np.float64),  # None becomes NaN
            prices=np.array([record.price], dtype=np.float64),
            m=np.array([record.m], dtype=np.float64),
            pi=np.array([record.pi], dtype=np.float64),
            asked=np.array([record.asked]),
        )

    def observation_ends(self) -> Array:
        """Return ``Z = m + asked (Y - m) / pi`` for the outcomes 0 and 1, shape (n, 2)."""
        ends = [self.m + np.where(self.asked, (y - self.m) / self.pi, 0.0) for y in (0, 1)]
        return np.stack(ends, axis=1)


class ScoreSampler:
    """Samples one group's people by score and price; people come as arrays, one entry each.

    Parameters
    ----------
    assist
        The options.
    feature_price
        What a score costs.
    """

    def __init__(self, assist: Assist, feature_price: float) -> None:
        self._assist = assist
        self._feature_price = feature_price
        self._scores: list[float] = []  # of everybody scored
        self._prices: list[float] = []
        self._labels: dict[int, tuple[float | None, int]] = {}  # score and outcome, by request
        self._rule: SamplingRule | None = None
        self._spread = _Spread()

    def sample(self, scores: Array, prices: Array, draws: Array) -> ScoreRecords:
        """Return whom to ask; nothing is remembered yet. Without a rule everybody is asked."""
        guesses = np.zeros(len(scores))
        chances = np.ones(len(scores))
        if self._rule is not None:
            guesses, chances = self._rule.guess_and_chance(scores, prices)
        return ScoreRecords(scores, prices, guesses, chances, draws < chances)

    def remember(self, records: ScoreRecords) -> None:
        """Note people who were scored."""
        self._scores += records.scores.tolist()
        self._prices += records.prices.tolist()
        self._spread.add(records.m[~records.asked], self._rule)

    def learn(self, numbers: Ints, records: ScoreRecords, outcomes: Ints) -> None:
        """Take in the labels of those who were asked, by the numbers of their requests."""
        is_label_asked = records.asked
        labels = zip(
            records.scores[is_label_asked].tolist(), outcomes[is_label_asked].tolist(), strict=True
        )
        self._labels.update(zip(numbers[is_label_asked].tolist(), labels, strict=True))
        if_zero, if_one = records.observation_ends().T
        observations = np.where(outcomes == 1, if_one, if_zero)
        self._spread.add(observations[is_label_asked], self._rule)

    def relearn(self, number: int, score: float | None, outcome: int) -> None:
        """Take in another outcome of a label."""
        self._labels[number] = (score, outcome)

    def fit_rule(self) -> BetScale | None:
        """Replace the rule by the one that costs least now; return the scale of bets on it.

        There is no rule, and None is returned, if labels are too few by now or the rule would not
        be worth while: then everybody's label is asked for.
        """
        assist = self._assist
        # Without it a group beside the gate would be assisted and not assisted in turn.
        hysteresis = 0.0 if self._rule is None else GATE_HYSTERESIS
        limits = SamplingLimits(
            people_per_label=assist.people_per_label,
            max_cost_share=assist.gate + hysteresis,
            max_price=assist.max_price,
            feature_price=self._feature_price,
        )
        inflation = self._spread.inflation()
        self._spread.fade()
        labels = np.array(list(self._labels.values()), dtype=np.float64).reshape(-1, 2)
        self._rule = fit_sampling_rule(
            LabelledScores(scores=labels[:, 0], outcomes=labels[:, 1]),
            self._some_people(),
            limits,
            inflation=inflation,
        )
        return None if self._rule is None else self._rule.bet_scale

    def _some_people(self) -> ScoredPeople:
        """Return at most so many of the people as a rule needs, evenly spread over all of them."""
        # Backwards, so that the latest person is always among them.
        step = -(-len(self._scores) // MAX_PEOPLE_FITTED) or 1  # division that rounds up
        return ScoredPeople(np.array(self._scores[::-step]), np.array(self._prices[::-step]))


def sample_block(
    samplers: Sequence[ScoreSampler],
    groups: Ints,
    outcomes: Ints,
    scores: Array,
    prices: Array,
    draws: Array,
    *,
    first_number: int,
) -> tuple[Flags, Array]:
    """Return who is asked for the label, and observations for outcomes 0 and 1, shape (n, 2).

    The samplers learn from the people as if they had come one by one.

    Parameters
    ----------
    samplers
        Those of all groups, in the order of their positions.
    groups, outcomes, scores, prices, draws
        Arrays with one entry per person; groups by position, scores NaN for none.
    first_number
        The number of the first person's request; the others follow.
    """
    is_label_asked = np.ones(len(groups), dtype=bool)
    observation_ends = np.zeros((len(groups), 2))
    numbers = first_number + np.arange(len(groups))
    # A rule changes at plans only, and a block ends before the next one. So all people of a group
    # are sampled by the same rule, as if one by one.
    for position, sampler in enumerate(samplers):
        in_group = groups == position
        records = sampler.sample(scores[in_group], prices[in_group], draws[in_group])
        is_label_asked[in_group] = records.asked
        observation_ends[in_group] = records.observation_ends()
        sampler.remember(records)
        sampler.learn(numbers[in_group], records, outcomes[in_group])
    return is_label_asked, observation_ends


class _Spread:
    """How far observations lie from what their rule expects, as a share of its variance.

    If the guesses are right the mean of these squared distances is 1.
    """

    def __init__(self) -> None:
        self._sums = np.zeros(3)  # of 1, of squared distances, and of their squares

    def add(self, observations: Array, rule: SamplingRule | None) -> None:
        """Measure observations, if a rule is in force."""
        if rule is not None and len(observations):
            distances = (observations - rule.bet_scale.mean) ** 2 / rule.variance
            self._sums += len(observations), distances.sum(), (distances * distances).sum()

    def inflation(self) -> float:
        """Return the factor by which variances are clearly larger than expected, at least 1."""
        count, total, total_squares = self._sums
        if count <= MIN_OBSERVATIONS:
            return 1.0
        mean = total / count
        standard_error = np.sqrt(max(total_squares / count - mean**2, 0.0) / count)
        return float(np.clip(mean - MIN_EXCESS * standard_error, 1.0, MAX_INFLATION))

    def fade(self) -> None:
        """Let what was measured so far count less than what comes."""
        self._sums *= SPREAD_KEPT
