"""``equipoise demo``: lived through once, told in words and in numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from unittest.mock import patch

import pytest

import equipoise as eq
from equipoise.cli import demo
from equipoise.simulation import run
from tests.acceptance.shell import equipoise


@pytest.fixture(autouse=True, scope="module")
def lived_through_once() -> Iterator[None]:
    story = demo._live_through(lambda share: None)
    with patch.object(demo, "_live_through", lambda advance: story):
        yield


def test_it_tells_the_story_on_80_columns() -> None:
    done = equipoise("demo")
    assert (done.returncode, done.stderr) == (0, "")
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    for words in (
        "174,047 people",
        "the gap is 0.00",
        "wrong: the data rule it out",
        "UNFAIR: whatever the denied would have done, the gap is above 0.05; cost 0",
        "of the highest; the rule asks for 80%. UNFAIR: whatever the denied would have done, the "
        "gap is above 0.2; cost 0",
        "INCONCLUSIVE: the past data leave the gap anywhere between",
        "The paper's audit would have spent",
        "every outcome is known: the gap is 0.178.",
    ):
        assert words in " ".join(done.stdout.split())


def test_its_numbers_are_computed() -> None:
    done = equipoise("demo", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    story = json.loads(done.stdout)
    lender = eq.data.fico_lender()
    world, history = lender.world, lender.history()
    sharp = eq.Question.from_dict(story["sharp"]["question"])
    truth = world.gap(sharp.metric)
    assert story["truth"] == truth
    assert story["history"] == history.cells.to_dict()
    approvals = [c.approved / c.total for c in history.cells.values()]
    shortfall = 1.0 - min(approvals) / max(approvals)
    assert story["four_fifths"]["lower"] <= shortfall <= story["four_fifths"]["upper"]
    for check in (story["coarse"], story["sharp"]):
        assert check["approved_only"] == 0.0
        assert check["lower"] <= world.gap(check["question"]["metric"]) <= check["upper"]
    assert story["sharp"]["verdict"] == "INCONCLUSIVE"
    assert story["coarse"]["verdict"] == "UNFAIR"
    expected = eq.bounds.expectation("rs", world, sharp, eq.Costs()).cost
    assert abs(story["rs"]["mean_cost"] - expected) < 5 * story["rs"]["standard_error"]
    assert story["least_cost"] == eq.lower_bound(world, sharp, eq.Costs()).cost
    here = run(eq.AdaptiveAudit(history, sharp, eq.Costs()), world, 0)
    assert story["adaptive_here"] == json.loads(here.to_json())
    assert here.verdict in sharp.truth(truth)
    assert story["adaptive"]["errors"] == 0
