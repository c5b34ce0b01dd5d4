"""Audits whose past rows are evidence: when bands stay, contradictions, giving up."""

from __future__ import annotations

import pytest

from equipoise.audits import adaptive
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.design import MAX_GROUPS_BY_ROWS, AuditDesign
from equipoise.cells import Cells, GroupCells
from equipoise.errors import UnknownName
from equipoise.history import History
from equipoise.question import Costs, Question, Verdict
from equipoise.simulation import run
from equipoise.worlds import CellWorld

WORLD = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.5), "B": (0.1, 0.1, 0.8, 0.4)})
ALIKE = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.4), "B": (0.3, 0.1, 0.6, 0.36)})


def test_the_case_that_keeps_bands_does_not_depend_on_counts() -> None:
    question = Question("equal_opportunity")
    cells = [Cells({g: GroupCells(n, 5, 60) for g in "AB"}) for n in (0, 20, 2_000)]
    for own in cells:
        assert AuditDesign(History.from_cells(own), question).weighs_past_rows
    for metric in ("demographic_parity", "predictive_parity", "false_omission_parity"):
        assert not AuditDesign(History.from_cells(cells[1]), Question(metric)).weighs_past_rows
    many = Cells({f"g{i}": GroupCells(20, 5, 60) for i in range(MAX_GROUPS_BY_ROWS + 1)})
    assert not AuditDesign(History.from_cells(many), question).weighs_past_rows
    assert not AuditDesign(WORLD.past(), question).weighs_past_rows


@pytest.mark.parametrize("size", [600, 5_000, 200_000])
def test_a_finite_past_decides_with_labels_or_alone(size: int) -> None:
    question = Question("equal_opportunity", gamma=0.05, epsilon=0.1)
    finding = run(AdaptiveAudit(WORLD.past(size, 1), question, Costs()), WORLD, 1)
    assert finding.verdict is Verdict.UNFAIR
    assert finding.lower >= question.gamma


def test_a_verdict_that_its_interval_contradicts_is_inconclusive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    question = Question("equal_opportunity", gamma=0.05, epsilon=0.1)
    audit = AdaptiveAudit(WORLD.past(5_000, 1), question, Costs())
    monkeypatch.setattr(adaptive, "contradicts_interval", lambda *_: True)
    finding = run(audit, WORLD, 1)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "contradict" in finding.reason


def test_an_audit_that_its_past_cannot_decide_gives_up_unless_told_not_to() -> None:
    question = Question("equal_opportunity", gamma=0.05, epsilon=0.05)
    past = ALIKE.past(600, 1)
    finding = run(AdaptiveAudit(past, question, Costs()), ALIKE, 1)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "past rows" in finding.missing[0]
    assert "epsilon" in finding.missing[0]
    stubborn = AdaptiveAudit(past, question, Costs(), budget=4 * finding.cost, give_up="never")
    assert run(stubborn, ALIKE, 1).cost > finding.cost
    with pytest.raises(UnknownName):
        AdaptiveAudit(past, question, Costs(), give_up="sometimes")  # type: ignore[arg-type]
