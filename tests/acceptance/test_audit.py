"""``equipoise audit``: months of an audit in a minute."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest

from equipoise.finding import Finding
from equipoise.ledger import LiveAudit
from equipoise.report import write_report
from equipoise.worlds import CellWorld
from tests.acceptance.shell import equipoise

WORLD = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)})
COLUMNS = ("--group", "race", "--decision", "approved", "--outcome", "repaid")


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("past") / "past.csv"
    rows = ["race,approved,repaid"]
    for person in WORLD.draw(4000, 0):
        told = person.outcome if person.decision else ""
        rows.append(f"{person.group},{person.decision},{told}")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def begun(past: Path) -> Path:
    """A ledger with an audit that has just begun."""
    path = past.parent / "ledger.db"
    question = ("--metric", "equal_opportunity", "--epsilon", 0.2, "--gamma", 0.1)
    limits = ("--label-cost", 100, "--budget", 50_000, "--currency", "EUR", "--decimals", 2)
    done = equipoise("audit", "new", "loans", past, *COLUMNS, *question, *limits, "-l", path)
    assert (done.returncode, done.stderr) == (0, "")
    return path


@pytest.fixture
def ledger(begun: Path, tmp_path: Path) -> str:
    """A copy of it for each test."""
    return shutil.copy(begun, tmp_path / "ledger.db").as_posix()


def people(size: int) -> list[tuple[str, str, int, int]]:
    drawn = WORLD.draw(size, 1)
    return [(f"p{i}", p.group, p.decision, p.outcome) for i, p in enumerate(drawn)]


def write_csv(path: Path, header: str, rows: list[tuple[object, ...]]) -> Path:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def test_an_audit_from_beginning_to_report(ledger: str, tmp_path: Path) -> None:
    drawn = people(600)
    asks = write_csv(tmp_path / "asks.csv", "person,group,decision", [p[:3] for p in drawn])
    results = tmp_path / "results.csv"
    done = equipoise("audit", "ask", "loans", "-f", asks, "-l", ledger, "--results", results)
    assert (done.returncode, done.stderr) == (0, "")
    assert "600 rows: 600 new, 0 known before, 0 refused" in done.stdout
    with results.open() as file:
        wanted = {row["person"] for row in csv.DictReader(file) if row["want"] == "LABEL"}
    assert wanted
    again = equipoise("audit", "ask", "loans", "-f", asks, "-l", ledger, "--json")
    assert json.loads(again.stdout)["repeated"] == 600

    outcomes = [(p, y) for p, _, _, y in drawn if p in wanted]
    lines = tmp_path / "told.jsonl"
    lines.write_text("".join(json.dumps({"id": p, "y": y}) + "\n" for p, y in outcomes))
    columns = ("--column", "person=id", "--column", "outcome=y")
    told = equipoise("audit", "tell", "loans", "-f", lines, *columns, "-l", ledger)
    assert told.returncode == 0, told.stderr
    status = json.loads(equipoise("audit", "status", "loans", "-l", ledger, "--json").stdout)
    assert status["groups"]["B"]["positive"] + status["groups"]["B"]["negative"] > 0
    assert status["spent"] + status["reserved"] <= 50_000

    closed = equipoise("audit", "conclude", "loans", "--yes", "-l", ledger)
    assert closed.returncode == 0
    made = [tmp_path / f"report.{form}" for form in ("html", "json")]
    targets = [part for path in made for part in ("--to", path)]
    report = equipoise("audit", "report", "loans", *targets, "-l", ledger)
    assert report.returncode == 0, report.stderr
    assert json.loads(made[1].read_text())["name"] == "loans"
    assert "loans, audit report" in made[0].read_text()

    export = equipoise("audit", "export", "loans", "--to", tmp_path / "out" / "a.jsonl",
                       "--verifier", "-l", ledger, "--json")  # fmt: skip
    head = json.loads(export.stdout)["hash"]
    bare = [sys.executable, "-I", "-S", "verify.py", "a.jsonl", "--head", head]
    checked = subprocess.run(bare, cwd=tmp_path / "out", capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert equipoise("audit", "verify", "loans", "-l", ledger).returncode == 0
    exported = equipoise("audit", "verify", "-f", tmp_path / "out" / "a.jsonl", "--head", head)
    assert exported.returncode == 0, exported.stderr


def test_an_export_leaves_a_verify_py_of_somebody_else_alone(ledger: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    other = folder / "verify.py"
    other.write_text("print('checks something else')\n")
    export = ("audit", "export", "loans", "--to", folder / "a.jsonl", "--verifier", "-l", ledger)
    refused = equipoise(*export)
    assert refused.returncode == 2
    assert "is not our verifier" in " ".join(refused.stderr.split())
    assert other.read_text() == "print('checks something else')\n"
    assert not (folder / "a.jsonl").exists()
    other.unlink()
    for _ in range(2):  # the second time over the one that we wrote
        assert equipoise(*export).returncode == 0
    assert "class" in other.read_text()


def test_the_name_of_an_audit_never_becomes_a_path(
    past: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, folder = tmp_path / "ledger.db", tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    name = "../../x"
    assert equipoise("audit", "new", name, past, *COLUMNS, "-l", ledger).returncode == 0
    assert equipoise("audit", "report", name, "-l", ledger).returncode == 0
    assert equipoise("audit", "export", name, "-l", ledger).returncode == 0
    write_report(LiveAudit.open(str(ledger), name))
    assert sorted(path.suffix for path in folder.iterdir()) == [".html", ".jsonl"]
    assert [*tmp_path.glob("*.html"), *tmp_path.glob("*.jsonl")] == []


def test_one_person_at_a_time(ledger: str) -> None:
    asked = equipoise("audit", "ask", "loans", "anna", "B", 0, "-l", ledger)
    assert asked.stdout.strip() == "anna: override this denial, and tell how it goes"
    again = equipoise("audit", "ask", "loans", "anna", "B", 0, "-l", ledger, "--json")
    assert json.loads(again.stdout)["repeated"] is True
    assert (
        "overridden, the outcome is awaited"
        in equipoise("audit", "executed", "loans", "anna", "-l", ledger).stdout
    )
    late = equipoise("audit", "overdue", "loans", "--days", 0, "-l", ledger)
    assert "1 newly overdue" in late.stdout
    assert "written off" in equipoise("audit", "write-off", "loans", "anna", "-l", ledger).stdout
    assert (
        "the outcome is noted"
        in equipoise("audit", "tell", "loans", "anna", 1, "-l", ledger).stdout
    )
    fixed = equipoise("audit", "correct", "loans", "anna", 0, "--why", "typo", "-l", ledger)
    assert "the outcome is corrected" in fixed.stdout
    equipoise("audit", "ask", "loans", "bert", "B", 0, "-l", ledger)
    assert "withdrawn" in equipoise("audit", "withdraw", "loans", "bert", "-l", ledger).stdout
    listed = json.loads(equipoise("audit", "list", "-l", ledger, "--json").stdout)
    assert [row["name"] for row in listed] == ["loans"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("status", "lonas"), "unknown audit 'lonas'. Did you mean 'loans'"),
        (
            ("tell", "loans", "ghost", 1),
            "person 'ghost' is unknown to audit 'loans': nobody has asked",
        ),
        (("ask", "loans", "x", "C", 0), "unknown group 'C'"),
        (
            ("ask", "loans", "x", "A", 7),
            "unknown decision (column 'approved') '7'. Known: 0, 1",
        ),
        (("ask", "loans"), "say whom it is about, PERSON GROUP DECISION or --file FILE"),
        (("ask", "loans", "-f", "missing.csv"), "no such file: missing.csv"),
        (("ask", "loans", "-f", "people.pdf"), "unknown kind of file '.pdf'"),
        (("report", "loans", "--to", "report.pdf"), "unknown form of report '.pdf'"),
        (("verify", "-f", "missing.jsonl"), "cannot read missing.jsonl"),
        (("verify",), "'NAME' or '--file' is needed"),
    ],
)
def test_bad_input_is_one_line_and_code_two(
    ledger: str, arguments: tuple[object, ...], message: str
) -> None:
    done = equipoise("audit", *arguments, "-l", ledger)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_ledger_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    done = equipoise("audit", "status", "loans", "-l", tmp_path / "none.db")
    assert done.returncode == 2
    assert "no ledger at" in done.stderr
    assert not (tmp_path / "none.db").exists()


def test_bad_rows_are_named_by_line_and_the_rest_goes_in(ledger: str, tmp_path: Path) -> None:
    rows = [",".join(map(str, p[:3])) for p in people(3000)]
    rows[99], rows[1499], rows[2999] = "x,Nowhere,0", "y,A,maybe", "z,A"
    path = tmp_path / "asks.csv"
    path.write_bytes(("person,group,decision\n" + "\n".join(rows) + "\n").encode())
    done = equipoise("audit", "ask", "loans", "-f", path, "-l", ledger, "--json")
    assert done.returncode == 2
    assert "3 of 3,000 rows were refused: line 101, 1501, 3001" in done.stderr
    answer = json.loads(done.stdout)
    assert answer["new"] == 2997
    assert [row["line"] for row in answer["refused"]] == [101, 1501, 3001]
    status = json.loads(equipoise("audit", "status", "loans", "-l", ledger, "--json").stdout)
    assert sum(g["approved"] + g["denied"] for g in status["groups"].values()) == 2997


def test_parquet_serves_as_well_and_a_broken_one_is_refused(ledger: str, tmp_path: Path) -> None:
    drawn = people(50)
    table = {
        "person": np.array([p[0] for p in drawn], dtype=object),
        "group": np.array([p[1] for p in drawn], dtype=object),
        "decision": np.array([p[2] for p in drawn]),
    }
    path = tmp_path / "asks.parquet"
    with duckdb.connect() as database:
        database.register("asks", table)
        database.sql("SELECT * FROM asks").write_parquet(str(path))
    done = equipoise("audit", "ask", "loans", "-f", path, "-l", ledger)
    assert (done.returncode, done.stderr) == (0, "")
    assert "50 rows: 50 new" in done.stdout
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(path.read_bytes()[:-100])
    done = equipoise("audit", "ask", "loans", "-f", broken, "-l", ledger)
    assert done.returncode == 2
    assert f"cannot read {broken}: " in done.stderr


def test_a_column_that_is_missing_is_named(ledger: str, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "asks.csv", "person,grup,decision", [("a", "A", 0)])
    done = equipoise("audit", "ask", "loans", "-f", path, "-l", ledger)
    assert done.returncode == 2
    assert "unknown column of the file 'group'. Did you mean 'grup'?" in done.stderr
    assert "--column group=NAME" in done.stderr
    named = equipoise("audit", "ask", "loans", "-f", path, "-l", ledger, "--column", "group=grup")
    assert (named.returncode, named.stderr) == (0, "")


@pytest.mark.parametrize("between", [";", "\t"])
def test_what_stands_between_cells_is_seen_in_the_header(
    ledger: str, tmp_path: Path, between: str
) -> None:
    """As where a comma is written in numbers; a comma inside a quoted name is none of them."""
    path = tmp_path / "asks.csv"
    rows = [['"name, first, last"', "decision", "person", "group"], ["x", "0", "a", "A"]]
    path.write_text("\n".join(between.join(row) for row in rows), encoding="utf-8-sig")
    done = equipoise("audit", "ask", "loans", "-f", path, "-l", ledger)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 rows: 1 new, 0 known before, 0 refused" in done.stdout


def test_files_of_people_are_read_as_the_past_was(tmp_path: Path) -> None:
    """Words, columns and spellings are said once, when the audit begins."""
    words = ["applicant,Race,Decision,Status"]
    for at, person in enumerate(WORLD.draw(3000, 2)):
        told = ("lost", "Repaid")[person.outcome] if person.decision else ""
        words.append(f"x{at},{person.group},{('denied', 'Approved ')[person.decision]},{told}")
    past = tmp_path / "past.csv"
    past.write_text("\n".join(words) + "\n")
    ledger = tmp_path / "ledger.db"
    said = ("-g", "Race", "-d", "Decision", "-o", "Status", "--positive", "decision=approved")
    question = ("--metric", "equal_opportunity", "--epsilon", 0.2, "--gamma", 0.1)
    begun = equipoise(
        "audit",
        "new",
        "loans",
        past,
        *said,
        "--positive",
        "outcome=repaid",
        *question,
        "-l",
        ledger,
    )
    assert (begun.returncode, begun.stderr) == (0, "")
    rows = [
        (f"p{i}", f" {p.group.lower()}", ("DENIED", "approved")[p.decision])
        for i, p in enumerate(WORLD.draw(200, 3))
    ]
    file = write_csv(tmp_path / "arrived.csv", "applicant,Race,Decision", rows)
    asked = equipoise(
        "audit", "ask", "loans", "-f", file, "--column", "person=applicant", "-l", ledger
    )
    assert (asked.returncode, asked.stderr) == (0, "")
    assert "200 rows: 200 new, 0 known before, 0 refused" in asked.stdout
    wanted = [row for row in rows if row[2] == "DENIED"][:1]
    told = write_csv(tmp_path / "told.csv", "person,Status", [(wanted[0][0], "REPAID")])
    assert equipoise("audit", "tell", "loans", "-f", told, "-l", ledger).returncode == 0
    odd = write_csv(
        tmp_path / "odd.csv", "person,Race,Decision", [("q1", "A", "maybe"), ("q2", "C", "denied")]
    )
    refused = equipoise("audit", "ask", "loans", "-f", odd, "-l", ledger)
    assert refused.returncode == 2
    assert "unknown decision (column 'Decision') 'maybe'" in refused.stdout
    assert "unknown group 'C'" in refused.stdout


def test_an_audit_is_managed_from_the_shell(ledger: str, tmp_path: Path) -> None:
    def audit(*arguments: object, code: int = 0) -> str:
        done = equipoise("audit", arguments[0], "loans", *arguments[1:], "-l", ledger)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    heads = tmp_path / "heads.jsonl"
    audit("checkpoint", "--to", heads)
    assert audit("pause", "--why", "a holiday").strip() == "paused"
    assert "the audit is paused" in audit("ask", "anna", "B", 0)
    audit("resume", "--why", "back")
    audit("budget", 60_000, "--why", "more money")
    assert "cap 600.00 EUR" in audit("status")
    assert "must be a whole number" in audit("budget", 2**53, "--why", "too much", code=2)
    for change in ("budget", "limits"):  # nobody removes a limit by leaving a number out
        assert "or --no-limit to remove" in audit(change, "--why", "forgot it", code=2)
        assert "Both are given" in audit(
            change, *((9,) if change == "budget" else ("--max-in-flight", 9)), "--no-limit",
            "--why", "both", code=2,
        )  # fmt: skip
    assert "cap 600.00 EUR" in audit("status")
    audit("limits", "--no-limit", "--why", "more hands")
    audit("limits", "--max-in-flight", 5, "--why", "fewer hands")
    both = ("random-accepts", "--of", "A=3,2,1", "--of")
    audit(*both, "B=3,2,1", "--why", "a programme's first file")
    refused = audit(*both, "B=2,3,2", "--why", "its second file", code=2)
    assert "'random_accepts' of 'B' must list everybody of the last file (3 good" in refused
    audit(*both, "B=2,3,2", "--corrected", "B=1", "--why", "its second file")
    audit("ask", "bert", "B", 0)
    assert "settle the request first" in audit("erase", "bert", code=2)
    audit("withdraw", "bert", "--actor", "anna")
    assert "once for many erasures: equipoise audit scrub loans" in audit("erase", "bert")
    assert "1 of them still in the files" in audit("status")
    assert audit("scrub").strip() == "erased"
    assert audit("upgrade", "--why", "a new release").strip() == "nothing to upgrade"
    log = audit("log", "--last", 3)
    assert re.search(r"anna +reported a refusal +person 2", log)
    assert re.search(r"erased a person +person 2", log)
    assert "OK: audit 'loans'" in audit("verify", "--checkpoint", heads)
    assert "must be 120:HASH or name a file" in audit("verify", "--checkpoint", "x", code=2)


def test_what_is_said_of_people_is_read_as_the_past_was(tmp_path: Path) -> None:
    """One by one and in files: cases, blanks, people without a group, the past's own words."""
    rows = [
        (group, decision, status)
        for group, good, bad, denied in (("Blue", 60, 20, 80), ("red", 50, 30, 90), ("", 5, 5, 40))
        for decision, status, n in (("Y", "repaid", good), ("Y", "lost", bad), ("N", "", denied))
        for _ in range(n)
    ]
    past = write_csv(tmp_path / "past.csv", "colour,granted,status", rows)
    columns = ("-g", "colour", "-d", "granted", "-o", "status", "--missing-group", "not stated")
    words = ("--positive", "decision=Y", "--positive", "outcome=repaid", "--metric")
    book = ("-l", tmp_path / "book.db")
    prices = ("--label-cost", 250, "--currency", "EUR", "--decimals", 2, "--epsilon", 0.3)
    new = ("audit", "new", "loans", past, *columns, *words, "equal_opportunity", *prices, *book)
    broke = equipoise(*new, "--budget", 249)
    assert "must pay for at least one request at its worst" in broke.stderr
    assert "2.49 EUR does not" in broke.stderr
    begun = equipoise(*new, "--budget", 250_000, "--yes")  # 50 people of no group decide little
    assert begun.returncode == 0, begun.stderr
    for person, group, decision in (("p1", "BLUE ", "n"), ("p2", "", "N"), ("p3", "Red", 0)):
        done = equipoise("audit", "ask", "loans", person, group, decision, *book)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
    told = equipoise("audit", "tell", "loans", "p1", "Lost", *book)
    assert "the outcome is noted" in told.stdout
    again = equipoise("audit", "tell", "loans", "p1", "repaid", *book)
    advice = again.stderr.partition(": equipoise ")[2]
    assert equipoise(*advice.split(), *book).stdout.startswith("p1: the outcome is corrected")
    people = [("p4", "bLUE", "N"), ("p5", "n/a", "N")]
    asks = write_csv(tmp_path / "asks.csv", "person,group,decision", people)
    asked = equipoise("audit", "ask", "loans", "-f", asks, *book)
    assert "2 rows: 2 new, 0 known before, 0 refused" in asked.stdout, asked.stderr
    assert "2 x override this denial, and tell" in asked.stdout
    outcomes = [("p4", "REPAID"), ("p5", "")]
    file = write_csv(tmp_path / "told.csv", "id,outcome", outcomes)
    more = equipoise("audit", "tell", "loans", "-f", file, "--column", "person=id", *book)
    assert more.stdout.splitlines() == [
        "2 rows: 1 new, 0 known before, 0 refused, 1 without an outcome yet"
    ]
    half = equipoise("audit", "tell", "loans", "-f", file, "--column", "person=", *book)
    assert "'--column' must look like WHAT=COLUMN, as in person=id; got 'person='" in half.stderr
    typo = equipoise("audit", "tell", "loans", "-f", file, "--column", "persn=id", *book)
    assert "unknown column in '--column' 'persn'. Did you mean 'person'?" in typo.stderr
    live = LiveAudit.open(str(tmp_path / "book.db"), "loans")
    assert "spent       0.00 EUR for" in str(live.so_far())
    assert Finding.from_dict(live.so_far().to_dict()) == live.so_far()
