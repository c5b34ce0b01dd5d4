"""Worlds whose past decisions are not all settled: unknown outcomes, test programmes.

A world as audits see it, whose past hides outcomes of approved people by a rule of its own, or
holds people whom a test programme accepted although they were denied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

import equipoise as eq
from equipoise.cells import Cells, GroupCells
from equipoise.free_check import check
from equipoise.history.past import Past
from equipoise.metrics import rates_given_r
from equipoise.worlds import CellWorld
from equipoise.worlds.world import People, Seed
from tests.support.boundaries import ASIDE

Kinds = tuple[tuple[float, float, float], ...]
"""Per cohort, shares of a group's people who are approved: good, bad, outcome not known."""


QUESTION = eq.Question("equalized_odds", gamma=0.1, epsilon=0.2, delta=0.05)
SHARES = {"A": (0.40, 0.20, 0.40, 0.35), "B": (0.36, 0.18, 0.46, 0.35)}
HIDDEN = 0.01  # share of a group's people whose outcome is hidden, where nothing is assumed
KNOWN = {"A": (0.95, 0.6), "B": (0.8, 0.3)}  # share of known outcomes, old and young cohort


@dataclass(frozen=True)
class SameWorld:
    """A world of which only the past is shown in another way."""

    world: CellWorld

    @property
    def cells(self) -> Cells:
        return self.world.cells

    @property
    def groups(self) -> tuple[str, ...]:
        return self.world.groups

    @property
    def r(self) -> Mapping[str, float]:
        return self.world.r

    def gap(self, metric: str, compare: str = "difference") -> float:
        return self.world.gap(metric, compare)

    def draw(self, size: int, seed: Seed = 0) -> People:
        return self.world.draw(size, seed)


@dataclass(frozen=True)
class OpenBook(SameWorld):
    """A world of which the past shows some approved people without their outcome.

    ``kinds`` has what the past shows of the approved; ``like_known`` whether a reader may take the
    unknown ones of a cohort to be like the known ones.
    """

    kinds: Mapping[str, Kinds]
    like_known: bool

    def past(self, size: int | None = None, seed: Seed = 0) -> Past:
        """Return the past of ``size`` people, as many in each group, or unlimited ones."""
        rng = np.random.default_rng(seed)
        cells = {}
        for group in self.groups:
            approved = np.array(self.kinds[group]).ravel()
            shares = np.append(approved, 1.0 - approved.sum())
            if size is not None:
                shares = rng.multinomial(size // len(self.groups), shares / shares.sum())
            *kinds, denied = shares.tolist()
            cohorts = [tuple(kinds[at : at + 3]) for at in range(0, len(kinds), 3)]
            good, bad, unknown = (sum(column) for column in zip(*cohorts, strict=True))
            own = tuple(cohorts) if self.like_known and unknown else ()
            cells[group] = GroupCells(good, bad, denied, unknown, own)  # type: ignore[arg-type]
        return Past(Cells(cells), exact=size is None)


def edge(mode: str, truth: str) -> OpenBook:
    """Return a world on the edge of a wrong answer."""
    at = QUESTION.gamma - ASIDE if truth == "FAIR" else QUESTION.threshold + ASIDE
    p1, p0, s, least = SHARES["B"]

    def world(r: float) -> CellWorld:
        return CellWorld.from_shares({**SHARES, "B": (p1, p0, s, r)})

    r = brentq(lambda r: world(r).gap(QUESTION.metric) - at, least, 1.0, xtol=1e-12)
    made = world(float(r))
    if mode == "like_known":
        return OpenBook(made, {g: cohorts(made, g) for g in made.groups}, like_known=True)
    found = rates_given_r(made.cells, made.r, QUESTION.metric)
    rate, own = max(found.items(), key=lambda pair: _gap(pair[1]))
    above = max(own, key=lambda group: own[group])
    # What is hidden makes the widest gap look smaller where that would be called FAIR, and larger
    # where it would be called UNFAIR; a hidden good outcome lowers TPR, a hidden bad one FPR.
    lowers = (rate == "true_positive_rate") == (truth == "UNFAIR")
    good = {above} if lowers else set(made.groups) - {above}
    return OpenBook(made, hidden(made, dict.fromkeys(made.groups, HIDDEN), good), like_known=False)


def _gap(rates: Mapping[str, float]) -> float:
    return max(rates.values()) - min(rates.values())


def hidden(world: CellWorld, sizes: Mapping[str, float], good: set[str]) -> dict[str, Kinds]:
    """Hide good outcomes in some groups and bad ones in the others."""
    kinds: dict[str, Kinds] = {}
    for group, counts in world.cells.items():
        p1, p0, _ = counts.shares
        own = sizes[group]
        kinds[group] = ((p1 - own, p0, own),) if group in good else ((p1, p0 - own, own),)
    return kinds


def cohorts(world: CellWorld, group: str) -> Kinds:
    """Split the approved into an older and a younger half; the younger is worse and less known."""
    p1, p0, _ = world.cells[group].shares
    good = p1 / (p1 + p0)
    halves = []
    for share, known in zip((good + 0.1, good - 0.1), KNOWN[group], strict=True):
        half = (p1 + p0) / 2.0
        halves.append((half * share * known, half * (1.0 - share) * known, half * (1.0 - known)))
    return tuple(halves)


def misses(mode: str, metric: str, runs: int, seed: int) -> int:
    """Count pasts of which the interval misses Delta, which lies at the end of what is allowed.

    The denied of one group all succeed, those of the other all fail, so that nothing but the
    luck of the past is left between Delta and the interval's upper end.
    """
    (a1, a0, a, _), (b1, b0, b, _) = SHARES.values()
    world = CellWorld.from_shares({"A": (a1, a0, a, 0.0), "B": (b1, b0, b, 1.0)})
    book = (
        OpenBook(world, {g: cohorts(world, g) for g in world.groups}, like_known=True)
        if mode == "like_known"
        else OpenBook(world, hidden(world, {"A": 0.1, "B": 0.08}, {"A"}), like_known=False)
    )
    question = eq.Question(metric, 0.1, 0.1, QUESTION.delta)
    truth, missed = world.gap(metric), 0
    for one in np.random.SeedSequence(seed).spawn(runs):
        found = check(book.past(1000, np.random.default_rng(one)), question)
        missed += not found.lower <= truth <= found.upper
    return missed
