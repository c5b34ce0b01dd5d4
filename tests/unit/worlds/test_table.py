from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.metrics import METRICS, rates_given_r
from equipoise.question import Question
from equipoise.worlds import TableWorld, read_world
from tests.profiles import examples

FRAME = pd.DataFrame(
    {
        "sex": ["f", "m", "f", "m", "f", "m", "f", "m"],
        "race": ["x", "x", "y", "y", "x", "x", "y", "y"],
        "hired": [1, 1, 0, 0, 1, 0, 1, 1],
        "good": [1, 0, 1, 0, 0, 1, 1, 1],
        "age": [30, 41, 22, 35, 52, 28, 44, 61],
        "score": [0.9, 0.8, 0.2, 0.1, 0.7, 0.3, 0.6, 0.55],
    }
)


def world_of(frame: object = FRAME, **changes: object) -> TableWorld:
    arguments: dict[str, object] = {"group": "sex", "outcome": "good", "decision": "hired"}
    return TableWorld.from_frame(frame, **(arguments | changes))  # type: ignore[arg-type]


def test_decisions_of_a_classifier_are_a_column() -> None:
    decided = world_of(FRAME.assign(hired=FRAME["score"] > 0.5))
    assert decided.cells == world_of().cells
    assert decided.r == world_of().r == {"f": 1.0, "m": 0.5}


@pytest.mark.parametrize("kind", [pl.from_pandas, lambda f: f.to_dict("list")], ids=["pl", "dict"])
def test_any_table_will_do(kind) -> None:  # type: ignore[no-untyped-def]
    assert world_of(kind(FRAME)).cells == world_of().cells


def test_groups_may_be_intersections() -> None:
    world = world_of(group=["race", "sex"])
    assert world.groups == ("x & f", "x & m", "y & f", "y & m")
    assert world.cells.total == 8


def test_words_for_yes_and_no() -> None:
    words = FRAME.assign(good=np.where(FRAME["good"] == 1, "paid", "lost"))
    assert world_of(words, positive={"outcome": "paid"}).r == world_of().r
    with pytest.raises(BadData, match="Column 'good' must be 0/1"):
        world_of(words)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"group": "sx"}, UnknownName, "unknown column 'sx'. Did you mean 'sex'"),
        ({"decision": lambda f: f["age"]}, InvalidInput, "'decision' must name a column"),
        ({"decision": "age"}, BadData, "must be 0/1"),
    ],
)
def test_bad_tables_are_refused(
    changes: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        world_of(**changes)


def test_gaps_are_refused() -> None:
    with pytest.raises(BadData, match="'good' must hold a value for everybody; 1 rows lack"):
        world_of(FRAME.assign(good=[1, 0, None, 0, 0, 1, 1, 1]))
    with pytest.raises(BadData, match="'sex' must hold a value for everybody; 1 rows lack"):
        world_of(FRAME.assign(sex=["f", "m", None, "m", "f", "m", "f", "m"]))
    with pytest.raises(InvalidInput, match="at least two groups"):
        _ = world_of(FRAME.assign(sex="f")).cells
    with pytest.raises(InvalidInput, match="'frame' must be a pandas, polars or pyarrow"):
        world_of([1, 2, 3])


@pytest.mark.parametrize("kind", [list, pd.Series, lambda v: pd.Series(v, dtype="Float64")])
def test_a_missing_score_or_price_is_none(kind: Callable[[list[float | None]], object]) -> None:
    column = kind([0.5, None, 1.5, None, 2.0, 2.5, 3.0, 3.5])
    for frame in ({**FRAME, "extra": column}, FRAME.assign(extra=column)):
        world = world_of(frame, score="extra", price="extra")
        for found in (world.score, world.price):
            np.testing.assert_array_equal(found, [0.5, np.nan, 1.5, np.nan, 2.0, 2.5, 3.0, 3.5])
    words = ["0.5", "", "NA", "nan", "2", "2.5", "3", "3.5"]
    score = world_of({**FRAME, "extra": words}, score="extra").score
    np.testing.assert_array_equal(score, [0.5, *[np.nan] * 3, 2.0, 2.5, 3.0, 3.5])


@pytest.mark.parametrize(
    ("role", "value", "rule"),
    [
        ("price", -1.0, "finite numbers of at least 0; 1 of 8 rows do not"),
        ("price", np.inf, "finite numbers of at least 0; 1 of 8 rows do not"),
        ("score", np.inf, "finite numbers; 1 of 8 rows do not"),
        ("score", "high", "must hold numbers"),
        ("features", "high", "column 'extra' must hold numbers"),
    ],
)
def test_scores_and_prices_are_checked(role: str, value: object, rule: str) -> None:
    name: Any = ["extra"] if role == "features" else "extra"
    with pytest.raises(BadData, match=rule):
        world_of({**FRAME, "extra": [1.0] * 7 + [value]}, **{role: name})
    for column in (np.ones(3), np.ones((8, 2)), np.full(8, np.datetime64("NaT", "D"))):
        with pytest.raises(
            BadData,
            match=r"per row, 8; got|numbers; got datetime|one value per",
        ):
            world_of({name: FRAME[name] for name in FRAME} | {"extra": column}, **{role: name})
    for short in ("race", "hired", "good"):
        columns = {name: FRAME[name][: 7 if name == short else 8] for name in FRAME}
        with pytest.raises(BadData, match=rf"{short}' must hold a value per row, 8; got \(7,\)"):
            world_of(columns, group=["sex", "race"])
    with pytest.raises(BadData, match="nobody has one"):
        world_of({**FRAME, "extra": [None] * 8}, **{role: name})


def test_rows_arrive_whole() -> None:
    world = world_of(features=["age", "score"])
    people = world.draw(200, 5)
    assert people.features is not None
    for person in people:
        assert person.features is not None
        row = FRAME[(FRAME["age"] == person.features[0])].iloc[0]
        assert (person.group, person.decision, person.outcome) == (
            row["sex"],
            row["hired"],
            row["good"],
        )


def test_a_past_counts_random_rows() -> None:
    world = world_of()
    past = world.past(100, 2)
    assert past.cells.total == 100
    assert past.rows_until(3, Question())[1, "m"] <= past.cells["m"].total
    assert world.past().cells == world.cells


def test_read_world_counts_what_the_table_holds(tmp_path: Path) -> None:
    path = tmp_path / "all.parquet"
    FRAME.to_parquet(path)
    world = read_world(path, group="sex", decision="hired", outcome="good")
    assert world == world_of().as_cells


def test_read_world_needs_every_outcome(tmp_path: Path) -> None:
    path = tmp_path / "partial.csv"
    FRAME.assign(good=FRAME["good"].where(FRAME["hired"] == 1)).to_csv(path, index=False)
    with pytest.raises(BadData, match="lacks the outcome of 3 people"):
        read_world(path, group="sex", decision="hired", outcome="good")


# Everybody of each decision and outcome is there at least once, so every rate is defined.
groups = st.dictionaries(
    st.sampled_from("abcd"), st.tuples(*[st.integers(1, 30)] * 4), min_size=2, max_size=4
)


@examples(5)
@given(groups)
def test_rates_are_those_of_fairlearn(counts: dict[str, tuple[int, int, int, int]]) -> None:
    rows = [
        (group, cell // 2, cell % 2)
        for group, cells in counts.items()
        for cell, count in enumerate(cells)
        for _ in range(count)
    ]
    group, decision, outcome = (np.array(column) for column in zip(*rows, strict=True))
    frame = {"group": group, "decision": decision, "outcome": outcome}
    world = TableWorld.from_frame(frame, group="group", decision="decision", outcome="outcome")
    agree_with_fairlearn(world, group, decision, outcome)


def agree_with_fairlearn(world: TableWorld, group, decision, outcome, people=None) -> None:  # type: ignore[no-untyped-def]
    """Rows stand for so many ``people``, or for one each."""
    from fairlearn import metrics as fl
    from sklearn.metrics import accuracy_score, precision_score, zero_one_loss

    functions = {
        "true_positive_rate": fl.true_positive_rate,
        "false_positive_rate": fl.false_positive_rate,
        "selection_rate": fl.selection_rate,
        "false_negative_rate": fl.false_negative_rate,
        "true_negative_rate": fl.true_negative_rate,
        "negative_predictive_value": partial(precision_score, pos_label=0),
        "error_rate": zero_one_loss,
        "accuracy": accuracy_score,
        "precision": precision_score,
        "false_omission_rate": lambda y, f, sample_weight: float(
            1.0 - precision_score(y, f, pos_label=0, sample_weight=sample_weight)
        ),
    }
    weight = np.ones(len(group)) if people is None else people
    theirs = fl.MetricFrame(
        metrics=functions,
        y_true=outcome,
        y_pred=decision,
        sensitive_features=group,
        sample_params={name: {"sample_weight": weight} for name in functions},
    )
    differences, ratios = theirs.difference(), theirs.ratio()
    for metric in METRICS:
        own = rates_given_r(world.cells, world.r, metric)
        for rate, values in own.items():
            assert values == pytest.approx(theirs.by_group[rate].to_dict(), abs=1e-12)
        largest = max(differences[rate] for rate in own)
        assert world.gap(metric) == pytest.approx(largest, abs=1e-12)
        smallest = min(ratios[rate] for rate in own)
        assert 1.0 - world.gap(metric, "ratio") == pytest.approx(smallest, abs=1e-12)
    for metric in ("equalized_odds", "equal_opportunity", "demographic_parity"):
        difference, ratio = (
            getattr(fl, f"{metric}_{kind}")(
                outcome, decision, sensitive_features=group, sample_weight=weight
            )
            for kind in ("difference", "ratio")
        )
        assert world.gap(metric) == pytest.approx(difference, abs=1e-12)
        assert 1.0 - world.gap(metric, "ratio") == pytest.approx(ratio, abs=1e-12)
