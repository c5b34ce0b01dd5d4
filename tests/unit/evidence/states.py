"""Random populations, and states of the evidence that random labels and plans lead to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from equipoise.cells import Cells, GroupCells
from equipoise.comparison import GapScale
from equipoise.evidence import Levels, Staircase, Weighing, WrongAnswers
from equipoise.evidence.reference import Bet
from equipoise.evidence.staircase import OUT, Bets, Kind
from equipoise.free_check import bands_from_past
from equipoise.history import History
from equipoise.history.past import Past
from equipoise.rates import METRICS, Bands

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
    limits: tuple[tuple[float, float], ...] | None = None

    @property
    def against_unfair(self) -> Bands:
        return bands_from_past(self.past, self.metric, 0.0025)

    @property
    def against_fair(self) -> Bands:
        return bands_from_past(self.past, self.metric, 0.001)

    def start(self, level: float = NEVER, *, fineness: float | None = None) -> Weighing:
        k = len(self.r)
        wide = {} if fineness is None else {"fineness": fineness}
        wrong = WrongAnswers.of(
            self.against_unfair,
            self.against_fair,
            self.gamma,
            self.epsilon,
            Levels(level, level),
            compare=self.compare,
            limits=(self.limits, self.limits),
            **wide,
        )
        return Weighing(wrong, np.full(k, 0.1), np.linspace(1.0, 2.0, k), np.ones(k, dtype=bool))

    def stream(self, *, vanishing: float = 0.05) -> Iterator[tuple[int, int]]:
        """Yield labels: group and outcome, OUT for somebody who vanished."""
        rng = np.random.default_rng(self.seed)
        favour = rng.dirichlet(np.ones(len(self.r)))
        for _ in range(self.labels):
            group = int(rng.choice(len(self.r), p=favour))
            outcome = int(rng.random() < self.r[group])
            yield group, OUT if rng.random() < vanishing else outcome


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
        limits=_limits(rng, r) if rng.random() < 0.5 else None,
    )


def _limits(rng: np.random.Generator, r: np.ndarray) -> tuple[tuple[float, float], ...]:
    """Return ranges around the unknowns, now and then a point, now and then ending there."""
    room = rng.random((2, len(r))) * rng.integers(0, 2, size=(2, len(r)))
    return tuple(zip((r * room[0]).tolist(), (1.0 - (1.0 - r) * room[1]).tolist(), strict=True))


def _counts(rng: np.random.Generator, scale: int) -> list[int]:
    """Return approved with outcome 1 and 0, and denied; now and then some kind is missing."""
    counts = 1 + rng.multinomial(20, rng.dirichlet([1.0, 1.0, 2.0])) * scale
    if rng.random() < 0.2:
        counts *= rng.permutation([[0, 1, 1], [0, 0, 1], [1, 1, 0]])[0]
    return [int(x) for x in (counts if counts.any() else counts + 1)]


def staircases(weighing: Weighing) -> list[Staircase]:
    return [*weighing.unfair_set, *weighing.fair_set]


def exact_bets(bets: Bets, cell: int) -> list[Bet]:
    a_zero, a_one, b_zero, b_one = bets.factors[:, cell]
    return [Bet(*map(Fraction, f)) for f in zip(a_one, a_zero, b_one, b_zero, strict=True)]


def label(group: int, outcome: int) -> Kind:
    """Return a label as evidence sees it."""
    return (group, 0.0, 1.0) if outcome == OUT else (group, float(outcome), float(outcome))
