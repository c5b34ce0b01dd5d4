"""Audits of comparisons other than all pairs, as they run, and as ledgers and HTTP keep them."""

from __future__ import annotations

from pathlib import Path

import pytest

import equipoise as eq
from equipoise.audits.design import AuditDesign
from equipoise.comparison import Compare
from equipoise.errors import InvalidInput, UnknownName
from equipoise.ledger import commands
from equipoise.planning import forecast
from equipoise.planning.scenarios import scenarios
from equipoise.protocol import Want
from equipoise.question import Verdict
from equipoise.worlds import CellWorld
from tests.profiles import quick

WORLD = CellWorld.from_shares(
    {
        "A": (0.35, 0.10, 0.55, 0.3),
        "B": (0.30, 0.10, 0.60, 0.3),
        "C": (0.15, 0.10, 0.75, 0.3),
        "?": (0.30, 0.10, 0.60, 0.9),
    }
)
KNOWN = Compare(against="A", leave_out=("?",))


def question(compare: Compare) -> eq.Question:
    return eq.Question("equal_opportunity", 0.1, 0.1, compare=compare)


@pytest.mark.parametrize("name", ["adaptive", "rs", "baseline"])
def test_nobody_who_is_left_out_is_asked_for_alone(name: str) -> None:
    options = {} if name == "adaptive" else {"tau": 5}
    classes = {"adaptive": eq.AdaptiveAudit, "rs": eq.RSAudit, "baseline": eq.BaselineAudit}
    audit = classes[name](WORLD.past(), question(KNOWN), eq.Costs(), **options)
    want = Want.LABEL if name == "baseline" else Want.NOTHING  # which counts everybody
    assert audit.ask("?", 0).want is want
    found = eq.run(classes[name](WORLD.past(), question(KNOWN), eq.Costs(), **options), WORLD, 1)
    assert found.verdict is Verdict.UNFAIR
    assert found.assumptions[0] == "not compared: ?"
    if name == "adaptive":  # nothing is claimed of a group that gets no error probability
        assert "?" not in found.rates["true_positive_rate"]
    assert found.estimate is not None
    assert found.estimate < 0.6  # ? is far from all


def test_each_direction_is_a_question_of_its_own() -> None:
    for direction, verdict in (("below", Verdict.UNFAIR), ("above", Verdict.FAIR)):
        asked = question(Compare(against="A", direction=direction, leave_out=("?",)))
        audit = eq.AdaptiveAudit(WORLD.past(), asked, eq.Costs())
        found = eq.run(audit, WORLD, 3)
        assert found.verdict is verdict
        if found.decided_by is not None:
            assert found.decided_by.higher == "A"


def test_a_plan_foresees_them() -> None:
    asked = question(KNOWN)
    cases = scenarios(WORLD.cells, asked)
    assert all(case.gap == pytest.approx(CellWorld(WORLD.cells, case.r).gap(asked.metric, KNOWN))
               for case in cases)  # fmt: skip
    (seen,) = forecast(WORLD.past(), asked, eq.Costs(), cases[2:3])
    assert seen.labels["?"] == 0.0 < seen.labels["A"]
    made = eq.plan(
        WORLD.past(),
        asked,
    )
    assert "each against A, ? left out" in str(made)


def test_a_ledger_keeps_the_question(tmp_path: Path) -> None:
    ledger, asked = str(tmp_path / "ledger.db"), question(KNOWN)
    past = WORLD.past(quick(None, full=4000), 1)
    live = eq.LiveAudit.create(ledger, "loans", past, asked, eq.Costs())
    for number, person in enumerate(WORLD.draw(200, 2)):
        reply = live.ask(str(number), person.group, person.decision)
        assert person.group != "?" or reply.want is not Want.LABEL
        if reply.want is Want.LABEL:
            live.tell(str(number), person.outcome)
    live = eq.LiveAudit.open(ledger, "loans")
    assert live.settings.question == asked
    live.verify()
    eq.write_report(live, tmp_path / "report.html")
    assert (
        "Groups are compared each against A, ? left out." in (tmp_path / "report.html").read_text()
    )


def test_names_are_refused_before_anything_is_asked() -> None:
    for compare in (Compare(against="Z"), Compare(leave_out=("Z",))):
        with pytest.raises(UnknownName, match="'Z'"):
            eq.AdaptiveAudit(WORLD.past(), question(compare), eq.Costs())
    with pytest.raises(InvalidInput, match="Exp-Audit is proven for differences between all"):
        eq.ExpAudit(WORLD.past(), question(KNOWN), eq.Costs())


def test_a_group_that_is_left_out_takes_no_share_of_the_error_probability() -> None:
    """The paper's guarantee is divided among the groups that are compared, and no others."""
    past = WORLD.past(4000, 1)
    few_groups = eq.History.from_cells({g: past.cells.to_dict()[g] for g in "ABC"})
    all_groups = eq.History.from_cells(past.cells)
    without_rows = question(Compare(against="A"))
    for assume in (None, eq.Assume(denied_no_better=True)):
        left_out = eq.check(all_groups, question(KNOWN), assume=assume)
        no_rows = eq.check(few_groups, without_rows, assume=assume)
        assert left_out.lower == pytest.approx(no_rows.lower, abs=1e-12)
        assert left_out.upper == pytest.approx(no_rows.upper, abs=1e-12)
        assert left_out.rates == no_rows.rates
        assert left_out.shares == no_rows.shares
        assert left_out.assumptions[0] == "not compared: ?"
    beside = AuditDesign(all_groups, question(KNOWN))
    alone = AuditDesign(few_groups, without_rows)
    assert beside.budget == alone.budget


def test_a_group_that_is_left_out_raises_no_alarm(tmp_path: Path) -> None:
    past = eq.History.from_cells(WORLD.past(4000, 1).cells)
    live = eq.LiveAudit.create(
        "sqlite://", "loans", past, question(KNOWN), eq.Costs(), confirm=True
    )
    people = [("?", 1) for _ in range(400)]
    people += [(person.group, person.decision) for person in WORLD.draw(200, 2)]
    live.run([commands.Ask(str(n), group, decision) for n, (group, decision) in enumerate(people)])
    status = live.status()
    assert not [test for test in status.drift if test.alarm or test.group == "?"]
    assert status.left_out == ("?",)
    assert "not compared: ? (" in str(status)
    assert "    ?: " not in str(status)
