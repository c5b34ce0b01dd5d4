"""Deciders as if at random: what their cases bound, at what level, and what contradicts it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

import equipoise as eq
from equipoise.cells import Cells, Decider, GroupCells
from equipoise.cli.app import app
from equipoise.errors import InvalidInput, UnknownName
from equipoise.free_check.deciders import bound_base_rate, decider_band
from equipoise.history import Past
from equipoise.levels import CHECK_RANGE_SHARE, ErrorBudget
from equipoise.metrics import METRICS
from equipoise.rates import RATES, clopper_pearson
from tests.profiles import quick
from tests.support.courts import Court
from tests.support.messages import refused

COURTS = quick(50, full=100)
COLUMNS = {"group": "race", "decision": "ok", "outcome": "came", "decider": "judge"}


def table(rows: list[tuple[object, ...]]) -> dict[str, list[object]]:
    names = ("race", "judge", "ok", "came")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


ROWS: list[tuple[object, ...]] = [
    *[("A", "Xu", 1, 1), ("A", "xu ", 1, 0), ("A", "Xu", 0, None), ("A", "Yi", 1, None)],
    *[("B", "Yi", 1, 1), ("B", "Yi", 0, None), ("B", "Zo", 0, None), ("B", "Wu", 1, 0)],
]


def test_deciders_are_counted_and_small_ones_together_by_numbers_of_cases() -> None:
    past = eq.History.read(table(ROWS), unknown="bounds", **COLUMNS)
    assert past.deciders == (
        (Decider("Xu", 1, 1, 3), Decider("Yi", 0, 0, 1)),  # an unknown outcome counts in neither
        (Decider("Wu", 0, 1, 1), Decider("Yi", 1, 0, 2), Decider("Zo", 0, 0, 1)),
    )
    few = eq.History.read(table(ROWS), unknown="bounds", min_cases=2, **COLUMNS)
    assert few.deciders[1] == (
        Decider("2 with fewer than 2 cases", 0, 1, 2),
        Decider("Yi", 1, 0, 2),
    )
    assert past.summary is not None
    assert past.summary.columns["decider"] == "judge"
    with refused("decider-missing", column="judge", rows=1):
        eq.History.read(table([*ROWS, ("A", None, 0, None)]), unknown="bounds", **COLUMNS)
    with pytest.raises(InvalidInput, match=r"'min_cases'.*belongs to 'decider'"):
        eq.History.read(table(ROWS), min_cases=2, **(COLUMNS | {"decider": None}))


@pytest.mark.parametrize("rate", [*RATES.values()], ids=[*RATES])
def test_a_rate_lies_in_its_band_wherever_shares_and_q_are(rate: eq.rates.Rate) -> None:
    """At every p1, p0 and q that the bounds allow, also where a corner is no population."""
    rng = np.random.default_rng(5)
    alpha = 0.05
    n_checked = 0
    for _ in range(60):
        good, bad, unknown, denied = rng.integers(0, 12, size=4)
        if good + bad + denied == 0:
            continue
        counts = GroupCells(int(good), int(bad), int(denied), approved_unknown=int(unknown))
        n = counts.total
        base_rate = bound_base_rate([Decider("X", int(good), int(bad), n)], alpha).interval
        band = decider_band(rate, counts, base_rate, alpha)
        p1s = clopper_pearson(good, n, alpha)[0], clopper_pearson(good + unknown, n, alpha)[1]
        p0s = clopper_pearson(bad, n, alpha)[0], clopper_pearson(bad + unknown, n, alpha)[1]
        p1 = rng.uniform(*p1s, size=300)
        p0 = rng.uniform(*p0s, size=300)
        q = rng.uniform(base_rate.lower, base_rate.upper, size=300)
        if rate.trend == 0:
            continue  # as without deciders
        fits = (q >= p1) & (q + p0 <= 1.0)
        for tp, fp, good_share in zip(p1[fits], p0[fits], q[fits], strict=True):
            numerator, denominator = rate.fraction(tp, fp, good_share - tp, 1.0 - good_share - fp)
            if denominator <= 1e-12:
                continue
            u = (good_share - base_rate.lower) / (base_rate.upper - base_rate.lower)
            low, high = band.rate_range(u, u)
            assert low - 1e-9 <= numerator / denominator <= high + 1e-9
            n_checked += 1
    assert n_checked > 1000 or rate.trend == 0


@pytest.mark.parametrize("q", [0.02, 0.3, 0.7])
def test_a_bound_of_q_is_missed_with_probability_at_most_alpha(q: float) -> None:
    """Exactly, also of several deciders together, whose cases are good and approved with less."""
    n, alpha = 40, 0.05
    above = [clopper_pearson(k, n, alpha)[0] > q for k in range(n + 1)]
    assert binom.pmf(np.arange(n + 1), n, q)[above].sum() <= alpha
    half = n // 2  # one approves all, one only half of those who would do well
    law = np.convolve(
        binom.pmf(np.arange(half + 1), half, q), binom.pmf(np.arange(half + 1), half, q / 2)
    )
    assert law[above].sum() <= alpha


@pytest.mark.parametrize("metric", ["equal_opportunity", "equalized_odds"])
def test_every_bound_is_paid_for(metric: str) -> None:
    question = eq.Question(metric, delta=0.06, delta_wrong_fair=0.1, delta_wrong_unfair=0.02)
    budget = ErrorBudget.of_check(question, 3, n_deciders=[4, 9, 7])
    rates = len(METRICS[metric].rates)
    wrong_fair = budget.past_fair * (2 + 9 + 7)
    assert wrong_fair == pytest.approx(0.1 * (1 - CHECK_RANGE_SHARE))
    page = Path(__file__).parents[3] / "docs" / "understand" / "guarantees.md"
    row = re.search(r"with deciders \| `(.+)`, and `(.+)` summed over groups", page.read_text())
    assert row is not None
    values = {"J_a": 9, "J_b": 7, "R": rates}
    of_fair, of_group = (
        eval(re.sub(r"(\d) (?=[JR])", r"\1*", text), values) for text in row.groups()
    )
    assert (of_fair, of_group) == (2 + 9 + 7, 2 * 9 + 2 * rates)
    bounds = sum(2 * judges + 2 * rates for judges in (4, 9, 7))
    ranges = budget.past_intervals * bounds
    assert budget.past_unfair * bounds + ranges == pytest.approx(0.02)
    assert wrong_fair + ranges <= 0.1


def test_two_deciders_who_contradict_each_other_are_named() -> None:
    counts = GroupCells(900, 900, 200)
    deciders = ((Decider("Xu", 900, 0, 1000), Decider("Yi", 0, 900, 1000)),) * 2
    past = Past(Cells({"A": counts, "B": counts}), deciders=deciders)
    finding = eq.check(past, "equal_opportunity", deciders="as_random")
    assert finding.verdict is eq.Verdict.INCONCLUSIVE
    assert "in A: at least 0.8" in finding.reason
    assert "of Xu" in finding.reason
    assert "of Yi" in finding.reason
    assert finding.warnings == (finding.reason,)
    assert not finding.base_rates
    plain = eq.check(past, "equal_opportunity")
    assert finding.lower <= plain.lower
    assert plain.upper <= finding.upper


def test_it_decides_where_the_past_alone_does_not_and_says_what_it_assumes() -> None:
    deciders = (Decider("Xu", 7900, 1950, 10_000), Decider("Yi", 4000, 100, 10_000))
    cells = Cells({g: GroupCells(11_900, 2_050, 6_050) for g in "AB"})
    past = Past(cells, deciders=(deciders, deciders))
    question = eq.Question("equal_opportunity", gamma=0.05, epsilon=0.05)
    assert eq.check(past, question).verdict is eq.Verdict.INCONCLUSIVE
    finding = eq.check(past, question, deciders="as_random")
    assert finding.verdict is eq.Verdict.FAIR
    assert finding.reason.startswith("if cases fall to deciders as if at random")
    assert any("does not confirm it" in line for line in finding.assumptions)
    assert 0.8 in finding.base_rates["A"]
    assert finding.base_rates["A"].upper - finding.base_rates["A"].lower < 0.05
    assert "would do well  A: 7" in str(finding)


def test_what_has_no_proof_is_refused() -> None:
    past = eq.History.read(table(ROWS), unknown="bounds", **COLUMNS)
    with pytest.raises(UnknownName, match=r"'deciders'.*as_random"):
        eq.check(past, "equal_opportunity", deciders="random")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="no proof for both"):
        eq.check(past, "equal_opportunity", deciders="as_random", assume=eq.Assume(True))
    plain = eq.History.from_cells(past.cells)
    with pytest.raises(InvalidInput, match="read with decider=COLUMN"):
        eq.check(plain, "equal_opportunity", deciders="as_random")


def test_the_interval_holds_in_random_courts() -> None:
    """At least as often as promised; where cases are steered it misses or is contradicted."""
    question = eq.Question("equalized_odds", gamma=0.05, epsilon=0.1)
    missed = {0.0: 0, 1.0: 0}
    contradicted = {0.0: 0, 1.0: 0}
    for steered in missed:
        rng = np.random.default_rng(11)
        for _ in range(COURTS):
            court = Court(rng, int(rng.integers(5, 51)), steered)
            past = court.past(rng, int(np.exp(rng.uniform(*np.log([1e3, 1e5])))))
            finding = eq.check(past, question, deciders="as_random")
            missed[steered] += not finding.lower <= court.gap(question) <= finding.upper
            contradicted[steered] += bool(finding.warnings)
    assert missed[0.0] + contradicted[0.0] <= binom.ppf(0.999, COURTS, question.delta)
    assert missed[1.0] > 0
    assert contradicted[1.0] > binom.ppf(0.999, COURTS, question.delta)


def test_the_command_line_takes_them(tmp_path: Path) -> None:
    file = tmp_path / "court.csv"
    lines = [
        f"{race},{judge},{ok},{'' if came is None else came}" for race, judge, ok, came in ROWS
    ]
    file.write_text("\n".join(["race,judge,ok,came", *lines]))
    command = ["check", str(file), "-g", "race", "-d", "ok", "-o", "came", "--unknown", "bounds"]
    options = ["--decider", "judge", "--min-cases", "2", "--assume", "deciders-as-random"]
    result = CliRunner().invoke(app, [*command, *options])
    assert result.exit_code == 0, result.output
    assert "cases fall to deciders as if at random" in " ".join(result.output.split())
    assert re.search(r"would do well: \d[\d.]* to \d[\d.]*% of A", result.output)
    page = CliRunner().invoke(app, [*command, *options, "--report", str(tmp_path / "p.html")])
    assert page.exit_code == 0, page.output
    assert "can be, if cases fall to deciders as if at random" in (tmp_path / "p.html").read_text()
    refused = CliRunner().invoke(app, [*command, "--assume", "deciders-as-random"])
    assert refused.exit_code == 2
