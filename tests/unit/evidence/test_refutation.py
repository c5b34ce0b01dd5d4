"""When a wrong answer is refuted: all cells are looked at, at all ends of epochs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.cells import GroupCells
from equipoise.evidence import Evidence, row_answers
from equipoise.evidence.boxes import PieceBoxes
from equipoise.evidence.null_cells import BoxParts, CornerCells, NullCells
from equipoise.evidence.row_answers import RowAnswers
from equipoise.question import Verdict
from equipoise.rates import RATES
from tests.profiles import examples, quick
from tests.unit.evidence.states import Setup, random_events, random_setup, record, request, setups

pytestmark = pytest.mark.slow


@examples(3)
@given(setups(most_groups=4, labels=150), st.integers(0, 2**32))
def test_a_verdict_is_found_when_all_cells_are_looked_at(setup: Setup, seed: int) -> None:
    """By definition: now, or at the end of an earlier epoch, of what is known now."""
    rng, evidence = np.random.default_rng(seed), setup.start(0.2)
    events = random_events(setup, rng)
    for kind, number, value in events:
        if kind == "ask":
            request(evidence, value)
            continue
        record(evidence, number, value)
        evidence.advance(replan=kind == "tell")
        if kind == "tell" and evidence.verdict is None:
            assert not any(refuted_by_definition(evidence))
        elif kind == "correct":
            assert any(refuted_by_definition(evidence)) == (evidence.verdict is not None)


def refuted_by_definition(evidence: Evidence) -> list[bool]:
    """Say of either wrong answer whether it is refuted, from the definition alone."""
    epochs = evidence.log.epochs
    counts = epochs.label_counts.cumsum(axis=0)
    counts = counts[np.append(epochs.remembered_ends(), True)]  # ends of epochs, and now
    found = []
    for wrong_set in (evidence.refutation.unfair_set, evidence.refutation.fair_set):
        least, bar = 0.0, wrong_set.bar
        for cover in wrong_set.covers:
            looks = np.array(
                [
                    np.exp(np.minimum(cover.cells.log_wealth(c, slice(None)), 600.0)).sum(axis=1)
                    for c in counts
                ]
            )
            standing = (looks < bar).all(axis=0)
            least += looks[-1][standing].min(initial=np.inf)
        found.append(bool(least >= bar))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_an_answer_is_given_once_its_evidence_reaches_what_is_needed(seed: int) -> None:
    setup = random_setup(seed, most_groups=3, labels=60)
    evidence = setup.start(0.3)
    for group, outcome in setup.stream():
        evidence.advance()
        reached = set()
        for answer in (Verdict.FAIR, Verdict.UNFAIR):
            weight = evidence.refutation.evidence_for(answer)
            if weight.e_value >= weight.needed * (1.0 - 1e-12):
                reached.add(answer)
        assert (evidence.verdict is None) == (not reached)
        if evidence.verdict is not None:
            assert evidence.verdict in reached
            break
        record(evidence, request(evidence, group), outcome)


def test_covers_of_the_fair_set_share_the_level() -> None:
    """With three groups and more every rate has its own cover, any of which may be refuted."""
    for seed in range(12):
        evidence = random_setup(seed, 6).start(0.04)
        unfair_set = evidence.refutation.unfair_set
        assert [cover.bar for cover in unfair_set.covers] == [1.0 / 0.04]
        covers = evidence.refutation.fair_set.covers
        for cover in covers:
            assert cover.bar == pytest.approx(len(covers) / 0.04, rel=1e-12)


# -- parts of boxes -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", quick([0, 5], full=list(range(6))))
def test_boxes_are_cut_as_if_all_of_them_were(seed: int) -> None:
    """The verdict and the e-values are those of all parts of all boxes, by definition."""
    rng = np.random.default_rng(seed)
    k = 2 + seed % 2
    shares = rng.dirichlet([2.0, 1.0, 3.0], k)
    # Two groups with as many rows have a cover for either order, three have one per pair.
    counts = [GroupCells(*(np.round(800 * s).astype(int) + 1).tolist()) for s in shares]
    answers = RowAnswers(
        (RATES["true_positive_rate"],), tuple(counts), 0.02, 0.3, level_fair=0.2, level_unfair=0.2
    )
    evidence = Evidence(answers, np.array([[0.0] * k, [1.0] * k]), np.ones(k, dtype=bool))
    refutation = evidence.refutation
    wrong_sets = {Verdict.FAIR: refutation.unfair_set, Verdict.UNFAIR: refutation.fair_set}
    parts = {v: [all_parts(c.cells) for c in s.covers] for v, s in wrong_sets.items()}
    r = rng.uniform(0.1, 0.9, k)
    for number in range(90):
        groups = rng.integers(k, size=1)
        evidence.request(groups)
        evidence.record(np.array([number]), (rng.random(1) < r[groups]).astype(int))
        evidence.advance()
        least = {v: least_by_definition(evidence, parts[v], wrong_sets[v].bar) for v in parts}
        decided = {v for v in parts if sum(least[v]) >= wrong_sets[v].bar}
        assert (evidence.verdict is not None) == bool(decided)
        if decided:
            assert evidence.verdict in decided
            break
        for verdict in parts:
            expected = min(sum(least[verdict]), wrong_sets[verdict].bar) / len(parts[verdict])
            assert refutation.evidence_for(verdict).e_value == pytest.approx(expected, rel=1e-9)


def test_other_threads_see_no_box_without_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits share the parts of boxes, and one may look while another is cutting.

    A box that seems to have no parts counts as refuted.
    """
    boxes = boxes_of_several_pieces()
    alone = BoxParts(boxes)
    places = np.unique(boxes.origin[:, 0], return_index=True)[1]
    assert len(places) > 2
    n_parts = [len(alone.cut(np.array([place]))) for place in places]
    shared = BoxParts(boxes)
    cut_pieces = CornerCells.parts
    seen = []

    def look_in_between(
        cells: CornerCells, chosen: np.ndarray
    ) -> Iterator[tuple[CornerCells, np.ndarray]]:
        for parts_of_piece in cut_pieces(cells, chosen):
            yield parts_of_piece
            with monkeypatch.context() as context:
                context.setattr(CornerCells, "parts", cut_pieces)
                seen.append([len(shared.cut(np.array([place]))) for place in places])

    monkeypatch.setattr(CornerCells, "parts", look_in_between)
    shared.cut(places)
    assert len(seen) > 1
    assert all(n_seen == n_parts for n_seen in seen)


def boxes_of_several_pieces() -> CornerCells:
    rates = tuple(RATES[name] for name in ("true_positive_rate", "false_positive_rate"))
    counts = GroupCells(300, 100, 600), GroupCells(250, 100, 650)
    (boxes,) = RowAnswers(rates, counts, 0.15, 0.15, 0.043, 0.043).unfair_covers()
    assert isinstance(boxes, CornerCells)
    return boxes


def test_a_correction_makes_no_box_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it cut one again, however many audits a server has: boxes rest on no outcome."""
    for name in ("_unfair_covers", "_fair_covers"):  # as if other audits had put them out of memory
        monkeypatch.setattr(row_answers, name, getattr(row_answers, name).__wrapped__)
    counts = tuple(GroupCells(200, 80, denied) for denied in (400, 800))
    answers = RowAnswers(
        *((RATES["true_positive_rate"],), counts, 0.02, 0.3), level_fair=0.2, level_unfair=0.2
    )
    evidence = Evidence(answers, np.array([[0.0] * 2, [1.0] * 2]), np.ones(2, dtype=bool))
    calls: list[str] = []
    count_calls(monkeypatch, "standing_boxes", calls)
    count_calls(monkeypatch, "parts", calls)
    numbers = evidence.request(np.arange(20) % 2)
    evidence.record(numbers, np.arange(20) // 2 % 2)
    evidence.advance()
    e_value = evidence.refutation.evidence_for(Verdict.FAIR).e_value
    assert set(calls) == {"parts"}
    for _ in range(2):
        calls.clear()
        for outcome in (1, 0):
            evidence.record(np.array([0]), np.array([outcome]))
            evidence.advance(replan=False)
        assert evidence.refutation.evidence_for(Verdict.FAIR).e_value == e_value
        assert "standing_boxes" not in calls
    assert not calls  # the first time other boxes were cut, at other counts


def count_calls(monkeypatch: pytest.MonkeyPatch, name: str, calls: list[str]) -> None:
    original = getattr(PieceBoxes, name)

    def counted(self: PieceBoxes, *arguments: Any) -> Any:
        calls.append(name)
        return original(self, *arguments)

    monkeypatch.setattr(PieceBoxes, name, counted)


def all_parts(cells: NullCells) -> CornerCells:
    assert isinstance(cells, CornerCells)
    every = np.arange(len(cells))
    can_be_cut = cells.can_be_cut(every)
    cut = [parts for parts, _ in cells.parts(every[can_be_cut])]
    return CornerCells.joined([cells.select(every[~can_be_cut]), *cut])


def least_by_definition(evidence: Evidence, covers: list[CornerCells], bar: float) -> list[float]:
    """Return, per cover, the least evidence against a part that no end of an epoch refutes."""
    epochs = evidence.log.epochs
    counts = epochs.label_counts.cumsum(axis=0)
    counts = counts[np.append(epochs.remembered_ends(), True)]  # ends of epochs, and now
    least = []
    for cells in covers:
        looks = np.array([cells.evidence(cells.log_wealth(c, slice(None))) for c in counts])
        standing = (looks < bar).all(axis=0)
        least.append(float(looks[-1][standing].min(initial=bar)))
    return least
