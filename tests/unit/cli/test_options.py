"""A file of ``--save`` keeps what was asked and what it costs, for the next command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.shell import equipoise
from tests.unit.cli.test_audit_new import ROWS

COLUMNS = ("-g", "group", "-d", "approved", "-o", "repaid")


def ask(*arguments: object) -> dict[str, Any]:
    done = equipoise(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    past = tmp_path / "past.csv"
    past.write_text("\n".join(ROWS) + "\n")
    kept = tmp_path / "loans.toml"
    metric = ("--metric", "equal_opportunity", "--gamma", 0.1, "--epsilon", 0.2)
    ask("check", past, *COLUMNS, *metric, "--delta", 0.1, "--against", "A", "--save", kept)
    return kept


def test_a_plan_asks_what_the_check_asked(kept: Path) -> None:
    question = ask("plan", kept)["question"]
    assert question["metric"] == "equal_opportunity"
    assert (question["gamma"], question["epsilon"], question["delta"]) == (0.1, 0.2, 0.1)
    assert question["compare"]["against"] == "A"
    assert "[question]" in kept.read_text()


def test_options_go_before_the_file(kept: Path) -> None:
    question = ask("check", kept, "--metric", "demographic_parity", "--gamma", 0.05)["question"]
    assert (question["metric"], question["gamma"]) == ("demographic_parity", 0.05)
    assert question["epsilon"] == 0.2


def test_costs_are_kept_in_units_of_the_currency(kept: Path, tmp_path: Path) -> None:
    ask("plan", kept, "--label-cost", 20, "--feature-cost", 0.5, "--save", kept)
    assert ask("plan", kept)["costs"]["label"] == 20.0
    ask("check", kept, "--save", kept)  # which has no prices of its own
    assert ask("plan", kept)["costs"]["feature"] == 0.5
    ledger = ("--ledger", tmp_path / "ledger.db")
    ask("audit", "new", "loans", kept, "--decimals", 2, *ledger)
    reply = ask("audit", "ask", "loans", "p-1", "A", 0, *ledger)
    assert reply["hold"] == 2050  # 20.50 in cents


def test_an_entry_that_is_unknown_is_named(kept: Path) -> None:
    kept.write_text(kept.read_text().replace("tolerance", "tolerence"))
    done = equipoise("check", kept)
    assert done.returncode == 2
    assert "'tolerence'. Did you mean 'tolerance'?" in " ".join(done.stderr.split())


def test_the_next_command_asks_the_same_question(kept: Path) -> None:
    """Also where the file keeps how to read the table and no question."""
    reading, _, _ = kept.read_text().partition("[question]")
    kept.write_text(reading)
    options = ("--metric", "equal_opportunity", "--gamma", "0.3")
    for command, successor in (("check", "plan"), ("plan", "audit new NAME")):
        done = equipoise(command, kept, *options)
        assert done.returncode == 0, done.stderr
        shown = " ".join(done.stdout.split())
        assert shown.endswith(f"Next: equipoise {successor} {kept} {' '.join(options)}")
    # Of several metrics the next command takes one.
    shown = " ".join(equipoise("check", kept, "--metric", "all").stdout.split())
    assert shown.endswith(f"Next: equipoise plan {kept} --metric METRIC")
