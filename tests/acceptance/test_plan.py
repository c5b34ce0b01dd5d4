"""``equipoise plan``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import equipoise as eq
from tests.acceptance.shell import equipoise

COLUMNS = ("--group", "race", "--decision", "approved", "--outcome", "repaid")
OPEN = ("--metric", "equal_opportunity", "--gamma", "0.3", "--epsilon", "0.3")


@pytest.fixture(scope="module")
def loans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("loans") / "loans.parquet"
    eq.data.fico_lender(groups=["White", "Black"]).past().to_parquet(str(path))
    return path


def test_it_shows_a_row_per_audit_and_advises(loans: Path) -> None:
    done = equipoise("plan", loans, *COLUMNS, *OPEN)
    assert (done.returncode, done.stderr) == (0, "")
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    assert done.stdout.startswith("recommended: run the adaptive audit. Typical cost ")
    words = " ".join(done.stdout.split())
    for audit in ("rs", "baseline"):
        assert f"{audit}: about " in words
    assert words.count("on average; cannot run: about") == 2
    assert "exp: about" in words
    assert "Adaptive audit, forecast. Typical numbers are medians." in words
    assert "80% range" in words


def test_trial_runs_say_first_how_long_they_take(loans: Path) -> None:
    done = equipoise("plan", loans, *COLUMNS, *OPEN, "--trial-runs", "2")
    assert done.returncode == 0
    assert done.stderr.startswith("2 trial runs of 7 cases: about ")
    words = " ".join(done.stdout.split())
    assert "2 trial runs a case." in words
    assert "100%" in words


def test_a_past_that_is_too_short_says_how_many_rows_would_do(tmp_path: Path) -> None:
    path = tmp_path / "few.parquet"
    lender = eq.data.fico_lender(groups=["White", "Black"])
    lender.past().limit(400).to_parquet(str(path))
    done = equipoise("plan", path, *COLUMNS, "--metric", "equal_opportunity")
    assert (done.returncode, done.stderr) == (0, "")
    words = " ".join(done.stdout.split())
    assert "cannot be decided with these historical data" in words
    assert "past rows like these would do" in words


def test_nothing_to_pay_where_the_past_decides(loans: Path) -> None:
    done = equipoise("plan", loans, *COLUMNS)
    assert "recommended: nothing to pay: the past data decide (UNFAIR)" in done.stdout


def test_its_json_says_the_same_as_the_library(loans: Path) -> None:
    arguments = ("--feature-cost", "0.5", "--label-cost", "2", "--trial-runs", "4")
    done = equipoise("plan", loans, *COLUMNS, *OPEN, *arguments, "--json")
    history = eq.History.read(loans, group="race", decision="approved", outcome="repaid")
    question, costs = eq.Question("equal_opportunity", 0.3, 0.3), eq.Costs(0.5, 2.0)
    made = eq.plan(history, question, costs, trial_runs=4)
    assert json.loads(done.stdout) == json.loads(made.to_json())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--label-cost", "-1"), "error: 'label' must be a finite number >= 0; got -1.0"),
        (("--epsilon", "2"), "error: 'epsilon' must be in (0, 1); got 2.0"),
    ],
)
def test_bad_input_is_one_line_and_code_two(
    loans: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = equipoise("plan", loans, *COLUMNS, *arguments)
    assert done.returncode == 2
    assert done.stderr.strip() == message
