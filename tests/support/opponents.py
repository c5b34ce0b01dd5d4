"""Opponents who decide what is told: whom to withhold, when, and which labels to write off.

An opponent knows every outcome requested so far and wants a wrong verdict. The audit promises that
nobody gets one more often than delta. *Blind* is an audit that must not be built: it chooses its
bets when labels are counted, by what has been told by then. Whoever then decides which of the
earlier labels are told decides among strategies, and the best of them is what counts.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

import equipoise as eq
from equipoise.evidence import UNKNOWN, WrongAnswers
from equipoise.evidence.bets import unfair_sizes
from equipoise.evidence.level_cells import level_cells
from equipoise.free_check import bands_from_past
from equipoise.protocol import Want
from equipoise.question import Verdict
from equipoise.worlds import CellWorld

QUESTION = eq.Question("false_omission_parity", gamma=0.0, epsilon=0.15, delta=0.05)
# Past rows are evidence about this one. A false omission rate is the unknown itself, so a past says
# nothing of it.
QUESTION_OF_ROWS = eq.Question("equal_opportunity", gamma=0.0, epsilon=0.15, delta=0.05)
PATTERNS = 8
FORESIGHT = "held to the deadline, with foresight"
HIDDEN = "half of the successes hidden"

Flags = NDArray[np.bool_]
Ints = NDArray[np.intp]


def fair_world(groups: int) -> CellWorld:
    """Return groups that are alike: UNFAIR is wrong."""
    return CellWorld.from_shares({f"g{i}": (0.3, 0.2, 0.5, 0.5) for i in range(groups)})


def edge_world(groups: int, question: eq.Question = QUESTION) -> CellWorld:
    """Return groups of which one is just too different: FAIR is wrong."""
    p1, p0, s = 0.3, 0.2, 0.5
    first = 0.4
    gap = question.threshold + 1e-4
    if question == QUESTION:
        other = first + gap
    else:  # where p1 / (p1 + s r) is so much lower
        other = p1 * (1.0 / (p1 / (p1 + s * first) - gap) - 1.0) / s
    r = [first] + [other] * (groups - 1)
    return CellWorld.from_shares({f"g{i}": (p1, p0, s, x) for i, x in enumerate(r)})


# -- what an opponent does ------------------------------------------------------------------------

Opponent = Callable[[eq.AdaptiveAudit, CellWorld, np.random.Generator, int], None]


def _ask(audit: eq.AdaptiveAudit, world: CellWorld, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    """Let denied people come until one is asked; return ticket and outcome."""
    while audit.finding is None:
        group = world.groups[int(rng.integers(len(world.groups)))]
        ticket = audit.ask(group, 0)
        if ticket.want is Want.LABEL:
            return ticket, int(rng.random() < world.r[group])
    return None, 0


def late_successes(
    audit: eq.AdaptiveAudit, world: CellWorld, rng: np.random.Generator, labels: int
) -> None:
    """Failures are told at once, successes after 60 further requests."""
    waiting = []
    for _ in range(labels):
        ticket, outcome = _ask(audit, world, rng)
        if ticket is None:
            return
        if outcome:
            waiting.append((audit.labels, ticket))
        else:
            audit.tell(ticket, 0)
        while waiting and waiting[0][0] <= audit.labels - 60 and audit.finding is None:
            audit.tell(waiting.pop(0)[1], 1)


def hides(value: int, share: float) -> Opponent:
    """Return somebody who never tells a share of the successes, or of the failures."""

    def opponent(
        audit: eq.AdaptiveAudit, world: CellWorld, rng: np.random.Generator, labels: int
    ) -> None:
        for _ in range(labels):
            ticket, outcome = _ask(audit, world, rng)
            if ticket is None:
                return
            if outcome == value and rng.random() < share:
                audit.withdraw(ticket)
            else:
                audit.tell(ticket, outcome)

    return opponent


def toggles(
    audit: eq.AdaptiveAudit, world: CellWorld, rng: np.random.Generator, labels: int
) -> None:
    """Write off a tenth, bring some of it late; stop when it helps."""
    settled = []
    for _ in range(labels):
        ticket, outcome = _ask(audit, world, rng)
        if ticket is None:
            return
        if rng.random() < 0.1:
            audit.withdraw(ticket)
        else:
            audit.tell(ticket, outcome)
        settled.append((ticket, outcome))
        if rng.random() < 0.02 and audit.finding is None:
            audit.correct(*settled[int(rng.integers(len(settled)))])


def with_foresight(
    audit: eq.AdaptiveAudit, world: CellWorld, rng: np.random.Generator, labels: int
) -> None:
    """Hold the pilot's labels back until the deadline; write off those whose silence helps most.

    The same people are labelled and the same strategies tried in both audits; who comes next goes
    round. Only the evidence is used: what is told late changes no request.
    """
    evidence, k = audit.evidence, len(world.groups)
    assert evidence is not None
    r = np.array(list(world.r.values()))
    pilot, outcomes = 5 * k, []
    for number in range(labels):
        group = number % k
        outcomes.append(int(rng.random() < r[group]))
        asked = evidence.request(np.array([group]))
        if number >= pilot:
            evidence.record(asked, np.array(outcomes[-1:]))
            evidence.replan_if_due()
    for pattern in _patterns(np.array(outcomes, dtype=bool), pilot, k):
        trial = deepcopy(evidence)
        trial.refutation.unfair_set.covers[
            0
        ].bar = np.inf  # a right verdict does not stop the opponent
        trial.record(np.arange(pilot), np.where(pattern, outcomes[:pilot], UNKNOWN))
        if trial.advance(replan=False) is Verdict.UNFAIR:
            audit._finding = audit._report_verdict(Verdict.UNFAIR)
            return


def _patterns(good: Flags, pilot: int, k: int) -> list[Flags]:
    """Return which of the pilot's labels to tell: all, one kind, or what the later ones bear out.

    The latter make two groups look the most extreme that later turn out so: of the one only
    successes are told, of the other only failures, of the rest nothing.
    """
    later = np.array([good[pilot + group :: k].mean() for group in range(k)])
    pairs = sorted(permutations(range(k), 2), key=lambda pair: later[pair[1]] - later[pair[0]])
    group, early = np.arange(pilot) % k, good[:pilot]
    patterns = [np.ones(pilot, dtype=bool), early, ~early]
    for a, b in pairs[: PATTERNS - len(patterns)]:
        patterns.append((group == a) & early | (group == b) & ~early)
    return patterns


OPPONENTS: dict[str, Opponent] = {
    "successes told late": late_successes,
    HIDDEN: hides(1, 0.5),
    "half of the failures hidden": hides(0, 0.5),
    "write-offs, late tells, corrections": toggles,
    FORESIGHT: with_foresight,
}


# -- the audit that must not be built -------------------------------------------------------------


class Blind:
    """Stakes all on the two groups that look the most extreme in what was told of a pilot.

    The pilot itself is not weighed, and the choice is made when its labels are counted; cells and
    bets are the adaptive audit's. Whoever tells everything, or is silent for reasons of the person
    alone, cannot mislead it.
    """

    def __init__(self, groups: int) -> None:
        self.groups, self.pilot = groups, 5 * groups
        (bands,) = bands_from_past(fair_world(2).past(), QUESTION.metric, None).values()
        rates = (tuple(bands.values()),)
        wrong = WrongAnswers(rates, rates, QUESTION.gamma, QUESTION.epsilon, 1.0, 1.0)
        sizes = QUESTION.epsilon * np.asarray(unfair_sizes(QUESTION.epsilon))
        self._cells = level_cells(wrong, wrong.blocks[0], rates[0], sizes)

    def says_unfair(self, outcomes: Ints) -> bool:
        """Count outcomes of groups that come in turn, UNKNOWN for who is silent."""
        early = outcomes[: self.pilot].reshape(-1, self.groups)
        ones, zeros = (early == 1).sum(axis=0), (early == 0).sum(axis=0)
        seen = (ones + 0.5) / (ones + zeros + 1.0)
        a, b = int(seen.argmax()), int(seen[::-1].argmin())
        b = self.groups - 1 - b  # where all look alike, two different ones
        later, group = outcomes[self.pilot :], np.arange(self.pilot, len(outcomes)) % self.groups
        matter = (group == a) | (group == b)
        later, group = later[matter], group[matter]
        counts = np.zeros((len(later), 2, 3))
        for side, own in enumerate((a, b)):
            mine = group == own
            counts[mine, side, later[mine]] = 1.0
        wealth = self._cells.log_wealth(counts.cumsum(axis=0), slice(None))
        half = wealth.shape[-1] // 2  # the bets on a above b, with all of the stake
        found = self._cells.evidence(wealth[..., :half]) / np.exp(
            self._cells.log_stake[:, :half]
        ).sum(axis=1)
        return bool((found >= 1.0 / QUESTION.delta).any(axis=0).all())

    def meets(self, opponent: str, labels: int, rng: np.random.Generator) -> bool:
        """Say whether an opponent gets UNFAIR where all groups are alike."""
        outcomes = (rng.random(labels) < fair_world(2).r["g0"]).astype(np.intp)
        if opponent == FORESIGHT:
            return any(
                self.says_unfair(np.concatenate([np.where(tell, early, UNKNOWN), later]))
                for early, later in [np.split(outcomes, [self.pilot])]
                for tell in _patterns(outcomes.astype(bool), self.pilot, self.groups)
            )
        hidden = (outcomes == 1) & (rng.random(labels) < 0.5)
        return self.says_unfair(np.where(hidden, UNKNOWN, outcomes))


# -- runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One opponent against one audit."""

    opponent: str
    groups: int
    blind: bool = False
    wrong: Verdict = Verdict.UNFAIR
    past: int | None = None
    question: eq.Question = QUESTION

    def play(self, runs: int, labels: int, seed: int, jobs: int = 1) -> int:
        """Return how many of so many audits ended with the wrong verdict."""
        seeds = np.random.SeedSequence(seed).spawn(runs)
        ended = Parallel(n_jobs=jobs)(delayed(self.once)(labels, each) for each in seeds)
        return sum(ended)

    def once(self, labels: int, seed: np.random.SeedSequence) -> bool:
        rng = np.random.default_rng(seed)
        if self.blind:
            return Blind(self.groups).meets(self.opponent, labels, rng)
        world = fair_world(self.groups)
        if self.wrong is Verdict.FAIR:
            world = edge_world(self.groups, self.question)
        audit = eq.AdaptiveAudit(world.past(self.past, rng), self.question, eq.Costs())
        OPPONENTS[self.opponent](audit, world, rng, labels)
        return audit.finding is not None and audit.finding.verdict is self.wrong
