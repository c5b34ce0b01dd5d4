"""Every kind of source gives the same cells, the same places and the same errors."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.finding import Finding
from tests.profiles import examples, quick
from tests.support.messages import note_of, refused
from tests.unit.history.backends import BACKENDS, Table, offer, options

pytestmark = pytest.mark.slow

KINDS = pytest.mark.parametrize("kind", BACKENDS)
# One kind per reader: the others differ in how rows get there, not in how they are judged.
FEW_READERS = ["csv", "pandas", "sqlite file", "polars lazy"]
SOME_KINDS = pytest.mark.parametrize("kind", quick(FEW_READERS, full=BACKENDS))
READERS = pytest.mark.parametrize(
    "kind",
    quick(
        FEW_READERS,
        full=["csv", "parquet", "pandas", "polars", "sqlite file", "polars lazy", "ibis"],
    ),
)
COLUMNS = {"group": "race", "decision": "approved", "outcome": "repaid"}
Person = tuple[str, int, int | None]

PEOPLE: list[Person] = [
    ("b", 1, 1),
    ("a", 0, None),
    ("a", 1, 0),
    ("b", 1, 1),
    ("a", 1, 1),
    ("b", 0, None),
    ("b", 1, 0),
    ("a", 1, 1),
]


def table_of(people: list[Person]) -> Table:
    race, approved, repaid = (list(column) for column in zip(*people, strict=True))
    return {"id": list(range(len(people))), "race": race, "approved": approved, "repaid": repaid}


def cells_of(people: list[Person]) -> dict[str, tuple[int, int, int]]:
    kinds = ((1, 1), (1, 0), (0, None))
    return {
        group: tuple(sum(person == (group, *kind) for person in people) for kind in kinds)
        for group in sorted({group for group, _, _ in people})
    }


def tuples(history: eq.History) -> dict[str, tuple[float, float, float]]:
    return {
        g: (c.approved_positive, c.approved_negative, c.denied) for g, c in history.cells.items()
    }


def read(kind: str, table: Table, folder: Path, **more: Any) -> eq.History:
    return eq.History.read(offer(kind, table, folder), **{**COLUMNS, **options(kind), **more})


@KINDS
def test_cells(kind: str, tmp_path: Path) -> None:
    history = read(kind, table_of(PEOPLE), tmp_path)
    assert tuples(history) == cells_of(PEOPLE) == {"a": (2, 1, 1), "b": (2, 1, 1)}
    assert not history.exact


@SOME_KINDS
def test_rs_audit_and_baseline_answer_alike_wherever_the_table_is(
    kind: str, tmp_path: Path
) -> None:
    """Past(tau, y, a) is drawn from the counts: not from the order in which an engine has rows."""
    history = read(kind, table_of(PEOPLE), tmp_path)
    require_same_answers(history)


def require_same_answers(history: eq.History) -> None:
    """Hold RS-Audit's and Baseline's answers against those from the counts alone."""
    for audit in (eq.RSAudit, eq.BaselineAudit):
        found = [
            answer(audit(past, eq.Question(), eq.Costs(), tau=1))
            for past in (history, eq.History.from_cells(history.cells))
        ]
        assert found[0] == found[1]
        assert found[0].verdict is not eq.Verdict.INCONCLUSIVE


def answer(audit: Any) -> Finding:
    """Let the same people arrive."""
    rng = np.random.default_rng(5)
    while audit.finding is None:
        ticket = audit.ask(group="ab"[rng.integers(2)], decision=int(rng.integers(2)))
        outcome = int(rng.integers(2))
        if ticket.want is eq.Want.LABEL:
            audit.tell(ticket, outcome)
    return audit.finding


people = st.lists(
    st.tuples(
        st.sampled_from(["a", "b & c", "it's", 'say "x"', "Ünï", "1"]),
        st.sampled_from([(1, 1), (1, 0), (0, None)]),
    ).map(lambda pair: (pair[0], *pair[1])),
    min_size=2,
    max_size=60,
).filter(lambda rows: len({row[0] for row in rows}) > 1)


@KINDS
@examples(2)
@given(rows=people)
def test_agrees_with_a_plain_count(kind: str, rows: list[Person]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert tuples(read(kind, table_of(rows), Path(folder))) == cells_of(rows)


def changed(**columns: list[Any]) -> Table:
    return {**table_of(PEOPLE), **columns}


WORDS = [None if v is None else ("no", "yes")[v] for v in table_of(PEOPLE)["repaid"]]

BROKEN: dict[str, tuple[Table, dict[str, Any], str, dict[str, Any]]] = {
    "outcome missing on approved rows": (
        changed(repaid=[None, None, 0, 1, None, None, 0, None]),
        {},
        "outcome-unknown",
        {
            "column": "repaid",
            "rows": 3,
            "by_group": "a: 2 of 3 approved, b: 1 of 3 approved",
        },
    ),
    "outcome on denied rows": (
        changed(repaid=["yes", "yes", "no", "yes", "yes", None, "no", "yes"]),
        {"positive": "yes"},
        "denied-with-outcome",
        {
            "column": "repaid",
            "rows": 1,
            "outcomes": ["yes"],
            "decision_column": "approved",
            "approved": {"1": 6},
            "denied": {"0": 2},
        },
    ),
    "decision of words": (
        changed(approved=["y", "n", "y", "y", "y", "n", "y", "y"]),
        {},
        "decision-unexplained",
        {"column": "approved", "written": {"y": 6, "n": 2}},
    ),
    "decision of other numbers": (
        changed(approved=[2, 1, 2, 2, 2, 1, 2, 2]),
        {},
        "decision-unexplained",
        {"column": "approved", "written": {"2": 6, "1": 2}},
    ),
    "decision missing": (
        changed(approved=[1, 0, 1, 1, None, 0, 1, 1]),
        {},
        "outcome-without-decision",
        {"decision_column": "approved", "outcome_column": "repaid", "rows": 1, "labelled": 1},
    ),
    "outcome of words": (
        changed(repaid=WORDS),
        {},
        "outcome-unexplained",
        {"column": "repaid", "written": {"yes": 4, "no": 2}},
    ),
    "a positive that never occurs": (
        changed(repaid=WORDS),
        {"positive": {"outcome": "yess"}},
        "unknown-value",
        {"argument": "positive", "column": "repaid", "value": "yess", "nearest": "yes"},
    ),
    "outcome of many values": (
        changed(
            race=["a", "b"] * 60,
            approved=[1] * 120,
            repaid=[k / 7 for k in range(120)],
            id=[0] * 120,
        ),
        {},
        "not-yes-no",
        {"column": "repaid", "different": 120},
    ),
    "an identifier as group": (
        changed(
            race=["a"] * 1200, approved=[0] * 1200, repaid=[None] * 1199 + [1], id=list(range(1200))
        ),
        {"group": "id"},
        "no-groups",
        {"column": "id", "groups": 1200},
    ),
    "group missing": (
        changed(race=["b", None, "a", "b", None, "b", "b", "a"]),
        {},
        "group-missing",
        {"column": "race", "rows": 2},
    ),
    "group empty": (
        changed(race=["b", "a", "a", "b", "a", "b", " ", "a"]),
        {},
        "group-missing",
        {"column": "race", "rows": 1},
    ),
    "one group": (
        changed(race=["a"] * 8),
        {},
        "one-group",
        {"columns": ["race"], "groups": ["a"]},
    ),
    "groups of one name": (
        changed(race=["a & b", "a"] * 4, id=["c", "b & c"] * 4),
        {"group": ["race", "id"]},
        "group-names-clash",
        {"columns": ["race", "id"], "group": "a & b & c"},
    ),
}
"""Fault -> a table, what else is said of it, and the problem's code and fields."""

MISUSED: dict[str, tuple[Table, dict[str, Any], type[Exception], str]] = {
    "missing column": (
        table_of(PEOPLE),
        {"group": "rice"},
        UnknownName,
        "unknown column 'rice'. Did you mean 'race'? Known: id, race, approved, repaid",
    ),
    "a column twice": (
        table_of(PEOPLE),
        {"group": ["race", "race"]},
        InvalidInput,
        "must be different columns; 'race' is named twice",
    ),
    "no group column": (
        table_of(PEOPLE),
        {"group": []},
        InvalidInput,
        "Which column holds the group? Name it: group=COLUMN.",
    ),
    "a positive for no role": (
        changed(repaid=WORDS),
        {"positive": {"race": "yes"}},
        UnknownName,
        "unknown key of 'positive' 'race'. Known: ",
    ),
    "a positive that is no value": (
        changed(repaid=WORDS),
        {"positive": [["yes"]]},
        InvalidInput,
        "'positive' must be a value such as 'yes'",
    ),
    "a bad option": (
        table_of(PEOPLE),
        {"denied_outcomes": "use"},
        UnknownName,
        "unknown value of 'denied_outcomes' 'use'",
    ),
}


@READERS
@pytest.mark.parametrize("fault", BROKEN)
def test_bad_input_is_explained(kind: str, fault: str, tmp_path: Path) -> None:
    table, more, code, fields = BROKEN[fault]
    with refused(code, **fields) as caught:
        read(kind, table, tmp_path, **more)
    assert isinstance(caught.value, BadData)


@pytest.mark.parametrize("fault", MISUSED)
def test_misuse_is_explained(fault: str, tmp_path: Path) -> None:
    table, more, error, message = MISUSED[fault]
    with pytest.raises(error) as caught:
        eq.History.read(offer("arrays", table, tmp_path), **{**COLUMNS, **more})
    assert message in str(caught.value)


@KINDS
def test_an_empty_table_is_refused(kind: str, tmp_path: Path) -> None:
    empty: Table = {"id": [], "race": [], "approved": [], "repaid": []}
    with pytest.raises(BadData, match="has no rows"):
        read(kind, empty, tmp_path)


@KINDS
def test_words_flags_and_intersections(kind: str, tmp_path: Path) -> None:
    table = {
        "race": ["Black", "Black", "white", "white", "Black"],
        "sex": ["f", "m", "f", "f", "m"],
        "approved": [True, False, True, False, True],
        "end": ["paid", None, "late", "NA", "lost"],
    }
    table["id"] = list(range(5))
    history = read(
        kind,
        table,
        tmp_path,
        group=["race", "sex"],
        outcome="end",
        positive="paid",
        negative={"outcome": ["late", "lost"]},
    )
    assert tuples(history) == {
        "Black & f": (1, 0, 0),
        "Black & m": (0, 1, 1),
        "white & f": (0, 1, 1),
    }


@SOME_KINDS
def test_denied_outcomes_can_be_left_out(kind: str, tmp_path: Path) -> None:
    labelled = changed(repaid=[1, 1, 0, 1, 1, 0, 0, 1])
    history = read(kind, labelled, tmp_path, denied_outcomes="ignore")
    assert tuples(history) == cells_of(PEOPLE)
    note = note_of(history, "denied-outcomes-left-out")
    assert note.fields == {"column": "repaid", "rows": 2}


@SOME_KINDS
def test_the_meaning_of_one_can_be_turned_round(kind: str, tmp_path: Path) -> None:
    """A column that says 1 for a default is read with outcome 0 as the good one."""
    history = read(kind, table_of(PEOPLE), tmp_path, positive={"outcome": 0})
    assert tuples(history) == {"a": (1, 2, 1), "b": (1, 2, 1)}
