"""A score that learns: what it keeps of its refits, what it says it is, what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import equipoise as eq
from equipoise.errors import InvalidInput
from equipoise.question import Want
from equipoise.worlds import CellWorld


def people(n: int, seed: int, slope: float) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return two features, and outcomes that the second tells about."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, (rng.random(n) < 1.0 / (1.0 + np.exp(-slope * x[:, 1]))).astype(int)


def test_labels_that_contradict_the_approved_are_learned_from() -> None:
    model = eq.ScoreModel(*people(300, 0, slope=2.0))
    first, (x, y) = model.version, people(120, 1, slope=-2.0)
    kept = [model.tell(row, outcome) for row, outcome in zip(x, y, strict=True)]
    assert any(kept)
    assert model.version != first
    assert model.labels == 120
    bad, good = model.score([[0.0, 2.0], [0.0, -2.0]])
    assert bad < 0.0 < good


def test_a_refit_that_only_remembers_is_not_kept() -> None:
    """A tree that knows every label by heart has no loss on them, and none of it is honest."""
    tree = DecisionTreeClassifier(random_state=0)
    model = eq.ScoreModel(*people(300, 0, slope=1.0), pipeline=LogisticRegression())
    first = model.version
    model._pipeline = tree
    x, y = people(100, 1, slope=1.0)
    assert tree.fit(x, y).score(x, y) == 1.0
    assert not any(model.tell(row, outcome) for row, outcome in zip(x, y, strict=True))
    assert not model.refit()
    assert model.version == first


def test_fits_to_the_same_people_have_the_same_name() -> None:
    approved = people(100, 0, slope=1.0)
    one, other = eq.ScoreModel(*approved), eq.ScoreModel(*approved)
    assert one.version == other.version
    assert one.version != eq.ScoreModel(*people(100, 1, slope=1.0)).version
    assert one.version != eq.ScoreModel(*approved, pipeline=LogisticRegression(C=0.1)).version


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_with_categories_and_gaps_are_taken_as_they_are(library: str) -> None:
    frames = pytest.importorskip(library)
    x, y = people(200, 0, slope=2.0)
    number = [None if i % 17 == 0 else value for i, value in enumerate(x[:, 1].tolist())]
    table = frames.DataFrame({"town": ["u", "v", "w", "u"] * 50, "number": number})
    model = eq.ScoreModel(table, y)
    for i in range(80):
        model.tell(table[i : i + 1], int(y[i]))
    stranger = frames.DataFrame({"number": [2.0], "town": ["never seen"], "more": [1]})
    assert model.look(stranger)["score"] > 0.0
    with pytest.raises(InvalidInput, match=r"columns of the approved: \['town', 'number'\]"):
        model.look(frames.DataFrame({"town": ["u"]}))


def test_an_audit_records_what_it_was_told() -> None:
    world = CellWorld.from_shares({"A": (0.3, 0.2, 0.5, 0.3), "B": (0.3, 0.2, 0.5, 0.5)})
    question = eq.Question("false_omission_parity", gamma=0.02, epsilon=0.05)
    audit = eq.AdaptiveAudit(world.past(), question, eq.Costs(), assist=eq.Assist(seed=0))
    model = eq.ScoreModel(*people(300, 0, slope=0.5))
    versions = []
    for row, outcome in zip(*people(300, 2, slope=3.0), strict=True):
        ticket = audit.ask("AB"[len(versions) % 2], 0, **model.look(row))
        if ticket.score_record is not None:
            versions.append(ticket.score_record.version)
        if ticket.want is Want.LABEL:
            audit.tell(ticket, int(outcome))
            model.tell(row, int(outcome))
    assert len(set(versions)) > 1
    assert audit.features > 0


@pytest.mark.parametrize(
    ("features", "outcomes", "options", "message"),
    [
        ([[1.0], [2.0]], [1, 1], {}, "must hold both 0 and 1"),
        ([[1.0], [2.0]], [1], {}, "one per row, 2; got"),
        ([[1.0], [2.0]], [1, 2], {}, "must be 0 or 1; got"),
        ([[1.0], [2.0]], [1, float("nan")], {}, "must be 0 or 1; got"),
        ([], [], {}, "a row per person"),
        ([["a"], ["b"]], [0, 1], {}, "cannot be fitted to 'features'"),
        ([[1.0], [2.0]], [0, 1], {"pipeline": object()}, "with 'predict_proba'; got object"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(
    features: object, outcomes: list[int], options: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        eq.ScoreModel(features, outcomes, **options)


@pytest.mark.parametrize("person", [[1.0], [[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0, 3.0], ["a", "b"]])
def test_people_unlike_the_approved_are_refused(person: object) -> None:
    model = eq.ScoreModel(*people(50, 0, slope=1.0))
    with pytest.raises(InvalidInput):
        model.look(person)
    with pytest.raises(InvalidInput):
        model.tell(person, 1)
    assert model.labels == 0
