"""The adaptive audit: what it asks, what it counts, what it spends, and when it stops."""

from __future__ import annotations

import gc
import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.cells import Cells, GroupCells
from equipoise.comparison import Compare
from equipoise.errors import InvalidInput, ProtocolError
from equipoise.evidence import WrongAnswers
from equipoise.finding import Finding
from equipoise.free_check import bands_from_past
from equipoise.history import History
from equipoise.levels import ErrorBudget
from equipoise.protocol import Ticket, Want
from equipoise.question import Costs, Question, Verdict
from equipoise.simulation import run
from equipoise.worlds import CellWorld
from tests.profiles import quick
from tests.unit.audits.forced import ask_for_label
from tests.unit.evidence.states import weighed

WORLD = CellWorld.from_shares(
    {"A": (0.30, 0.10, 0.60, 0.30), "B": (0.20, 0.12, 0.68, 0.40)}, shares={"A": 0.6, "B": 0.4}
)
QUESTION = Question(gamma=0.1, epsilon=0.1)
LIMIT = 30_000  # people; an audit that needs more would hang a test otherwise


def groups(k: int, r: float = 0.4, seed: int = 0) -> CellWorld:
    """Return a world of k groups that differ a little."""
    rng = np.random.default_rng(seed)
    shares = {}
    for i in range(k):
        p1, p0 = 0.3 + 0.02 * rng.uniform(), 0.1 + 0.02 * rng.uniform()
        shares[f"g{i}"] = (p1, p0, 1.0 - p1 - p0, r + 0.02 * rng.uniform())
    return CellWorld.from_shares(shares)


def audited(world: CellWorld, question: Question = QUESTION, **options: object) -> AdaptiveAudit:
    return AdaptiveAudit(world.past(), question, Costs(), **options)  # type: ignore[arg-type]


# -- at no cost -------------------------------------------------------------------------------


@pytest.mark.parametrize("unlimited", [True, False], ids=["unlimited past", "finite past"])
def test_a_decision_by_group_alone_is_unfair_for_free_on_adult(unlimited: bool) -> None:
    from equipoise.worlds.data import adult

    rows = adult().aggregate("sex, income, count(*)", "sex, income").fetchall()
    people = {(sex, income): float(count) for sex, income, count in rows}
    rich, poor = ">50K", "<=50K"
    world = CellWorld.from_counts(
        {
            "Male": {
                "approved_positive": people["Male", rich],
                "approved_negative": people["Male", poor],
                "denied_positive": 0.0,
                "denied_negative": 0.0,
            },
            "Female": {
                "approved_positive": 0.0,
                "approved_negative": 0.0,
                "denied_positive": people["Female", rich],
                "denied_negative": people["Female", poor],
            },
        }
    )
    past = world.past() if unlimited else History.from_cells(world.cells)
    audit = AdaptiveAudit(past, QUESTION, Costs())
    assert audit.finding is not None
    assert audit.finding.verdict is Verdict.UNFAIR
    assert (audit.finding.cost, audit.finding.labels) == (0.0, 0)
    assert audit.ask("Female", 0).want is Want.NOTHING


@pytest.mark.parametrize("unlimited", [True, False], ids=["unlimited past", "finite past"])
def test_a_lender_who_approves_nearly_everyone_is_fair_for_free(unlimited: bool) -> None:
    from equipoise.worlds.data import fico_lender

    lender = fico_lender(2.0)
    past = lender.world.past() if unlimited else lender.history()
    audit = AdaptiveAudit(past, QUESTION, Costs())
    assert audit.finding is not None
    assert audit.finding.verdict is Verdict.FAIR
    assert (audit.finding.cost, audit.finding.labels) == (0.0, 0)
    assert audit.ask("Black", 0).want is Want.NOTHING


@pytest.mark.parametrize("metric", ["demographic_parity", "predictive_parity"])
def test_metrics_that_need_no_outcome_of_the_denied_never_ask(metric: str) -> None:
    world = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.42, 0.16, 0.42, 0.3)})
    question = Question(metric, gamma=0.05, epsilon=0.02)
    for size in (None, 200, 200_000):
        audit = AdaptiveAudit(world.past(size, 0), question, Costs())
        assert audit.finding is not None
        assert audit.finding.cost == 0.0
        assert audit.ask("A", 0).want is Want.NOTHING
        expected = Verdict.INCONCLUSIVE if size == 200 else Verdict.FAIR
        assert audit.finding.verdict is expected
        assert bool(audit.finding.missing) == (size == 200)


# -- groups of every kind ---------------------------------------------------------------------


def test_a_group_without_denied_people_is_never_asked_about() -> None:
    world = CellWorld.from_shares({"A": (0.8, 0.2, 0.0, 0.0), "B": (0.4, 0.1, 0.5, 0.05)})
    audit = audited(world, Question("equal_opportunity", gamma=0.1, epsilon=0.1))
    assert audit.ask("A", 0).want is Want.NOTHING
    finding = run(audit, world, 0, people=LIMIT)
    assert finding.verdict is Verdict.FAIR
    assert audit.spending["A"].labels == 0


def test_a_group_none_of_whom_is_approved_has_rates_of_zero() -> None:
    world = CellWorld.from_shares({"A": (0.03, 0.02, 0.95, 0.5), "B": (0.0, 0.0, 1.0, 0.2)})
    audit = audited(world, Question(gamma=0.1, epsilon=0.1))
    finding = run(audit, world, 0, people=LIMIT)
    assert finding.verdict is Verdict.FAIR
    assert audit.spending["B"].labels == 0
    rate = finding.rates["true_positive_rate"]["B"]
    assert (rate.lower, rate.upper) == (0.0, 0.0)


def test_a_rate_that_does_not_exist_is_never_called_fair() -> None:
    """Nobody of B would ever succeed and nobody is denied: its true positive rate is 0/0."""
    cells = Cells({"A": GroupCells(30, 10, 60), "B": GroupCells(0, 10, 0)})
    world = CellWorld(cells, {"A": 0.5, "B": 0.0})
    audit = AdaptiveAudit(world.past(), Question("equal_opportunity"), Costs())
    rng = np.random.default_rng(0)
    for _ in range(300):
        ticket = audit.ask("A", 0)
        if ticket.want is Want.LABEL:
            audit.tell(ticket, int(rng.random() < 0.5))
    assert audit.conclude().verdict is Verdict.INCONCLUSIVE


def test_a_past_of_one_row_per_group_is_never_certain() -> None:
    history = History.from_cells(Cells({"A": GroupCells(1, 0, 0), "B": GroupCells(0, 0, 1)}))
    audit = AdaptiveAudit(history, QUESTION, Costs())
    world = CellWorld.from_shares({"A": (0.4, 0.2, 0.4, 0.5), "B": (0.4, 0.2, 0.4, 0.5)})
    finding = run(audit, world, 0, people=LIMIT)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "too few" in finding.reason
    assert any("more past rows" in line for line in finding.missing)
    assert finding.labels < 500, "labels that cannot decide are not bought for ever"


@pytest.mark.parametrize("k", [2, 3, quick(8, full=20)])
def test_any_number_of_groups(k: int) -> None:
    world = groups(k)
    audit = audited(world, Question(gamma=0.2, epsilon=0.3))
    finding = run(audit, world, 1, people=LIMIT)
    assert finding.verdict is Verdict.FAIR
    assert min(s.labels for s in audit.spending.values()) >= 5
    assert set(finding.rates["true_positive_rate"]) == set(world.groups)


def test_one_unfair_pair_among_many_groups_is_found() -> None:
    world = groups(6)
    shares = {g: (*c.shares, world.r[g]) for g, c in world.cells.items()}
    world = CellWorld.from_shares({**shares, "odd": (0.1, 0.1, 0.8, 0.4)})
    finding = run(audited(world), world, 0, people=LIMIT)
    assert finding.verdict is Verdict.UNFAIR


# -- errors allowed and money -----------------------------------------------------------------


@pytest.mark.parametrize("exact", [True, False])
def test_bounds_and_evidence_work_at_the_levels_of_the_budget(exact: bool) -> None:
    question = replace(QUESTION, delta_wrong_fair=0.01, delta_wrong_unfair=0.1)
    past = WORLD.past(None if exact else 50_000, 0)
    audit = AdaptiveAudit(past, question, Costs())
    budget = ErrorBudget.of_audit(question, len(past.cells), exact=exact, by_rows=not exact)
    assert audit.evidence is not None
    wrong = audit.evidence.refutation._wrong
    assert (wrong.level_fair, wrong.level_unfair) == (budget.evidence_fair, budget.evidence_unfair)
    assert audit._design.bands == bands_from_past(past, question.metric, budget.past_intervals)
    assert isinstance(wrong, WrongAnswers) == exact
    if not exact:  # past rows are evidence themselves
        return
    expected = bands_from_past(past, question.metric, budget.past_fair)
    at = audit.groups.index("A")
    assert [bands[at] for bands in wrong.bands_for_fair] == [
        by_group["A"] for by_group in expected.values()
    ]


def test_a_larger_allowed_error_costs_less() -> None:
    costs = {}
    for level in (0.2, 1e-6):
        runs = [
            run(audited(WORLD, replace(QUESTION, delta_wrong_unfair=level)), WORLD, seed)
            for seed in range(quick(2, full=5))
        ]
        assert all(f.verdict is Verdict.UNFAIR for f in runs)
        costs[level] = np.mean([f.cost for f in runs])
    assert costs[0.2] < costs[1e-6]


@pytest.mark.parametrize("dear", ["A", "B"])
def test_dear_groups_are_asked_less(dear: str) -> None:
    def share(costs: Costs) -> float:
        asked = []
        for seed in range(quick(2, full=12)):
            audit = AdaptiveAudit(WORLD.past(), QUESTION, costs)
            run(audit, WORLD, seed)
            asked.append(audit.spending[dear].labels / audit.labels)
        return float(np.mean(asked))

    assert share(Costs(0.0, 1.0, groups={dear: Costs(0.0, 25.0)})) < share(Costs())


def test_without_any_cost_labels_are_what_is_saved() -> None:
    audit = AdaptiveAudit(WORLD.past(), QUESTION, Costs(0.0, 0.0), budget=0.0)
    finding = run(audit, WORLD, 0, people=LIMIT)
    assert finding.verdict is Verdict.UNFAIR
    assert finding.cost == 0.0
    assert 10 <= finding.labels < 2_000


@pytest.mark.parametrize("dear", ["g0", "g1"])
def test_a_budget_that_covers_the_cheap_group_only_ends_the_audit(dear: str) -> None:
    """Labels of the cheap group alone cannot decide; the audit must not wait for ever."""
    world = groups(2)
    costs = Costs(0.0, 1.0, groups={dear: Costs(0.0, 30.0)})
    audit = AdaptiveAudit(world.past(), QUESTION, costs, budget=95.0)
    finding = run(audit, world, 0, people=LIMIT)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "budget" in finding.reason
    assert any("more labels" in line for line in finding.missing)
    assert audit.cost <= 95.0


# -- late, lost and shuffled answers ----------------------------------------------------------


def late(outcome: int, rng: np.random.Generator) -> int:
    return int(rng.geometric(0.02 if outcome else 0.5))


def test_late_answers_only_delay_the_verdict() -> None:
    for seed in range(quick(2, full=4)):
        audit = audited(WORLD)
        assert run(audit, WORLD, seed, delay=late, people=LIMIT).verdict is Verdict.UNFAIR


def test_ranges_and_cost_follow_outcomes_that_come_after_the_verdict() -> None:
    audit, rng = audited(WORLD), np.random.default_rng(0)
    early = [ask_for_label(audit, group) for group in "AB"]
    while audit.finding is None:
        ticket = ask_for_label(audit, "AB"[audit.labels % 2])
        audit.tell(ticket, int(rng.random() < WORLD.r[ticket.group]))
    reached = audit.finding
    for ticket in early:
        audit.tell(ticket, 0)
    now = audit.finding
    assert (now.verdict, now.reason, now.labels) == (reached.verdict, reached.reason, audit.labels)
    assert now.cost == reached.cost + 2.0 == audit.conclude().cost
    for rate, by_group in reached.rates.items():  # two outcomes of many make a small difference
        for group, before in by_group.items():
            after = now.rates[rate][group]
            moved = (after.estimate or 0.0) - (before.estimate or 0.0)
            assert 0.0 < abs(moved) < 0.01
            assert 0.0 < (before.upper - before.lower) - (after.upper - after.lower) < 0.03


def test_outcomes_that_come_after_a_conclusion_bring_what_they_would_have_brought() -> None:
    """A live audit weighs them, too; what is missing no longer waits for them."""
    audit, rng = audited(WORLD), np.random.default_rng(0)
    asked = [ask_for_label(audit, "AB"[number % 2]) for number in range(4_000)]
    told = audit.conclude()
    assert told.verdict is Verdict.INCONCLUSIVE
    assert "4,000 outcomes that are still pending" in told.missing[-1]
    for number, ticket in enumerate(asked):
        audit.tell(ticket, int(rng.random() < WORLD.r[ticket.group]))
        if number == 40:
            assert "3,959 outcomes" in audit.conclude().missing[-1]
    assert audit.so_far().verdict is Verdict.UNFAIR
    accepts = {"A": (1, 1, 0), "B": (1, 1, 0)}
    again = audited(WORLD)
    again.conclude("the money is needed elsewhere")
    again.set_random_accepts(accepts)
    assert again.finding is not None
    assert again.finding.reason == "the money is needed elsewhere"


def standing(audit: AdaptiveAudit) -> NDArray[np.float64]:
    """Return the evidence against every cell."""
    assert audit.evidence is not None
    return np.concatenate(weighed(audit.evidence))


def test_the_order_in_which_answers_are_told_changes_no_evidence() -> None:
    """The same requests, told in any order: once every one is told all audits agree."""
    states = set()
    for order in range(5):
        audit = audited(groups(2), Question(gamma=0.1, epsilon=0.02))
        rng, shuffle = np.random.default_rng(7), np.random.default_rng(order)
        for _ in range(20):
            batch = [
                (ask_for_label(audit, group), int(rng.random() < 0.4))
                for group in ("g0", "g1", "g0", "g1")
            ]
            for i in shuffle.permutation(len(batch)):
                audit.tell(*batch[i])
        assert audit.finding is None
        states.add(standing(audit).tobytes())
    assert len(states) == 1


# -- corrections ------------------------------------------------------------------------------


def told(audit: AdaptiveAudit, labels: int, r: float = 0.4) -> list[tuple[Ticket, int]]:
    rng, out = np.random.default_rng(0), []
    for i in range(labels):
        ticket = ask_for_label(audit, ("g0", "g1")[i % 2])
        out.append((ticket, int(rng.random() < r)))
        audit.tell(*out[-1])
    return out


def test_a_corrected_audit_is_the_audit_that_was_told_rightly() -> None:
    wrong, right = (
        AdaptiveAudit(groups(2).past(), Question(gamma=0.1, epsilon=0.02), Costs(1.0, 2.0))
        for _ in range(2)
    )
    answers = told(right, 30)
    for ticket, _ in answers:
        ask_for_label(wrong, ticket.group)
    for ticket, outcome in answers:
        wrong.tell(ticket, 1 - outcome)
    for ticket, outcome in answers:
        wrong.correct(ticket, outcome)
    assert wrong.cost == right.cost
    assert np.allclose(standing(wrong), standing(right), rtol=1e-9)


def test_a_correction_takes_a_verdict_back_and_a_late_outcome_brings_it() -> None:
    audit = audited(WORLD)
    tickets = []
    while audit.finding is None:
        for group in audit.cells:
            ticket = audit.ask(group, 0)
            if ticket.want is Want.LABEL and audit.finding is None:
                tickets.append((ticket, int(group == "A")))
                audit.tell(*tickets[-1])
    assert audit.finding.verdict is Verdict.UNFAIR
    for ticket, outcome in tickets[:5]:
        audit.correct(ticket, 1 - outcome)
    assert audit.finding is None
    for ticket, outcome in tickets[:5]:
        audit.correct(ticket, outcome)
    assert audit.finding is not None
    assert audit.finding.verdict is Verdict.UNFAIR


def test_an_outcome_after_the_withdrawal_costs_what_it_costs() -> None:
    audit = AdaptiveAudit(groups(2).past(), QUESTION, Costs(1.0, 5.0))
    ticket = ask_for_label(audit, "g0")
    audit.withdraw(ticket, cost=0.25)
    assert audit.cost == 0.25
    audit.correct(ticket, 0)
    assert audit.cost == 6.0
    audit.correct(ticket, 1)
    assert audit.cost == 1.0
    with pytest.raises(InvalidInput, match="'outcome' must be 0 or 1"):
        audit.correct(ticket, 2)
    with pytest.raises(ProtocolError, match="no answer yet"):
        audit.correct(ask_for_label(audit, "g1"), 1)


def test_a_pickled_audit_goes_on_where_it_was() -> None:
    audit = audited(groups(2), Question(gamma=0.1, epsilon=0.02))
    told(audit, 40)
    ask_for_label(audit, "g0")
    again = pickle.loads(pickle.dumps(audit))
    for each in (audit, again):
        told(each, 5)
    assert np.allclose(standing(audit), standing(again), rtol=1e-9)
    assert len(pickle.dumps(audit)) < 100_000  # what follows from the rest is left out


def test_the_people_before_and_between_do_not_matter() -> None:
    """Approved people, and denied ones nobody asks about, may come in any number."""
    verdicts = []
    for extra in (0, 3):
        audit = audited(WORLD)
        rng = np.random.default_rng(1)
        while audit.finding is None:
            for group in audit.cells:
                for _ in range(extra):
                    assert audit.ask(group, 1).want is Want.NOTHING
                ticket = audit.ask(group, 0)
                if ticket.want is Want.LABEL:
                    audit.tell(ticket, int(rng.random() < WORLD.r[group]))
        verdicts.append(replace(audit.finding))
    assert verdicts[0] == verdicts[1]


def test_people_who_vanish_count_against_the_auditor() -> None:
    def vanish(outcome: int, rng: np.random.Generator) -> int | None:
        return None if rng.random() < 0.04 else 0

    whole, holes = [], []
    for seed in range(quick(2, full=3)):
        audit = audited(WORLD)
        finding = run(audit, WORLD, seed, delay=vanish, people=8_000)
        assert finding.verdict in (Verdict.UNFAIR, Verdict.INCONCLUSIVE)
        holes.append(finding.labels)
        whole.append(run(audited(WORLD), WORLD, seed).labels)
        truth = WORLD.gap(QUESTION.metric)
        assert finding.lower <= truth <= finding.upper
    assert np.mean(holes) > np.mean(whole)


def test_everybody_vanishing_decides_nothing() -> None:
    audit = audited(WORLD)
    finding = run(audit, WORLD, 0, delay=lambda outcome, rng: None, people=quick(2_000, full=5_000))
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert finding.lower <= WORLD.gap(QUESTION.metric) <= finding.upper


def test_a_label_that_was_told_takes_a_few_bytes() -> None:
    """Its place in the order and its outcome; all else follows."""
    gamma = WORLD.gap("equalized_odds") - 0.01  # both answers are right, neither is near
    audit = audited(WORLD, Question(gamma=gamma, epsilon=0.02, delta=1e-9))
    rng = np.random.default_rng(0)
    sizes = []
    for labels in (200, quick(1_000, full=4_000)):
        while audit.labels < labels and audit.finding is None:
            for group in audit.cells:
                ticket = audit.ask(group, 0)
                if ticket.want is Want.LABEL:
                    audit.tell(ticket, int(rng.random() < WORLD.r[group]))
        assert audit.finding is None
        gc.collect()
        sizes.append(len(pickle.dumps(audit)))
        assert not audit._answers_in_order
        assert not audit._open_tickets
    assert sizes[1] < sizes[0] + 20 * labels


# -- protocol and bad input -------------------------------------------------------------------


def test_a_person_nobody_asked_about_cannot_be_told() -> None:
    audit = audited(WORLD)
    approved = audit.ask("A", 1)
    with pytest.raises(ProtocolError, match="nothing was asked"):
        audit.tell(approved, 1)
    ticket = audit.ask("A", 0)
    audit.tell(ticket, 1)
    with pytest.raises(ProtocolError, match="settled"):
        audit.tell(ticket, 1)
    with pytest.raises(ProtocolError, match="never issued"):
        audit.tell(replace(ticket, number=99), 1)


def test_bad_options_are_refused() -> None:
    with pytest.raises(InvalidInput, match="'budget'"):
        audited(WORLD, budget=-1.0)


def test_gamma_of_zero_is_allowed() -> None:
    finding = run(audited(WORLD, Question(gamma=0.0, epsilon=0.1)), WORLD, 0)
    assert finding.verdict is Verdict.UNFAIR


@pytest.mark.parametrize("size", [None, 5_000])
def test_an_unfinished_audit_says_what_is_missing(size: int | None) -> None:
    world = groups(2)
    audit = AdaptiveAudit(world.past(size, 0), Question(gamma=0.1, epsilon=0.05), Costs())
    finding = run(audit, world, 0, people=150)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert any("more" in line or "larger epsilon" in line for line in finding.missing)
    assert finding.lower <= world.gap("equalized_odds") <= finding.upper
    assert Finding.from_json(finding.to_json()) == finding


def test_pending_outcomes_are_named() -> None:
    audit = audited(WORLD)
    audit.ask("A", 0)
    finding = audit.conclude()
    said = "1 outcomes that are still pending; ranges hold however they turn out"
    assert any(said in line for line in finding.missing)


def test_a_table_instead_of_past_decisions_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"'history' must be .*History\.read.*got \{'group'"):
        AdaptiveAudit({"group": ["A"]}, QUESTION, Costs())  # type: ignore[arg-type]


# -- who ------------------------------------------------------------------------------------------


def test_after_unfair_the_separated_groups_are_named() -> None:
    world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.05), "B": (0.3, 0.1, 0.6, 0.9)})
    question = Question("equal_opportunity", gamma=0.4)
    finding = run(AdaptiveAudit(world.past(), question, Costs()), world, 0)
    assert finding.verdict is Verdict.UNFAIR
    assert finding.decided_by is not None
    assert (finding.decided_by.rate, finding.decided_by.higher) == ("true_positive_rate", "A")
    assert Finding.from_json(finding.to_json()) == finding
    assert "Largest estimated difference: B, " in str(finding)


def test_after_any_other_verdict_nobody_is_named() -> None:
    finding = run(audited(groups(2), Question(gamma=0.3, epsilon=0.3)), groups(2), 0)
    assert finding.verdict is Verdict.FAIR
    assert finding.decided_by is None
    assert audited(groups(2)).conclude().decided_by is None


@pytest.mark.parametrize("name", ["delta", "delta_wrong_fair", "delta_wrong_unfair"])
def test_levels_that_arithmetic_cannot_keep_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"'{name}' must be at least 10 to the power of -100"):
        Question(**{name: 1e-301})
    audit = audited(WORLD, Question(delta=1e-90))
    assert run(audit, WORLD, 0, people=300).verdict is Verdict.INCONCLUSIVE


def test_a_budget_that_covers_no_request_is_named() -> None:
    audit = AdaptiveAudit(WORLD.past(), QUESTION, Costs(0.0, 1.0), budget=0.5)
    audit.ask("A", 0)
    assert audit.finding is not None
    assert "the budget of 0.5 does not cover one request, which may cost 1" in audit.finding.reason


def test_few_labels_foretell_nothing() -> None:
    missing = " ".join(audited(WORLD).conclude().missing)
    assert "about how many" in missing
    assert "at the present estimates" not in missing


def test_an_assist_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"'assist' must be an Assist, such as Assist\(\)"):
        audited(WORLD, assist=True)


@pytest.mark.parametrize("compare", [Compare(), Compare(against="A"), Compare("ratio")], ids=str)
@pytest.mark.parametrize("groups", [2, 3])
def test_a_fair_truth_at_the_edge_of_what_is_possible_is_not_refuted_by_rounding(
    compare: Compare, groups: int
) -> None:
    """Nobody of A is denied, so its rate is 1; others reach it if all of their denied are good."""
    others = {"B": (0.562, 0.077, 0.361, 1.0), "C": (0.462, 0.177, 0.361, 1.0)}
    shares = {"A": (0.5, 0.5, 0.0, 0.0), **dict(list(others.items())[: groups - 1])}
    world = CellWorld.from_shares(shares)
    question = Question("predictive_equality", 0.0, 0.05, compare=compare)
    audit = AdaptiveAudit(world.past(), question, Costs())
    assert audit.finding is None
    finding = run(audit, world, 0)
    assert finding.verdict is Verdict.FAIR


def test_what_is_fair_between_the_ends_of_a_cell_lies_in_it() -> None:
    """A's accuracy is the same for all unknowns; B comes within gamma of it at r = 0 alone."""
    world = CellWorld.from_shares({"A": (0.8, 0.2, 0.0, 0.0), "B": (0.4, 0.3001, 0.2999, 0.0)})
    question = Question("accuracy_parity", 0.10011, 0.1)
    assert question.truth(world.gap("accuracy_parity")) == {Verdict.FAIR}
    audit = AdaptiveAudit(world.past(), question, Costs())
    assert audit.finding is None
    assert run(audit, world, 0).verdict is Verdict.FAIR


# -- labels that come before an earlier one ------------------------------------------------------

APART = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.0), "B": (0.3, 0.1, 0.6, 1.0)})
OMISSION = Question("false_omission_parity", gamma=0.05, epsilon=0.05)


def requests(audit: AdaptiveAudit, labels: int) -> list[Ticket]:
    return [ask_for_label(audit, APART.groups[i % 2]) for i in range(labels)]


def test_one_label_that_is_out_holds_nothing_up() -> None:
    """What each label meets is fixed at its request, so labels may be weighed beyond the first."""
    audit = AdaptiveAudit(APART.past(), OMISSION, Costs())
    for ticket in requests(audit, 80)[1:]:
        audit.tell(ticket, int(APART.r[ticket.group]))
    assert audit.finding is not None
    assert audit.finding.verdict is Verdict.UNFAIR
    assert audit.pending > 0


def test_many_labels_that_are_out_could_all_be_otherwise() -> None:
    audit = AdaptiveAudit(APART.past(), OMISSION, Costs())
    tickets = requests(audit, 80)
    for ticket in tickets[::2]:  # one group's only
        audit.tell(ticket, int(APART.r[ticket.group]))
    assert audit.finding is None
