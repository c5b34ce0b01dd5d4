"""A replay looks at the evidence where it must, and ends where the audit is."""

from __future__ import annotations

import random

import pytest

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.base import Step
from equipoise.evidence import Evidence
from equipoise.protocol import Ticket, Want
from equipoise.question import Costs, Question, Verdict
from equipoise.worlds import CellWorld
from tests.profiles import quick

pytestmark = pytest.mark.slow

WORLD = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)})


def made(gamma: float, budget: float | None) -> AdaptiveAudit:
    question = Question("equal_opportunity", gamma, 0.2, 0.1)
    return AdaptiveAudit(WORLD.past(20_000, 0), question, Costs(5, 100), budget=budget)


def run(audit: AdaptiveAudit, people: int, seed: int) -> list[Step]:
    """Let people come, answers late, out of order, withdrawn and corrected; return the log."""
    rng = random.Random(seed)
    log: list[Step] = []
    waiting: list[tuple[Ticket, int]] = []
    settled: list[tuple[Ticket, int]] = []
    for number, person in enumerate(WORLD.draw(people, seed)):
        before, ticket = audit.finding, audit.ask(person.group, person.decision)
        if ticket.want is Want.LABEL or audit.finding is not before:
            log.append(Step("asked", ticket))
        if ticket.want is Want.LABEL:
            waiting.append((ticket, person.outcome))
        most = 0 if number == people - 1 or rng.random() < 0.05 else 15
        while len(waiting) > most:
            told, outcome = waiting.pop(rng.randrange(len(waiting)))
            if rng.random() < 0.1:
                log.append(Step("withdrawn", told, cost=105.0))
                audit.withdraw(told, cost=105.0)
            else:
                log.append(Step("told", told, outcome))
                audit.tell(told, outcome)
            settled.append((told, outcome))
        if settled and rng.random() < 0.02:
            told, outcome = rng.choice(settled)
            log.append(Step("corrected", told, 1 - outcome))
            audit.correct(told, 1 - outcome)
    return log


def standing(audit: AdaptiveAudit) -> list[object]:
    evidence = audit._require_evidence()
    finding = None if audit.finding is None else audit.finding.to_json()
    return [
        *(finding, evidence.verdict, audit._next_recheck),
        *(audit.cost, audit.reserved, sorted(audit._open_tickets)),
        *(evidence.plan.next_plan, evidence.plan.shares.tolist()),
        *(
            evidence.log.n_requests,
            evidence.log.epochs.starts.tolist(),
            evidence.log.labels.tolist(),
        ),
    ]


@pytest.mark.parametrize(
    ("gamma", "budget", "seed", "end"),
    [
        (0.25, None, 1, None),
        (0.02, None, 5, Verdict.UNFAIR),
        (0.25, 1500.0, 1, Verdict.INCONCLUSIVE),
    ],
    ids=["under way", "decided", "broke"],
)
def test_a_replay_ends_where_the_audit_is(
    gamma: float, budget: float | None, seed: int, end: Verdict | None
) -> None:
    audit = made(gamma, budget)
    log = run(audit, 250, seed)
    assert (None if audit.finding is None else audit.finding.verdict) is end
    for cut in (0, len(log) // 2, len(log)):
        again = made(gamma, budget)
        again.restore(log[:cut])
        again.restore(log[cut:])
        assert standing(again) == standing(audit)


def test_a_replay_of_an_audit_that_gave_up_ends_where_it_is() -> None:
    """Its past data are too few; corrections take it up again, and it gives up again."""
    past = WORLD.past(60, 1)

    def fresh() -> AdaptiveAudit:
        return AdaptiveAudit(past, Question("equal_opportunity", 0.25, 0.02, 0.1), Costs(5, 100))

    audit = fresh()
    log = run(audit, 200, seed=1)
    assert audit.finding is not None
    assert "too few" in audit.finding.reason
    for length in (len(log), 40):  # at once, and in pieces
        again = fresh()
        for start in range(0, len(log), length):
            again.restore(log[start : start + length])
        assert standing(again) == standing(audit)


def test_a_replay_looks_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = made(0.25, None)
    log, looks, advance = run(audit, 250, seed=2), [], Evidence.advance

    def counted(self: Evidence, *, replan: bool = True) -> Verdict | None:
        looks.append(1)
        return advance(self, replan=replan)

    monkeypatch.setattr(Evidence, "advance", counted)
    made(0.25, None).restore(log)
    assert len(looks) < len(log) / 5


@pytest.mark.parametrize(("gamma", "seed"), quick([(0.02, 5)], full=[(0.02, 5), (0.25, 1)]))
def test_answers_after_the_last_request_decide_where_they_did(gamma: float, seed: int) -> None:
    question = Question("equal_opportunity", gamma, 0.2, 0.1)

    def fresh() -> AdaptiveAudit:
        return AdaptiveAudit(WORLD.past(), question, Costs(5, 100))

    audit, rng = fresh(), random.Random(seed)
    tickets = [(audit.ask(p.group, p.decision), p.outcome) for p in WORLD.draw(1500, seed)]
    asked = [(ticket, outcome) for ticket, outcome in tickets if ticket.want is Want.LABEL]
    log = [Step("asked", ticket) for ticket, _ in asked]
    rng.shuffle(asked)
    for number, (ticket, outcome) in enumerate(asked):
        log.append(Step("told", ticket, outcome) if number % 40 else Step("withdrawn", ticket))
    log.append(Step("corrected", asked[1][0], asked[1][1]))
    again = fresh()
    again.restore(log[: len(asked)])
    stops, seen = range(len(asked), len(log), quick(27, full=9)), []
    paused = fresh()
    pauses = paused.replay(log, stops)
    for at, step in enumerate(log[len(asked) :], start=len(asked) + 1):
        if at - 1 in stops:
            assert next(pauses) == at - 1
            assert paused.so_far().to_json() == again.so_far().to_json()
            seen.append(again.finding)
        again.restore([step])  # one by one: every answer is looked at
    assert list(pauses) in ([], [len(log)])
    assert standing(paused) == standing(again)
    assert seen[0] is None
    assert seen[-1] is not None
    assert seen[-1].verdict is (Verdict.UNFAIR if gamma < 0.1 else Verdict.FAIR)


def test_pending_outcomes_do_not_make_a_question_undecidable() -> None:
    """Hundreds of requests before any answer: they count as nothing lost, so UNFAIR is found."""
    audit = made(0.02, None)
    waiting = []
    for person in WORLD.draw(2000, 0):
        ticket = audit.ask(person.group, person.decision)
        if ticket.want is Want.LABEL:
            waiting.append((ticket, person.outcome))
    assert len(waiting) > 700
    for ticket, outcome in waiting:
        if audit.finding is None:
            audit.tell(ticket, outcome)
    assert audit.finding is not None
    assert audit.finding.verdict is Verdict.UNFAIR


def test_a_plan_that_a_verdict_put_off_is_made_at_the_next_answer_even_a_withdrawal() -> None:
    """The verdict fell when a plan was due, and a correction took it back."""

    def fresh() -> AdaptiveAudit:
        return AdaptiveAudit(WORLD.past(), Question("equalized_odds", 0.1, 0.2, 0.1), Costs(5, 100))

    log: list[Step] = []
    tickets: list[Ticket] = []
    for group, outcome in zip("BBBBABAAAABB", (0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1), strict=True):
        tickets.append(Ticket(len(tickets), group, 0, Want.LABEL, 105.0))
        log += [Step("asked", tickets[-1]), Step("told", tickets[-1], outcome)]
    late = [Ticket(number, "B", 0, Want.LABEL, 105.0) for number in (12, 13)]
    log += [Step("corrected", tickets[8], 1)]
    log += [Step("asked", late[0]), Step("withdrawn", late[0], cost=105.0), Step("asked", late[1])]
    one_by_one, at_once = fresh(), fresh()
    verdicts = []
    for step in log:
        one_by_one.restore([step])
        verdicts.append(one_by_one.finding is not None)
    at_once.restore(log)
    assert verdicts[-5:] == [True, False, False, False, False]
    assert standing(at_once) == standing(one_by_one)


def test_a_run_of_corrections_is_examined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = made(0.05, None)
    log = run(audit, 60, 3)
    told = [step for step in log if step.kind == "told"][:8]
    assert len(told) == 8
    for step in told:
        assert step.outcome is not None
        log.append(Step("corrected", step.ticket, 1 - step.outcome))
        audit.correct(step.ticket, 1 - step.outcome)
    looks = []
    advance = Evidence.advance
    again = made(0.05, None)
    list(again.replay(log[:-8]))
    monkeypatch.setattr(Evidence, "advance", lambda *a, **k: looks.append(1) or advance(*a, **k))
    list(again.replay(log[-8:]))
    assert len(looks) == 1
    assert standing(again) == standing(audit)
