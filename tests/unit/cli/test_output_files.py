"""Commands that write files never write over what they read, nor over the ledger."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from equipoise.cli import app

COLUMNS = "-g race -d approved -o repaid"
PAST = ["race,approved,repaid"] + [
    row for group in "AB" for row in [f"{group},1,1"] * 60 + [f"{group},1,0"] * 30 + [f"{group},0,"]
]
ARRIVALS = ["person,group,decision", *(f"p{number},A,0" for number in range(2_500))]

Run = Callable[[str], tuple[int, str]]


def invoke(command: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, shlex.split(command))
    return done.exit_code, done.stderr


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with an audit called loans."""
    folder = tmp_path_factory.mktemp("begun")
    with contextlib.chdir(folder):
        write("past.csv", *PAST)
        assert invoke(f"audit new loans past.csv {COLUMNS} --ledger ledger.json --yes")[0] == 0
    return folder / "ledger.json"


@pytest.fixture
def run(begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command in a folder with a copy of the ledger."""
    monkeypatch.chdir(tmp_path)
    write("past.csv", *PAST)
    write("arrivals.csv", *ARRIVALS)
    Path("link.csv").symlink_to("arrivals.csv")
    os.link("arrivals.csv", "hard.csv")
    shutil.copy(begun, "ledger.json")
    return invoke


def write(name: str, *rows: str) -> None:
    Path(name).write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize("results", ["arrivals.csv", "./arrivals.csv", "link.csv", "hard.csv"])
def test_results_do_not_replace_the_people(run: Run, results: str) -> None:
    code, error = run(f"audit ask loans -f arrivals.csv --results {results} -l ledger.json")
    assert code == 2
    assert (
        f"cannot write to {str(Path(results))!r}: it is the file of people ('arrivals.csv')"
        in error
    )
    assert Path("arrivals.csv").read_text().splitlines() == ARRIVALS


@pytest.mark.parametrize(
    "command",
    [
        "audit ask loans -f arrivals.csv --results ledger.json",
        "audit ask loans -f arrivals.csv --results ledger.json-wal",
        "audit report loans --to ledger.json",
        "audit export loans --to ledger.json",
        "audit export loans --people ledger.json",
        "audit checkpoint loans --to ledger.json",
    ],
)
def test_nothing_replaces_the_ledger(run: Run, command: str) -> None:
    code, error = run(f"{command} --ledger ledger.json")
    assert code == 2
    assert ": it is the ledger (" in error
    assert run("audit verify loans --ledger ledger.json")[0] == 0
    assert not Path("loans.jsonl").exists()


def test_events_and_keys_are_two_files(run: Run) -> None:
    code, error = run("audit export loans --to out.jsonl --people ./out.jsonl -l ledger.json")
    assert code == 2
    assert "it is the file of events ('out.jsonl')" in error


@pytest.mark.parametrize("output", ["--save link.toml", "--report link.html"])
@pytest.mark.parametrize("source", ["past.csv", "pas*.csv", "kept.toml"])
def test_what_check_writes_does_not_replace_its_table(run: Run, output: str, source: str) -> None:
    assert run(f"check past.csv {COLUMNS} --save kept.toml")[0] == 0
    os.link("past.csv", "link.toml")
    Path("link.html").symlink_to("past.csv")
    code, error = run(f"check {source} {COLUMNS} {output}")
    assert code == 2
    assert "it is a source of past decisions (" in error
    assert Path("past.csv").read_text().splitlines() == PAST


def test_a_kept_reading_may_be_changed_in_place(run: Run) -> None:
    assert run(f"check past.csv {COLUMNS} --save kept.toml")[0] == 0
    assert run("check kept.toml --max-groups 4 --save kept.toml")[0] == 0
    assert "max_groups = 4" in Path("kept.toml").read_text()


def test_two_columns_of_one_name_are_refused(run: Run) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    write("twice.csv", "person,group,group,decision", "x1,A,B,0")
    names = ["person", "group", "group", "decision"]
    table = pa.table([pa.array([value]) for value in ("x1", "A", "B", "0")], names=names)
    parquet.write_table(table, "twice.parquet")
    write("twice.jsonl", '{"person": "x1", "group": "A", "group": "B", "decision": 0}')
    for name in ("twice.csv", "twice.parquet"):
        code, error = run(f"audit ask loans -f {name} -l ledger.json")
        assert (code, "column 'group' must be there once" in error) == (2, True)
    words = ["audit", "ask", "loans", "-f", "twice.jsonl", "-l", "ledger.json"]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, "column 'group' must be there once" in done.stdout) == (2, True)
    write("spare.csv", "person,group,decision,,", "x1,A,0,,")  # columns without a name
    assert run("audit ask loans -f spare.csv -l ledger.json")[0] == 0
