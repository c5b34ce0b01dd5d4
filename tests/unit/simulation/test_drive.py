"""Labels in blocks are the audit that ask and tell would have made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from equipoise.audits.adaptive import AdaptiveAudit, Ints
from equipoise.errors import ProtocolError
from equipoise.history.past import Past
from equipoise.protocol import Want
from equipoise.question import Costs, Question, Verdict
from equipoise.simulation import simulate
from equipoise.simulation.drive import DeniedPeople, run_in_blocks
from equipoise.worlds import CellWorld
from tests.profiles import examples, quick

QUESTION = Question(gamma=0.1, epsilon=0.2, delta=0.1)
ACCURACY = replace(QUESTION, metric="accuracy_parity")
WORLD = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.5), "B": (0.1, 0.1, 0.8, 0.4)})

ONE_WITHOUT_DENIALS = CellWorld.from_shares(
    {"A": (0.3, 0.1, 0.6, 0.9), "B": (0.1, 0.1, 0.8, 0.1), "C": (0.7, 0.3, 0.0, 0.0)}
)


class Recording(AdaptiveAudit):
    """Writes down the labels of its blocks."""

    def count_block(self, groups: Ints, outcomes: Ints) -> int:
        self.log.append((groups, outcomes))
        return super().count_block(groups, outcomes)

    def __init__(self, *args: object, **options: object) -> None:
        self.log: list[tuple[Ints, Ints]] = []
        super().__init__(*args, **options)  # type: ignore[arg-type]


def random_case(seed: int) -> tuple[CellWorld, Past, Question, Costs]:
    rng = np.random.default_rng(seed)
    names = [f"g{i}" for i in range(int(rng.integers(2, 5)))]
    shares = {}
    for name in names:
        p1, p0, s = rng.dirichlet((3.0, 2.0, 4.0))
        r = float(rng.choice([0.0, 1.0, rng.random()], p=[0.05, 0.05, 0.9]))
        shares[name] = (p1 + s, p0, 0.0, 0.0) if rng.random() < 0.15 else (p1, p0, s, r)
    world = CellWorld.from_shares(shares)
    size = None if rng.random() < 0.5 else int(rng.integers(200, 20_000))
    metric = str(rng.choice(["equalized_odds", "equal_opportunity", "accuracy_parity"]))
    price = Costs(float(rng.choice([0.0, 0.3])), float(rng.choice([0.0, 1.0])))
    return world, world.past(size, rng), replace(QUESTION, metric=metric), price


@examples(3)
@given(st.integers(0, 2**32))
def test_a_run_in_blocks_can_be_replayed_by_ask_and_tell(seed: int) -> None:
    world, past, question, costs = random_case(seed)
    block = Recording(past, question, costs)
    run_in_blocks(block, DeniedPeople.of_world(block, world), np.random.default_rng(seed))
    finding = block.conclude()
    assume(block.labels <= quick(1_500, full=5_000))  # one by one takes a millisecond a label
    single = AdaptiveAudit(past, question, costs)
    names, labels = block.groups, block.labels
    for groups, outcomes in block.log:
        for group, outcome in zip(groups, outcomes, strict=True):
            if labels == 0:
                break
            ticket = single.ask(names[group], 0)
            assert ticket.want is Want.LABEL
            single.tell(ticket, int(outcome))
            labels -= 1
    again = single.conclude("nobody else is to come")
    assert (again.verdict, again.cost, again.labels) == (finding.verdict, block.cost, block.labels)
    assert (again.lower, again.upper, again.reason) == (
        finding.lower,
        finding.upper,
        finding.reason,
    )
    assert single.spending == block.spending


def test_groups_may_come_in_another_order_than_the_worlds() -> None:
    turned = CellWorld.from_shares({"B": (0.1, 0.1, 0.8, 0.4), "A": (0.3, 0.1, 0.6, 0.5)})
    audit = AdaptiveAudit(turned.past(), QUESTION, Costs())
    run_in_blocks(audit, DeniedPeople.of_world(audit, WORLD), np.random.default_rng(0))
    for group, spending in audit.spending.items():
        failed = spending.failures / spending.labels
        assert abs(failed - (1.0 - WORLD.r[group])) < 4.0 * 0.5 / spending.labels**0.5


def test_a_group_without_denied_people_does_not_hold_up_the_others() -> None:
    for past in (None, 3_000):
        for budget in (None, 1e9):
            sim = simulate(
                "adaptive",
                ONE_WITHOUT_DENIALS,
                ACCURACY,
                Costs(),
                repeats=quick(2, full=5),
                history_size=past,
                budget=budget,
            )
            assert set(sim.verdict) == {"UNFAIR"}
            assert sim.labels.min() > 0


def test_what_is_missing_names_only_groups_with_denied_people() -> None:
    audit = AdaptiveAudit(ONE_WITHOUT_DENIALS.past(), ACCURACY, Costs())
    for i in range(60):
        ticket = audit.ask("AB"[i % 2], 0)
        if ticket.want is Want.LABEL:
            audit.tell(ticket, i // 2 % 2)
    finding = audit.conclude()
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert any("of A" in line for line in finding.missing)
    assert not any("of C" in line for line in finding.missing)


def test_blocks_are_refused_where_they_would_break_a_promise() -> None:
    def label(audit: AdaptiveAudit) -> None:
        audit.choose_block(np.ones(2), None, np.random.default_rng(0))

    ended = AdaptiveAudit(WORLD.past(), QUESTION, Costs())
    ended.conclude()
    waiting = AdaptiveAudit(WORLD.past(), QUESTION, Costs())
    assert waiting.ask("A", 0).want is Want.LABEL
    capped = AdaptiveAudit(WORLD.past(), QUESTION, Costs(), budget=3.0)
    for audit in (ended, waiting, capped):
        with pytest.raises(ProtocolError, match="use ask and tell"):
            label(audit)


def test_a_block_beyond_the_next_plan_is_refused() -> None:
    evidence = AdaptiveAudit(WORLD.past(), QUESTION, Costs()).evidence
    assert evidence is not None
    many = np.zeros(int(evidence.plan.labels_until_plan) + 1, dtype=np.intp)
    with pytest.raises(ValueError, match="at most"):
        evidence.record_block(many, many)
