"""What every audit promises. Add an audit to ``audits.CASES`` to hold it to this."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from equipoise.audits.base import Audit, Step
from equipoise.errors import InvalidInput, ProtocolError, UnknownName
from equipoise.finding import Finding
from equipoise.protocol import Ticket, Want
from equipoise.question import Costs, Verdict
from equipoise.simulation import run
from equipoise.worlds import Person
from tests.conformance.audits import CASES, Case

COSTS = Costs(feature=0.25, label=1.0, groups={"B": Costs(0.5, 2.0)})

cases = pytest.mark.parametrize("case", CASES, ids=str)
seeds = pytest.mark.parametrize("seed", range(3))


def people(case: Case, seed: int, size: int = 2_000) -> list[Person]:
    return list(case.world.draw(size, np.random.default_rng([seed, 1])))


def answer(audit: Audit, ticket: Ticket, person: Person) -> None:
    if ticket.want is Want.LABEL:
        audit.tell(ticket, person.outcome, person.features)
    elif ticket.want is Want.FEATURES:
        audit.tell(ticket, features=person.features)


def first_request(audit: Audit, arrivals: list[Person]) -> tuple[Ticket, Person]:
    for person in arrivals:
        ticket = audit.ask(person.group, person.decision)
        if ticket.want is not Want.NOTHING and person.decision == 0:
            return ticket, person
        answer(audit, ticket, person)
    raise AssertionError("the audit never asked anything of a denied person")


@cases
@seeds
def test_it_ends_with_a_finding_that_can_be_stored(case: Case, seed: int) -> None:
    finding = run(case.start(COSTS, seed=seed), case.world, seed)
    assert finding.verdict in (Verdict.FAIR, Verdict.UNFAIR)
    assert 0.0 <= finding.lower <= finding.upper <= 1.0
    assert finding.reason
    assert Finding.from_json(finding.to_json()) == finding
    assert finding.verdict.value in str(finding)


@cases
def test_the_gap_so_far_is_that_of_the_finding_so_far(case: Case) -> None:
    audit = case.start(COSTS, seed=0)
    for number, person in enumerate(people(case, 0)):
        answer(audit, audit.ask(person.group, person.decision), person)
        if number in (0, 50) or audit.finding is not None:
            so_far, gap = audit.so_far(), audit.gap_so_far()
            assert (gap.lower, gap.upper) == (so_far.lower, so_far.upper)
            assert gap.estimate == so_far.estimate
        if audit.finding is not None:
            break


@cases
@seeds
def test_cost_is_what_the_requests_add_up_to(case: Case, seed: int) -> None:
    audit = case.start(COSTS, seed=seed)
    cost, labels, features = 0.0, 0, 0
    for person in people(case, seed):
        ticket = audit.ask(person.group, person.decision)
        if person.decision == 0 and ticket.want is not Want.NOTHING:
            prices = COSTS.of(person.group)
            cost += prices.feature
            labels += ticket.want is Want.LABEL
            features += ticket.want is Want.FEATURES
            cost += prices.label * (ticket.want is Want.LABEL and person.outcome == 0)
        answer(audit, ticket, person)
        if audit.finding is not None:
            break
    finding = audit.conclude()
    assert (finding.labels, finding.features) == (labels, features)
    assert finding.cost == pytest.approx(cost)
    assert audit.cost == pytest.approx(cost)


@cases
def test_approved_people_cost_nothing(case: Case) -> None:
    audit = case.start(COSTS)
    ticket = audit.ask("A", 1)
    assert ticket.hold == 0.0
    assert (audit.labels, audit.features, audit.cost, audit.reserved) == (0, 0, 0.0, 0.0)


@cases
@seeds
def test_the_order_in_which_answers_come_does_not_matter(case: Case, seed: int) -> None:
    """Outcomes told with a delay in which failures come first lead to the finding of no delay."""
    prompt = case.start(Costs(), seed=seed)
    late = case.start(Costs(), seed=seed)
    first = run(prompt, case.world, seed)
    # Delays draw nothing from the stream's generator, so the same people arrive.
    second = run(late, case.world, seed, delay=lambda outcome, rng: 40 if outcome else 2)
    assert second.verdict == first.verdict
    if first.estimate is not None and case.same_people:
        assert second.estimate == pytest.approx(first.estimate)
    assert late.cost >= prompt.cost


@cases
@seeds
def test_a_budget_is_never_overspent(case: Case, seed: int) -> None:
    free = run(case.start(COSTS, seed=seed), case.world, seed)
    budget = free.cost / 2.0
    audit = case.start(COSTS, budget=budget, seed=seed)
    waiting: list[tuple[Ticket, Person]] = []
    rng = np.random.default_rng(seed)
    for person in people(case, seed):
        ticket = audit.ask(person.group, person.decision)
        if ticket.want is not Want.NOTHING:
            waiting.append((ticket, person))
        assert audit.cost + audit.reserved <= budget + 1e-9
        while waiting and (rng.random() < 0.5 or len(waiting) > 20):
            answer(audit, *waiting.pop(int(rng.integers(len(waiting)))))
        if audit.finding is not None:
            break
    while waiting:
        answer(audit, *waiting.pop())
    finding = audit.conclude()
    assert audit.cost <= budget + 1e-9
    assert finding.cost <= budget + 1e-9


@cases
def test_a_budget_of_nothing_is_inconclusive_at_once(case: Case) -> None:
    audit = case.start(COSTS, budget=0.0)
    for person in people(case, 0, 50):
        answer(audit, audit.ask(person.group, person.decision), person)
    assert audit.finding is not None
    assert audit.finding.verdict is Verdict.INCONCLUSIVE
    assert audit.finding.missing
    assert audit.cost == 0.0


@cases
def test_concluding_early_is_inconclusive_and_says_what_is_missing(case: Case) -> None:
    audit = case.start(COSTS)
    finding = audit.conclude()
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert finding.missing
    assert finding.lower <= case.world.gap(case.question.metric) <= finding.upper
    assert audit.conclude() is finding


@cases
def test_after_the_finding_nothing_is_wanted(case: Case) -> None:
    audit = case.start(COSTS)
    finding = audit.conclude()
    assert all(audit.ask(g, f).want is Want.NOTHING for g in ("A", "B") for f in (0, 1))
    assert audit.finding is finding


@cases
def test_a_withdrawn_answer_never_helps(case: Case) -> None:
    audit = case.start(COSTS)
    arrivals = people(case, 0, 3_000)
    ticket, _ = first_request(audit, arrivals)
    audit.withdraw(ticket)
    with pytest.raises(ProtocolError, match="settled"):
        audit.tell(ticket, 1) if ticket.want is Want.LABEL else audit.withdraw(ticket)
    for person in arrivals:
        if audit.finding is None:
            answer(audit, audit.ask(person.group, person.decision), person)
    finding = audit.conclude()
    assert 0.0 <= finding.lower <= finding.upper <= 1.0


@cases
def test_tickets_are_settled_once_and_only_by_their_audit(case: Case) -> None:
    audit = case.start(COSTS)
    ticket, person = first_request(audit, people(case, 0))
    with pytest.raises(ProtocolError, match="never issued"):
        audit.withdraw(replace(ticket, number=10**9))
    with pytest.raises(ProtocolError, match="differs"):
        audit.withdraw(replace(ticket, hold=99.0))
    answer(audit, ticket, person)
    with pytest.raises(ProtocolError, match="settled"):
        audit.withdraw(ticket)


@cases
def test_bad_answers_and_people_are_refused(case: Case) -> None:
    audit = case.start(COSTS)
    with pytest.raises(UnknownName, match="unknown group 'C'"):
        audit.ask("C", 0)
    with pytest.raises(InvalidInput, match="'decision' must be 0 or 1; got 2"):
        audit.ask("A", 2)
    ticket, _ = first_request(audit, people(case, 0))
    with pytest.raises(InvalidInput):
        audit.tell(ticket, 7)
    with pytest.raises(InvalidInput):
        audit.tell(ticket, None)


@cases
@seeds
def test_a_log_brings_another_audit_to_the_same_place(case: Case, seed: int) -> None:
    """Requests and answers in any order; then both want the same of everybody who comes."""
    audit, again = case.start(COSTS, seed=seed), case.start(COSTS, seed=seed)
    rng, log = np.random.default_rng(seed), list[Step]()
    waiting: list[tuple[Ticket, Person]] = []
    arrivals = people(case, seed, 400)
    for person in arrivals[:120]:
        ticket = audit.ask(person.group, person.decision)
        log.append(Step("asked", ticket))
        if ticket.want is not Want.NOTHING:
            waiting.append((ticket, person))
        while waiting and rng.random() < 0.6:
            told, who = waiting.pop(int(rng.integers(len(waiting))))
            answer(audit, told, who)
            outcome = who.outcome if told.want is Want.LABEL else None
            log.append(Step("told", told, outcome, who.features))
    again.restore(log)
    assert (again.cost, again.reserved, again.labels, again.features, again.pending) == (
        *(audit.cost, audit.reserved, audit.labels, audit.features),
        audit.pending,
    )
    for person in arrivals[120:]:
        tickets = [each.ask(person.group, person.decision) for each in (audit, again)]
        assert tickets[0] == tickets[1]
        for each in (audit, again):
            answer(each, tickets[0], person)
    assert audit.conclude() == again.conclude()


@cases
@pytest.mark.parametrize("cost", [-1.0, float("nan"), 99.0])
def test_a_withdrawal_costs_at_most_what_is_held(case: Case, cost: float) -> None:
    audit = case.start(COSTS)
    ticket, _ = first_request(audit, people(case, 0))
    before = audit.cost, audit.reserved
    with pytest.raises(InvalidInput, match="'cost'"):
        audit.withdraw(ticket, cost=cost)
    assert (audit.cost, audit.reserved) == before
    audit.withdraw(ticket, cost=ticket.hold)
    assert audit.cost == pytest.approx(sum(before))


@cases
def test_every_metric_it_promises_ends(case: Case) -> None:
    for metric in case.metrics:
        changed = replace(case, question=replace(case.question, metric=metric))
        finding = run(changed.start(Costs()), case.world, 1)
        assert finding.verdict in (Verdict.FAIR, Verdict.UNFAIR)
        assert finding.question.metric == metric


@cases
def test_costs_for_an_unknown_group_are_refused(case: Case) -> None:
    with pytest.raises(UnknownName, match="group in 'costs'"):
        case.start(Costs(groups={"Z": Costs(1.0, 1.0)}))
