"""Scores before labels: scores and prices decide who is asked, a draw keeps it honest.

Labels bought so far calibrate the score: a logistic curve gives the order, strata of it the rates,
both drawn towards one common rate as far as labels are few. With rates right, a person's
observation has variance ``Var m + E[r(1-r)/pi]`` and costs ``c_feat + E[pi price (1-r)]`` on
average. Their product is least for sampling probabilities proportional to ``sqrt(r / price)``; one
factor for all of them is found by search, with a floor, since rare large observations make bets
small, and a limit on people scored per label.

None of it touches the guarantee: a wrong rate is a wrong guess, and costs money at most. Everything
said about a person to come follows from people settled before, so the sizes of bets are fixed
before the next score is read.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from equipoise._arrays import Array, Flags, Ints
from equipoise._json import JsonValue
from equipoise.errors import InvalidInput, plain_number, require_finite
from equipoise.evidence.observation import BetScale
from equipoise.protocol import ScoreRecord

RECENT = 1_000  # people whose scores and prices a rule goes by
FADE = 0.9  # of what was seen of the observations' width is kept at a plan
ENOUGH = 50  # observations before their width is judged
EXCESS = 1.5  # standard errors that a width must be beyond
START = 15  # labels of a group before its score is used
FEW = 3  # … and of each outcome
STRATA = 6
SIGNIFICANT = 2.0  # the slope's square over its variance, at least
GUARD = 0.5  # standard errors taken off the slope
SHRINK = 12.0  # labels that the curve's rate counts as, in a stratum
FLAT = 3.0  # labels of the rarer outcome that the common rate counts as
FLOOR = 0.15  # the least chance, as a share of the largest
HYSTERESIS = 0.03  # a group stays assisted this far beyond the gate
_KAPPAS = np.geomspace(0.02, 3.0, 30)


@dataclass(frozen=True)
class Assist(JsonValue):
    """Let an audit look at a score, or a price, before it asks for a label.

    Everybody welcome is looked at, some are asked; nothing is assumed about the score. A score
    that turns out useless is not used.

    Parameters
    ----------
    people_per_label
        At most so many people are looked at per label: the price in calendar time.
    gate
        A group is assisted only while its projected cost is below this share of the uniform
        audit's.
    max_price
        The most that a label of outcome 0 may cost, where people have prices of their own; None
        if they all cost what the audit's costs say.
    seed
        Where the draws start. None: nobody can foresee them, which the guarantee needs if whoever
        gives scores and prices could.

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
        found = {f.name: plain_number(getattr(self, f.name)) for f in fields(self)}
        for name, number in found.items():
            if number is not None:  # one of numpy's is stored as a plain one
                object.__setattr__(self, name, number)
        if not (found["people_per_label"] or 0.0) >= 1.0:
            raise InvalidInput(
                f"'people_per_label' must be a number >= 1; got {self.people_per_label!r}"
            )
        if not 0.0 < (found["gate"] or 0.0) <= 1.0:
            raise InvalidInput(f"'gate' must be in (0, 1]; got {self.gate!r}")
        if self.max_price is not None and not (found["max_price"] or 0.0) > 0.0:
            raise InvalidInput(f"'max_price' must be a number > 0; got {self.max_price!r}")
        if self.seed is not None and (type(self.seed) is not int or self.seed < 0):
            raise InvalidInput(f"'seed' must be a whole number >= 0, or None; got {self.seed!r}")

    def require_label_cost(self, label: float) -> None:
        """Raise unless people without a price of their own stay within the declared one."""
        if self.max_price is not None and self.max_price < label:
            raise InvalidInput(
                f"'max_price' must be at least the label cost, {label:g}, which people without a "
                f"price of their own cost; got {self.max_price!r}"
            )

    def require_price(self, price: float) -> None:
        """Raise unless a price of a person is within what was declared."""
        if self.max_price is None:
            raise InvalidInput(
                "'price' needs a largest price, declared before any is read: "
                f"Assist(max_price=...) (audit new --assist --max-price); got {price!r}"
            )
        if not 0.0 <= price <= self.max_price:
            raise InvalidInput(
                "'price' must be between 0 and the declared 'max_price', "
                f"{self.max_price:g}; got {price!r}"
            )


def require_usable_score(assist: Assist | None, score: float | None, price: float | None) -> None:
    """Refuse scores and prices that an audit cannot use, whatever it would decide."""
    if assist is None:
        if score is not None or price is not None:
            given = "score" if score is not None else "price"
            raise InvalidInput(
                f"{given!r} is for audits that look before they ask: the adaptive one, made with "
                "assist=equipoise.Assist(...) (audit new --assist)"
            )
        return
    require_finite("score", score)
    require_finite("price", price)
    if price is not None:
        assist.require_price(float(price))


@dataclass(frozen=True)
class ScoreRecords:
    """Scored people as arrays; :class:`~equipoise.question.ScoreRecord` is one of them.

    ``scores`` are NaN for people without one; ``m`` is the guess of the outcome, ``pi`` the chance
    of asking, ``asked`` what the draws said.
    """

    scores: Array
    prices: Array
    m: Array
    pi: Array
    asked: Flags

    @classmethod
    def of(cls, record: ScoreRecord | None) -> ScoreRecords:
        """Return one person, whose ticket has a record since scores assist."""
        assert record is not None
        one = [[record.score], [record.price], [record.m], [record.pi]]
        scores, prices, m, pi = np.array(one, dtype=np.float64)  # None becomes NaN
        return cls(scores, prices, m, pi, np.array([record.asked]))

    def ends(self) -> Array:
        """Return ``Z = m + asked (Y - m) / pi`` for the outcomes 0 and 1, shape (n, 2)."""
        ends = [self.m + np.where(self.asked, (y - self.m) / self.pi, 0.0) for y in (0, 1)]
        return np.stack(ends, axis=1)


class ScoreSampler:
    """Samples one group's people by score and price; people come as arrays, one entry each.

    Parameters
    ----------
    assist
        The options.
    feature
        What a score costs.
    """

    def __init__(self, assist: Assist, feature: float) -> None:
        self._assist, self._feature = assist, feature
        self._scores: list[float] = []  # of everybody scored
        self._prices: list[float] = []
        self._labels: dict[int, tuple[float | None, int]] = {}  # score and outcome, by request
        self._rule: SamplingRule | None = None
        self._width = np.zeros(3)  # how far observations were from the expected: sums of 1, d, d^2

    def sample(self, scores: Array, prices: Array, draws: Array) -> ScoreRecords:
        """Return whom to ask; nothing is remembered yet. Without a rule everybody is asked."""
        m, pi = np.zeros(len(scores)), np.ones(len(scores))
        if (rule := self._rule) is not None:
            stratum = rule.strata.of(scores)
            m = rule.strata.rates[stratum]
            pi = np.clip(_chance(rule.kappa, m, prices), rule.least[stratum], 1.0)
        return ScoreRecords(scores, prices, m, pi, draws < pi)

    def remember(self, records: ScoreRecords) -> None:
        """Note people who were scored."""
        self._scores += records.scores.tolist()
        self._prices += records.prices.tolist()
        self._measure(records.m[~records.asked])

    def learn(self, numbers: Ints, records: ScoreRecords, outcomes: Ints) -> None:
        """Take in the labels of those who were asked, by the numbers of their requests."""
        asked, (zero, one) = records.asked, records.ends().T
        labels = zip(records.scores[asked].tolist(), outcomes[asked].tolist(), strict=True)
        self._labels.update(zip(numbers[asked].tolist(), labels, strict=True))
        self._measure(np.where(outcomes == 1, one, zero)[asked])

    def relearn(self, number: int, score: float | None, outcome: int) -> None:
        """Take in another outcome of a label."""
        self._labels[number] = (score, outcome)

    def _measure(self, z: Array) -> None:
        if self._rule is not None and len(z):
            d = (z - self._rule.bet_scale.mean) ** 2 / self._rule.variance
            self._width += len(z), d.sum(), (d * d).sum()

    def bet_scale(self) -> BetScale | None:
        """Make the rule that costs least by the people seen; return how bets are sized from now on.

        There is none if labels are too few by now, or it is not worth while.
        """
        assist, feature, inflation = self._assist, self._feature, 1.0
        n, first, second = self._width
        if n > ENOUGH:  # by how much observations are clearly wider than was expected
            error = np.sqrt(max(second / n - (first / n) ** 2, 0.0) / n)
            inflation = float(np.clip(first / n - EXCESS * error, 1.0, 4.0))
        gate = assist.gate + HYSTERESIS * (self._rule is not None)
        self._width *= FADE
        step = -(-len(self._scores) // RECENT) or 1  # some of the people, evenly spread over all
        seen, prices = np.array(self._scores[::-step]), np.array(self._prices[::-step])
        labels = np.array(list(self._labels.values()), dtype=np.float64).reshape(-1, 2)
        strata, self._rule = calibrate(seen, *labels.T), None
        if strata is None:
            return None
        r = strata.rates[strata.of(seen)]
        mean, most = float(r.mean()), assist.max_price or float(prices.max())
        of_label, uniform = mean * (1.0 - mean), feature + float((prices * (1.0 - r)).mean())
        if uniform <= 0.0:  # labels are free, so nothing is saved by not asking
            return None
        kappas = _KAPPAS / max(float(_chance(1.0, r, prices).max()), 1e-300)
        chances = np.minimum(_chance(kappas[:, None], r, prices), 1.0)
        floors = FLOOR * chances.max(axis=1)
        chances = np.maximum(chances, floors[:, None])
        variances = (r * (1.0 - r) / chances).mean(axis=1) + r.var()
        costs = feature + (chances * prices * (1.0 - r)).mean(axis=1)
        allowed = chances.mean(axis=1) >= 1.0 / assist.people_per_label
        product = np.where(allowed, variances * costs, np.inf)
        best = int(product.argmin())
        if not product[best] * inflation / max(of_label * uniform, 1e-300) <= gate:
            return None
        kappa, chance, variance = float(kappas[best]), chances[best], float(variances[best])
        least = np.clip(_chance(kappa, strata.rates, np.array(most)), floors[best], 1.0)
        up, down = r + (1.0 - r) / chance - mean, r - r / chance - mean
        asked = chance * (r * up**3 + (1.0 - r) * down**3)
        wide = variance * inflation
        bet_scale = BetScale(
            mean=mean,
            variance=wide,
            third=float((asked + (1.0 - chance) * (r - mean) ** 3).mean()),
            low=float((strata.rates * (1.0 - 1.0 / least)).min()),
            high=float((strata.rates + (1.0 - strata.rates) / least).max()),
            price=float(costs[best]) * wide / of_label,
            asked=float(chance.mean()),
        )
        self._rule = SamplingRule(strata, kappa, least, bet_scale, variance)
        return bet_scale


@dataclass(frozen=True)
class SamplingRule:
    """One group's rule: guess and chance by score and price, and the bets' sizes that go with it.

    Whatever score and price come, a chance is at least ``least`` of the stratum and so an
    observation within the range of its bet scale.
    """

    strata: Strata
    kappa: float
    least: Array  # per stratum
    bet_scale: BetScale
    variance: float  # as expected, not inflated by what was seen


def _chance(kappa: float | Array, rates: Array, prices: Array) -> Array:
    return np.asarray(kappa * np.sqrt(rates / np.maximum(prices, 1e-9)))


@dataclass(frozen=True)
class Strata:
    """Rates of outcome 1 by score: ``rates[h]`` between ``cuts[h-1]`` and ``cuts[h]``.

    Whoever has no score belongs to the last of the rates, the common one.
    """

    cuts: Array
    rates: Array

    def of(self, scores: Array) -> Ints:
        """Return everybody's stratum."""
        places = np.searchsorted(self.cuts, scores, side="right")
        return np.where(np.isnan(scores), len(self.rates) - 1, places)


def calibrate(seen: Array, scores: Array, outcomes: Array) -> Strata | None:
    """Return strata with rates; a single one if the score tells nothing; None if it is too early.

    Parameters
    ----------
    seen
        Scores of people who came, NaN for those without.
    scores, outcomes
        Of those whose label is known.
    """
    ones = outcomes.sum()
    few = min(ones, len(outcomes) - ones)
    if len(outcomes) < START or few < FEW:
        return None
    common = (ones + 0.5) / (len(outcomes) + 1.0)
    flat = Strata(np.zeros(0), np.array([common, common]))
    population, known = seen[~np.isnan(seen)], ~np.isnan(scores)
    if len(population) < START or known.sum() < START:
        return flat
    low, high = np.quantile(population, [0.01, 0.99])
    population = np.sort(np.clip(population, low, high))
    centre, scale = population.mean(), population.std()
    if not np.isfinite(scale) or scale <= 1e-12 * max(abs(centre), 1e-300):
        return flat
    x, y = (np.clip(scores[known], low, high) - centre) / scale, outcomes[known]
    level, slope = _logistic(x, y)
    if slope == 0.0:
        return flat
    z = (population - centre) / scale
    curve = 1.0 / (1.0 + np.exp(-(level + slope * z)))
    mass = np.cumsum(np.sqrt(curve * (1.0 - curve)))
    ends = np.searchsorted(mass, mass[-1] * np.arange(1, STRATA) / STRATA)
    cuts = np.unique(z[ends])
    strata, size = np.searchsorted(cuts, z, side="right"), len(cuts) + 1
    people = np.maximum(np.bincount(strata, minlength=size), 1e-9)
    expected = np.bincount(strata, curve, minlength=size) / people
    own = np.searchsorted(cuts, x, side="right")
    hits, labels = np.bincount(own, y, minlength=size), np.bincount(own, minlength=size)
    rates = (hits + SHRINK * expected) / (labels + SHRINK)
    common = float(people @ rates / people.sum())
    trust = few / (FLAT + few)
    rates = np.clip(trust * rates + (1.0 - trust) * common, 0.003, 0.997)
    return Strata(cuts * scale + centre, np.append(rates, common))


def _logistic(x: Array, y: Array) -> tuple[float, float]:
    """Return level and slope of a logistic curve, the slope drawn to 0 a little.

    A part of its standard error is taken off the slope, which is 0 if it may be chance.
    """
    start = np.array([np.log((y.sum() + 0.5) / (len(y) - y.sum() + 0.5)), 0.0])
    design = np.column_stack([np.ones_like(x), x])
    prior, theta = np.diag([0.01, 1.0]), start
    for _ in range(6):
        p = 1.0 / (1.0 + np.exp(-design @ theta))
        curvature = design.T @ (design * (p * (1.0 - p) + 1e-9)[:, None]) + prior
        step = np.linalg.solve(curvature, design.T @ (y - p) - prior @ (theta - start))
        theta = theta + np.clip(step, -2.0, 2.0)
    level, slope = theta.tolist()
    error = float(np.sqrt(np.linalg.inv(curvature)[1, 1]))
    if slope * slope < SIGNIFICANT * error * error:
        return level, 0.0
    return level, float(np.sign(slope) * max(abs(slope) - GUARD * error, 0.0))
