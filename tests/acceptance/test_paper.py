"""``python -m paper``."""

from __future__ import annotations

import csv
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.acceptance.shell import run_module, run_paper
from tests.profiles import only_in_full


@only_in_full  # the chapters have tests of their own in every run
def test_one_command_writes_everything_and_a_second_run_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EQUIPOISE_LAW_SCHOOL", raising=False)
    command = ("--quick", "--only", "blackbox", "--only", "families", "--n-jobs", "1")
    done = run_paper(*command, "--out", tmp_path, "--docs", tmp_path / "docs")
    assert (done.returncode, done.stderr) == (0, "")
    assert "0 of 2 experiments kept from before" in done.stdout
    assert "Law School was left out" in done.stdout
    assert "EQUIPOISE_LAW_SCHOOL" in done.stdout

    with (tmp_path / "paper" / "blackbox-ratios.csv").open() as file:
        ratios = {row["classifier"]: row for row in csv.DictReader(file)}
    ranges = {"all_LR": (0.42, 0.45), "sense_attr": (0.80, 0.83)}
    for name, (low, high) in ranges.items():
        assert low < float(ratios[name]["exact"]) < high
        error = abs(float(ratios[name]["RS/Baseline"]) - float(ratios[name]["exact"]))
        assert error < 5 * float(ratios[name]["s.e."])

    page = (tmp_path / "paper.html").read_text()
    assert "http" not in page  # nothing to fetch
    assert page.count("<img") == 1
    docs = (tmp_path / "docs" / "paper.md").read_text()
    assert "](paper/blackbox-adult.svg)" in docs
    ElementTree.parse(tmp_path / "docs" / "paper" / "blackbox-adult.svg")
    assert "`python -m paper --quick --only blackbox`" in docs

    again = run_paper(*command, "--out", tmp_path)
    assert "2 of 2 experiments kept from before" in again.stdout
    assert (tmp_path / "paper.html").read_text() == page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "blackbx"), "error: unknown experiment 'blackbx'. Did you mean 'blackbox'?"),
        (("--law-school", "nowhere.csv"), "error: the Law School table: no file 'nowhere.csv'"),
        (("--n-jobs", "0"), "error: 'n_jobs' must be a number of processes"),
    ],
)
def test_bad_input_is_one_line_and_code_two(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run_paper("--out", tmp_path, *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


@only_in_full
def test_it_is_a_program() -> None:
    assert "--only" in run_module("paper", "--help").stdout


def test_law_school_is_named_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EQUIPOISE_LAW_SCHOOL", "nowhere.csv")
    done = run_paper("--out", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: the Law School table: no file 'nowhere.csv'")
