"""``equipoise plan``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
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
    can_run = {
        line.split()[0]: line.split()[-1]
        for line in done.stdout.splitlines()
        if line.endswith(("yes  ", "no  "))
    }
    assert can_run == {"adaptive": "yes", "exp": "no", "rs": "no", "baseline": "no"}
    assert "rs cannot run: about" in done.stdout
    assert done.stdout.startswith("recommended: run the adaptive audit; it costs about")
    words = " ".join(done.stdout.split())
    assert "adaptive audit, 40 rehearsals a case on your past data" in words
    assert "cost: 10%" in words


def test_what_if_and_its_picture(loans: Path, tmp_path: Path) -> None:
    picture = tmp_path / "plan.svg"
    done = equipoise("plan", loans, *COLUMNS, "--picture", picture)
    assert (done.returncode, done.stderr) == (0, "")
    for value in ("gamma = 0.025", "epsilon = 0.05", "delta = 0.1"):
        assert value in done.stdout
    drawing = picture.read_text()
    assert drawing.startswith("<?xml")
    assert drawing.rstrip().endswith("</svg>")


def test_nothing_to_pay_where_the_past_decides(loans: Path) -> None:
    done = equipoise("plan", loans, *COLUMNS)
    assert "recommended: nothing to pay: the past data decide (UNFAIR)" in done.stdout


def test_its_json_says_the_same_as_the_library(loans: Path) -> None:
    arguments = ("--feature-cost", "0.5", "--label-cost", "2", "--audits", "4")
    done = equipoise("plan", loans, *COLUMNS, *OPEN, *arguments, "--json")
    history = eq.History.read(loans, group="race", decision="approved", outcome="repaid")
    question, costs = eq.Question("equal_opportunity", 0.3, 0.3), eq.Costs(0.5, 2.0)
    made = eq.plan(history, question, costs, audits=4)
    assert json.loads(done.stdout) == json.loads(made.to_json())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--label-cost", "-1"), "error: 'label' must be a finite number >= 0; got -1.0"),
        (("--epsilon", "2"), "error: 'epsilon' must be in (0, 1); got 2.0"),
        (
            ("--picture", "plan.gif"),
            "error: '--picture' must end in .svg, .png, .pdf; got 'plan.gif'",
        ),
        (
            ("--picture", "no-such-folder/plan.svg"),
            "error: '--picture' needs an existing folder; got no-such-folder/plan.svg",
        ),
    ],
)
def test_bad_input_is_one_line_and_code_two(
    loans: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = equipoise("plan", loans, *COLUMNS, *arguments)
    assert done.returncode == 2
    assert done.stderr.strip() == message


def test_a_score_is_rehearsed_and_its_calendar_price_shown(tmp_path: Path) -> None:
    path, rng = tmp_path / "scored.csv", np.random.default_rng(0)
    lines = ["race,approved,repaid,model"]
    for _ in range(3_000):
        repaid, approved = rng.random() < 0.4, rng.random() < 0.4
        score = rng.normal() + 3.0 * repaid
        lines.append(
            f"{'AB'[rng.integers(2)]},{approved:d},{int(repaid) if approved else ''},{score:.2f}"
        )
    path.write_text("\n".join(lines) + "\n")
    question = ("--metric", "false_omission_parity", "--gamma", "0.1", "--epsilon", "0.2")
    done = equipoise("plan", path, *COLUMNS, *question, "--audits", "2", "--score", "model")
    assert (done.returncode, done.stderr) == (0, "")
    words = " ".join(done.stdout.split())
    assert "people are looked at per label" in words
    assert "carried over to the denied" in words
    assert "is an extrapolation from the approved" in words
