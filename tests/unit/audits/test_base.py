"""The words that ask and tell understand, money that corrections cost, and unfair samples."""

from __future__ import annotations

import pandas as pd
import pytest

import equipoise as eq
from equipoise.audits.base import Audit
from equipoise.audits.exp_audit import ExpAudit
from equipoise.cells import Cells, GroupCells
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.ledger import LiveAudit
from equipoise.protocol import Want
from equipoise.question import Costs, Question, Verdict
from equipoise.worlds import CellWorld
from tests.conformance.audits import SCORED

WORLD = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.5), "B": (0.1, 0.1, 0.8, 0.2)})
OPEN = Question(gamma=0.1, epsilon=0.2)


def from_table(**more: str) -> Audit:
    """Begin an audit of a past in words: 60 applications in each of two groups."""
    words = ["Approved", "Approved", "Declined"] * 20
    ends = ["Paid", "Default", None] * 20
    frame = pd.DataFrame(
        {
            "race": ["Black"] * 60 + ["White"] * 60,
            "sex": ["f", "m"] * 60,
            "status": words * 2,
            "end": ends * 2,
        }
    )
    meaning = {"decision": "Approved", "outcome": "Paid"}
    columns: dict[str, object] = {"group": "race", **more}
    past = eq.History.read(
        frame,
        **columns,
        decision="status",
        outcome="end",
        positive=meaning,  # type: ignore[arg-type]
    )
    return eq.AdaptiveAudit(past, OPEN, Costs())


def test_people_are_asked_about_in_the_words_of_the_table() -> None:
    audit = from_table()
    ticket = audit.ask("black ", "Declined")
    assert (ticket.group, ticket.decision, ticket.want) == ("Black", 0, Want.LABEL)
    audit.tell(ticket, "Paid")
    assert audit.ask("White", "approved").want is Want.NOTHING
    second = audit.ask("White", "denied")
    audit.tell(second, "bad")
    assert audit.cost == 1.0
    audit.correct(second, "Paid")
    assert audit.cost == 0.0


def test_words_that_nobody_explained_are_refused() -> None:
    audit = from_table()
    with pytest.raises(UnknownName, match="unknown group 'Green'"):
        audit.ask("Green", "Declined")
    with pytest.raises(UnknownName, match=r"decision \(column 'status'\) 'Withdrawn'"):
        audit.ask("Black", "Withdrawn")
    with pytest.raises(InvalidInput, match="'decision' must be 0 or 1; got 3"):
        audit.ask("Black", 3)
    ticket = audit.ask("Black", 0)
    with pytest.raises(UnknownName, match=r"outcome \(column 'end'\) 'Open'"):
        audit.tell(ticket, "Open")
    assert audit.pending == 1


def test_groups_of_several_columns_are_tuples_and_numbers_are_names() -> None:
    audit = from_table(group=["race", "sex"])  # type: ignore[arg-type]
    assert audit.ask(("White", "F"), 0).group == "White & f"
    with pytest.raises(BadData, match="the group is missing"):
        audit.ask((None, "f"), 0)
    counts = eq.History.from_cells(
        Cells({"1": GroupCells(30, 10, 60), "2": GroupCells(10, 10, 80)})
    )
    assert eq.AdaptiveAudit(counts, OPEN, Costs()).ask(1, "denied").group == "1"


@pytest.mark.parametrize("cost", [-0.01, float("nan"), float("inf"), 6.01, "much"])
def test_a_withdrawal_that_costs_more_than_is_held_is_refused(cost: float) -> None:
    audit = eq.AdaptiveAudit(WORLD.past(), OPEN, Costs(1.0, 5.0), budget=20.0)
    ticket = audit.ask("A", 0)
    with pytest.raises(InvalidInput, match="'cost'"):
        audit.withdraw(ticket, cost=cost)
    assert (audit.cost, audit.reserved, audit.pending) == (1.0, 5.0, 1)
    audit.withdraw(ticket, cost=6.0)
    assert (audit.cost, audit.reserved, audit.overrun) == (6.0, 0.0, 0.0)


def test_a_correction_after_the_money_was_used_again_is_an_overrun() -> None:
    audit = eq.AdaptiveAudit(WORLD.past(), OPEN, Costs(0.0, 5.0), budget=5.0)
    first = audit.ask("A", 0)
    audit.tell(first, 1)
    second = audit.ask("B", 0)
    assert second.want is Want.LABEL
    assert (audit.available, audit.overrun) == (0.0, 0.0)
    audit.correct(first, 0)
    assert (audit.cost, audit.reserved, audit.available, audit.overrun) == (5.0, 5.0, 0.0, 5.0)
    assert audit.ask("A", 0).want is Want.NOTHING
    audit.tell(second, 1)
    assert (audit.cost, audit.overrun) == (5.0, 0.0)


@pytest.mark.parametrize("audit", ["rs", "baseline"])
def test_a_ledger_refuses_denied_people_alone_for_audits_that_count_the_approved(
    audit: str,
) -> None:
    with pytest.raises(InvalidInput, match="'stream' must be 'everybody'"):
        LiveAudit.create(
            "sqlite://", "a", WORLD.past(), OPEN, Costs(), audit=audit, stream="denied"
        )
    LiveAudit.create("sqlite://", "a", WORLD.past(), OPEN, Costs(), stream="denied")


def test_exp_audit_finds_out_a_stream_of_denied_people() -> None:
    audit = ExpAudit(
        SCORED.past(), Question(gamma=0.1, epsilon=0.2), Costs(), tau=50, coarse_tau=50
    )
    for person in SCORED.draw(3_000, 1):
        if audit.finding is None and person.decision == 0:
            ticket = audit.ask(person.group, 0)
            if ticket.want is Want.LABEL:
                audit.tell(ticket, person.outcome)
            elif ticket.want is Want.FEATURES:
                audit.tell(ticket, features=person.features)
    assert audit.finding is not None
    assert audit.finding.verdict is Verdict.INCONCLUSIVE
    assert "not a fair sample" in audit.finding.reason
    assert audit.labels < 100


def test_what_is_inconclusive_is_not_guaranteed() -> None:
    audit = eq.AdaptiveAudit(WORLD.past(), OPEN, Costs())
    assert not audit.conclude().guaranteed
    free = eq.check(WORLD.past(), OPEN)
    assert (free.verdict, free.guaranteed) == (Verdict.INCONCLUSIVE, False)
    assert eq.check(WORLD.past(), Question("demographic_parity")).guaranteed
