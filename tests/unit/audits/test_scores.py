"""An audit that looks before it asks: order, money, refusals, replays."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.base import Step
from equipoise.audits.rs_audit import RSAudit
from equipoise.audits.scores import Assist
from equipoise.errors import InvalidInput, ProtocolError
from equipoise.protocol import Ticket, Want
from equipoise.question import Costs, Question
from equipoise.simulation import run, simulate
from equipoise.simulation.drive import DeniedPeople, run_block_by_block
from equipoise.worlds import CellWorld, TableWorld
from tests.profiles import quick
from tests.unit.evidence.states import weighed

pytestmark = pytest.mark.slow

QUESTION = Question("false_omission_parity", gamma=0.05, epsilon=quick(0.2, full=0.1))
COSTS = Costs(feature=0.01, label=1.0)
SHARES = {"A": (0.3, 0.2, 0.5, 0.4), "B": (0.3, 0.2, 0.5, 0.6)}


def table(r: dict[str, float], *, slope: float = 3.0, priced: bool = False) -> TableWorld:
    """Return denied people of two groups with a score, and perhaps prices that know the outcome."""
    rng, rows = np.random.default_rng(0), 4_000
    group, decision = rng.integers(2, size=rows), (rng.random(rows) < 0.3).astype(np.int8)
    outcome = (rng.random(rows) < np.array(list(r.values()))[group]).astype(np.int8)
    score = rng.normal(size=rows) + slope * outcome
    price = np.exp(rng.uniform(0.0, np.log(10.0), rows)) / (1.0 + outcome) if priced else None
    return TableWorld(tuple(r), group.astype(np.intp), decision, outcome, None, score, price)


WORLD = table({"A": 0.3, "B": 0.36})


def start(**options: object) -> AdaptiveAudit:
    past = CellWorld(WORLD.cells, WORLD.r).past()
    return AdaptiveAudit(past, QUESTION, COSTS, **options)  # type: ignore[arg-type]


class Stream:
    """People who come one by one, each with what an audit may see of them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.people = WORLD.draw(5_000, self.rng)
        self.at = 0

    def next(self) -> tuple[str, dict[str, float], int]:
        while self.people.decision[self.at]:
            self.at += 1
        i, self.at = self.at, self.at + 1
        seen = {"score": float(self.people.score[i]), "draw": float(self.rng.random())}  # type: ignore[index]
        return WORLD.groups[self.people.group[i]], seen, int(self.people.outcome[i])


def told(audit: AdaptiveAudit, seed: int, most: int = 5_000) -> list[Step]:
    """Let people come until there is a finding; return the log."""
    log, stream = [], Stream(seed)
    for _ in range(most):
        group, seen, outcome = stream.next()
        ticket = audit.ask(group, 0, **seen)  # type: ignore[arg-type]
        if ticket.want is not Want.NOTHING:
            log.append(Step("asked", ticket))
        if ticket.want is Want.LABEL:
            audit.tell(ticket, outcome)
            log.append(Step("told", ticket, outcome))
        if audit.finding is not None:
            break
    return log


def test_people_are_looked_at_and_some_are_asked() -> None:
    audit = start(assist=Assist())
    log = told(audit, 1)
    wants = [step.ticket.want for step in log if step.kind == "asked"]
    labels, looks = wants.count(Want.LABEL), len(wants)
    assert (audit.labels, audit.features, audit.pending) == (labels, looks - labels, 0)
    assert wants.count(Want.SCORE_ONLY) > labels / 2
    failures = sum(step.outcome == 0 for step in log if step.kind == "told")
    assert audit.cost == pytest.approx(0.01 * looks + failures)
    assert audit.finding is not None


def test_a_replay_leads_to_the_same_place() -> None:
    first, second = start(assist=Assist()), start(assist=Assist())
    log = told(first, 2, most=900)
    second.restore(log)
    assert second.cost == first.cost
    assert (second.finding is None) == (first.finding is None)
    for a, b in zip(
        weighed(first._require_evidence()), weighed(second._require_evidence()), strict=True
    ):
        assert np.allclose(a, b, rtol=1e-12, atol=0.0)
    copied = deepcopy(first)
    assert copied.so_far().to_dict() == first.so_far().to_dict() == second.so_far().to_dict()


def test_in_blocks_it_is_the_audit_person_by_person() -> None:
    """The same people, with the same draws, in blocks as long as the plan stands."""
    blocks, singles = start(assist=Assist()), start(assist=Assist())
    rng = np.random.default_rng(5)
    rows = [np.flatnonzero((WORLD.group == g) & (WORLD.decision == 0)) for g in (0, 1)]
    while blocks.finding is None:
        groups = blocks.choose_block(np.array([0.5, 0.5]), None, rng)
        picks = np.array([rng.choice(rows[g]) for g in groups])
        outcomes, scores = WORLD.outcome[picks].astype(np.intp), WORLD.score[picks]  # type: ignore[index]
        draws = rng.random(len(groups))
        taken = blocks.count_block(groups, outcomes, scores, np.full(len(groups), np.nan), draws)
        for i in range(taken):
            ticket = singles.ask(
                WORLD.groups[groups[i]], 0, score=float(scores[i]), draw=float(draws[i])
            )
            if ticket.want is Want.LABEL:
                singles.tell(ticket, int(outcomes[i]))
        assert singles.labels == blocks.labels
    assert singles.finding is not None
    assert singles.finding.verdict is blocks.finding.verdict
    assert singles.cost == pytest.approx(blocks.cost)
    assert singles.finding.lower == pytest.approx(blocks.finding.lower, abs=1e-3)


@pytest.mark.parametrize(
    ("costs", "assist", "price"),
    [(Costs(0, 0), Assist(seed=1), None), (Costs(0, 1), Assist(max_price=5.0, seed=1), 0.0)],
)
def test_where_labels_are_free_everybody_is_asked(
    costs: Costs, assist: Assist, price: float | None
) -> None:
    past, stream = CellWorld(WORLD.cells, WORLD.r).past(), Stream(3)
    audit = AdaptiveAudit(past, Question("false_omission_parity", gamma=0.05), costs, assist=assist)
    for _ in range(200):
        group, seen, outcome = stream.next()
        ticket = audit.ask(group, 0, price=price, **seen)
        assert ticket.want is not Want.SCORE_ONLY
        if ticket.want is Want.LABEL:
            audit.tell(ticket, outcome)
    assert audit.labels > 100


def test_a_finding_calls_looks_looks() -> None:
    audit = start(assist=Assist(seed=1))
    told(audit, 1, most=300)
    found = audit.so_far()
    assert (found.score_only, found.features) == (audit.features, 0)
    assert f"outcomes requested and {found.score_only} more people looked at" in str(found)


def test_a_score_without_help_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'score' is for audits that look"):
        start().ask("A", 0, score=0.5)
    past = CellWorld(WORLD.cells, WORLD.r).past()
    with pytest.raises(InvalidInput, match="'price' is for audits that look"):
        RSAudit(past, Question(), COSTS, tau=5).ask("A", 0, price=0.5)


@pytest.mark.parametrize(
    ("seen", "rule"),
    [
        ({"score": float("nan")}, "'score' must be a finite number"),
        ({"score": "0.5"}, "'score' must be a finite number"),
        ({"score": True}, "'score' must be a finite number"),
        ({"price": 6.0}, "declared 'max_price', 5"),
        ({"price": -1.0}, "declared 'max_price', 5"),
        ({"draw": 1.0}, r"'draw' must be in \[0, 1\)"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_is_drawn(
    seen: dict[str, float], rule: str
) -> None:
    audit = start(assist=Assist(max_price=5.0))
    with pytest.raises(InvalidInput, match=rule):
        audit.ask("A", 0, **seen)  # type: ignore[arg-type]
    assert audit.ask("A", 0, score=1.0, price=5.0).number == 0
    assert audit.labels + audit.features == 1


def test_prices_need_a_declared_maximum_of_at_least_the_label_price() -> None:
    with pytest.raises(InvalidInput, match="needs a largest price"):
        start(assist=Assist()).ask("A", 0, price=1.0)
    with pytest.raises(InvalidInput, match="'max_price' must be at least the label cost"):
        start(assist=Assist(max_price=0.5))


def test_each_failure_costs_its_own_price() -> None:
    audit = start(assist=Assist(max_price=5.0))
    spent = 0.0
    for price, outcome in ((5.0, 0), (0.5, 0), (3.0, 1), (2.0, None)):
        ticket = audit.ask("A", 0, price=price)
        assert ticket.hold == 0.01 + price
        assert audit.reserved == pytest.approx(price)
        if outcome is None:
            audit.withdraw(ticket)
        else:
            audit.tell(ticket, outcome)
            last, known = ticket, outcome
        spent += 0.01 + price * (outcome == 0)
        assert (audit.cost, audit.reserved) == (pytest.approx(spent), pytest.approx(0.0))
    assert known == 1
    audit.correct(last, 0)
    assert audit.cost == pytest.approx(spent + 3.0)


def test_a_budget_that_cannot_hold_the_largest_price_closes_a_group_for_good() -> None:
    """Whether to ask never depends on this person's price, nor on money that comes back."""
    audit = start(assist=Assist(max_price=5.0), budget=6.5)
    first = audit.ask("A", 0, price=3.0)
    assert first.want is Want.LABEL
    assert audit.ask("A", 0, price=0.1).want is Want.NOTHING  # 5.01 cannot be held
    audit.tell(first, 1)
    assert audit.available > 5.01
    assert audit.ask("A", 0, price=0.1).want is Want.NOTHING
    assert audit.ask("B", 0, price=0.1).want is Want.LABEL


def test_the_same_person_s_price_and_score_never_change_what_is_staked() -> None:
    audit = start(assist=Assist())
    told(audit, 3, most=300)
    before = _ranges(audit)
    assert any(before)
    for score in (-1e300, 0.0, 1e300):
        other = deepcopy(audit)
        other.ask("A", 0, score=score, draw=0.999999)
        other.ask("B", 0, score=score, draw=0.0)
        assert _ranges(other) == before


def _ranges(audit: AdaptiveAudit) -> list[tuple[float, ...] | None]:
    """Return what bets on every group go by: the range and the variance of observations."""
    scales = audit._require_evidence().log.bet_scales
    return [scale and (scale.low, scale.high, scale.variance) for scale in scales]


def test_somebody_who_was_not_asked_cannot_be_told_or_corrected() -> None:
    audit = start(assist=Assist())
    seen = next(s.ticket for s in told(audit, 3, most=400) if s.ticket.want is Want.SCORE_ONLY)
    for tell in (audit.tell, audit.correct):
        with pytest.raises(ProtocolError):
            tell(seen, 1)
    assert Ticket.from_json(seen.to_json()) == seen


@pytest.mark.parametrize("people", [None, 50])  # in blocks, and one by one
@pytest.mark.parametrize(
    ("assist", "rule"),
    [(Assist(), "needs a largest price"), (Assist(max_price=2.0), "declared 'max_price', 2")],
)
def test_a_simulation_keeps_to_the_declared_prices(
    assist: Assist, rule: str, people: int | None
) -> None:
    world = table({"A": 0.3, "B": 0.36}, priced=True)
    with pytest.raises(InvalidInput, match=rule):
        simulate("adaptive", world, QUESTION, COSTS, repeats=1, people=people, assist=assist)


@pytest.mark.parametrize("audit", ["adaptive", "rs"])
def test_a_simulation_does_not_ignore_prices(audit: str) -> None:
    world = table({"A": 0.3, "B": 0.36}, priced=True)
    with pytest.raises(InvalidInput, match=r"assist=Assist\(max_price=9\.\d+\)"):
        simulate(audit, world, QUESTION, COSTS, repeats=1)
    with pytest.raises(InvalidInput, match="make the world without price="):
        run(start(), world)


def test_the_advice_for_prices_asks_everybody_and_pays_them() -> None:
    world = table({"A": 0.1, "B": 0.7})
    world = replace(world, price=np.full(len(world), 7.0))
    audit = start(assist=Assist(max_price=7.0, gate=1e-9))
    run(audit, world)
    failures = sum(one.failures for one in audit.spending.values())
    assert audit.features == 0
    assert audit.cost == pytest.approx(0.01 * audit.labels + 7.0 * failures)


@pytest.mark.parametrize("people", [None, 400])  # in blocks, and one by one
def test_people_without_score_or_price_are_simulated(people: int | None) -> None:
    world = table({"A": 0.1, "B": 0.7}, priced=True)
    some = np.arange(len(world)) % 3 == 0
    gaps = [np.where(some, np.nan, column) for column in (world.score, world.price)]
    world = replace(world, score=gaps[0], price=gaps[1])
    assist = Assist(max_price=10.0, seed=0)
    sim = simulate("adaptive", world, QUESTION, COSTS, repeats=2, people=people, assist=assist)
    assert (sim.cost > 0.0).all()
    seen = list(world.draw(50))
    assert {type(person.score) for person in seen} == {float, type(None)}


@pytest.mark.filterwarnings("error")
def test_numbers_of_numpy_are_numbers() -> None:
    assist = Assist(np.float32(8), np.float32(0.5), np.int64(50), np.int64(3))  # type: ignore[arg-type]
    assert assist == Assist(8.0, 0.5, 50, 3)
    assert Assist.from_json(assist.to_json()) == assist
    assert {type(value) for value in vars(assist).values()} == {int, float}
    ticket = start(assist=assist).ask("A", 0, score=np.float32(0.5), price=np.float32(2.5))  # type: ignore[arg-type]
    assert ticket.score_record is not None
    assert (ticket.score_record.score, ticket.score_record.price) == (0.5, 2.5)
    assert Costs(label=np.float32(2.0)).label == 2.0  # type: ignore[arg-type]
    for bad in (
        {"max_price": np.bool_(True)},
        {"gate": np.float32("nan")},
        {"seed": np.float64(1)},
    ):
        with pytest.raises(InvalidInput, match=next(iter(bad))):
            Assist(**bad)  # type: ignore[arg-type]


def test_a_simulation_needs_people_to_look_at() -> None:
    world = CellWorld.from_shares(SHARES)
    with pytest.raises(InvalidInput, match="needs a world with people to look at"):
        simulate("adaptive", world, QUESTION, COSTS, repeats=1, assist=Assist())


def test_a_helpful_score_makes_it_cheaper_and_a_useless_one_hardly_dearer() -> None:
    """Against the uniform audit; the standard errors are those of the runs."""
    question = Question("false_omission_parity", gamma=0.03, epsilon=quick(0.2, full=0.1))

    def cost(slope: float, assist: Assist | None) -> tuple[float, float]:
        options = {} if assist is None else {"assist": assist}
        world = table({"A": 0.25, "B": 0.25}, slope=slope)
        sim = simulate(
            "adaptive", world, question, Costs(), repeats=quick(4, full=12), seed=3, **options
        )
        assert sim.wrong.sum() <= 3  # more in less than 3 of 1,000 cases at delta = 0.05
        return float(sim.cost.mean()), float(sim.cost.std() / np.sqrt(len(sim)))

    uniform, helped, useless = cost(3.0, None), cost(3.0, Assist()), cost(0.0, Assist())
    assert helped[0] < uniform[0] + 2.0 * np.hypot(helped[1], uniform[1])
    assert useless[0] < 1.05 * uniform[0] + 4.0 * np.hypot(useless[1], uniform[1])


def test_a_doubt_that_is_due_does_not_end_a_simulation() -> None:
    # With a finite past doubts come after labels, and a block may end with somebody not asked.
    world = table({"A": 0.3, "B": 0.36}, slope=4.0)
    rng = np.random.default_rng(0)
    audit = AdaptiveAudit(world.past(50_000, rng), QUESTION, COSTS, assist=Assist())
    for came in run_block_by_block(audit, DeniedPeople.of_world(audit, world), rng):
        assert came > 0
        if audit.features >= 300:
            break
    assert audit.features > 0
