"""What a history says of itself, and histories of counts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import equipoise as eq
from equipoise.errors import InvalidInput, UnknownName

COUNTS = {
    "A": {"approved_positive": 30, "approved_negative": 10, "denied": 60},
    "B": {"approved_positive": 0, "approved_negative": 0, "denied": 40},
    "C": {"approved_positive": 5, "approved_negative": 0, "denied": 0},
}


def test_it_says_what_is_remarkable() -> None:
    history = eq.History.from_cells(COUNTS, seed=3)
    assert history.notes == (
        "Fewer than 30 people, of whom little can be said, are in group 'C'.",
        "Nobody was approved, so that no outcome is known, in group 'B'.",
        "No approved person had outcome 0 in group 'C'.",
        "Nobody was denied, so that all outcomes are known, in group 'C'.",
        "Counts only: the order of rows is drawn at random (seed 3).",
    )
    assert str(history).splitlines()[0] == "History of 145 people in 3 groups"
    assert all(note in str(history) for note in history.notes)
    assert repr(history) == "<History of 145 people in 3 groups>"


def test_counts_alone_have_a_place_for_every_success() -> None:
    history = eq.History.from_cells(COUNTS)
    places = [history.rows_until(tau, group="A", outcome=1) for tau in range(1, 31)]
    assert places == sorted(set(places))
    assert places[-1] is not None
    assert places[-1] <= 100
    assert history.rows_until(31, group="A", outcome=1) is None
    assert history.rows_until(1, group="B", outcome=1) is None
    within = history.rows_until(7, group="A", outcome=1)
    everybody = history.rows_until(7, group="A", outcome=1, within_group=False)
    assert within is not None
    assert everybody is not None
    assert within <= everybody


def test_counts_must_be_whole() -> None:
    half = {"approved_positive": 0.5, "approved_negative": 1, "denied": 1}
    with pytest.raises(InvalidInput, match=r"'approved_positive' of group 'A' must be a whole"):
        eq.History.from_cells({"A": half, "B": half})


@pytest.mark.parametrize("tau", [0, -1, 1.5])
def test_tau_must_be_a_positive_whole_number(tau: int) -> None:
    with pytest.raises(InvalidInput, match="'tau' must be a whole number >= 1"):
        eq.History.from_cells(COUNTS).rows_until(tau, group="A", outcome=1)


def test_other_questions_are_refused() -> None:
    history = eq.History.from_cells(COUNTS)
    with pytest.raises(UnknownName, match="unknown group 'D'"):
        history.rows_until(1, group="D", outcome=1)
    with pytest.raises(InvalidInput, match="'outcome' must be 0 or 1"):
        history.rows_until(1, group="A", outcome=2)


def test_places_in_a_large_table() -> None:
    rng = np.random.default_rng(0)
    size = 200_000
    frame = pd.DataFrame({"g": rng.choice(["a", "b"], size), "d": rng.integers(0, 2, size)})
    frame["y"] = np.where(frame.d == 1, rng.integers(0, 2, size), np.nan)
    history = eq.History.read(frame, group="g", decision="d", outcome="y")
    own = frame[frame.g == "b"].reset_index(drop=True)
    successes = np.flatnonzero((own.d == 1) & (own.y == 1)) + 1
    for tau in (1, 1000, len(successes)):
        assert history.rows_until(tau, group="b", outcome=1) == successes[tau - 1]
    everybody = np.flatnonzero((frame.g == "b") & (frame.d == 1) & (frame.y == 0)) + 1
    place = history.rows_until(12_345, group="b", outcome=0, within_group=False)
    assert place == everybody[12_344]
