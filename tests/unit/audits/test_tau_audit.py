"""Baseline and RS-Audit step by step, on streams short enough to count by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from equipoise.audits.baseline import BaselineAudit
from equipoise.audits.estimated_rates import (
    can_answer,
    paper_tau,
)
from equipoise.audits.rs_audit import RSAudit
from equipoise.audits.tau_audit import Online, TauAudit
from equipoise.cells import Cells, GroupCells
from equipoise.errors import InvalidInput
from equipoise.finding import Finding
from equipoise.free_check import check
from equipoise.history import History
from equipoise.history.past import Goal, Past
from equipoise.metrics import METRICS
from equipoise.protocol import Want
from equipoise.question import Costs, Question, Verdict
from equipoise.worlds import CellWorld

CELLS = Cells({"A": GroupCells(300, 100, 600), "B": GroupCells(100, 50, 850)})


@dataclass(frozen=True)
class FixedPast(Past):
    """A past whose answers are given."""

    cells: Cells = CELLS
    rows: dict[Goal, int] = field(default_factory=dict)
    asked: list[tuple[Goal, int, bool]] = field(default_factory=list)

    def rows_until(
        self,
        tau: int,
        question: Question,
        *,
        outcomes: Sequence[int] = (0, 1),
        within_group: bool = True,
    ) -> dict[Goal, int]:
        goals = [(y, group) for y in outcomes for group in self.cells]
        self.asked.extend((goal, tau, within_group) for goal in goals)
        return {goal: self.rows[goal] for goal in goals if goal in self.rows}


ROWS: dict[Goal, int] = {
    (0, "A"): 10,
    (0, "B"): 20,
    (1, "A"): 5,
    (1, "B"): 8,
}


def feed(audit: TauAudit, people: str) -> None:
    """Tell people such as ``A10``: group A, decision 1, outcome 0."""
    for person in people.split():
        group, decision, outcome = person[0], int(person[1]), int(person[2])
        ticket = audit.ask(group, decision)
        if ticket.want is Want.LABEL:
            audit.tell(ticket, outcome)


def test_rs_counts_each_group_by_itself() -> None:
    audit = RSAudit(FixedPast(rows=ROWS), Question(), Costs(feature=1.0, label=10.0), tau=2)
    feed(audit, "A00 B11 A11 B00 A00")  # A: outcome 0 twice among 3; phase (0, A) ends
    assert audit.finding is None
    feed(audit, "A11 A01")  # phase (1, A) ends after 2; A is done
    assert audit.ask("A", 0).want is Want.NOTHING
    feed(audit, "B01 B01 B10 B01 B11")  # (0, B) after 5; (1, B) after 2
    finding = audit.finding
    assert finding is not None
    # rate = N / N': FPR A 3/10, B 5/20; TPR A 2/5, B 2/8
    rates = {rate: {g: i.estimate for g, i in v.items()} for rate, v in finding.rates.items()}
    assert rates == {
        "false_positive_rate": {"A": 0.3, "B": 0.25},
        "true_positive_rate": {"A": 0.4, "B": 0.25},
    }
    assert finding.estimate == pytest.approx(0.15)
    assert finding.verdict is Verdict.UNFAIR  # above 0.05 + 0.05/2
    assert finding.labels == 7
    assert finding.cost == 7 * 1.0 + 3 * 10.0


def test_baseline_counts_everybody_in_every_phase() -> None:
    question = Question("predictive_equality", gamma=0.5, epsilon=0.2)
    past = FixedPast(rows=ROWS)
    audit = BaselineAudit(past, question, Costs(), tau=2)
    feed(audit, "A00 B11 B00 B00 A10")  # phase (0, A): two of A with outcome 0 after 5 people
    feed(audit, "A11 B00 A00 B10")  # phase (0, B): after 4 more, counted from the start
    finding = audit.finding
    assert finding is not None
    estimates = {g: i.estimate for g, i in finding.rates["false_positive_rate"].items()}
    assert estimates == {"A": 5 / 10, "B": 4 / 20}
    assert finding.verdict is Verdict.FAIR
    assert finding.labels == 5
    assert {asked[1:] for asked in past.asked} == {(2, False)}


def test_one_stream_serves_all_phases_when_labels_are_reused() -> None:
    audit = BaselineAudit(
        FixedPast(rows=ROWS), Question("predictive_equality"), Costs(), tau=2, reuse_labels=True
    )
    feed(audit, "A00 B11 B00 B00 A10")
    assert audit.finding is not None
    estimates = {g: i.estimate for g, i in audit.finding.rates["false_positive_rate"].items()}
    assert estimates == {"A": 5 / 10, "B": 4 / 20}

    audit = RSAudit(FixedPast(rows=ROWS), Question(), Costs(), tau=1, reuse_labels=True)
    feed(audit, "A00 A00 A11 B11 B01 B10")
    assert audit.finding is not None
    assert audit.finding.rates["true_positive_rate"]["A"].estimate == 3 / 5
    assert audit.finding.rates["false_positive_rate"]["A"].estimate == 1 / 10


def test_requests_beyond_the_end_of_a_phase_serve_the_next() -> None:
    """Late answers change what is known when, never the count in request order."""
    past = FixedPast(rows=ROWS)
    audit = RSAudit(past, Question("equal_opportunity"), Costs(), tau=1)
    late = [audit.ask("A", 0) for _ in range(3)]
    audit.tell(late[2], 1)
    assert audit.finding is None
    audit.tell(late[0], 0)
    audit.tell(late[1], 1)  # the second in request order ends the phase, the third is surplus
    feed(audit, "B01")
    assert audit.finding is not None
    assert audit.finding.rates["true_positive_rate"]["A"].estimate == 2 / 5
    assert audit.labels == 4

    both = RSAudit(past, Question(), Costs(), tau=1)
    tickets = [both.ask("A", 0) for _ in range(3)]
    for ticket, outcome in zip(reversed(tickets), (1, 1, 0), strict=True):
        both.tell(ticket, outcome)
    feed(both, "B00 B01")  # (0, A) took 1 person, (1, A) the very next one
    assert both.finding is not None
    assert both.finding.rates["false_positive_rate"]["A"].estimate == 1 / 10
    assert both.finding.rates["true_positive_rate"]["A"].estimate == 1 / 5


def test_only_the_phases_of_the_metric_are_run() -> None:
    asked: dict[str, int] = {}
    for metric in ("equalized_odds", "equal_opportunity", "predictive_equality"):
        past = FixedPast(rows=ROWS)
        RSAudit(past, Question(metric), Costs(), tau=3)
        asked[metric] = len(past.asked)
    assert asked == {"equalized_odds": 4, "equal_opportunity": 2, "predictive_equality": 2}


def test_demographic_parity_needs_no_label() -> None:
    past = CellWorld.from_shares({"A": (0.5, 0.2, 0.3, 0.5), "B": (0.1, 0.1, 0.8, 0.5)}).past()
    audit = RSAudit(past, Question("demographic_parity"), Costs())
    assert audit.finding is not None
    assert audit.finding.verdict is Verdict.UNFAIR
    assert audit.finding.cost == 0.0
    assert audit.ask("A", 0).want is Want.NOTHING


@pytest.mark.parametrize("metric", [name for name in METRICS if not can_answer(Question(name))])
def test_other_metrics_are_refused(metric: str) -> None:
    with pytest.raises(InvalidInput, match=f"cannot answer 'metric' '{metric}'"):
        BaselineAudit(FixedPast(rows=ROWS), Question(metric), Costs())


@pytest.mark.parametrize("tau", [0, -3, 1.5, True, "7"])
def test_tau_must_be_a_whole_number(tau: object) -> None:
    with pytest.raises(InvalidInput, match="'tau' must be a whole number of at least 1"):
        RSAudit(FixedPast(rows=ROWS), Question(), Costs(), tau=tau)  # type: ignore[arg-type]


def test_a_dry_past_is_said_before_anything_is_spent() -> None:
    past = History.from_cells(CELLS)
    audit = RSAudit(past, Question("equal_opportunity"), Costs(), tau=150)
    finding = audit.finding
    assert finding is not None
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert audit.ask("A", 0).want is Want.NOTHING
    # 100 of B's 1,000 rows count, 150 are needed: half as many rows again
    assert finding.missing == (
        "about 500 more past rows of group 'B': 100 people of group 'B' who were approved and "
        "had outcome 1, and 150 are needed",
    )
    assert "run dry" in finding.reason
    everybody = BaselineAudit(past, Question("equal_opportunity"), Costs(), tau=150).finding
    assert everybody is not None
    assert everybody.missing[0].startswith("about 1,000 more past rows of any group")


def test_a_group_that_is_never_approved_runs_dry() -> None:
    world = CellWorld.from_shares({"A": (0.01, 0.01, 0.98, 0.3), "B": (0.0, 0.0, 1.0, 0.4)})
    finding = RSAudit(world.past(), Question(), Costs(), tau=5).finding
    assert finding is not None
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert len(finding.missing) == 1
    assert "none were found" in finding.missing[0]


@pytest.mark.parametrize("kind", [RSAudit, BaselineAudit])
def test_where_the_past_runs_dry_the_free_check_answers_at_its_own_level(
    kind: type[TauAudit],
) -> None:
    cells = {"A": GroupCells(4_000, 4_000, 10), "B": GroupCells(40, 30, 8_000)}
    past = History.from_cells(Cells(cells))
    finding = kind(past, Question(delta=0.02), Costs(), tau=500).finding
    assert finding is not None
    assert finding.verdict is check(past, Question(delta=0.02)).verdict is Verdict.UNFAIR
    assert (finding.guaranteed, finding.cost) == (True, 0.0)
    assert finding.error_level == 0.02  # of this ending: tau is not the paper's
    assert "run dry" in finding.assumptions[-2]
    assert "no proven error probability at tau = 500" in finding.assumptions[-1]
    assert Finding.from_json(finding.to_json()) == finding


@pytest.mark.parametrize("kind", [RSAudit, BaselineAudit])
@pytest.mark.parametrize("size", [None, 20_000])
def test_a_stream_of_denied_people_ends_inconclusive_before_it_costs_much(
    kind: type[TauAudit], size: int | None
) -> None:
    world = CellWorld.from_shares({"A": (0.4, 0.1, 0.5, 0.4), "B": (0.2, 0.1, 0.7, 0.4)})
    audit = kind(world.past(size), Question(epsilon=0.8), Costs(feature=1.0, label=0.0), tau=200)
    for person in world.draw(20_000, 1):
        if audit.finding is None and person.decision == 0:
            audit.tell(audit.ask(person.group, 0), person.outcome)
    assert audit.finding is not None
    assert audit.finding.verdict is Verdict.INCONCLUSIVE
    assert not audit.finding.guaranteed
    assert "were approved, and of past ones" in audit.finding.reason
    assert audit.cost <= 200.0
    assert "approved and denied" in audit.finding.missing[0]


def test_a_rate_that_no_population_has_is_not_reported() -> None:
    """The past's share of approvals is right, its outcomes are not: the waiting times tell."""
    rows = {(0, "A"): 4_000, (1, "A"): 4_000, (0, "B"): 400, (1, "B"): 400}
    audit = RSAudit(FixedPast(CELLS, rows=rows), Question(), Costs(), tau=200, reuse_labels=True)
    rng = np.random.default_rng(0)
    while audit.finding is None:  # of A 0.4 were approved, and few of them had either outcome
        for group, share, rare in (("A", 0.4, 0.5), ("B", 0.15, 0.02)):
            ticket = audit.ask(group, int(rng.random() < share))
            if ticket.want is Want.LABEL:
                audit.tell(ticket, int(rng.random() < rare))
    assert audit.finding.verdict is Verdict.INCONCLUSIVE
    assert not audit.finding.guaranteed
    assert "which no population with this past has" in audit.finding.reason


def test_a_group_without_denied_people_is_audited_for_free() -> None:
    world = CellWorld.from_shares({"A": (0.5, 0.5, 0.0, 0.0), "B": (0.6, 0.4, 0.0, 0.0)})
    audit = RSAudit(world.past(), Question(), Costs(feature=1.0), tau=200)
    for person in world.draw(3_000):
        ticket = audit.ask(person.group, person.decision)
        if ticket.want is Want.LABEL:
            audit.tell(ticket, person.outcome)
    assert audit.finding is not None
    assert (audit.labels, audit.cost) == (0, 0.0)


def test_a_missing_outcome_ends_the_count() -> None:
    audit = RSAudit(FixedPast(rows=ROWS), Question(), Costs(), tau=2)
    feed(audit, "A00")
    audit.withdraw(audit.ask("A", 0))
    finding = audit.finding
    assert finding is not None
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert finding.reason.startswith("the outcome of person #1 A: label is missing")


def test_a_missing_outcome_after_the_end_does_not_matter() -> None:
    audit = RSAudit(FixedPast(rows=ROWS), Question("equal_opportunity"), Costs(), tau=1)
    surplus = [audit.ask("A", 0) for _ in range(2)]
    audit.tell(surplus[0], 1)
    audit.withdraw(surplus[1])
    feed(audit, "B01")
    assert audit.finding is not None
    assert audit.finding.verdict is not Verdict.INCONCLUSIVE


def test_concluding_early_lists_the_people_who_did_not_come() -> None:
    audit = RSAudit(FixedPast(rows=ROWS), Question(), Costs(), tau=3)
    feed(audit, "A00 A00 B11")
    assert audit.conclude().missing == (
        "1 more people of group 'A' with outcome 0",
        "3 more people of group 'A' with outcome 1",
        "3 more people of group 'B' with outcome 0",
        "3 more people of group 'B' with outcome 1",
    )


def test_a_short_budget_leaves_out_the_approved_too() -> None:
    """Counting the approved while the denied are passed over would bias the shares."""
    audit = BaselineAudit(FixedPast(rows=ROWS), Question(), Costs(0.0, 1.0), tau=5, budget=2.0)
    pending = [audit.ask("A", 0), audit.ask("A", 0)]
    assert [t.want for t in pending] == [Want.LABEL, Want.LABEL]
    assert audit.ask("A", 0).want is Want.NOTHING  # both units are held
    assert audit.ask("A", 1).want is Want.NOTHING
    audit.tell(pending[0], 1)  # good news frees its unit
    assert audit.ask("B", 1).want is Want.LABEL
    assert audit.ask("B", 0).want is Want.LABEL


def test_the_dearest_group_must_be_affordable() -> None:
    costs = Costs(0.0, 1.0, groups={"B": Costs(0.0, 5.0)})
    audit = BaselineAudit(FixedPast(rows=ROWS), Question(), costs, tau=5, budget=4.0)
    assert audit.ask("A", 0).want is Want.NOTHING
    assert audit.finding is not None
    assert audit.finding.verdict is Verdict.INCONCLUSIVE


def test_tau_and_its_promise() -> None:
    question = Question(epsilon=0.5, delta=0.1)
    full = paper_tau(question, 2)
    past = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.2, 0.1, 0.7, 0.2)}).past()
    audit = RSAudit(past, question, Costs())
    assert audit.tau == full == int(np.ceil(576 * np.log(160) / 0.25))
    assert len(audit._list_assumptions()) == 2
    assert f"with seed {past.seed}" in audit._list_assumptions()[1]
    short = RSAudit(past, question, Costs(), tau=100)
    assert "no proven error probability" in short._list_assumptions()[2]
    assert (
        "nothing is established" in RSAudit(past, question, Costs(), tau=5)._list_assumptions()[3]
    )
    strict = replace(question, delta_wrong_fair=0.001)
    assert RSAudit(past, strict, Costs()).tau == paper_tau(replace(question, delta=0.001), 2)


def test_online_restarts_for_each_phase() -> None:
    online = Online(2, [[(1, "A")], [(0, "A")]])
    for outcome in (0, 1, 1, 0, 0):
        online.count_person("A", outcome)
    assert online.is_done
    assert online.stopping_times == {(1, "A"): 3, (0, "A"): 2}
