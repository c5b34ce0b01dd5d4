"""The account of an audit: money spent, held and left."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.audits.spending import Account
from equipoise.protocol import ScoreRecord, Ticket, Want
from equipoise.question import Costs

COSTS = Costs(feature=1.0, label=10.0, groups={"B": Costs(2.0, 20.0)})


def account(budget: float | None = 100.0) -> Account:
    return Account(COSTS, budget, ["A", "B"])


def request(number: int, group: str = "A", price: float | None = None) -> Ticket:
    """Return a request for a denied person's label, perhaps at a price of their own."""
    record = None
    if price is not None:
        record = ScoreRecord(0.5, "", price, m=0.0, pi=1.0, low=0.0, high=1.0, draw=0.0)
    return Ticket(number, group, 0, Want.LABEL, score_record=record)


def test_a_label_is_held_at_its_worst_until_the_outcome_is_known() -> None:
    money = account()
    good, bad = request(0), request(1, "B")
    money.record_request(good)
    money.record_request(bad)
    assert (money.cost, money.reserved, money.unspent) == (3.0, 30.0, 67.0)
    money.record_answer(good, 1, None)
    money.record_answer(bad, 0, None)
    assert (money.cost, money.reserved, money.unspent) == (23.0, 0.0, 77.0)


def test_a_failure_costs_the_persons_own_price() -> None:
    money = account()
    ticket = request(0, price=4.0)
    money.record_request(ticket)
    assert (money.cost, money.reserved) == (1.0, 4.0)
    money.record_answer(ticket, 0, None)
    assert (money.cost, money.reserved) == (5.0, 0.0)
    money.correct(ticket, was_failure=True, outcome=1)
    assert money.cost == 1.0


def test_a_correction_takes_the_cost_of_a_withdrawal_back() -> None:
    money = account()
    ticket = request(0)
    money.record_request(ticket)
    money.record_answer(ticket, None, 7.0)
    assert money.cost == 7.0
    money.correct(ticket, was_failure=False, outcome=0)
    assert money.cost == 11.0


def test_approved_people_and_people_of_no_interest_cost_nothing() -> None:
    money = account()
    approved = Ticket(0, "A", 1, Want.LABEL)
    money.record_request(approved)
    money.record_answer(approved, 0, None)
    money.record_request(Ticket(1, "A", 0, Want.NOTHING))
    assert (money.cost, money.reserved) == (0.0, 0.0)
    assert money.worst_cost("A", 1, Want.LABEL, None) == 0.0


@pytest.mark.parametrize(
    ("want", "price", "worst"),
    [(Want.LABEL, None, 22.0), (Want.LABEL, 5.0, 7.0), (Want.FEATURES, 5.0, 2.0)],
)
def test_the_worst_cost_is_at_the_price_of_the_label(
    want: Want, price: float | None, worst: float
) -> None:
    assert account().worst_cost("B", 0, want, price) == worst


def test_a_block_costs_what_its_people_cost_one_by_one() -> None:
    money, one_by_one = account(), account()
    groups, outcomes = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    prices = [4.0, 25.0, 9.0, 20.0]
    for number, (position, outcome) in enumerate(zip(groups, outcomes, strict=True)):
        ticket = request(number, "AB"[position], prices[number])
        one_by_one.record_request(ticket)
        one_by_one.record_answer(ticket, int(outcome), None)
    extra_prices = np.array(prices) - np.array([10.0, 20.0])[groups]
    money.record_block(["A", "B"], groups, outcomes, np.ones(4, dtype=bool), extra_prices)
    assert money.by_group == one_by_one.by_group
