"""Random populations, and states of the evidence that random labels and plans lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

import numpy as np
from hypothesis import strategies as st

from equipoise.cells import Cells, GroupCells
from equipoise.comparison import GapScale
from equipoise.evidence import UNKNOWN, Evidence, NullCells, WrongAnswers
from equipoise.evidence.epochs import BetScales
from equipoise.evidence.observation import LABEL, Ends
from equipoise.evidence.wrong_answers import FINENESS, fair_covers, unfair_covers
from equipoise.free_check import bands_from_past
from equipoise.history import History
from equipoise.history.past import Past
from equipoise.metrics import METRICS
from equipoise.question import Verdict
from equipoise.rates import RATES, Bands
from tests.unit.evidence.reference import Bet, Pair

NEVER = 1e-250  # an error level at which no cell is ever refuted


@dataclass(frozen=True)
class Setup:
    """A question about a population, the true unknowns, and where its labels come from."""

    past: Past
    metric: str
    gamma: float
    epsilon: float
    r: tuple[float, ...]
    labels: int
    seed: int
    compare: GapScale = GapScale.DIFFERENCE

    @property
    def bands_for_fair(self) -> Bands:
        return bands_from_past(self.past, self.metric, 0.0025)

    @property
    def bands_for_unfair(self) -> Bands:
        return bands_from_past(self.past, self.metric, 0.001)

    def wrong(self, level: float = NEVER, *, fineness: float = FINENESS) -> WrongAnswers:
        unfair, fair = (
            tuple(tuple(by_group.values()) for by_group in bands.values())
            for bands in (self.bands_for_fair, self.bands_for_unfair)
        )
        cells = self.past.cells.values()
        precision = tuple(c.approved_positive / max(c.approved, 1) for c in cells)
        return WrongAnswers(
            *(unfair, fair, self.gamma, self.epsilon, level, level),
            compare=self.compare,
            precision=precision,
            fineness=fineness,
        )

    def start(
        self,
        level: float = NEVER,
        *,
        fineness: float = FINENESS,
        rescale_bets: Callable[[], BetScales] | None = None,
    ) -> Evidence:
        k = len(self.r)
        prices = np.array([np.full(k, 0.1), np.linspace(1.0, 2.0, k)])
        wrong = self.wrong(level, fineness=fineness)
        return Evidence(wrong, prices, np.ones(k, dtype=bool), rescale_bets)

    def pairs(self, bands: Bands) -> list[Pair]:
        """Return every ordered pair of groups, as the reference knows it."""
        names = list(self.past.cells)
        return [
            Pair(
                *(a, b),
                tuple((RATES[r].trend < 0, by[names[a]], by[names[b]]) for r, by in bands.items()),
                self.compare,
            )
            for a, b in permutations(range(len(names)), 2)
        ]

    def stream(self, *, vanishing: float = 0.05) -> Iterator[tuple[int, int]]:
        """Yield labels: group and outcome, UNKNOWN for somebody who vanished."""
        rng = np.random.default_rng(self.seed)
        favour = rng.dirichlet(np.ones(len(self.r)))
        for _ in range(self.labels):
            group = int(rng.choice(len(self.r), p=favour))
            outcome = int(rng.random() < self.r[group])
            yield group, UNKNOWN if rng.random() < vanishing else outcome


def exact_past(cells: Cells) -> Past:
    return Past(cells, exact=True)


def setups(*, most_groups: int = 5, labels: int = 60) -> st.SearchStrategy[Setup]:
    """Return setups that differ in everything at once: one random seed makes each."""
    return st.integers(0, 2**40).map(lambda seed: random_setup(seed, most_groups, labels))


def random_setup(seed: int, most_groups: int = 5, labels: int = 60) -> Setup:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, most_groups + 1))
    scale = int(rng.choice([1, 30, 3_000]))
    cells = Cells({f"g{i}": GroupCells(*_counts(rng, scale)) for i in range(k)})
    r = np.where(rng.random(k) < 0.2, rng.integers(0, 2, size=k), rng.random(k))
    return Setup(
        past=History.from_cells(cells) if rng.random() < 0.5 else exact_past(cells),
        metric=str(rng.choice(["equalized_odds", "equalized_odds", *METRICS])),
        gamma=float(rng.choice([0.0, 0.02, 0.1, 0.3])),
        epsilon=float(rng.choice([0.05, 0.1, 0.3])),
        r=tuple(r.tolist()),
        labels=int(rng.integers(0, labels + 1)),
        seed=seed + 1,
        compare=tuple(GapScale)[int(rng.integers(2))],
    )


def _counts(rng: np.random.Generator, scale: int) -> list[int]:
    """Return approved with outcome 1 and 0, and denied; now and then some kind is missing."""
    counts = 1 + rng.multinomial(20, rng.dirichlet([1.0, 1.0, 2.0])) * scale
    if rng.random() < 0.2:
        counts *= rng.permutation([[0, 1, 1], [0, 0, 1], [1, 1, 0]])[0]
    return [int(x) for x in (counts if counts.any() else counts + 1)]


def covers(evidence: Evidence) -> list[NullCells]:
    return [*unfair_covers(evidence.refutation._wrong), *fair_covers(evidence.refutation._wrong)]


def weighed(evidence: Evidence) -> list[np.ndarray]:
    """Return the evidence against every cell of every cover, of what is known now."""
    refutation = evidence.refutation
    look = evidence.log.current_counts()
    log_wealth = [refutation.log_wealth(cover, slice(None), look) for cover in refutation.covers]
    pairs = zip(refutation.covers, log_wealth, strict=True)
    return [cover.cells.evidence(wealth)[0] for cover, wealth in pairs]


def missing(evidence: Evidence) -> list[np.ndarray]:
    """Return per cover, that of the UNFAIR set first, the nats that cells which stand lack."""
    refutation = evidence.refutation
    look = evidence.log.current_counts()
    return [refutation.missing_nats(cover, look) for cover in refutation.covers]


def request(evidence: Evidence, group: int, ends: Ends = LABEL) -> int:
    """Request one observation; return its number."""
    (number,) = evidence.request(np.array([group]), np.array([ends]))
    return int(number)


def record(evidence: Evidence, number: int, outcome: int) -> None:
    """Record one outcome."""
    evidence.record(np.array([number]), np.array([outcome]))


def count(evidence: Evidence, group: int, outcome: int) -> Verdict | None:
    """Request a label that is told at once."""
    record(evidence, request(evidence, group), outcome)
    return evidence.advance()


def random_events(setup: Setup, rng: np.random.Generator) -> list[tuple[str, int, int]]:
    """Return a random order of asks, tells, withdrawals and corrections: kind, number, value."""
    events: list[tuple[str, int, int]] = []
    outcomes: dict[int, int] = {}
    told: list[int] = []
    for number, (group, outcome) in enumerate(setup.stream(vanishing=0.0)):
        events.append(("ask", number, group))
        outcomes[number] = outcome
        for late in [n for n in outcomes if rng.random() < 0.3]:
            events.append(("tell", late, UNKNOWN if rng.random() < 0.2 else outcomes.pop(late)))
            outcomes.pop(late, None)
            told.append(late)
        if told and rng.random() < 0.1:
            events.append(("correct", int(rng.choice(told)), int(rng.integers(2))))
    return events


def replay(evidence: Evidence, events: list[tuple[str, int, int]]) -> Evidence:
    """Apply random events in order; return the evidence."""
    for kind, number, value in events:
        if kind == "ask":
            assert request(evidence, value) == number
        else:
            record(evidence, number, value)
            evidence.advance(replan=kind == "tell")
    return evidence


def groups_of(cells: NullCells, cell: int, bet: int) -> tuple[int, int]:
    """Return the groups a and b that a bet is on."""
    a, b = (np.broadcast_to(own, cells.log_stake.shape)[cell, bet] for own in cells.groups)
    return int(a), int(b)


def exact_bet(cells: NullCells, cell: int, bet: int) -> Bet:
    (a_zero, a_one), (b_zero, b_one) = np.exp(cells.log_factor[:, :, cell, bet])
    return Bet(*map(Fraction, (a_one, a_zero, b_one, b_zero)))
