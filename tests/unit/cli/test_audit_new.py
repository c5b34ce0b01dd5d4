"""``audit new``: its options as the help says, and a note where the past already decides."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from equipoise.cells import Cells
from equipoise.cli import app
from tests.unit.planning.test_feasibility import LENDER, TWO

ROWS = ["group,approved,repaid"] + [
    f"{group},{decision},{outcome}"
    for group, good, bad, denied in (("A", 60, 40, 80), ("B", 50, 50, 100))
    for decision, outcome, n in ((1, 1, good), (1, 0, bad), (0, "", denied))
    for _ in range(n)
]


def new(folder: Path, *options: str) -> tuple[int, str, str]:
    past = folder / "past.csv"
    past.write_text("\n".join(ROWS) + "\n")
    columns = ("-g", "group", "-d", "approved", "-o", "repaid")
    ledger = ("--ledger", str(folder / "ledger.db"))
    command = ["audit", "new", "loans", str(past), *columns, *options, *ledger]
    done = CliRunner().invoke(app, command)
    return done.exit_code, done.stdout, done.stderr


def test_the_example_of_the_help_works(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["audit", "new", "--help-all"], env={"COLUMNS": "200"}).stdout
    example = re.search(r"as in (--audit \w+ --option \S+)\.", shown)
    assert example is not None, shown
    option = example[1].replace("tau=500", "tau=20")  # a smaller past than anybody would have
    code, out, _ = new(tmp_path, *option.split())
    assert code == 0
    assert "loans" in out


def test_an_option_of_another_audit_is_refused_with_the_remedy(tmp_path: Path) -> None:
    code, _, error = new(tmp_path, "--option", "tau=20")
    assert code == 2
    assert error.startswith("error: unknown option of the audit 'adaptive': 'tau'.")
    assert "These audits have it: baseline, exp, rs" in error
    assert new(tmp_path, "--option", "tau=20", "--audit", "rs")[0] == 0  # the remedy, followed


def test_it_says_where_the_past_decides_at_the_whole_level(tmp_path: Path) -> None:
    """The audit keeps most of its error probability for labels; check has it all."""
    past = tmp_path / "free.csv"
    rows = ["A,1,1", "B,1,1"] * 900 + ["A,1,0", "B,1,0"] * 100 + ["A,0,", "B,0,"] * 74
    past.write_text("\n".join(["group,approved,repaid", *rows]) + "\n")
    columns = ("-g", "group", "-d", "approved", "-o", "repaid", "--metric", "equal_opportunity")
    ledger = ("--ledger", str(tmp_path / "ledger.db"))
    done = CliRunner().invoke(app, ["audit", "new", "loans", str(past), *columns, *ledger])
    assert done.exit_code == 0
    assert "note: equipoise check says FAIR of these past decisions, for free" in done.stdout
    assert CliRunner().invoke(app, ["check", str(past), *columns]).stdout.startswith("FAIR. ")


def write_past(folder: Path, cells: Cells) -> Path:
    """Write a table that has these counts."""
    rows = ["group,approved,repaid"]
    for group, counts in cells.items():
        rows += [f"{group},1,1"] * round(counts.approved_positive)
        rows += [f"{group},1,0"] * round(counts.approved_negative)
        rows += [f"{group},0,"] * round(counts.denied)
    past = folder / "past.csv"
    past.write_text("\n".join(rows) + "\n")
    return past


def test_the_next_command_of_a_plan_begins_the_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan recommended audits that were then refused, and was silent about endless ones."""
    monkeypatch.chdir(tmp_path)
    write_past(tmp_path, LENDER.cells)
    columns = "-g group -d approved -o repaid --metric equal_opportunity --epsilon 0.1"

    def run(command: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "1000"})
        assert done.exit_code == code, done.output
        return done.stderr if code else done.stdout

    said = run(f"plan past.csv {columns} --save kept.toml")
    warning = said.partition("warning: ")[2].partition("\n")[0]
    assert "'not stated' would keep this audit from ending" in warning
    assert warning in run("audit new loans kept.toml", 2)
    (next_command,) = re.findall(r"^Next: equipoise (.*)$", said, re.MULTILINE)
    assert next_command == "audit new NAME kept.toml --leave-out 'not stated'"
    assert "verdict     none yet" in run(next_command)


def test_an_audit_that_cannot_end_is_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_past(tmp_path, TWO.cells)
    columns = "-g group -d approved -o repaid --metric equal_opportunity --epsilon 0.1"
    begin = ["audit", "new", "two", "past.csv", *columns.split()]
    refused = CliRunner().invoke(app, begin)
    assert refused.exit_code == 2
    assert "'B' has too few rows: 14 past rows, 7 of them denied." in refused.stderr
    assert refused.stderr.rstrip().endswith("To begin all the same: --yes.")
    begun = CliRunner().invoke(app, [*begin, "--yes"])
    assert begun.exit_code == 0
    # The question is fixed for good, so both commands repeat it.
    question = (
        "  question    equal opportunity: FAIR if the gap (the largest difference between groups) "
        "is at most 5 points, UNFAIR if it is above 15 points, error probability at most 5%"
    )
    assert question in begun.stdout.splitlines()
    assert question in CliRunner().invoke(app, ["audit", "status", "two"]).stdout.splitlines()
    shown = CliRunner().invoke(app, ["audit", "status", "two", "--json"]).stdout
    assert json.loads(shown)["question"]["epsilon"] == 0.1
    planned = CliRunner().invoke(app, ["plan", "past.csv", *columns.split()]).stdout
    assert "warning: This audit would probably not reach a verdict" in planned
    assert "Next:" not in planned
