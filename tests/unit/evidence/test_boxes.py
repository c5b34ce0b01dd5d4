"""The proof's premises where the past is finite: boxes cover, and none claims too much.

Guarantees 3.21 derives the error probability from these alone, for every rate, comparison and past.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import exp, lgamma, log

import numpy as np
import pytest

from equipoise.cells import GroupCells
from equipoise.comparison import Block, GapScale
from equipoise.evidence import row_answers
from equipoise.evidence.bets import bet_shares, fair_sizes, unfair_sizes
from equipoise.evidence.boxes import BetShares, PieceBoxes
from equipoise.evidence.claims import Claim, Piece
from equipoise.evidence.null_cells import CornerCells
from equipoise.evidence.row_answers import RowAnswers
from equipoise.evidence.shared_gains import SharedGains
from equipoise.rates import CONFUSION_CELLS, RATES, Rate
from tests.profiles import quick
from tests.unit.evidence.past_reference import (
    Person,
    number_of_strong,
    past_bets,
    strong_share,
)

pytestmark = pytest.mark.slow

EXACT = 1e-10  # of logs whose parts are up to thousands
OWN = (
    Rate("base_rate", {"tp", "fn"}, CONFUSION_CELLS, "share of outcome 1 among everybody"),
    Rate("good_among_three", {"tp"}, {"tp", "fp", "fn"}, "true positives among three cells"),
    Rate("bad_among_three", {"fp", "fn"}, {"tp", "fp", "fn"}, "mistakes among three cells"),
)
LABELLED = tuple(r for r in (*RATES.values(), *OWN) if r.trend and r.whole & {"tp", "fp"})


@dataclass(frozen=True)
class Case:
    """A piece of a wrong answer, past counts as they are and as they are seen, and its boxes."""

    shared: SharedGains
    piece: Piece
    full: tuple[GroupCells, ...]
    cells: CornerCells
    fair: bool


def random_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    compare = tuple(GapScale)[int(rng.integers(2))]
    gamma = float(rng.choice([0.0, 0.02, 0.1, 0.3]))
    epsilon = float(rng.choice([0.05, 0.1, 0.3]))
    chosen = rng.choice(len(LABELLED), size=1 + int(rng.random() < 0.3), replace=False)
    full, seen = [], []
    for _ in range(2):
        n = int(rng.choice([12, 300, 3_000, 30_000]) * rng.uniform(0.5, 1.5))
        good, bad, denied = rng.multinomial(n, rng.dirichlet([2.0, 1.0, 3.0])).tolist()
        full.append(GroupCells(good, bad, denied))
        hidden = rng.random() < 0.3
        hide = rng.binomial([good, bad], rng.uniform(0, 0.3, 2)).tolist() if hidden else [0, 0]
        seen.append(GroupCells(good - hide[0], bad - hide[1], denied, sum(hide)))
    direction = str(rng.choice(["both", "both", "below", "above"]))
    block = Block("", (0, 1), None if direction == "both" else 0, direction)
    answers = RowAnswers(
        tuple(LABELLED[i] for i in chosen),
        tuple(seen),
        *(gamma, epsilon, 0.043, 0.043),
        compare=compare,
        blocks=(block,),
    )
    fair = bool(rng.random() < 0.5)  # whether the piece belongs to the FAIR set
    if fair:
        sizes = epsilon * np.asarray(unfair_sizes(epsilon))
        pieces = list(row_answers._fair_pieces(answers, *rng.permutation(2).tolist()))
    else:
        sizes = epsilon * np.asarray(fair_sizes(gamma + epsilon, epsilon))
        pieces = list(row_answers._unfair_pieces(answers))
    shared = SharedGains(answers, sizes, 1.0 / 0.043)
    piece = pieces[int(rng.integers(len(pieces)))]
    return Case(shared, piece, tuple(full), PieceBoxes(shared, piece).standing_boxes(), fair)


def random_population(case: Case, rng: np.random.Generator) -> tuple[Person, Person] | None:
    """Return a population of the piece, mostly one near the counts; None if none was found."""
    piece, answers = case.piece, case.shared.answers
    near = rng.random() < 0.8
    for _ in range(400):
        people = []
        for group in (piece.a, piece.b):
            counts = case.full[group]
            numbers = np.array(
                [counts.approved_positive, counts.approved_negative, counts.denied], dtype=float
            )
            spread = rng.choice([1.0, 4.0]) if near else 1e9
            shares = rng.dirichlet(numbers / spread + 0.5)
            people.append(Person(tuple(shares.tolist()), float(rng.uniform(0.001, 0.999))))
        a, b = people
        if len(answers.rates) == 1:
            a = with_rate(case, a, b, rng) or a
        if all(holds(case, claim, a, b) for claim in piece.claims):
            return a, b
    return None


def with_rate(case: Case, a: Person, b: Person, rng: np.random.Generator) -> Person | None:
    """Return group a with another share of denied people, so that its rate meets the claims."""
    (rate,), compare = case.shared.answers.rates, case.shared.answers.compare
    t = b.rate(rate)
    low, high = 0.0, 1.0
    for claim in case.piece.claims:
        level = float(claim.level(np.array(t), compare))
        low, high = (max(low, level), high) if claim.at_least else (low, min(high, level))
    target = low + (high - low) * rng.uniform() ** 3 if rng.random() < 0.7 else high
    if not 0.0 < target < 1.0 or low > high:
        return None
    p1, p0, _ = a.shares
    good = p1 / (p1 + p0)
    worth = [(c in rate.part) - target * (c in rate.whole) for c in ("tp", "fp", "fn", "tn")]
    approved = good * worth[0] + (1 - good) * worth[1]
    denied = a.lam * worth[2] + (1 - a.lam) * worth[3]
    if approved == denied:
        return None
    s = approved / (approved - denied)
    if not 0.0 < s < 1.0:
        return None
    return Person(((1 - s) * good, (1 - s) * (1 - good), s), a.lam)


def holds(case: Case, claim: Claim, a: Person, b: Person) -> bool:
    """Say whether a claim holds; equalities up to rounding."""
    answers = case.shared.answers
    rate = answers.rates[claim.rate]
    level = float(claim.level(np.array(b.rate(rate)), answers.compare))
    own = a.rate(rate)
    return own >= level - 1e-15 if claim.at_least else own <= level + 1e-15


# -- every population of a wrong answer -----------------------------------------------------------


def test_every_population_lies_in_a_box_that_claims_no_more_than_it_may() -> None:
    """Or past rows refute it; with random labels, unknown outcomes, and for all counts."""
    checks, refuted, most = 0, 0, -np.inf
    for seed in range(quick(4, full=480)):
        case, rng = random_case(seed), np.random.default_rng(seed)
        for _ in range(50):
            people = random_population(case, rng)
            if people is None:
                break
            excess, held = check_population(case, people, rng)
            checks += 1
            refuted += not held
            most = max(most, excess)
    print(f"{checks:,} populations, {refuted:,} refuted; largest excess of a log {most:.1e}")
    assert checks > quick(100, full=15_000)
    assert most <= EXACT


def check_population(
    case: Case, people: tuple[Person, Person], rng: np.random.Generator
) -> tuple[float, bool]:
    """Return by how much the log evidence of a box exceeds that at the population, and if one is.

    A population that past rows refute needs no box: then by how much they fall short of the bar.
    """
    piece, cells = case.piece, case.cells
    counts = case.full[piece.a], case.full[piece.b]
    bets = list(past_bets(case.shared, piece, counts, people))
    lam = np.array([person.lam for person in people])
    inside = [piece.a, piece.b]
    held = ((cells.low[:, inside] <= lam) & (lam <= cells.high[:, inside])).all(axis=1)
    short = log(case.shared.bar) - log_past(case, bets)
    if not held.any() or short <= 0.0:
        return short, False
    labels = np.zeros((2, 3))
    labels[:, :2] = rng.integers(0, rng.choice([1, 5, 200]), (2, 2))
    excess = -np.inf
    some = np.flatnonzero(held)[:2]
    for box in some.tolist():
        ours = float(np.log(cells.evidence(cells.log_wealth(labels, np.array([box])))[0]))
        theirs = log_evidence(case, bets, box, people, labels)
        excess = max(excess, ours - theirs, excess_of_parts(case, box, people, labels, theirs))
        if cells.can_be_cut(np.array([box])).all() and not parts_that_hold(cells, box, lam):
            excess = max(excess, short)  # past rows refute the part, so they have to reach the bar
    return excess, True


def parts_that_hold(cells: CornerCells, box: int, lam: np.ndarray) -> list[CornerCells]:
    """Return the parts of a box that hold these unknowns, each by itself."""
    found = []
    for parts, _ in cells.parts(np.array([box])):
        held = ((parts.side_low <= lam) & (lam <= parts.side_high)).all(axis=1)
        found += [parts.select(np.array([place])) for place in np.flatnonzero(held)]
    return found


def excess_of_parts(case: Case, box: int, people, labels, theirs: float) -> float:  # type: ignore
    """Return by how much the log evidence of a part exceeds that of the whole's bets."""
    cells = case.cells
    if not cells.can_be_cut(np.array([box])).all():
        return -np.inf
    whole = cells.evidence(cells.log_wealth(labels, np.array([box])))[0]
    excess = -np.inf
    for part in parts_that_hold(cells, box, np.array([person.lam for person in people])):
        evidence = part.evidence(part.log_wealth(labels, np.array([0])))[0]
        excess = max(excess, float(np.log(evidence)) - theirs)
        # No part has less evidence than the whole.
        excess = max(excess, float(np.log(whole / evidence)))
    return excess


def log_past(case: Case, bets: list) -> float:  # type: ignore[type-arg]
    """Return the log of what past rows alone say: every bet with its stake."""
    total = []
    for bet in bets:
        if bet.kind == "strong":
            total.append(log(strong_share(case.piece)) + bet.log_gain)
            continue
        shares = shares_of(case, bet.side)
        stake = shares.bold.sum() if bet.kind == "bold" else 0.0
        if bet.kind != "bold":
            stake = shares.main.reshape(3, -1)[:, bet.kind].sum()
        total.append(log(stake) + bet.log_gain)
    sides = {claim.side for claim in case.piece.claims}
    total += [float(np.logaddexp.reduce(shares_of(case, side).log_floor)) for side in sides]
    return float(np.logaddexp.reduce(total))


def shares_of(case: Case, side: int) -> BetShares:
    piece = case.piece
    weight = 1.0 - piece.far_share if side == piece.near else piece.far_share
    bold_share = case.shared.bold_share(piece.a, piece.b)
    return BetShares.divide(len(case.shared.sizes), weight, len(piece.on_side(side)), bold_share)


def log_evidence(case: Case, bets: list, box: int, people, labels) -> float:  # type: ignore
    """Return the log evidence at a population: past rows at it, and the box's bets on labels."""
    piece, cells = case.piece, case.cells
    (zero, one) = np.exp(cells.log_factor[:, :, 0, box]).swapaxes(0, 1)
    slopes = (one - zero)[:, cells.label_bet]  # (2 sides, bets)
    sizes = len(case.shared.sizes)
    total, place = [], 0
    sides = [piece.near] + ([-piece.near] if piece.on_side(-piece.near) else [])
    for side in sides:
        shares = shares_of(case, side)
        for claim in piece.on_side(side):
            own = {bet.kind: bet.log_gain for bet in bets if bet.claim is claim and bet.side}
            gains = [own[kind] for kind in range(sizes)] * 3 + [own["bold"]] * len(shares.bold)
            stakes = np.append(shares.main, shares.bold)
            for gain, stake in zip(gains, stakes, strict=True):
                total.append(
                    log(stake) + gain + label_gain(slopes[:, place], people, labels, piece)
                )
                place += 1
        for stake in shares.log_floor:
            total.append(stake + label_gain(slopes[:, place], people, labels, piece))
            place += 1
    assert place == slopes.shape[1]
    return float(np.logaddexp.reduce(total))


def label_gain(slope: np.ndarray, people, labels: np.ndarray, piece: Piece) -> float:  # type: ignore
    gain = 0.0
    for b, person, group in zip(slope, people, (piece.a, piece.b), strict=True):
        gain += labels[group, 0] * np.log1p(-b * person.lam)
        gain += labels[group, 1] * np.log1p(b * (1.0 - person.lam))
    return float(gain)


# -- means ----------------------------------------------------------------------------------------


def test_the_mean_over_all_pasts_is_at_most_one() -> None:
    """Every bet on past rows, summed over all that the rows may be, at one population."""
    checks, most = 0, 0.0
    for seed in range(quick(5, full=300)):
        case, rng = random_case(10_000 + seed), np.random.default_rng(seed)
        people = random_population(case, rng)
        if people is None:
            continue
        n = rng.integers(2, 7, 2).tolist()
        for mean in means_over_pasts(case, people, n):
            checks += 1
            most = max(most, mean)
    print(f"{checks:,} means, the largest is 1 + {most - 1.0:.1e}")
    assert checks > quick(20, full=1_500)
    assert most <= 1.0 + 1e-12


def means_over_pasts(case: Case, people: tuple[Person, Person], n: list[int]) -> list[float]:
    total: np.ndarray | float = 0.0
    for counts_a, counts_b in product(possible_counts(n[0]), possible_counts(n[1])):
        chance = probability(people[0], counts_a) * probability(people[1], counts_b)
        counts = GroupCells(*counts_a), GroupCells(*counts_b)
        gains = [b.log_gain for b in past_bets(case.shared, case.piece, counts, people)]
        total = total + chance * np.exp(gains)
    return list(np.atleast_1d(total))


def possible_counts(n: int) -> list[tuple[int, int, int]]:
    return [(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)]


def probability(person: Person, counts: tuple[int, int, int]) -> float:
    n = sum(counts)
    logs = lgamma(n + 1) - sum(lgamma(k + 1) for k in counts)
    logs += sum(k * log(max(p, 1e-300)) for k, p in zip(counts, person.shares, strict=True) if k)
    return exp(logs)


def test_stakes_add_up_to_one() -> None:
    for seed in range(quick(4, full=40)):
        case = random_case(seed)
        sides = {claim.side for claim in case.piece.claims}
        total = strong_share(case.piece) * number_of_strong(case.piece)
        for side in sides:
            shares, claims = shares_of(case, side), len(case.piece.on_side(side))
            total += claims * (shares.main.sum() + shares.bold.sum())
            total += np.exp(shares.log_floor).sum()
        assert total == pytest.approx(1.0, abs=1e-12)
        assert bet_shares(3).sum() == pytest.approx(1.0)


def test_a_margin_far_below_gamma_leaves_no_bet_without_a_size() -> None:
    # exp(-2 gamma / epsilon) is 0 here. Evidence was nan, of which no comparison holds, so every
    # box looked refuted and the audit said UNFAIR before the first label.
    counts = GroupCells(60, 5, 25), GroupCells(30, 5, 65)
    rates = (RATES["true_positive_rate"],)
    answers = RowAnswers(rates, counts, 0.4, 0.001, 0.025, 0.025, box_step=50.0)
    (fair,) = answers.fair_covers()
    assert isinstance(fair, CornerCells)
    assert np.isfinite(fair.log_stake).all()
    some_labels = np.full((2, 3), 4.0)
    evidence = fair.evidence_of_counts(some_labels, np.arange(len(fair)))
    assert len(fair)
    assert not np.isnan(evidence).any()
