"""Verdict and ranges of a free check are one answer: neither says what the other rules out."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator
from scipy.stats import binom

import equipoise as eq
from equipoise.cells import Cells, GroupCells
from equipoise.finding import ProofStatus, gap_interval
from equipoise.free_check import Check, check
from equipoise.history import History, Past
from equipoise.levels import CHECK_RANGE_SHARE, range_level
from equipoise.messages.answer import build_answer
from equipoise.metrics import METRICS
from equipoise.question import Question, Verdict
from tests.profiles import examples, quick

REPEATS = quick(300, full=5_000)
ALARM = 1e-4  # how often a test of this module may fail by chance
COMPARISONS = ("difference", "ratio", eq.Compare(against="A", direction="below"))


@st.composite
def questions(draw: st.DrawFn) -> Question:
    levels = st.sampled_from([0.001, 0.01, 0.05, 0.2, 0.6])
    return Question(
        draw(st.sampled_from([*METRICS])),
        gamma=draw(st.sampled_from([0.0, 0.02, 0.05, 0.2])),
        epsilon=draw(st.sampled_from([0.02, 0.05, 0.2])),
        delta=draw(levels),
        delta_wrong_fair=draw(st.none() | levels),
        delta_wrong_unfair=draw(st.none() | levels),
        compare=draw(st.sampled_from(COMPARISONS)),
    )


@st.composite
def pasts(draw: st.DrawFn) -> Past:
    """Counts of two to four groups; often nearly nobody is denied, so that the data may decide."""
    groups = {}
    for group in "ABCD"[: draw(st.integers(2, 4))]:
        people = draw(st.sampled_from([40, 700, 9_000, 200_000]))
        denied = round(people * draw(st.sampled_from([0.0, 0.001, 0.02, 0.4, 0.9])))
        good = round((people - denied) * draw(st.sampled_from([0.5, 0.8, 0.83, 0.95, 1.0])))
        unknown = round(good * draw(st.sampled_from([0.0, 0.0, 0.1])))
        groups[group] = GroupCells(good - unknown, people - denied - good, denied, unknown)
    return Past(Cells(groups), exact=draw(st.booleans()))


def points_of(text: str) -> tuple[float, ...]:
    return tuple(float(number) for number in re.findall(r"\d+(?:\.\d+)?", text))


def require_one_answer(finding: Check) -> None:
    """Fail if the range reaches into what the verdict rules out, in numbers or in words."""
    question = finding.question
    sentence = build_answer(finding).sentence
    assert finding.lower <= finding.upper
    if finding.verdict is Verdict.FAIR:
        assert finding.upper <= question.threshold
    elif finding.verdict is Verdict.UNFAIR:
        assert finding.lower >= question.gamma
    elif finding.contradiction is None:
        # No verdict says that both are possible, and then each is right somewhere in the range.
        assert finding.lower <= question.gamma
        assert finding.upper > question.threshold
        assert "both answers are possible" in sentence
    else:
        assert "both answers are possible" not in sentence
    low, high = points_of(build_answer(finding).gap_range)[:2]
    assert low <= 100 * finding.lower + 1e-9
    assert high >= 100 * finding.upper - 1e-9


@examples(150)
@given(pasts(), questions(), st.booleans())
def test_the_sentence_never_contradicts_the_range(
    past: Past, question: Question, no_better: bool
) -> None:
    finding = check(past, question, assume=eq.Assume(denied_no_better=no_better))
    require_one_answer(finding)
    # The gap keeps to what the ranges of rates allow.
    allowed = gap_interval(finding.rates, question.comparison)
    assert finding.upper <= allowed.upper + 1e-9
    if not any(counts.cohorts for counts in past.cells.values()):
        assert finding.lower >= allowed.lower - 1e-9
    assert finding.range_level == range_level(question)


def test_random_checks_decide_both_ways() -> None:
    """Else the test above would say nothing about verdicts."""
    seen = set()
    rng = np.random.default_rng(1)
    for _ in range(60):
        approved = rng.uniform(0.7, 0.9, size=2)
        counts = {
            group: GroupCells(round(900 * share), round(100 * share), round(1000 * (1 - share)))
            for group, share in zip("AB", approved, strict=True)
        }
        question = Question("demographic_parity", gamma=0.03, epsilon=0.05)
        finding = check(History.from_cells(Cells(counts)), question)
        require_one_answer(finding)
        seen.add(finding.verdict)
    assert seen == set(Verdict)


# -- at the boundary -------------------------------------------------------------------------------


def count_wrong(
    question: Question, rates: dict[str, float], people: dict[str, int], seed: int
) -> tuple[int, int, int]:
    """Return how many of many checks gave a wrong verdict, a wrong range, and either.

    Everybody who is approved turns out well, so ``rates`` are the shares approved. A wrong range
    is one of the gap or of a group's rate.
    """
    rng = np.random.default_rng(seed)
    gap = max(rates.values()) - min(rates.values())
    wrong_verdict = wrong_range = wrong = 0
    for _ in range(REPEATS):
        finding = check(_draw_past(rates, people, rng), question)
        is_wrong = finding.verdict is not Verdict.INCONCLUSIVE and (
            finding.verdict not in question.truth(gap)
        )
        by_group = finding.rates["selection_rate"]
        misses = not finding.lower <= gap <= finding.upper or any(
            rates[group] not in interval for group, interval in by_group.items()
        )
        wrong_verdict += is_wrong
        wrong_range += misses
        wrong += is_wrong or misses
    return wrong_verdict, wrong_range, wrong


def _draw_past(rates: dict[str, float], people: dict[str, int], rng: Generator) -> History:
    counts = {}
    for group, rate in rates.items():
        approved = int(rng.binomial(people[group], rate))
        counts[group] = GroupCells(approved, 0, people[group] - approved)
    return History.from_cells(Cells(counts))


@pytest.mark.parametrize(
    ("gap", "levels"),
    [
        (0.1 + 1e-9, {}),  # FAIR is wrong
        (0.05 - 1e-9, {}),  # UNFAIR is wrong
        (0.075, {}),  # both are right
        (0.1 + 1e-9, {"delta_wrong_fair": 0.2, "delta_wrong_unfair": 0.02}),
        (0.05 - 1e-9, {"delta_wrong_fair": 0.02, "delta_wrong_unfair": 0.2}),
    ],
)
def test_verdict_and_ranges_are_right_together(gap: float, levels: dict[str, float]) -> None:
    """One group is known well, so that one bound alone makes a verdict wrong.

    It fails with its share of the level, 0.08 or 0.04 here, and would show if clipping added to it.
    """
    question = Question("demographic_parity", gamma=0.05, epsilon=0.05, delta=0.2, **levels)
    people = {"A": 2_000_000, "B": 400}
    rates = {"A": 0.6, "B": 0.6 - gap}
    wrong_verdict, wrong_range, wrong = count_wrong(question, rates, people, seed=5)
    most = binom.isf(ALARM, REPEATS, range_level(question))
    assert wrong <= most
    assert wrong_range >= wrong_verdict  # a wrong verdict takes its range along
    if gap != 0.075:
        assert wrong_verdict > 0  # else this would not be the boundary
        level = question.level_wrong_fair if gap > 0.1 else question.level_wrong_unfair
        assert wrong_verdict <= binom.isf(ALARM, REPEATS, (1 - CHECK_RANGE_SHARE) * level)
    else:
        assert wrong_verdict == 0


# -- what an assumption contradicts ---------------------------------------------------------------


def test_a_contradicted_assumption_gives_no_verdict_and_no_part_of_the_range() -> None:
    """Without the assumption the data answer FAIR, so "both answers are possible" would be wrong.

    971972c1 said it.
    """
    past = History.from_cells(
        Cells({group: GroupCells(9_000, 500, 50, random_accepts=(5, 20, 0)) for group in "AB"})
    )
    question = Question("equal_opportunity")
    plain = check(past, question)
    assert plain.verdict is Verdict.FAIR
    finding = check(past, question, assume=eq.Assume(r_at_least={"A": 0.99}))
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert finding.contradiction == finding.reason
    assert (finding.lower, finding.upper) == (plain.lower, plain.upper)
    sentence = build_answer(finding).sentence
    assert sentence.startswith(
        "The data contradict an assumption, so there is no verdict. Without the assumption the gap "
        "is between 0 and "
    )
    assert any("granted, but not used" in line for line in finding.assumptions)
    # The test programme is still an assumption; granting r is none that the range rests on.
    assert finding.proof is plain.proof is ProofStatus.UNDER_ASSUMPTIONS
    assert Check.from_json(finding.to_json()).contradiction == finding.contradiction
    assert "contradiction" not in plain.to_dict()


def test_delta_above_both_levels_leaves_both_answers_open() -> None:
    """971972c1 gave the range at delta, which excluded FAIR, beside "both answers are possible"."""
    counts = {"A": GroupCells(560, 0, 440), "B": GroupCells(480, 0, 520)}
    question = Question(
        "demographic_parity", delta=0.6, delta_wrong_fair=1e-4, delta_wrong_unfair=1e-4
    )
    finding = check(History.from_cells(Cells(counts)), question)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert finding.range_level == 1e-4
    require_one_answer(finding)
