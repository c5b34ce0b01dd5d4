"""What a history says of itself, and histories of counts."""

from __future__ import annotations

import pytest

import equipoise as eq
from equipoise.errors import InvalidInput

QUESTION = eq.Question()
COUNTS = {
    "A": {"approved_positive": 30, "approved_negative": 10, "denied": 60},
    "B": {"approved_positive": 0, "approved_negative": 0, "denied": 40},
    "C": {"approved_positive": 5, "approved_negative": 0, "denied": 0},
}


def test_it_says_what_it_holds() -> None:
    history = eq.History.from_cells(COUNTS, seed=3)
    assert str(history) == f"History of 145 people in 3 groups\n{history.cells}"
    assert repr(history) == "<History of 145 people in 3 groups>"


def test_past_people_are_read_as_far_as_the_counts_go() -> None:
    history = eq.History.from_cells(COUNTS)
    for tau in (1, 7, 30):
        rows = history.rows_until(tau, QUESTION)
        assert tau <= rows[1, "A"] <= 100
        assert tau <= history.rows_until(tau, QUESTION, within_group=False)[1, "A"] <= 145
    assert set(history.rows_until(1, QUESTION)) == {(0, "A"), (1, "A"), (1, "C")}
    assert history.rows_until(5, QUESTION)[1, "C"] == 5
    assert (1, "A") not in history.rows_until(31, QUESTION)


def test_the_draw_is_that_of_counts_question_and_seed() -> None:
    large = {g: {cell: 500 * n for cell, n in c.items()} for g, c in COUNTS.items()}
    history = eq.History.from_cells(large)
    first = history.rows_until(400, QUESTION)
    turned = eq.History.from_cells(dict(reversed(large.items())))
    assert turned.rows_until(400, QUESTION) == first
    assert history.rows_until(400, eq.Question(delta=0.01)) != first
    assert eq.History.from_cells(large, seed=1).rows_until(400, QUESTION) != first
    more = {**large, "B": {**large["B"], "denied": 1}}
    assert eq.History.from_cells(more).rows_until(400, QUESTION) != first


def test_counts_must_be_whole() -> None:
    half = {"approved_positive": 0.5, "approved_negative": 1, "denied": 1}
    with pytest.raises(InvalidInput, match=r"'approved_positive' of group 'A' must be a whole"):
        eq.History.from_cells({"A": half, "B": half})


@pytest.mark.parametrize("tau", [0, -1, 1.5])
def test_tau_must_be_a_positive_whole_number(tau: int) -> None:
    with pytest.raises(InvalidInput, match="'tau' must be a whole number of at least 1"):
        eq.History.from_cells(COUNTS).rows_until(tau, QUESTION)
