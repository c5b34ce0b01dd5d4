"""What a user grants about the denied: it narrows every layer, is printed, and may be refuted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import equipoise as eq
from equipoise.cli.app import app
from equipoise.errors import InvalidInput, UnknownName
from equipoise.question import Verdict
from equipoise.rates import clopper_pearson
from equipoise.worlds import CellWorld
from tests.profiles import quick

NO_BETTER = eq.Assume(denied_no_better=True)
GRANTED = "the denied of every group would do no better than its approved"
WORLD = CellWorld.from_shares({"A": (0.40, 0.10, 0.50, 0.35), "B": (0.36, 0.12, 0.52, 0.30)})
QUESTION = eq.Question("equalized_odds", gamma=0.05, epsilon=0.1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"denied_no_better": "yes"}, "'denied_no_better' must be True or False; got 'yes'"),
        ({"r_at_most": {"A": 1.2}}, r"r_at_most\['A'\].*1.2"),
        ({"r_at_most": 0.4}, "'r_at_most' must be a mapping of groups to numbers; got 0.4"),
        ({"r_at_most": {"A": 0.2}, "r_at_least": {"A": 0.3}}, "must not be above"),
    ],
)
def test_nonsense_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        eq.Assume(**given)  # type: ignore[arg-type]


def test_a_group_that_is_not_there_is_named() -> None:
    with pytest.raises(UnknownName, match=r"'r_at_most'.*'C'"):
        eq.check(WORLD.past(), QUESTION, assume=eq.Assume(r_at_most={"C": 0.5}))
    with pytest.raises(InvalidInput, match=r"'assume' must be an Assume, .*got True"):
        eq.check(WORLD.past(), QUESTION, assume=True)  # type: ignore[arg-type]


def test_no_better_means_that_approval_goes_with_the_outcome() -> None:
    """TPR >= selection rate >= FPR, and with a finite past up to the bound of the precision."""
    found = eq.check(WORLD.past(), QUESTION, assume=NO_BETTER)
    for group, cells in WORLD.cells.items():
        selected = 1.0 - cells.shares[2]
        assert found.rates["true_positive_rate"][group].lower == pytest.approx(selected)
        assert found.rates["false_positive_rate"][group].upper == pytest.approx(selected)
    assert f"{GRANTED} (granted)" in found.assumptions
    cells = WORLD.past(400, 0).cells
    few = NO_BETTER.limits(cells, 0.01)
    for group, counts in cells.items():
        most = clopper_pearson(counts.approved_positive, counts.approved, 0.01)[1]
        assert few[group] == (0.0, pytest.approx(most))


def test_more_granted_never_widens_what_is_known() -> None:
    both = eq.Assume(True, {"A": 0.4, "B": 0.35}, {"A": 0.3, "B": 0.25})
    wide, narrow, narrower = (
        eq.check(WORLD.past(), QUESTION, assume=assume) for assume in (None, NO_BETTER, both)
    )
    assert wide.lower <= narrow.lower <= narrower.lower <= narrower.upper <= narrow.upper
    assert narrow.upper < wide.upper
    assert narrower.verdict is Verdict.FAIR
    assert narrower.reason.startswith("under what is assumed")


@pytest.mark.parametrize("right", ["FAIR", "UNFAIR"])
def test_wrong_verdicts_are_rare_at_the_edge(right: str) -> None:
    """The denied are just like the approved and a TPR is a selection rate; gaps at the limits.

    Seeds are fixed; a right program fails with probability 1e-4 over their choice.
    """
    question = eq.Question("equal_opportunity", gamma=0.1, epsilon=0.2, delta=0.1)
    gap = question.gamma - 1e-5 if right == "FAIR" else question.threshold + 1e-5
    world = CellWorld.from_shares(
        {
            g: (0.6 * x, 0.4 * x, 1.0 - x, 0.6)
            for g, x in (("A", 0.5 + gap / 2), ("B", 0.5 - gap / 2))
        }
    )
    runs = quick(200, full=4_000)
    found = [eq.check(world.past(2_000, s), question, assume=NO_BETTER) for s in range(runs)]
    bad = sum(one.verdict not in (right, Verdict.INCONCLUSIVE) for one in found)
    alarms = sum(bool(one.warnings) for one in found)
    assert clopper_pearson(bad + alarms, runs, 1e-4 / 2)[0] <= question.delta
    missed = sum(not one.lower <= gap <= one.upper for one in found)
    assert clopper_pearson(missed, runs, 1e-4 / 2)[0] <= question.delta


def test_past_data_may_contradict_by_themselves() -> None:
    granted = eq.Assume(True, r_at_least={"B": 0.9})
    found = eq.check(WORLD.past(20_000, 0), QUESTION, assume=granted)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason.startswith("what is assumed does not hold for B: at least 0.900")
    assert found.warnings == (found.reason,)


def test_the_command_line_takes_it(tmp_path: object) -> None:
    from pathlib import Path

    rows = ["group,approved,outcome"]
    for group, counts in {"A": (60, 20, 20), "B": (50, 20, 30)}.items():
        for (approved, outcome), n in zip(((1, 1), (1, 0), (0, "")), counts, strict=True):
            rows += [f"{group},{approved},{outcome}"] * n
    file = Path(str(tmp_path)) / "past.csv"
    file.write_text("\n".join(rows))
    columns = ["--group", "group", "--decision", "approved", "--outcome", "outcome"]

    def check(*words: str) -> tuple[int, str]:
        given = [x for word in words for x in ("--assume", word)]
        done = CliRunner().invoke(app, ["check", str(file), *columns, *given])
        return done.exit_code, done.output

    code, shown = check("denied-no-better", "at-most:B=0.4")
    assert code == 0
    assert GRANTED in " ".join(shown.split())
    assert "at most 0.4 of the denied of B would do well" in " ".join(shown.split())
    code, shown = check("at-most:B")
    assert code == 2
    assert "at-most:GROUP=NUMBER" in " ".join(shown.split())


def test_a_table_and_the_name_of_a_metric_are_enough() -> None:
    rng = np.random.default_rng(3)
    race, granted = rng.choice(["a", "b"], 2000), rng.integers(0, 2, 2000)
    paid = np.where(granted == 1, (rng.random(2000) < 0.7).astype(float), np.nan)
    book = pd.DataFrame({"race": race, "granted": granted, "paid": paid})
    columns = {"group": "race", "decision": "granted", "outcome": "paid"}
    past, question = eq.History.read(book, **columns), eq.Question("equal_opportunity")
    assert eq.check(book, "equal_opportunity", **columns) == eq.check(past, question)
    planned = eq.plan(book, "equal_opportunity", **columns)
    assert planned.to_dict() == eq.plan(past, question, eq.Costs()).to_dict()


def test_a_gap_that_rounding_makes_is_none() -> None:
    """B's rate may be that of A, of whom nobody is denied; so UNFAIR does not follow."""
    world = CellWorld.from_shares({"A": (0.5, 0.5, 0, 0), "B": (0.562, 0.077, 0.361, 0.9)})
    assert eq.check(world.past(), eq.Question("predictive_equality", 0.0)).verdict == "INCONCLUSIVE"
