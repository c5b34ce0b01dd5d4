"""What a plan says: the free answer, a forecast per case, the paper's audits in a line each."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from equipoise.bounds import expectation
from equipoise.cells import Cells, GroupCells
from equipoise.cli.console import print_parts
from equipoise.cli.plan import plan_parts
from equipoise.display import format_figures
from equipoise.free_check import check
from equipoise.history import History
from equipoise.planning import Forecast, Plan, Scenario, ScenarioKind, plan
from equipoise.planning.make_plan import _advise
from equipoise.planning.scenarios import denied_rates_by_ratio
from equipoise.question import Costs, Question, Verdict
from equipoise.worlds import CellWorld, MixtureWorld
from tests.profiles import quick

WORLD = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
QUESTION = Question(epsilon=quick(0.2, full=0.1))
COARSE = Question("equal_opportunity", gamma=0.2, epsilon=0.2)
COSTS = Costs(feature=0.1, label=1.0)
SMALL = History.from_cells(Cells({"A": GroupCells(6, 3, 9), "B": GroupCells(4, 2, 9)}))


def test_the_plan_leads_with_cases_and_one_recommendation() -> None:
    made = plan(WORLD.past(), COARSE, COSTS)
    assert made.recommended == "adaptive"
    assert str(made).startswith("recommended: run the adaptive audit. Typical cost ")
    assert len(made.cases) == 7
    for seen in made.cases:
        low, middle, high = (seen.cost[level] or np.inf for level in ("0.1", "0.5", "0.9"))
        assert low < middle < high
        assert (seen.trial_runs, seen.decides, seen.missing) == (0, None, "")
        assert min(seen.labels.values()) >= 5  # the pilot
    assert Plan.from_json(made.to_json()) == made


def test_nothing_is_forecast_where_the_past_decides() -> None:
    made = plan(WORLD.past(), Question("demographic_parity"), COSTS)
    assert made.free.verdict is Verdict.UNFAIR
    assert (made.cases, made.recommended) == ((), "check")
    assert made.advice == "nothing to pay: the past data decide (UNFAIR)"


def test_labels_cannot_help_a_metric_that_does_not_depend_on_them() -> None:
    made = plan(SMALL, Question("demographic_parity"), COSTS)
    assert (made.cases, made.recommended) == ((), None)
    assert "more past rows" in made.advice


def test_a_past_that_is_too_small_is_said_to_be_and_how_many_rows_would_do() -> None:
    strict = Question("equal_opportunity", gamma=0.05, epsilon=quick(0.1, full=0.05))
    made = plan(SMALL, strict, COSTS)
    assert made.recommended is None
    assert "no number of overrides decides with these historical data; about" in made.advice
    for seen in made.cases:
        assert not seen.is_decidable
        assert seen.rows is not None
        assert seen.rows > 10 * SMALL.cells.total
        assert "past rows like these would do" in seen.missing
    assert Plan.from_json(made.to_json()) == made


def test_the_paper_s_audits_in_a_line_each_at_the_usual_case() -> None:
    made = plan(WORLD.past(), QUESTION, COSTS)
    assert [other.audit for other in made.others] == ["rs", "baseline", "exp"]
    usual = CellWorld(WORLD.cells, denied_rates_by_ratio(WORLD.cells))
    assert made.others[0].price == expectation("rs", usual, QUESTION, COSTS)
    assert [other.possible for other in made.others] == [True, True, False]
    assert "features of past people" in made.others[2].missing[0]
    assert f"rs: {made.others[0].price}" in str(made)
    short = {other.audit: other for other in plan(WORLD.past(2_000), QUESTION, COSTS).others}
    assert all("more past rows" in short[name].missing[0] for name in ("rs", "baseline"))
    modelled = plan(MixtureWorld.synthetic(14.0).past(), Question(gamma=0.0), COSTS)
    assert next(other for other in modelled.others if other.audit == "exp").possible
    assert plan(WORLD.past(), Question("accuracy_parity"), COSTS).others == ()


def test_random_accepts_say_which_case_to_expect() -> None:
    """The recommendation is about what they show, not about the cheapest case there might be."""
    accepts = {"A": (24, 56, 3), "B": (24, 56, 0)}
    cells = Cells(
        {
            "A": GroupCells(6_000, 1_500, 7_500, random_accepts=accepts["A"]),
            "B": GroupCells(2_500, 1_000, 6_500, random_accepts=accepts["B"]),
        }
    )
    made = plan(History.from_cells(cells), Question("equal_opportunity", gamma=0.05, epsilon=0.1))
    first = made.cases[0]
    assert "accepted at random" in first.scenario.name
    for group, (good, bad, _) in accepts.items():
        usual = denied_rates_by_ratio(cells)[group]
        assert first.scenario.r[group] == pytest.approx((good + 10 * usual) / (good + bad + 10))
    assert made.advice == (
        f"run the adaptive audit. Typical cost {format_figures(first.median or 0.0)} if "
        f"{first.scenario.name}; at most {format_figures(first.cost['0.9'] or 0.0)} nine times "
        "in ten"
    )
    assert min(seen.median or np.inf for seen in made.cases) < (first.median or 0.0)
    assert made.others[0].price == expectation(
        made.others[0].audit, CellWorld(cells, first.scenario.r), made.question, made.costs
    )


def test_no_trial_runs_may_be_said_as_0() -> None:
    past = WORLD.past()
    assert plan(past, COARSE, trial_runs=0) == plan(past, COARSE)


def test_gamma_zero_is_remarked_on() -> None:
    assert "gamma = 0" in plan(WORLD.past(), Question(gamma=0.0), COSTS).notes[0]
    assert plan(WORLD.past(), QUESTION, COSTS).notes == ()


def case_of(kind: ScenarioKind, *costs: float | None, rows: float | None = None) -> Forecast:
    known = dict(zip(("0.1", "0.5", "0.9"), costs, strict=True))
    case = Scenario(kind, {"A": 0.1}, 0.2, "FAIR or UNFAIR")
    return Forecast(
        case, known, {"A": 123_456.0}, 9_876_543.0, rows, 40, {"FAIR": 0.6, "none": 0.4}
    )


@pytest.mark.parametrize(
    ("costs", "typical", "ends"),
    [
        (
            (700.0, 1_234_567.0, 4_000_000.0),
            "110 to 1,230,000",
            "; at most 4,000,000 nine times in ten in the most expensive case",
        ),
        (
            (700.0, 1_234_567.0, None),
            "110 to 1,230,000",
            "; more than one audit in ten in the most expensive case ends",
        ),
        (
            (700.0, None, None),
            "110",
            "; 1 of 2 cases cannot be decided with these historical data: about 31,000 past",
        ),
    ],
)
def test_advice_is_a_sentence_also_where_no_end_was_seen(
    costs: tuple[float | None, ...], typical: str, ends: str
) -> None:
    cheap = case_of(ScenarioKind.AS_GIVEN, 50.0, 110.0, 300.0)
    other = case_of(ScenarioKind.ABOVE_GREY_ZONE, *costs, rows=31_234.0)
    free = check(WORLD.past(), COARSE)
    recommended, advice = _advise(free, (cheap, other))
    words = f"run the adaptive audit. Typical cost {typical}, depending on how often denied people"
    assert recommended == "adaptive"
    assert advice.startswith(words)
    assert ends in advice
    made = Plan(COARSE, COSTS, free, (cheap, other), (), recommended, advice)
    out = io.StringIO()
    print_parts(Console(file=out, width=80, highlight=False), plan_parts(made))
    shown = out.getvalue()
    (row,) = (line for line in shown.splitlines() if line.startswith("  gap just"))
    assert "60%" in row.split()
    if costs[1] is None:
        assert "about 31,000 past rows like these would do" in " ".join(shown.split())
    else:
        assert "1,230,000" in row.split(), "a number must not wrap"


def test_the_typical_cost_is_of_the_usual_cases() -> None:
    """Gaps beside the grey zone are the worst cases, and have a line of their own."""
    cases = [
        replace(case, scenario=replace(case.scenario, kind=ScenarioKind.RATIO, ratio=ratio))
        for ratio, case in (
            (0.2, case_of(ScenarioKind.AS_GIVEN, 70.0, 177.4, 300.0)),
            (0.8, case_of(ScenarioKind.AS_GIVEN, 6.0, 15.4, 30.0)),
        )
    ]
    beside = case_of(ScenarioKind.BELOW_GREY_ZONE, 2_000.0, 6_000.0, 14_000.0)
    _, advice = _advise(check(WORLD.past(), COARSE), (*cases, beside))
    assert "Typical cost 15 to 177, depending on" in advice
    assert "at most 14,000 nine times in ten in the most expensive case" in advice


def test_a_case_without_a_verdict_has_words_and_no_dot() -> None:
    pytest.importorskip("matplotlib")
    cheap = case_of(ScenarioKind.AS_GIVEN, 50.0, 110.0, 300.0)
    undecided = case_of(ScenarioKind.ABOVE_GREY_ZONE, None, None, None, rows=31_234.0)
    free = check(WORLD.past(), COARSE)
    drawn = Plan(COARSE, COSTS, free, (cheap, undecided), (), "adaptive", "run it").plot()
    dots = [line for line in drawn.get_lines() if line.get_marker() == "o"]
    assert [np.asarray(dot.get_xdata()).tolist() for dot in dots] == [[110.0]]
    assert "no verdict possible" in [text.get_text() for text in drawn.texts]
    names = [label.get_text().split("\n")[0] for label in drawn.get_yticklabels()]
    assert names == ["as you say", "gap just above the grey zone"]
