"""``equipoise simulate``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import equipoise as eq
from tests.acceptance.shell import equipoise
from tests.profiles import quick


def test_it_compares_audits_on_the_embedded_lender() -> None:
    done = equipoise("simulate", "--gamma", "0.15")
    assert (done.returncode, done.stderr) == (0, "")
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    assert "truth: the gap is 0.2063, UNFAIR is right" in done.stdout
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if " of 200" in line}
    assert set(rows) == {"rs", "baseline"}
    assert all("UNFAIR 100.0%" in row for row in rows.values())


def test_its_json_says_the_same_as_the_library() -> None:
    arguments = ("--world", "adult", "--gamma", "0", "--tau", "300", "--seed", "5")
    done = equipoise("simulate", "rs", *arguments, "--reuse-labels", "--repeats", "30", "--json")
    world = eq.data.adult_world()
    question = eq.Question(gamma=0.0)
    sim = eq.simulate(
        "rs", world, question, eq.Costs(), repeats=30, seed=5, tau=300, reuse_labels=True
    )
    (run,) = json.loads(done.stdout)["runs"]
    assert run == json.loads(sim.summary().to_json())


def test_the_adaptive_audit_next_to_the_least_cost() -> None:
    size = quick(20_000, full=100_000)
    arguments = (
        *("--world", "adult", "--metric", "equal_opportunity", "--epsilon", "0.2"),
        *("--gamma", "0.1", "--repeats", "2"),
        *("--history-size", size, "--delay", "30,3"),
    )
    done = equipoise("simulate", "adaptive", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    world = eq.data.adult_world()
    question = eq.Question("equal_opportunity", gamma=0.1, epsilon=0.2)
    sim = eq.simulate(
        *("adaptive", world, question, eq.Costs()),
        repeats=2,
        history_size=size,
        delay=lambda outcome, rng: 30 if outcome else 3,
    )
    (row,) = (line for line in done.stdout.splitlines() if line.startswith("  adaptive "))
    multiple = sim.cost.mean() / eq.lower_bound(world, question, eq.Costs())
    assert f"{sim.cost.mean():,.3g} ± " in row
    assert f" {multiple:,.3g} " in row


def test_a_world_from_a_file(tmp_path: Path) -> None:
    rows = ["sex,hired,good"]
    rows += ["f,yes,1", "f,yes,0", "f,no,1", "f,no,0"] * 5 + ["m,yes,1", "m,yes,0", "m,no,0"] * 8
    path = tmp_path / "all.csv"
    path.write_text("\n".join(rows))
    columns = ("--group", "sex", "--decision", "hired", "--outcome", "good")
    done = equipoise(
        "simulate", "rs", "--world", path, *columns, "--positive", "decision=yes", "--tau", "20"
    )
    assert done.returncode == 0, done.stderr
    assert "truth: the gap is 0.5000" in done.stdout
    assert "INCONCLUSIVE" in done.stdout  # of a file with 44 rows the past is as short


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rss",), "error: unknown audit 'rss'. Did you mean 'rs'?"),
        (("--world", "ficoo"), "error: '--world' must be one of fico, adult, or a file"),
        (
            ("adaptive", "--delay", "20"),
            "error: '--delay' must look like GOOD,BAD, in whole numbers; got '20'",
        ),
        (("--tau", "0"), "error: 'tau' must be a whole number of at least 1, below 2**53; got 0"),
    ],
)
def test_bad_input_is_one_line_and_code_two(arguments: tuple[str, ...], message: str) -> None:
    done = equipoise("simulate", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert len(done.stderr.strip().splitlines()) == 1
