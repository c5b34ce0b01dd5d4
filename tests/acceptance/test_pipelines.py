"""The commands of the page on pipelines, run as they stand there."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.acceptance.documents import blocks
from tests.acceptance.shell import equipoise

PAGE = "docs/how-to/pipelines.md"
# Group B is approved half as often, which is known of everybody.
ROWS = ["race,approved,repaid"] + [
    row
    for group, good, bad, denied in (("A", 600, 100, 300), ("B", 300, 50, 650))
    for row in [f"{group},1,1"] * good + [f"{group},1,0"] * bad + [f"{group},0,"] * denied
]


def test_every_command_ends_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loans.csv").write_text("\n".join(ROWS) + "\n")
    columns = ("-g", "race", "-d", "approved", "-o", "repaid", "--metric", "equal_opportunity")
    assert equipoise("audit", "new", "loans", "loans.csv", *columns).returncode == 0
    text = "".join(block.text for block in blocks(PAGE, "sh", "yaml", "python"))
    commands = re.findall(r"\bequipoise ((?:check|plan|audit) [^\n]*?)(?:\",)?\n", text)
    assert len(commands) == 6
    for command in commands:
        done = equipoise(*shlex.split(command))
        assert done.returncode in (0, 3), done.stderr
        verdict = re.search(r"\b(UNFAIR|INCONCLUSIVE|FAIR)(?=[:.] |, the gap)", done.stdout)
        assert verdict is not None, done.stdout
        failing = command.rpartition("--fail-on ")[2].split(",")
        assert (done.returncode == 3) == (verdict[1] in failing), command
    assert Path("check.html").exists()


def test_checks_are_kept_and_drawn_over_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loans.csv").write_text("\n".join(ROWS) + "\n")
    options = ("-g", "race", "-d", "approved", "-o", "repaid", "--metric", "demographic_parity")
    for _ in range(2):
        done = equipoise("check", "loans.csv", *options, "--append", "checks.parquet")
        assert done.returncode == 0, done.stderr
    rows = json.loads(equipoise("trend", "checks.parquet", "--json").stdout)
    assert [row["group_name"] for row in rows] == ["A", "B"] * 2
    assert {row["verdict"] for row in rows} == {"UNFAIR"}
    drawn = equipoise("trend", "checks.parquet").stdout
    assert "UNFAIR" in drawn
    assert "#" in drawn
    # A name must not steer the terminal, also at the head of a column.
    hostile = "\n".join(ROWS).replace("A,", "\x1b[31m[red]A,")
    Path("hostile.csv").write_text(hostile + "\n")
    equipoise("check", "hostile.csv", *options, "--append", "hostile.parquet")
    drawn = equipoise("trend", "hostile.parquet", columns=200).stdout
    assert "\x1b" not in drawn
    assert "\\x1b[31m[red]A" in drawn
    # What is no file of checks is neither read nor overwritten.
    for name, text in (("loans.csv", "must end in .parquet"), ("other.parquet", "no file that")):
        Path("other.parquet").write_text("something else")
        assert text in equipoise("trend", name).stderr
        refused = equipoise("check", "loans.csv", *options, "--append", name)
        assert refused.returncode == 2
    assert Path("other.parquet").read_text() == "something else"
