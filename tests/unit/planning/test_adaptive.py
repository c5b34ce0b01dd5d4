"""What a plan says of the adaptive audit, and that audits then cost as much."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.bounds import Price, lower_bound
from equipoise.cells import Cells, GroupCells
from equipoise.cli.plan import show_plan
from equipoise.errors import InvalidInput, UnknownName
from equipoise.free_check import check
from equipoise.history import History
from equipoise.planning import Forecast, Plan, Quantile, Rehearsal, Scenario, plan, what_if
from equipoise.planning.adaptive_forecast import forecast_adaptive
from equipoise.planning.make_plan import _advise
from equipoise.planning.rehearsal import _quantile, rehearse
from equipoise.planning.scenarios import scenarios
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld
from tests.profiles import quick

WORLD = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
COARSE = Question("equal_opportunity", gamma=0.2, epsilon=0.2)
COSTS = Costs(feature=0.1, label=1.0)
SMALL = History.from_cells(Cells({"A": GroupCells(6, 3, 9), "B": GroupCells(4, 2, 9)}))
STRICT = Question("equal_opportunity", gamma=0.02, epsilon=0.02)


@pytest.fixture(scope="module")
def made() -> Plan:
    return plan(WORLD.past(), COARSE, COSTS, audits=8, budget=20.0, arrivals_per_day=10.0,
                delay_days=30.0)  # fmt: skip


def test_cases_are_what_they_say() -> None:
    cases = scenarios(WORLD.cells, COARSE)
    for case, ratio in zip(cases, (0.1, 0.2, 0.4, 0.6, 0.8), strict=False):
        assert case.r == pytest.approx({"A": ratio * 0.75, "B": ratio * 2 / 3})
    below, above = cases[-2:]
    assert (below.expect, above.expect) == ("FAIR", "UNFAIR")
    assert COARSE.gamma - 0.01 <= below.difference <= COARSE.gamma
    assert COARSE.threshold < above.difference <= COARSE.threshold + 0.01
    for case in cases:
        world = CellWorld(WORLD.cells, case.r)
        assert case.difference == world.difference(COARSE.metric)


def test_what_is_known_of_a_group_holds_in_every_case() -> None:
    cases = scenarios(WORLD.cells, COARSE, {"B": 0.5})
    assert {case.r["B"] for case in cases} == {0.5}
    both = scenarios(WORLD.cells, COARSE, {"A": 0.4, "B": 0.5})
    assert [case.name for case in both] == ["the denied succeed as you say"]
    with pytest.raises(UnknownName, match="'C'"):
        scenarios(WORLD.cells, COARSE, {"C": 0.5})
    with pytest.raises(InvalidInput, match=r"must be in \[0, 1\]; got 1.5"):
        scenarios(WORLD.cells, COARSE, {"B": 1.5})


def test_the_plan_leads_with_cases_and_one_recommendation(made: Plan) -> None:
    assert made.recommended == "adaptive"
    assert str(made).startswith("recommended: run the adaptive audit; it costs about")
    assert len(made.cases) == 7
    for seen in made.cases:
        costs = [seen.cost[level].value or np.inf for level in ("0.1", "0.5", "0.9")]
        assert costs == sorted(costs)
        assert sum(seen.verdicts.values()) == pytest.approx(1.0)
        assert made.days(seen) == pytest.approx(seen.people / 10.0 + 30.0)
    assert Plan.from_json(made.to_json()) == made


def test_a_rehearsal_costs_what_a_simulated_audit_costs() -> None:
    """Means of 25 runs each agree within 4.5 standard errors (false alarm below 1e-5)."""
    question, n = Question("equal_opportunity", gamma=0.2, epsilon=0.3), 25
    case = scenarios(WORLD.cells, question)[2]
    world = CellWorld(WORLD.cells, case.r)
    (seen,) = rehearse(AdaptiveAudit(WORLD.past(), question, COSTS), [case], audits=n)
    sim = simulate("adaptive", world, question, COSTS, repeats=n, seed=4)
    assert seen.wrong == 0.0
    # the same law: the other's median lies within the quantiles that hold all but 1e-5 of them
    middle = seen.cost["0.5"].value
    assert middle is not None
    assert np.quantile(sim.cost, 0.02) < middle < np.quantile(sim.cost, 0.98)


def test_a_quantile_s_range_holds_the_true_one() -> None:
    """A 90% range from 40 values, 400 times: misses are Binomial(400, at most 0.1)."""
    rng = np.random.default_rng(0)
    for level in (0.1, 0.5, 0.9):
        true = -np.log1p(-level)
        missed = 0
        for _ in range(400):
            seen = _quantile(rng.exponential(size=40), level)
            missed += not seen.low <= true <= (np.inf if seen.high is None else seen.high)
        assert missed <= 66  # binom.ppf(1 - 1e-4, 400, 0.1) = 63, and ties of order


@pytest.mark.parametrize("n", [8, 19, 30, 40])
def test_the_planned_range_holds_the_next_audit_as_often_as_it_says(n: int) -> None:
    """Of n + 1 audits each is the last with equal chance: count those that the others enclose."""
    values, inside = np.arange(n + 1.0), 0
    for last in values:
        low, high = (_quantile(values[values != last], q).value for q in (0.1, 0.9))
        assert low is not None
        assert high is not None
        inside += bool(low <= last <= high)
    assert min(0.8, (n - 1) / (n + 1)) <= inside / (n + 1) <= 0.9


def test_the_budget_s_chance_is_that_of_audits_with_it(made: Plan) -> None:
    bought = made.affordable
    assert bought is not None
    assert bought.epsilon is not None
    assert bought.epsilon > 0.0
    for afforded, seen in zip(bought.cases, made.cases, strict=True):
        assert afforded.scenario == seen.scenario
        assert 0.0 <= afforded.lower <= afforded.upper <= 1.0
    dear = [c for c in bought.cases if "grey zone" in c.scenario.name]
    assert all(case.decides < 0.5 for case in dear)


def test_rehearsals_repeat_themselves() -> None:
    audit = AdaptiveAudit(WORLD.past(), COARSE, COSTS)
    case = scenarios(WORLD.cells, COARSE)[:1]
    once, again = (rehearse(audit, case, audits=4, seed=2) for _ in range(2))
    assert once == again
    assert rehearse(audit, case, audits=4, seed=3) != once
    assert audit.labels == 0


def test_a_past_that_is_too_small_is_said_to_be() -> None:
    made = plan(SMALL, STRICT, COSTS, audits=quick(1, full=4))
    (row,) = (row for row in made.rows if row.audit == "adaptive")
    assert not row.possible
    assert "more past rows" in row.missing[0]
    assert made.recommended is None
    assert Plan.from_json(made.to_json()) == made


def test_the_group_that_is_the_cause_is_named() -> None:
    cells = Cells(
        {
            "A": GroupCells(9_000, 3_000, 18_000),
            "B": GroupCells(8_800, 3_000, 18_200),
            "C": GroupCells(2, 1, 2),
        }
    )
    made = plan(History.from_cells(cells), COARSE, COSTS, audits=quick(1, full=4))
    missing = next(row for row in made.rows if row.audit == "adaptive").missing
    assert any("the smallest group is 'C' with 5 past rows; without it" in m for m in missing)


def test_nothing_is_rehearsed_where_the_past_decides() -> None:
    made = plan(WORLD.past(), Question("demographic_parity"), COSTS)
    assert made.cases == ()
    assert made.recommended == "check"


def test_labels_cannot_help_a_metric_that_does_not_depend_on_them() -> None:
    made = plan(SMALL, Question("demographic_parity"), COSTS)
    (row,) = (row for row in made.rows if row.audit == "adaptive")
    assert row.missing == ("more past rows",)


def test_what_if_agrees_with_the_plan_and_moves_one_number_at_a_time(made: Plan) -> None:
    done: list[float] = []
    found = what_if(WORLD.past(), COARSE, COSTS, audits=8, progress=done.append)
    assert [(v.name, v.value) for v in found] == [
        *(("gamma", 0.1), ("gamma", 0.2), ("gamma", 0.4)),
        *(("epsilon", 0.1), ("epsilon", 0.2), ("epsilon", 0.4)),
        *(("delta", 0.025), ("delta", 0.05), ("delta", 0.1)),
    ]
    assert done[-1] == 1.0
    by_name = {(v.name, v.value): v.seen for v in found}
    assert by_name["gamma", 0.2] == by_name["delta", 0.05] == made.cases[2]


def test_what_if_keeps_to_questions_that_can_be_asked() -> None:
    found = what_if(WORLD.past(), Question("accuracy_parity", 0.0, 0.6), COSTS, audits=2)
    assert [(v.name, v.value) for v in found] == [
        *(("gamma", 0.0), ("epsilon", 0.3), ("epsilon", 0.6), ("delta", 0.025)),
        *(("delta", 0.05), ("delta", 0.1)),
    ]


def rehearsed(name: str, *costs: float | None) -> Rehearsal:
    known = {
        q: Quantile(cost, 0.0, None) for q, cost in zip(("0.1", "0.5", "0.9"), costs, strict=True)
    }
    case = Scenario(name, {"A": 0.1}, 0.2, "FAIR or UNFAIR")
    return Rehearsal(case, 40, {"FAIR": 1.0}, known, {"A": 123_456.0}, 9_876_543.0, 0.0)


@pytest.mark.parametrize(
    ("dear", "ends"),
    [
        (4000.0, "and at most 4,000 nine times in ten in the dearest"),
        (
            None,
            "but in the dearest (just above the grey zone) more than one audit in ten had not "
            "ended after 20,000 labels",
        ),
    ],
)
def test_advice_is_a_sentence_also_where_no_end_was_seen(dear: float | None, ends: str) -> None:
    cheap = rehearsed("the denied succeed 10% as often as the approved", 50.0, 110.0, 300.0)
    other = rehearsed("the gap just above the grey zone", 700.0, 1_234_567.0, dear)
    forecast = Forecast("adaptive", Price(), Price(), Price(), "wrong rarely", cases=(cheap, other))
    free = check(WORLD.past(), COARSE)
    recommended, advice = _advise(free, [forecast])
    words = "run the adaptive audit; it costs about 110 in the cheapest case below, "
    assert (recommended, advice) == ("adaptive", words + ends)
    made = Plan(COARSE, COSTS, free, (forecast,), recommended, advice)
    assert "more than was" not in str(made)
    out = io.StringIO()
    show_plan(Console(file=out, width=80, highlight=False), made)
    (row,) = (line for line in out.getvalue().splitlines() if line.startswith("  just above"))
    assert ["1.23e+06", "4,000" if dear else "end", "123,456", "9.88e+06"] == [
        word for word in row.split()[-5:] if word != "no"
    ][-4:], "a number must not wrap"


def test_many_groups_are_estimated_from_the_least_possible_cost() -> None:
    """Nine groups would take long to rehearse; a plan says what its figures rest on."""
    rng = np.random.default_rng(1)
    cells = {
        f"g{i}": GroupCells(
            *rng.multinomial(30_000, [0.4 + 0.01 * i, 0.1, 0.5 - 0.01 * i]).tolist()
        )
        for i in range(9)
    }
    history, question = History.from_cells(Cells(cells)), Question("equal_opportunity", 0.2, 0.3)
    told: list[float] = []
    made = forecast_adaptive(history, question, Costs(), told.append)
    assert made.possible
    assert told == sorted(told)
    assert told[-1] == 1.0
    for seen in made.cases:
        assert seen.audits == 0
        assert "C* (the least that any audit costs) = " in seen.rests_on
        costs = [seen.cost[name].value for name in ("0.1", "0.5", "0.9")]
        world = CellWorld(history.cells, seen.scenario.r)
        assert all(cost is not None for cost in costs)
        assert costs == sorted(costs)
        assert costs[1] >= lower_bound(world, question, Costs())
        assert min(seen.labels.values()) >= 5
