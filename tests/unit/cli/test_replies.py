"""What the command line answers about people: commands that run, counts by reason, the verdict."""

from __future__ import annotations

import contextlib
import csv
import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from equipoise.cli import app

# The outcome's column is called after what went wrong; nobody is compared with Joint.
COUNTS = (("White", 600, 100, 300), ("Black", 300, 50, 650), ("Joint", 20, 5, 10))
ROWS = ["race,approved,default_24m"] + [
    f"{group},{decision},{outcome}"
    for group, good, bad, denied in COUNTS
    for decision, outcome, n in ((1, 0, good), (1, 1, bad), (0, "", denied))
    for _ in range(n)
]
READ = ("-g", "race", "-d", "approved", "-o", "default_24m", "--positive", "outcome=0")
ASKED = ("--metric", "equal_opportunity", "--leave-out", "Joint", "--label-cost", "10")

Run = Callable[..., str]


def invoke(command: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["audit", *shlex.split(command)])
    assert done.exit_code == code, done.output
    return done.stderr if code else done.stdout


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an audit called hmda."""
    folder = tmp_path_factory.mktemp("begun")
    with contextlib.chdir(folder):
        Path("past.csv").write_text("\n".join(ROWS) + "\n")
        invoke(shlex.join(["new", "hmda", "past.csv", *READ, *ASKED, "--budget", "60"]))
    return folder


@pytest.fixture
def run(begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return what runs a command in a folder of its own, a copy of that one."""
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return invoke


def write(name: str, *rows: str) -> None:
    Path(name).write_text("\n".join(rows) + "\n")


def test_advice_runs_where_the_past_was_read_the_other_way_round(run: Run) -> None:
    run("ask hmda h2 Black 0")
    assert run("tell hmda h2 repaid", 2).strip().endswith("Known: bad, good")
    assert "say 'good' or 'bad'" in run("tell hmda h2 0", 2)
    assert "the outcome is noted" in run("tell hmda h2 good")
    conflict = run("tell hmda h2 bad", 2)
    assert "outcome 1 (good) of person 'h2' is stored; got 0 (bad)" in conflict
    advice = conflict.partition(" is right: equipoise audit ")[2]
    assert "the outcome is corrected" in run(advice)


def test_a_group_that_is_not_compared_is_called_so(run: Run) -> None:
    assert "nothing to do (this group is not compared)" in run("ask hmda j1 Joint 0")
    answers = json.loads(run("ask hmda j1 Joint 0 --json"))
    assert (answers["why"], answers["repeated"]) == ("left_out", True)
    run("verify hmda")


def test_a_file_s_people_are_counted_by_what_came_of_them(run: Run) -> None:
    people = [f"p{i},{('White', 'Black')[i % 2]},0" for i in range(12)]
    write("asks.csv", "person,group,decision", *people, "j1,Joint,0", "a1,White,1")
    first = run("ask hmda -f asks.csv")
    assert first.splitlines() == [
        "14 rows: 14 new, 0 known before, 0 refused",
        "  6 x override this denial, and tell how it goes",
        "  1 x nothing to do (approved: there is no denial to override)",
        "  6 x nothing to do (the budget is spent or held)",
        "  1 x nothing to do (this group is not compared)",
    ]
    write("told.csv", "person,outcome", *(f"p{i},bad" for i in range(6)))
    told = run("tell hmda -f told.csv")
    end = "verdict: INCONCLUSIVE; see equipoise audit status hmda"
    assert told.splitlines() == ["6 rows: 6 new, 0 known before, 0 refused", end]
    assert run("tell hmda p0 bad").splitlines() == ["p0: the outcome is noted, as before", end]
    again = run("ask hmda -f asks.csv")
    assert "  6 x the outcome is noted\n" in again
    assert "override" not in again.replace("no denial to override", "")


def test_rows_that_are_refused_name_their_person(run: Run) -> None:
    write("asks.csv", "person,group,decision", "k1,Klingon,0", "k2,White,maybe", "k3,White")
    run("ask hmda -f asks.csv --results results.csv", 2)
    with open("results.csv", newline="") as file:
        assert [(row["line"], row["person"]) for row in csv.DictReader(file)] == [
            *(("2", "k1"), ("3", "k2"), ("4", "")),
        ]
    done = CliRunner().invoke(app, ["audit", "ask", "hmda", "-f", "asks.csv", "--json"])
    assert [row["person"] for row in json.loads(done.stdout)["refused"]] == ["k1", "k2", ""]


def test_an_approved_person_is_not_to_be_overridden(run: Run) -> None:
    run(shlex.join(["new", "all", "past.csv", *READ, "--audit", "baseline", "--option", "tau=4"]))
    assert run("ask all a1 White 1") == "a1: tell how it goes\n"
    assert run("ask all d1 White 0") == "d1: override this denial, and tell how it goes\n"


def test_a_withdrawn_person_s_outcome_is_not_used(run: Run) -> None:
    run("ask hmda w1 White 0")
    assert run("withdraw hmda w1") == "w1: withdrawn, the outcome stays unknown\n"
    assert run("tell hmda w1 bad") == "w1: withdrawn before: this outcome is not used\n"


def test_what_was_taken_in_is_said(run: Run) -> None:
    assert run("limits hmda --max-in-flight-of White=3 --why x") == "limits: 3 of White\n"
    assert run("limits hmda --no-limit --why x") == "limits: no limits\n"
    assert run("budget hmda 70 --why x") == "budget: 70\n"
    refused = run("budget hmda 0.5 --why x", 2)
    assert "in whole minor units (cents; with --decimals 2 the number 50 is 0.50)" in refused
    assert "'--label-cost': it must be in whole" in run("new b past.csv --label-cost 0.5", 2)


def test_a_file_that_brings_a_verdict_says_so(run: Run) -> None:
    assert run("random-accepts hmda --of White=300,300,1 --of Black=2,0,0 --why x") == (
        "random accepts: White 300 good, 300 bad, 1 unknown; Black 2 good, 0 bad, 0 unknown\n"
    )
    missing = run("random-accepts hmda --of White=300,300,1 --why x", 2)
    assert "of 'Black' must list everybody of the last file" in missing
    assert "got 0, 0, 0: give every group's, keep people" in missing
    said = run("random-accepts hmda --of White=300,300,1 --of Black=300,30,0 --why x")
    assert said.endswith("\nverdict: UNFAIR; see equipoise audit status hmda\n")


def test_a_correction_that_undoes_the_verdict_says_so(run: Run) -> None:
    asked = shlex.join([*READ, *ASKED, "--audit", "rs", "--option", "tau=1"])
    run(f"new b past.csv {asked}")
    for group in ("White", "Black"):
        run(f"ask b {group} {group} 0")
        said = run(f"tell b {group} good")
    assert said.endswith("verdict: UNFAIR; see equipoise audit status b\n")
    assert run("correct b Black bad --why reread") == (
        "Black: the outcome is corrected, the old one stays on record\n"
        "the verdict UNFAIR is taken back; the audit goes on; see equipoise audit status b\n"
    )
    status = run("status b")
    assert "earlier     UNFAIR was reached before and taken back: the log" in status
    assert "verdict     none any more" in status


def test_nothing_to_do_is_said(run: Run) -> None:
    assert run("upgrade hmda --why new") == "nothing to upgrade\n"
    assert run("resume hmda --why 'by mistake'") == "nothing to resume\n"
    assert "'--days' is needed" in run("overdue hmda", 2)
