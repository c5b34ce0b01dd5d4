"""``audit new --option`` as its help says, and otherwise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from equipoise.cli import app

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
    shown = CliRunner().invoke(app, ["audit", "new", "--help"], env={"COLUMNS": "200"}).stdout
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


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("random-accepts --of A=x", "'--of' must look like GROUP=GOOD,BAD,UNKNOWN, in whole"),
        ("random-accepts --of A=1,2", "'--of' must look like GROUP=GOOD,BAD,UNKNOWN, in whole"),
        ("random-accepts --of A=1,2,3 --of A=4,5,6", "'--of' says 'A' twice"),
        ("random-accepts --of A=1,2,3 --corrected A=1.5", "'--corrected' must look like GROUP=N"),
        ("limits --max-in-flight-of A=many", "'--max-in-flight-of' must look like GROUP=N"),
    ],
)
def test_counts_of_groups_that_are_none_are_refused(
    tmp_path: Path, command: str, words: str
) -> None:
    assert new(tmp_path)[0] == 0
    verb, *options = command.split()
    rest = ["loans", *options, "--why", "x", "--ledger", str(tmp_path / "ledger.db")]
    done = CliRunner().invoke(app, ["audit", verb, *rest])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {words}")
    code, _, error = new(tmp_path, "--max-in-flight-of", "A=x")
    assert (code, "'--max-in-flight-of' must look like GROUP=N" in error) == (2, True)


def test_an_option_that_no_audit_of_a_simulation_has_is_refused() -> None:
    runs = ["simulate", "adaptive", "--world", "fico", "--repeats", "1", "--tau", "20"]
    done = CliRunner().invoke(app, runs)
    assert done.exit_code == 2
    assert "unknown option of the audit 'adaptive': 'tau'" in done.stderr


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
    assert "\nFAIR: " in CliRunner().invoke(app, ["check", str(past), *columns]).stdout


@pytest.mark.parametrize(
    ("command", "options", "said"),
    [
        ("plan", ["--metric", "all"], "'--metric all', or several, is for check, which is free"),
        ("check", ["--assume", "at-most:B=2"], "r_at_most['B']\" must be in [0, 1]; got 2.0"),
        ("check", ["--assume", "at-most:C=0.2"], "unknown group in '--assume' 'C'"),
    ],
)
def test_mistakes_are_told_in_the_words_of_the_command_line(
    tmp_path: Path, command: str, options: list[str], said: str
) -> None:
    past = tmp_path / "past.csv"
    past.write_text("\n".join(ROWS) + "\n")
    columns = ["-g", "group", "-d", "approved", "-o", "repaid"]
    done = CliRunner().invoke(app, [command, str(past), *columns, *options])
    assert done.exit_code == 2
    assert said in done.stderr
