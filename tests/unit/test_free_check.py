"""What a user grants about the denied: it narrows every layer, is printed, and may be refuted."""

from __future__ import annotations

import pickle
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from study.assume import EDGE, edges, endings
from typer.testing import CliRunner

import equipoise as eq
from equipoise.cli.app import app
from equipoise.errors import InvalidInput, UnknownName
from equipoise.free_check import assumed_limits, bounds_of_a_piece, simultaneous
from equipoise.planning.scenarios import scenarios
from equipoise.question import Verdict
from equipoise.rates import clopper_pearson
from equipoise.report import Report, to_markdown
from equipoise.worlds import CellWorld
from tests.profiles import quick

NO_BETTER = eq.Assume(denied_no_better=True)
GRANTED = "the denied of every group would do no better than its approved"
WORLD = CellWorld.from_shares({"A": (0.40, 0.10, 0.50, 0.35), "B": (0.36, 0.12, 0.52, 0.30)})
# the denied of B would do far better than its approved
BETTER = CellWorld.from_shares({"A": (0.20, 0.20, 0.60, 0.4), "B": (0.20, 0.20, 0.60, 0.8)})
QUESTION = eq.Question("equalized_odds", gamma=0.05, epsilon=0.1, assume=NO_BETTER)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"denied_no_better": "yes"}, "'denied_no_better' must be True or False; got 'yes'"),
        ({"r_at_most": {"A": 1.2}}, r"r_at_most\['A'\].*1.2"),
        ({"r_at_most": 0.4}, "'r_at_most' must map groups to numbers; got 0.4"),
        ({"r_at_most": {"A": 0.2}, "r_at_least": {"A": 0.3}}, "must not be above"),
    ],
)
def test_nonsense_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        eq.Assume(**given)  # type: ignore[arg-type]


def test_a_group_that_is_not_there_is_named() -> None:
    question = replace(QUESTION, assume=eq.Assume(r_at_most={"C": 0.5}))
    with pytest.raises(UnknownName, match=r"'r_at_most'.*'C'"):
        eq.check(WORLD.past(), question)


def test_no_better_means_that_approval_goes_with_the_outcome() -> None:
    """TPR >= selection rate >= FPR, and with a finite past up to the bound of the precision."""
    found = eq.check(WORLD.past(), QUESTION)
    for group, cells in WORLD.cells.items():
        selected = 1.0 - cells.shares[2]
        assert found.rates["true_positive_rate"][group].lower == pytest.approx(selected)
        assert found.rates["false_positive_rate"][group].upper == pytest.approx(selected)
    assert f"{GRANTED} (granted)" in found.assumptions
    few, cells = assumed_limits(WORLD.past(400, 0).cells, NO_BETTER, 0.01), WORLD.past(400, 0).cells
    assert few is not None
    for group, counts in cells.items():
        most = clopper_pearson(counts.approved_positive, counts.approved, 0.01)[1]
        assert few[group] == (0.0, pytest.approx(most))


def test_the_bounds_that_it_needs_are_paid_for() -> None:
    cells = WORLD.cells
    assert simultaneous(0.1, cells, "equalized_odds", assume=NO_BETTER) == 0.1 / (2 * (4 + 1))
    assert bounds_of_a_piece(NO_BETTER) == 4
    given = eq.Assume(r_at_most={"A": 0.5})  # a number is not estimated
    assert simultaneous(0.1, cells, "equalized_odds", assume=given) == 0.1 / (2 * 4)
    assert bounds_of_a_piece(given) == bounds_of_a_piece(None) == 2


def test_more_granted_never_widens_what_is_known() -> None:
    wide = eq.check(WORLD.past(), replace(QUESTION, assume=None))
    narrow = eq.check(WORLD.past(), QUESTION)
    both = replace(QUESTION, assume=eq.Assume(True, {"A": 0.4, "B": 0.35}, {"A": 0.3, "B": 0.25}))
    narrower = eq.check(WORLD.past(), both)
    assert wide.lower <= narrow.lower <= narrower.lower <= narrower.upper <= narrow.upper
    assert narrow.upper < wide.upper
    assert narrower.verdict is Verdict.FAIR
    assert narrower.reason.startswith("under what is assumed")
    assert eq.AdaptiveAudit(WORLD.past(), both, eq.Costs()).finding.verdict is Verdict.FAIR  # type: ignore[union-attr]
    bounds = [
        float(eq.lower_bound(WORLD, q, eq.Costs()))
        for q in (replace(QUESTION, assume=None), QUESTION, both)
    ]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == 0.0


def test_the_least_cost_falls_where_alternatives_are_ruled_out() -> None:
    known = eq.Assume(r_at_most={"A": 0.36}, r_at_least={"A": 0.34})
    question = eq.Question("equal_opportunity", gamma=0.05, epsilon=0.1)
    free, tied = (
        float(eq.lower_bound(WORLD, q, eq.Costs()))
        for q in (question, replace(question, assume=known))
    )
    assert 0.0 < tied < 0.6 * free


@pytest.mark.parametrize("past", [None, 30_000])
def test_a_world_that_breaks_it_ends_inconclusive_by_name(past: int | None) -> None:
    audit = eq.AdaptiveAudit(BETTER.past(past, 0), QUESTION, eq.Costs())
    found = eq.run(audit, BETTER, 0)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason.startswith("what is assumed does not hold for B: of its denied at least")
    assert found.warnings == (found.reason,)
    sim = eq.simulate(
        "adaptive", BETTER, QUESTION, eq.Costs(), repeats=quick(6, full=100), history_size=past
    )
    assert (sim.verdict == "INCONCLUSIVE").mean() > 0.5


def test_a_verdict_waits_while_labels_speak_against_it() -> None:
    alike = CellWorld.from_shares(dict.fromkeys("AB", (0.2, 0.2, 0.6, 0.9)))
    audit = eq.AdaptiveAudit(alike.past(), replace(QUESTION, epsilon=0.3), eq.Costs())
    weighing = audit.evidence
    assert weighing is not None
    waited = False
    rng = np.random.default_rng(4)
    for _ in range(400):
        for group in "AB":
            ticket = audit.ask(group, 0)
            if ticket.want is eq.Want.LABEL:
                audit.tell(ticket, int(rng.random() < alike.r[group]))
                if audit.finding is not None:
                    assert waited
                    return
                if all(s.refuted for s in weighing.unfair_set) or weighing.fair_set[0].refuted:
                    waited = True
                    copy = pickle.loads(pickle.dumps(audit))
                    assert copy.evidence.counted == weighing.counted
                    concluded = copy.conclude("the stream ended")
                    assert concluded.verdict is Verdict.INCONCLUSIVE
                    assert "speak against what is assumed" in concluded.reason
    raise AssertionError("neither verdict nor alarm")


@pytest.mark.parametrize("past", [None, 5_000])
def test_wrong_verdicts_and_false_alarms_are_rare_at_the_edge(past: int | None) -> None:
    """Seeds are fixed; a right program fails with probability 1e-4 over their choice."""
    runs = quick(12, full=300)
    for right, world in edges().items():
        ended = endings(world, EDGE, runs, past, seed=2)
        assert ended[right] > runs / 2
        bad = runs - ended[right] - ended["INCONCLUSIVE"]
        assert clopper_pearson(bad, runs, 1e-4 / 4)[0] <= EDGE.delta


def test_past_data_may_contradict_by_themselves() -> None:
    question = replace(QUESTION, assume=eq.Assume(True, r_at_least={"B": 0.9}))
    for found in (
        eq.check(WORLD.past(20_000, 0), question),
        eq.AdaptiveAudit(WORLD.past(20_000, 0), question, eq.Costs()).finding,
    ):
        assert found is not None
        assert found.verdict is Verdict.INCONCLUSIVE
        assert found.reason.startswith("what is assumed does not hold for B: at least 0.900")


def test_cases_of_a_plan_keep_to_it() -> None:
    limits = assumed_limits(WORLD.cells, QUESTION.assume, None)
    assert limits is not None
    for case in scenarios(WORLD.cells, QUESTION):
        for group, r in case.r.items():
            assert limits[group][0] <= r <= limits[group][1] + 1e-12


def test_a_ledger_keeps_it_and_replays_with_it() -> None:
    live = eq.LiveAudit.create("sqlite://", "x", WORLD.past(20_000, 0), QUESTION, eq.Costs(label=1))
    for i in range(12):
        live.ask(f"p{i}", "AB"[i % 2], 0)
    live.tell("p0", 1)
    assert live.verify()
    finding = live.conclude()
    assert f"{GRANTED} (granted)" in finding.assumptions
    assert GRANTED in to_markdown(Report.of(live))


def test_the_command_line_takes_it(tmp_path: object) -> None:
    from pathlib import Path

    rows = ["group,approved,outcome"]
    for group, counts in {"A": (60, 20, 20), "B": (50, 20, 30)}.items():
        for (approved, outcome), n in zip(((1, 1), (1, 0), (0, "")), counts, strict=True):
            rows += [f"{group},{approved},{outcome}"] * n
    file = Path(str(tmp_path)) / "past.csv"
    file.write_text("\n".join(rows))
    columns = ["--group", "group", "--decision", "approved", "--outcome", "outcome"]

    def check(*words: str) -> tuple[int, str]:
        given = [x for word in words for x in ("--assume", word)]
        done = CliRunner().invoke(app, ["check", str(file), *columns, *given])
        return done.exit_code, done.output

    code, shown = check("denied-no-better", "at-most:B=0.4")
    assert code == 0
    assert GRANTED in " ".join(shown.split())
    assert "at most 0.4 of the denied of B would do well" in " ".join(shown.split())
    code, shown = check("at-most:B")
    assert code == 2
    assert "at-most:GROUP=NUMBER" in " ".join(shown.split())


def test_labels_behind_a_verdict_that_waits_count_once() -> None:
    """Labels that come together after a late one: told again, or counted anew, nothing changes."""
    world = CellWorld.from_shares({"A": (0.3, 0.2, 0.5, 0.1), "B": (0.3, 0.2, 0.5, 0.27)})
    question = eq.Question(
        "false_omission_parity",
        gamma=0.0,
        epsilon=0.15,
        delta=0.2,
        assume=eq.Assume(r_at_most={"A": 0.1}),
    )
    held = 0
    for seed in range(quick(2, full=6)):
        audit = eq.AdaptiveAudit(world.past(), question, eq.Costs())
        rng, tickets = np.random.default_rng(seed), []
        for i in range(400):
            ticket = audit.ask("AB"[i % 2], 0)
            if ticket.want is eq.Want.LABEL:
                tickets.append(ticket)
        outcomes = [int(rng.random() < (0.3 if t.group == "A" else 0.6)) for t in tickets]
        for ticket, outcome in list(zip(tickets, outcomes, strict=True))[1:120]:
            audit.tell(ticket, outcome)
        audit.tell(tickets[0], outcomes[0])
        for ticket, outcome in list(zip(tickets, outcomes, strict=True))[120:160]:
            if audit.finding is not None:
                break
            audit.tell(ticket, outcome)
        weighing = audit.evidence
        assert weighing is not None
        held += weighing._held_until > 0
        anew = deepcopy(weighing)
        anew._start()
        anew._held_until = weighing.counted
        anew._count_settled(weighing.counted)
        if weighing.verdict is None:
            for now, then in zip(weighing.unfair_set, anew.unfair_set, strict=True):
                assert now.least == pytest.approx(then.least, rel=1e-9)
    assert held > 0
