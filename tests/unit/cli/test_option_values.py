"""Values of options that have a form of their own: counts of groups, metrics, assumptions."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from equipoise.cli import app
from tests.unit.cli.test_audit_new import ROWS, new


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
    assert new(tmp_path, "--yes")[0] == 0
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
