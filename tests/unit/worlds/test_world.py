from __future__ import annotations

import numpy as np
import pytest
from paper.theorems import lower_bound_pair

from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.metrics import rates_given_r
from equipoise.question import Question
from equipoise.worlds import CellWorld

QUESTION = Question()

COUNTS = {
    "A": dict(zip(("approved_positive", "approved_negative"), (30, 10), strict=True))
    | {"denied_positive": 12, "denied_negative": 48},
    "B": {
        "approved_positive": 10.5,
        "approved_negative": 5,
        "denied_positive": 4.5,
        "denied_negative": 80,
    },
}
WORLD = CellWorld.from_counts(COUNTS)


def test_counts_give_cells_r_and_shares() -> None:
    assert WORLD.cells["A"].shares == (0.3, 0.1, 0.6)
    assert WORLD.r == {"A": 0.2, "B": 4.5 / 84.5}
    assert WORLD.joint.sum() == pytest.approx(1.0)
    assert WORLD.joint[0].tolist() == pytest.approx([0.15, 0.05, 0.06, 0.24])


def test_rates_are_the_textbook_ones() -> None:
    tpr = {"A": 30 / 42, "B": 10.5 / 15}
    fpr = {"A": 10 / 58, "B": 5 / 85}
    found = rates_given_r(WORLD.cells, WORLD.r, "equalized_odds")
    assert found["true_positive_rate"] == pytest.approx(tpr)
    assert found["false_positive_rate"] == pytest.approx(fpr)
    assert WORLD.gap("equalized_odds") == pytest.approx(10 / 58 - 5 / 85)


def test_a_group_without_denied_people_has_r_zero() -> None:
    world = CellWorld.from_shares({"A": (0.6, 0.4, 0.0, 0.7), "B": (0.3, 0.3, 0.4, 0.5)})
    assert world.r["A"] == 0.0
    assert rates_given_r(world.cells, world.r, "equalized_odds")["true_positive_rate"]["A"] == 1.0


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"approved_positive": -1}, InvalidInput, "'approved_positive of group A' must be"),
        ({"approved_positive": float("nan")}, InvalidInput, "finite number >= 0; got nan"),
        ({"aproved": 3}, UnknownName, "unknown count of group 'A' 'aproved'"),
        (dict.fromkeys(COUNTS["A"], 0), InvalidInput, "at least one person"),
    ],
)
def test_bad_counts_are_refused(
    change: dict[str, float], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        CellWorld.from_counts({**COUNTS, "A": COUNTS["A"] | change})


def test_a_missing_count_and_a_single_group_are_refused() -> None:
    with pytest.raises(InvalidInput, match="group 'A' lacks the count 'denied_negative'"):
        CellWorld.from_counts(
            {"A": {k: v for k, v in COUNTS["A"].items() if k != "denied_negative"}}
        )
    with pytest.raises(InvalidInput, match="at least two groups"):
        CellWorld.from_counts({"A": COUNTS["A"]})
    with pytest.raises(InvalidInput, match="must be 1; got"):
        CellWorld.from_shares({"A": (0.5, 0.5, 0.5, 0.5), "B": (0.5, 0.5, 0.0, 0.0)})
    with pytest.raises(InvalidInput, match="'r of group A' must be in"):
        CellWorld.from_shares({"A": (0.3, 0.3, 0.4, 1.5), "B": (0.5, 0.5, 0.0, 0.0)})


def test_unlimited_past_is_the_population() -> None:
    past = WORLD.past()
    assert past.exact
    assert past.cells == WORLD.cells


def test_finite_past_has_the_asked_size_and_keeps_its_word() -> None:
    past = WORLD.past(500, 3)
    assert not past.exact
    assert past.cells.total == 500
    rows = past.rows_until(25, QUESTION)
    assert rows == past.rows_until(25, QUESTION) == WORLD.past(500, 3).rows_until(25, QUESTION)
    assert 25 <= rows[1, "A"] <= past.cells["A"].total
    assert 25 <= past.rows_until(25, QUESTION, within_group=False)[1, "A"] <= 500


def test_every_run_reads_another_unlimited_past() -> None:
    first, again, other = (WORLD.past(None, seed).rows_until(25, QUESTION) for seed in (1, 1, 2))
    assert first == again != other


def test_finite_past_runs_dry_exactly_when_its_counts_do() -> None:
    past = WORLD.past(300, 4)
    for group, cells in past.cells.items():
        for outcome, count in ((1, cells.approved_positive), (0, cells.approved_negative)):
            assert (outcome, group) in past.rows_until(int(count), QUESTION)
            assert (outcome, group) not in past.rows_until(int(count) + 1, QUESTION)


def test_a_past_without_a_group_is_refused_by_name() -> None:
    world = CellWorld.from_shares(
        {"many": (0.3, 0.3, 0.4, 0.5), "few": (0.3, 0.3, 0.4, 0.5)},
        shares={"many": 1.0, "few": 1e-9},
    )
    with pytest.raises(BadData, match="past of 50 people holds nobody of group 'few'"):
        world.past(50, 0)
    with pytest.raises(InvalidInput, match="'size' must be a whole number of at least 1; got 0"):
        world.past(0)


def test_a_kind_of_people_that_does_not_exist_never_comes() -> None:
    world = CellWorld.from_shares({"A": (0.6, 0.0, 0.4, 0.7), "B": (0.3, 0.3, 0.4, 0.5)})
    assert (0, "A") not in world.past().rows_until(1, QUESTION)


def test_people_are_drawn_from_the_seed() -> None:
    first, again = WORLD.draw(100, 7), WORLD.draw(100, np.random.default_rng(7))
    assert np.array_equal(first.group, again.group)
    person = next(iter(first))
    assert person.group in WORLD.groups
    assert {person.decision, person.outcome} <= {0, 1}
    assert len(list(first)) == len(first) == 100


def test_lower_bound_pair_is_the_table_of_the_proof() -> None:
    epsilon, p, q = 0.1, 0.3, 0.25
    fair, unfair = lower_bound_pair(epsilon, p, q)
    assert fair.gap("equalized_odds") == 0.0
    assert unfair.gap("equalized_odds") == pytest.approx(2 * epsilon / (1 + 4 * epsilon))
    assert fair.cells == unfair.cells  # nothing free tells them apart
    assert unfair.joint[1, 2] * 2 == pytest.approx(q / 2 * (1 + 8 * epsilon))
    assert unfair.joint[1, 3] * 2 == pytest.approx(1 - q - p / 2 - 4 * epsilon * q)
    with pytest.raises(InvalidInput, match=r"'epsilon' must be in \(0, 0.125\); got 0.2"):
        lower_bound_pair(0.2)


def test_a_past_and_guesses_of_the_denied_make_a_world() -> None:
    past = WORLD.past(100_000, 1)
    assert CellWorld.from_past(past, {"A": 0.3, "B": 0.3}).cells == past.cells
    with pytest.raises(InvalidInput, match="of the denied of group 'B' would have succeeded"):
        CellWorld.from_past(past, {"A": 0.3})
