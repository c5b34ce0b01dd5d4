"""What a user grants about the denied: it narrows every layer, is printed, and may be refuted."""

from __future__ import annotations

from pathlib import Path

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
    ("arguments", "message"),
    [
        ({"denied_no_better": "yes"}, "'denied_no_better' must be True or False; got 'yes'"),
        ({"r_at_most": {"A": 1.2}}, r"r_at_most\['A'\].*1.2"),
        ({"r_at_most": 0.4}, "'r_at_most' must be a mapping of groups to numbers; got 0.4"),
        ({"r_at_most": {"A": 0.2}, "r_at_least": {"A": 0.3}}, "must not be above"),
    ],
)
def test_nonsense_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        eq.Assume(**arguments)  # type: ignore[arg-type]


def test_a_group_that_is_not_there_is_named() -> None:
    with pytest.raises(UnknownName, match=r"'r_at_most'.*'C'"):
        eq.check(WORLD.past(), QUESTION, assume=eq.Assume(r_at_most={"C": 0.5}))
    with pytest.raises(InvalidInput, match=r"'assume' must be an Assume, .*got True"):
        eq.check(WORLD.past(), QUESTION, assume=True)  # type: ignore[arg-type]


def test_no_better_means_that_approval_goes_with_the_outcome() -> None:
    """TPR >= selection rate >= FPR, and with a finite past up to the bound of the precision."""
    finding = eq.check(WORLD.past(), QUESTION, assume=NO_BETTER)
    for group, cells in WORLD.cells.items():
        selected = 1.0 - cells.shares[2]
        assert finding.rates["true_positive_rate"][group].lower == pytest.approx(selected)
        assert finding.rates["false_positive_rate"][group].upper == pytest.approx(selected)
    assert f"{GRANTED} (granted)" in finding.assumptions
    cells = WORLD.past(400, 0).cells
    limits = NO_BETTER.limits(cells, 0.01)
    for group, counts in cells.items():
        _, precision_high = clopper_pearson(counts.approved_positive, counts.approved, 0.01)
        assert limits[group] == (0.0, pytest.approx(precision_high))


def test_more_granted_never_widens_what_is_known() -> None:
    everything = eq.Assume(True, {"A": 0.4, "B": 0.35}, {"A": 0.3, "B": 0.25})
    wide, narrow, narrower = (
        eq.check(WORLD.past(), QUESTION, assume=assume) for assume in (None, NO_BETTER, everything)
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
    findings = [eq.check(world.past(2_000, s), question, assume=NO_BETTER) for s in range(runs)]
    n_wrong = sum(finding.verdict not in (right, Verdict.INCONCLUSIVE) for finding in findings)
    n_alarms = sum(bool(finding.warnings) for finding in findings)
    assert clopper_pearson(n_wrong + n_alarms, runs, 1e-4 / 2)[0] <= question.delta
    missed = sum(not finding.lower <= gap <= finding.upper for finding in findings)
    assert clopper_pearson(missed, runs, 1e-4 / 2)[0] <= question.delta


def test_past_data_may_contradict_by_themselves() -> None:
    granted = eq.Assume(True, r_at_least={"B": 0.9})
    finding = eq.check(WORLD.past(20_000, 0), QUESTION, assume=granted)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert finding.reason.startswith("what is assumed does not hold for B: at least 0.900")
    assert finding.warnings == (finding.reason,)


def test_the_command_line_takes_it(tmp_path: Path) -> None:
    rows = ["group,approved,outcome"]
    for group, counts in {"A": (60, 20, 20), "B": (50, 20, 30)}.items():
        for (approved, outcome), n in zip(((1, 1), (1, 0), (0, "")), counts, strict=True):
            rows += [f"{group},{approved},{outcome}"] * n
    file = tmp_path / "past.csv"
    file.write_text("\n".join(rows))
    columns = ["--group", "group", "--decision", "approved", "--outcome", "outcome"]

    def check(*assumptions: str) -> tuple[int, str]:
        options = [f"--assume={assumption}" for assumption in assumptions]
        result = CliRunner().invoke(app, ["check", str(file), *columns, *options])
        return result.exit_code, " ".join(result.output.split())

    code, output = check("denied-no-better", "at-most:B=0.4")
    assert code == 0
    assert GRANTED in output
    assert "at most 0.4 of the denied of B would do well" in output
    code, output = check("at-most:B")
    assert code == 2
    assert "at-most:GROUP=NUMBER" in output
