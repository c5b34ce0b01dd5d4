"""Arguments of the wrong kind are refused by name, never by a traceback from inside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.audits.base import Audit
from equipoise.errors import UnknownName
from equipoise.report import Report

WORLD = eq.worlds.CellWorld.from_shares({"A": (0.4, 0.1, 0.5, 0.5), "B": (0.2, 0.2, 0.6, 0.2)})
PAST = WORLD.past(1000, 0)
ASKED, COSTS = eq.Question(), eq.Costs()
FRAME = {"group": ["A"], "approved": [1]}
any_: Any = eq  # called with what its types forbid


def audit() -> Audit:
    return eq.RSAudit(PAST, ASKED, COSTS, tau=5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: any_.Question(gamma="0.05"), "'gamma' must be a number; got '0.05'"),
        (lambda: any_.Question(epsilon=None), "'epsilon' must be a number; got None"),
        (lambda: any_.Question(delta=True), "'delta' must be a number; got True"),
        (lambda: any_.Question(delta=None), "'delta' must be a number; got None"),
        (lambda: any_.Question(delta_wrong_fair="no"), "'delta_wrong_fair' must be a number"),
        (lambda: any_.Question(gamma=float("nan")), "'gamma' must be a finite number"),
        (lambda: any_.Question({"equalized_odds"}), "unknown metric"),
        (lambda: any_.Question(compare=None), "unknown way to 'compare' 'None'"),
        (lambda: any_.Costs(label="dear"), "'label' must be a number; got 'dear'"),
        (lambda: any_.Costs(groups="B"), "'groups' of Costs must map groups to Costs"),
        (lambda: any_.Costs(groups={"B": 2}), "'groups' of Costs must map groups to Costs"),
        (lambda: any_.check(FRAME, ASKED), "'history' must be past decisions"),
        (lambda: any_.check(ASKED, PAST), "'history' must be past decisions"),
        (lambda: any_.check(PAST, 3), "'question' must be a Question"),
        (lambda: any_.plan(FRAME, ASKED, COSTS), "'history' must be past decisions"),
        (
            lambda: any_.check(FRAME, ASKED, group="g", decision="d"),
            "Which column holds the outcome?",
        ),
        (lambda: any_.check(PAST, ASKED, group="g"), "'group' says how to read a table"),
        (lambda: any_.check(FRAME, "accuracy", gamma=0.1), "belongs to the question"),
        (lambda: any_.plan(PAST, "equal_oportunity"), "unknown metric 'equal_oportunity'"),
        (lambda: any_.plan(PAST, COSTS, ASKED), "'question' must be a Question"),
        (lambda: any_.plan(PAST, ASKED, 1.0), "'costs' must be Costs"),
        (lambda: any_.plan(PAST, ASKED, COSTS, cap=20.0), "'cap' is no way to read a table"),
        (lambda: any_.plan(PAST, ASKED, COSTS, denied_rate=0.3), "'denied_rate' must be a mapping"),
        (
            lambda: any_.plan(PAST, ASKED, COSTS, denied_rate={"A": "few"}),
            "\"denied_rate['A']\" must be a number",
        ),
        (lambda: any_.plan(PAST, ASKED, COSTS, trial_runs="m"), "'trial_runs' must be a whole"),
        (lambda: any_.plan(PAST, ASKED, COSTS, n_jobs="all"), "'n_jobs' must be"),
        (lambda: any_.simulate("adaptive", "fico", ASKED, COSTS), "'world' must be a world"),
        (lambda: any_.simulate(WORLD, "adaptive", ASKED, COSTS), "'audit' must be the name"),
        (lambda: any_.simulate("adaptive", WORLD, COSTS, ASKED), "'question' must be a Question"),
        (lambda: any_.simulate("adaptive", WORLD, ASKED, 1), "'costs' must be Costs"),
        (lambda: any_.simulate("adaptve", WORLD, ASKED, COSTS), "Did you mean 'adaptive'?"),
        (
            lambda: any_.simulate("rs", WORLD, ASKED, COSTS, repeats="9"),
            "'repeats' must be a whole",
        ),
        (lambda: any_.simulate("rs", WORLD, ASKED, COSTS, seed="x"), "'seed' must be"),
        (lambda: any_.simulate("rs", WORLD, ASKED, COSTS, delay=5), "'delay' must be a function"),
        (lambda: any_.simulate("rs", WORLD, ASKED, COSTS, n_jobs="2"), "'n_jobs' must be"),
        (lambda: any_.lower_bound("fico", ASKED, COSTS), "'world' must be a world"),
        (lambda: any_.lower_bound(WORLD, COSTS, ASKED), "'question' must be a Question"),
        (lambda: any_.run(ASKED, WORLD), "'audit' must be an audit"),
        (lambda: any_.run(audit(), "fico"), "'world' must be a world"),
        (lambda: any_.AdaptiveAudit(FRAME, ASKED, COSTS), "'history' must be past decisions"),
        (lambda: any_.AdaptiveAudit(PAST, COSTS, ASKED), "'question' must be a Question"),
        (lambda: any_.AdaptiveAudit(PAST, ASKED, 2.0), "'costs' must be Costs"),
        (
            lambda: any_.AdaptiveAudit(PAST, ASKED, COSTS, budget="lots"),
            "'budget' must be a number",
        ),
        (lambda: any_.RSAudit(PAST, ASKED, COSTS, tau="5"), "'tau' must be"),
        (lambda: audit().ask("A", "yes"), "'decision' must be 0 or 1"),  # type: ignore[arg-type]
        (lambda: audit().ask(["A"], 0), "unknown group"),  # type: ignore[arg-type]
        (lambda: audit().tell("p-1", 1), "'ticket' must be what ask returned"),  # type: ignore[arg-type]
        (lambda: audit().withdraw(3), "'ticket' must be what ask returned"),  # type: ignore[arg-type]
        (lambda: any_.History.from_cells("A"), "'cells' must be a mapping of groups"),
        (lambda: any_.History.from_cells({"A": 3}), "\"cells['A']\" must be a mapping"),
        (lambda: any_.History.read(3, group="g", decision="d", outcome="y"), "'source'"),
        (
            lambda: any_.History.read(FRAME, group=3, decision="d", outcome="y"),
            "'group' must name a column; got 3",
        ),
        (
            lambda: any_.LiveAudit.create("sqlite://", "x", FRAME, ASKED, COSTS),
            "'history' must be past decisions",
        ),
        (
            lambda: any_.LiveAudit.create("sqlite://", "x", PAST, COSTS, ASKED),
            "'question' must be a Question",
        ),
        (
            lambda: any_.LiveAudit.create("sqlite://", "x", PAST, ASKED, COSTS, budget="lots"),
            "'budget' must be",
        ),
        (
            lambda: any_.LiveAudit.create(7, "x", PAST, ASKED, COSTS, confirm=True),
            "'ledger' must be",
        ),
        (
            lambda: Report.of("loans"),  # type: ignore[arg-type]
            "'live' must be a LiveAudit",
        ),
        (lambda: any_.write_report("loans", Path("x.html")), "'audit' must be an audit"),
    ],
)
def test_it_is_refused_by_name(call: Callable[[], object], message: str) -> None:
    with pytest.raises(eq.EquipoiseError) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [("rce", ["race"], "race"), ("xyz", ["race", "sex"], None), ("outcome", ["repaid"], None),
     ("c", ["decision"], None), ("equal_odds", ["equalized_odds"], "equalized_odds")],
)  # fmt: skip
def test_a_hint_is_given_only_when_it_is_close(
    name: str, known: list[str], hint: str | None
) -> None:
    said = str(UnknownName("column", name, known))
    assert ("Did you mean" in said) == (hint is not None)
    assert hint is None or f"Did you mean {hint!r}?" in said
