"""What starting up loads, and the frame of the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import equipoise as eq
from equipoise.cli.app import COMMANDS
from tests.acceptance.shell import equipoise as in_process
from tests.acceptance.shell import in_a_shell, python

HEAVY = {
    "alembic",
    "duckdb",
    "fairlearn",
    "fastapi",
    "ibis",
    "joblib",
    "matplotlib",
    "narwhals",
    "pandas",
    "plotly",
    "polars",
    "psycopg",
    "pyarrow",
    "scipy",
    "sklearn",
    "sqlalchemy",
    "uvicorn",
}


def loaded_by(code: str) -> set[str]:
    return {name.partition(".")[0] for name in modules_loaded_by(code)}


def modules_loaded_by(code: str) -> set[str]:
    done = python(f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))")
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_loads_nothing_heavy() -> None:
    assert loaded_by("import equipoise").isdisjoint(HEAVY | {"numpy", "rich", "typer"})


def test_a_question_loads_nothing_heavy() -> None:
    code = "import equipoise as eq; eq.Question(); eq.Costs()"
    assert loaded_by(code).isdisjoint(HEAVY)


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['equipoise', '--help']\n"
        "from equipoise.cli import app\n"
        "try: app()\n"
        "except SystemExit: pass"
    )
    assert loaded_by(code).isdisjoint(HEAVY)


def test_reading_counts_loads_no_frames(tmp_path: Path) -> None:
    path = tmp_path / "past.csv"
    path.write_text("g,d,y\na,1,1\nb,1,0\n")
    read = f"eq.History.read({str(path)!r}, group='g', decision='d', outcome='y')"
    assert loaded_by(f"import equipoise as eq; {read}").isdisjoint(
        HEAVY - {"duckdb", "narwhals", "sqlalchemy"}
    )


def test_help_names_every_command() -> None:
    done = in_a_shell("--help")
    assert done.returncode == 0
    assert all(f" {name} " in done.stdout for name in COMMANDS)


def test_version() -> None:
    assert in_a_shell("--version").stdout == f"equipoise {eq.__version__}\n"


def test_an_unknown_command_is_one_line_and_code_2() -> None:
    done = in_a_shell("chek")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: There is no command 'chek'. Did you mean 'check'?")
    assert len(done.stderr.splitlines()) == 1


def test_errors_are_json_where_answers_are() -> None:
    done = in_process("check", "none.csv", "-g", "a", "-d", "b", "-o", "c", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    said = json.loads(done.stderr)
    assert said == {"error": "InvalidInput", "message": "File not found: none.csv"}
    assert json.loads(in_process("check", "--json").stderr)["error"] == "UsageError"
    assert json.loads(in_process("chek", "--json").stderr)["error"] == "UsageError"
    assert in_process("chek").stderr.startswith("error: ")


def test_a_shell_can_complete_commands_and_options() -> None:
    environment = {
        **os.environ,
        "_EQUIPOISE_COMPLETE": "complete_bash",
        "COMP_WORDS": "equipoise ch",
        "COMP_CWORD": "1",
    }
    program = Path(sys.executable).with_name("equipoise")
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["check"]


def test_a_shell_command_about_a_person_or_an_audit_loads_little(tmp_path: Path) -> None:
    """A shell loop starts the program for every person, so that imports are most of its cost."""
    ledger = f"{tmp_path}/l.db"
    counts = {"approved_positive": 60, "approved_negative": 20, "denied": 20}
    past = eq.History.from_cells({"A": counts, "B": counts})
    question = eq.Question("equal_opportunity", epsilon=0.2)  # few null cells
    eq.LiveAudit.create(ledger, "loans", past, question, eq.Costs(label=100)).close_ledger()
    for_files = {"sqlalchemy", "duckdb", "narwhals"}
    for_pages_and_plans = {"jinja2", "joblib", "scipy.optimize", "scipy.stats", "scipy.integrate"}
    lines = (["ask", "loans", "p", "A", "0"], ["tell", "loans", "p", "1"], ["status", "loans"])
    code = (  # one after the other in one program: what any of them loads is loaded at the end
        "import sys\n"
        "from equipoise.cli import app\n"
        f"for arguments in {lines!r}:\n"
        f"    sys.argv = ['equipoise', 'audit', *arguments, '-l', {ledger!r}]\n"
        "    try: app()\n"
        "    except SystemExit as end: assert not end.code"
    )
    assert modules_loaded_by(code).isdisjoint(for_files | for_pages_and_plans)
