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
from equipoise.cli.console import Output, show
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
