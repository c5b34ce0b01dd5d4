"""Attacks on the labels of random accepts: chosen silence, weekly looks, names of groups.

Groups whose false positive rates differ by gamma: FAIR is true, and UNFAIR is wrong. A test
programme accepts people of every group alike, and somebody wants a wrong verdict. They may hide
outcomes after having seen all of them, or look at the file every week for one and a half years,
failures being known after 4 weeks and successes after 26. *Known outcomes only* is a file that
must not be used: people enter it when their outcome is known, so failures come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray

import equipoise as eq
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.cells import Cells, GroupCells
from equipoise.history import History
from equipoise.question import Verdict
from equipoise.simulation.drive import DeniedPeople, run_in_blocks
from equipoise.worlds import CellWorld
from equipoise.worlds.world import Seed
from tests.support.boundaries import QUESTION
from tests.support.open_books import SameWorld

Array = NDArray[np.float64]
Files = Iterator[Array]
"""Counts of one file after the other: 0, 1 and unknown per group."""

GAMMA = 0.1
ACCEPTED = 312  # per group, six a week for a year
WEEKS, FAILURE, SUCCESS = 52, 4, 26
HIDDEN = 3  # outcomes of a group, at most
SETTINGS = list(product((2, 3, 5), (0.05, 0.1)))


def world(groups: int) -> CellWorld:
    """Return groups of which one is gamma below the others, by rather different unknowns."""
    p0, s, r = 0.12, 0.6, 0.6
    rate = p0 / (p0 + s * (1.0 - r)) + GAMMA - 1e-9
    other = 1.0 - 0.3 * (1.0 / rate - 1.0) / 0.436
    shares = [(0.28, p0, s, r)] + [(0.264, 0.3, 0.436, other)] * (groups - 1)
    return CellWorld.from_shares({f"g{i}": own for i, own in enumerate(shares)})


def silence(outcomes: NDArray[np.intp]) -> Files:
    """Yield the file with up to three outcomes of the extreme groups hidden, in every way."""
    ones = outcomes.sum(axis=1)
    counts = np.stack([ACCEPTED - ones, ones, 0 * ones], axis=1).astype(float)
    ways = [(0, 0)] + [(kind, n) for kind in (0, 1) for n in range(1, HIDDEN + 1)]
    for low, high in product(ways, ways):
        less = counts.copy()
        for group, (kind, n) in ((ones.argmin(), low), (ones.argmax(), high)):
            less[group, kind] -= n
            less[group, 2] += n
        yield less


def weekly(outcomes: NDArray[np.intp], *, listed: bool = True) -> Files:
    """Yield the file of every week; without pending people if they are not listed."""
    accepted = np.arange(ACCEPTED) * WEEKS // ACCEPTED
    known = accepted + np.where(outcomes == 1, SUCCESS, FAILURE)
    for week in range(1, WEEKS + SUCCESS + 1):
        told, there = known < week, accepted < week
        zeros, ones = ((told & (outcomes == y)).sum(axis=1) for y in (0, 1))
        pending = (there & ~told).sum(axis=1) * listed
        yield np.stack([zeros, ones, pending], axis=1).astype(float)


def known_only(outcomes: NDArray[np.intp]) -> Files:
    """Yield weekly files of those whose outcome is known."""
    return weekly(outcomes, listed=False)


ATTACKS: dict[str, Callable[[NDArray[np.intp]], Files]] = {
    "chosen silence": silence,
    "weekly looks": weekly,
    "known outcomes only": known_only,
}


def misled(attack: str, groups: int, delta: float, seed: np.random.SeedSequence) -> bool:
    """Say whether some file leads to UNFAIR."""
    rng, truth = np.random.default_rng(seed), world(groups)
    question = eq.Question("predictive_equality", GAMMA, 0.1, delta)
    audit = eq.AdaptiveAudit(truth.past(), question, eq.Costs())
    evidence = audit.evidence
    assert evidence is not None
    r = np.array([truth.r[group] for group in audit.groups])
    outcomes = (rng.random((groups, ACCEPTED)) < r[:, None]).astype(np.intp)
    for counts in ATTACKS[attack](outcomes):
        evidence.set_random_accepts(counts)
        if evidence.advance(replan=False) is Verdict.UNFAIR:
            return True
    return False


def count_misled(
    attack: str, groups: int, delta: float, runs: int, seed: int = 0, jobs: int = 1
) -> int:
    """Return how many of so many programmes an attack turns into a wrong verdict."""
    seeds = np.random.SeedSequence(seed).spawn(runs)
    return sum(Parallel(jobs)(delayed(misled)(attack, groups, delta, each) for each in seeds))


# -- files with random accepts, and audits of them ----------------------------------------------

PEOPLE = 100_000
SHARE = 0.02
COLUMNS = {"group": "race", "decision": "granted", "outcome": "paid", "random_accepts": "test"}


@dataclass(frozen=True)
class RandomAccepts(SameWorld):
    """A world whose past decisions include a test programme: a share of the denied, at random."""

    share: float

    def past(self, size: int | None = None, seed: Seed = 0) -> History:
        rng = np.random.default_rng(seed)
        cells = {}
        for group, counts in self.world.past(size, rng).cells.items():
            accepted = int(rng.binomial(counts.denied, self.share))
            good = int(rng.binomial(accepted, self.r[group]))
            random_accepts = (good, accepted - good, 0) if accepted else ()
            cells[group] = GroupCells(
                counts.approved_positive,
                counts.approved_negative,
                counts.denied,
                random_accepts=random_accepts,
            )
        return History.from_cells(Cells(cells))


class FileOrder(AdaptiveAudit):
    """Takes the programme's outcomes as a file sorted by outcome has them: good ones last."""

    sorted = False

    def _examine_evidence(self) -> None:
        if not self.sorted and self.evidence is not None:
            self.sorted = True
            counts = self.evidence.log.random_accepts.astype(int)
            self.evidence.set_random_accepts(np.zeros(counts.shape))
            for outcome, group in product((0, 1), range(len(counts))):
                for _ in range(counts[group, outcome]):
                    if self.evidence.verdict is None:
                        number = self.evidence.request(np.array([group]))
                        self.evidence.record(number, np.array([outcome]))
                        self.evidence.advance()
        super()._examine_evidence()


def frame(cells: Cells) -> pd.DataFrame:
    """Return the past decisions behind counts, sorted by outcome."""
    parts = []
    for group, c in cells.items():
        good, bad, _ = c.random_accepts or (0, 0, 0)
        parts += [
            (group, 1, 1.0, False, c.approved_positive),
            (group, 1, 0.0, False, c.approved_negative),
            (group, 0, np.nan, False, c.denied - good - bad),
            (group, 1, 1.0, True, good),
            (group, 1, 0.0, True, bad),
        ]
    made = pd.DataFrame(parts, columns=["race", "granted", "paid", "test", "n"])
    rows = made.loc[made.index.repeat(made.pop("n").astype(int))]
    return rows.sort_values("paid", kind="stable")


def audit_of(
    kind: type[AdaptiveAudit], world: RandomAccepts, seed: np.random.SeedSequence
) -> tuple[str, int]:
    rng = np.random.default_rng(seed)
    audit = kind(world.past(PEOPLE, rng), QUESTION, eq.Costs())
    run_in_blocks(audit, DeniedPeople.of_world(audit, world), rng)
    finding = audit.conclude()
    return finding.verdict.value, finding.labels


def sorted_is_the_same(world: RandomAccepts, seed: np.random.SeedSequence) -> bool:
    past = world.past(PEOPLE, np.random.default_rng(seed))
    read = eq.History.read(frame(past.cells), **COLUMNS)
    assert read.cells == past.cells
    one, other = (AdaptiveAudit(h, QUESTION, eq.Costs()).finding for h in (past, read))
    assert one == other
    return True
