"""The frame of the command line, in process."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from equipoise.cli import app
from equipoise.cli.app import COMMANDS
from equipoise.cli.console import Output, Table, show
from equipoise.cli.people_files import quote_formula
from equipoise.finding import Interval


def test_numbers_without_limit_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    data = {"most": float("inf"), "range": [Interval(0.0, float("nan")), 1]}
    show(Output(data), json=True)
    answer = json.loads(capsys.readouterr().out)
    assert answer == {"most": None, "range": [{"lower": 0.0, "upper": None, "estimate": None}, 1]}


def test_an_error_keeps_its_lines(tmp_path: Path) -> None:
    table = tmp_path / "loans.csv"
    table.write_text("race,ok,paid\na,Y,maybe\nb,N,\n")
    columns = ["-g", "race", "-d", "ok", "-o", "paid"]
    done = CliRunner().invoke(app, ["check", str(table), *columns])
    assert done.exit_code == 2
    assert done.stderr.startswith("error: 2 problems:\n1. Column ")
    said = CliRunner().invoke(app, ["check", str(table), *columns, "--json"]).stderr
    assert json.loads(said)["message"].startswith("2 problems:\n1. Column ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_found_and_documented(name: str) -> None:
    assert isinstance(import_module(f"equipoise.cli.{name}").app, typer.Typer)
    shown = CliRunner().invoke(app, [name, "--help"])
    assert shown.exit_code == 0
    assert "Usage: " in shown.output


def test_help_shows_what_most_people_use_and_help_all_the_rest() -> None:
    short = CliRunner().invoke(app, ["check", "--help"], env={"COLUMNS": "80"}).stdout
    assert "--group" in short
    assert "--tolerance" in short
    assert "--random-accepts" not in short
    assert "--help-all shows all" in short
    everything = CliRunner().invoke(app, ["check", "--help-all"], env={"COLUMNS": "80"}).stdout
    assert "--random-accepts" in everything
    for text in (short, everything):
        assert "list[str]" not in text
    assert "…" not in short


def test_an_unknown_command_gets_a_suggestion() -> None:
    done = CliRunner().invoke(app, ["chek", "loans.csv"])
    assert done.exit_code == 2
    assert "There is no command 'chek'. Did you mean 'check'?" in done.stderr


def test_a_check_begins_with_the_verdict_and_ends_with_the_next_command(tmp_path: Path) -> None:
    table = tmp_path / "loans.csv"
    rows = ["A,1,1", "A,0,", "B,1,1", "B,1,0", "B,0,"] * 40
    table.write_text("\n".join(["race,ok,paid", *rows]) + "\n")
    columns = ["-g", "race", "-d", "ok", "-o", "paid", "--metric", "equal_opportunity"]
    names = ["--tolerance", "0.1", "--margin", "0.1", "--error", "0.01"]
    lines = CliRunner().invoke(app, ["check", str(table), *columns, *names]).stdout.splitlines()
    assert lines[0].startswith("INCONCLUSIVE. The gap is between ")
    assert "Next: equipoise plan" in " ".join(lines[-4:])
    data = CliRunner().invoke(app, ["check", str(table), *columns, *names, "--json"]).stdout
    question = json.loads(data)["question"]
    assert (question["gamma"], question["epsilon"], question["delta"]) == (0.1, 0.1, 0.01)


def test_a_name_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """92e8ad8 passed the escape sequences of a group's name on to the terminal."""
    name = "A\x1b[2J\x1b]0;x\x07"
    show(Output({}, [Table([{"group": name}]), f"note: {name}"]), json=False)
    show(Output({}, name), json=False)
    assert "\x1b" not in capsys.readouterr().out


def test_cells_that_look_like_formulas_are_quoted() -> None:
    assert [quote_formula(cell) for cell in ("=1", "+1", "-1", "@x", "p1", 3)] == [
        "'=1", "'+1", "'-1", "'@x", "p1", 3,
    ]  # fmt: skip
