"""``equipoise plan`` in a real shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import equipoise as eq
from tests.acceptance.shell import equipoise

COLUMNS = ("--group", "race", "--decision", "approved", "--outcome", "repaid")


@pytest.fixture(scope="module")
def loans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("loans") / "loans.parquet"
    eq.data.fico_lender().past().to_parquet(str(path))
    return path


def test_it_shows_a_row_per_audit_and_advises(loans: Path) -> None:
    done = equipoise("plan", loans, *COLUMNS, "--gamma", "0.15")
    assert (done.returncode, done.stderr) == (0, "")
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    (row,) = (line for line in done.stdout.splitlines() if line.startswith("  rs "))
    assert row.rstrip().endswith("no")
    assert "missing: about" in done.stdout
    assert "recommended: " in done.stdout


def test_nothing_to_pay_where_the_past_decides(loans: Path) -> None:
    done = equipoise("plan", loans, *COLUMNS)
    assert "recommended: nothing to pay: the past data decide (UNFAIR)" in done.stdout


def test_its_json_says_the_same_as_the_library(loans: Path) -> None:
    arguments = ("--gamma", "0.15", "--feature-cost", "0.5", "--label-cost", "2")
    done = equipoise("plan", loans, *COLUMNS, *arguments, "--json")
    history = eq.History.read(loans, group="race", decision="approved", outcome="repaid")
    made = eq.plan(history, eq.Question(gamma=0.15), eq.Costs(0.5, 2.0))
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
