"""``equipoise check``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

import equipoise as eq
from equipoise.metrics import METRICS
from tests.acceptance.shell import equipoise

COLUMNS = ("--group", "race", "--decision", "approved", "--outcome", "repaid")


@pytest.fixture(scope="module")
def loans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("loans") / "loans.csv"
    eq.data.fico_lender().past().to_csv(str(path))
    return path


def test_it_shows_the_naive_answers_and_the_honest_one(loans: Path) -> None:
    done = equipoise("check", loans, *COLUMNS)
    assert (done.returncode, done.stderr) == (0, "")
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    (naive,) = (line for line in done.stdout.splitlines() if "approved rows only" in line)
    assert " 0.0 " in naive
    assert "wrong: the data rule it" in naive
    text = " ".join(done.stdout.split())
    assert text.startswith("UNFAIR. Among people who would turn out well or among people who would")
    assert "because: whatever the denied would have done, the gap is above 5 points" in text


def test_its_json_says_the_same_as_the_library(loans: Path) -> None:
    done = equipoise("check", loans, *COLUMNS, "--metric", "equal_opportunity", "--json")
    assert done.returncode == 0
    answer = json.loads(done.stdout)
    history = eq.History.read(loans, group="race", decision="approved", outcome="repaid")
    finding = eq.check(history, eq.Question("equal_opportunity"))
    assert answer.pop("history") == history.to_dict()
    assert answer == json.loads(json.dumps(finding.to_full_dict()))


def test_the_four_fifths_rule_is_settled_for_free(loans: Path) -> None:
    asked = ("--metric", "demographic_parity", "--compare", "ratio", "--gamma", "0.2")
    done = equipoise("check", loans, *COLUMNS, *asked, "--json")
    answer = json.loads(done.stdout)
    assert answer["question"]["compare"] == "ratio"
    assert answer["verdict"] == "UNFAIR"
    cells = eq.History.read(loans, group="race", decision="approved", outcome="repaid").cells
    shares = [c.approved / c.total for c in cells.values()]
    assert answer["lower"] <= 1.0 - min(shares) / max(shares) <= answer["upper"]
    refused = equipoise("check", loans, *COLUMNS, *asked, "--epsilon", "0.8")
    assert refused.returncode == 2
    assert "'gamma' + 'epsilon' of a ratio must be below 1" in " ".join(refused.stderr.split())


def test_every_metric_at_once_and_as_a_page(loans: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = equipoise("check", loans, *COLUMNS, "--metric", "all", "--report", page)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert max(map(len, [line for line in lines if not line.startswith("wrote")])) <= 80
    (parity,) = (line for line in lines if line.lstrip().startswith("demographic parity"))
    assert "UNFAIR" in parity
    assert "Asian > Black" in parity
    assert page.read_text(encoding="utf-8").count('class="answer ') == len(METRICS)
    refused = equipoise("check", loans, *COLUMNS, "--report", tmp_path / "page.pdf")
    assert refused.returncode == 2
    assert "'--report' of a check must end in .html" in refused.stderr


def test_intersections_words_and_prices(tmp_path: Path) -> None:
    rows = ["race,sex,granted,end"]
    for race in ("Black", "white"):
        for sex in ("f", "m"):
            rows += [f"{race},{sex},yes,paid", f"{race},{sex},yes,late", f"{race},{sex},no,"] * 20
    path = tmp_path / "loans.csv"
    path.write_text("\n".join(rows))
    columns = ("-g", "race", "-g", "sex", "-d", "granted", "-o", "end")
    done = equipoise(
        "check",
        path,
        *columns,
        "--positive",
        "decision=yes",
        "--positive",
        "outcome=paid",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    cells = json.loads(done.stdout)["history"]["cells"]
    assert cells["Black & f"] == {"approved_positive": 20, "approved_negative": 20, "denied": 20}
    assert len(cells) == 4


def test_a_reading_is_kept_and_given_in_place_of_its_options(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    table, kept = tmp_path / "data" / "loans 1.csv", tmp_path / "loans.toml"
    rows = ["race;status;end"]
    for race in ("Black", "white", "white", "WHITE"):
        rows += [f"{race};Granted;paid", f"{race};Granted;lost", f"{race};no;", f"{race};?;"] * 30
    table.write_text("\n".join(rows))
    said = ["-g", "race", "-d", "status", "-o", "end", "--positive", "status=granted"]
    said += ["--positive", "end=paid", "--missing-value", "?", "--undecided", "leave_out"]
    first = equipoise("check", table, *said, "--json", "--save", kept)
    assert first.returncode == 0, first.stderr
    assert "\nsource = 'data/loans 1.csv'" in "\n" + kept.read_text().replace('"', "'")
    history = json.loads(first.stdout)["history"]
    assert eq.History.read(kept).to_dict() == history

    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for part in ("data", "loans.toml"):
        (tmp_path / part).rename(moved / part)
    again = equipoise("check", moved / "loans.toml", "--json")
    assert json.loads(again.stdout)["history"]["cells"] == history["cells"]
    coarse = ("--epsilon", "0.3")
    planned = equipoise("plan", moved / "loans.toml", *coarse, "--json")
    assert json.loads(planned.stdout)["free"]["verdict"] == json.loads(first.stdout)["verdict"]
    ledger = tmp_path / "ledger.db"
    beginning = ("audit", "new", "a", moved / "loans.toml", *coarse)
    new = equipoise(*beginning, "--ledger", ledger, "--json")
    assert new.returncode == 0, new.stderr
    guesses = ("--denied-rate", "Black=0.1", "--denied-rate", "white=0.4")
    runs = ("simulate", "adaptive", "--repeats", "3", "--world", moved / "loans.toml")
    simulated = equipoise(*runs, *guesses, *coarse, "--json")
    assert simulated.returncode == 0, simulated.stderr
    assert json.loads(simulated.stdout)["runs"][0]["repeats"] == 3
    refused = equipoise(*runs)
    assert "--denied-rate GROUP=R" in " ".join(refused.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*COLUMNS, "--gamma", "-0.1"], "'gamma' must be a finite number >= 0"),
        ([*COLUMNS, "--gamma", "wide"], "'--gamma'"),
        ([*COLUMNS, "--metric", "equal_odds"], "Did you mean 'equalized_odds'?"),
        (
            [*COLUMNS, "--positive", "a", "--positive", "b"],
            "--positive names 'a, b', which is not a value of column 'approved'",
        ),
    ],
)
def test_a_mistake_is_one_line_and_code_2(loans: Path, arguments: list[str], message: str) -> None:
    done = equipoise("check", loans, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert message in line


def test_a_column_that_was_not_named_is_proposed(loans: Path) -> None:
    done = equipoise("check", loans, *COLUMNS[:4], "--metric", "equal_opportunity")
    assert (done.returncode, done.stdout) == (2, "")
    problem, guided, tried, command = done.stderr.splitlines()
    assert problem.startswith("error: Which column holds the outcome? Name it: --outcome COLUMN.")
    assert "It may be 'repaid'." in problem
    assert guided == f"Or answer questions: equipoise read {loans}"
    assert tried.startswith("This was tried")
    read = equipoise(*shlex.split(command)[1:])
    assert read.returncode == 0, read.stderr


def test_the_finished_command_is_the_one_that_was_typed(loans: Path, tmp_path: Path) -> None:
    """Problems stand on lines of their own; the last line, run as it is, ends where one began."""
    saved = tmp_path / "our loans.toml"
    typed = (*COLUMNS, "--max-groups", 3, "--metric", "equal_opportunity")
    done = equipoise("plan", loans, *typed, "--save", saved, "--denied-rate", "White=0.3")
    assert done.returncode == 2
    problem, tried, command = done.stderr.splitlines()
    assert problem.startswith("error: ")
    assert "--max-groups 4" in problem
    assert tried.startswith("This was tried")
    words = shlex.split(command)
    assert words[:2] == ["equipoise", "plan"]
    assert words[-6:] == [
        *("--save", str(saved), "--metric", "equal_opportunity", "--denied-rate", "White=0.3")
    ]
    again = equipoise(*words[1:])
    assert (again.returncode, again.stderr) == (0, "")
    assert "equal opportunity" in again.stdout
    assert "max_groups = 4" in saved.read_text()


def test_a_bad_file_is_one_line_and_code_2(tmp_path: Path) -> None:
    done = equipoise("check", tmp_path / "none.csv", *COLUMNS)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: File not found: {tmp_path / 'none.csv'}\n"


def test_on_adult_the_naive_answer_is_wrong_and_the_bounds_hold_the_truth(tmp_path: Path) -> None:
    """A logistic regression grants by income; only the outcomes of the granted are known."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    adult = eq.data.adult()
    features = eq.data.encode(
        adult, ["age", "education_num", "hours_per_week", "capital_gain", "sex"]
    )
    values = adult.project("sex, income, part").fetchnumpy()
    earns = values["income"] == ">50K"
    train = values["part"] == "train"
    model = linear_model.LogisticRegression(max_iter=1000).fit(features[train], earns[train])
    granted = model.predict(features)

    path = tmp_path / "adult.csv"
    outcome = np.where(granted, earns.astype(int).astype(str), "")
    lines = [f"{s},{int(d)},{y}" for s, d, y in zip(values["sex"], granted, outcome, strict=True)]
    path.write_text("\n".join(["sex,granted,earns", *lines]))
    counts = {
        sex: {
            f"{decided}_{turned}": int(
                np.sum((values["sex"] == sex) & (granted == d) & (earns == y))
            )
            for decided, d in (("approved", 1), ("denied", 0))
            for turned, y in (("positive", 1), ("negative", 0))
        }
        for sex in ("Female", "Male")
    }
    truth = eq.worlds.CellWorld.from_counts(counts).gap("equalized_odds")

    done = equipoise("check", path, "-g", "sex", "-d", "granted", "-o", "earns", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["approved_only"] == 0.0
    assert truth > 0.1
    assert answer["lower"] <= truth <= answer["upper"]


def test_groups_are_compared_with_one_in_one_direction_within_strata(tmp_path: Path) -> None:
    lines = ["race,product,approved,repaid"]
    for race, product, approved, repaid, denied in (
        *(("White", "car", 60, 20, 20), ("Black", "car", 30, 10, 60), ("?", "car", 1, 1, 98)),
        *(("White", "home", 30, 10, 60), ("Black", "home", 60, 20, 20), ("White", "boat", 5, 1, 2)),
    ):
        counts = {"1,1": approved, "1,0": repaid, "0,": denied}
        lines += [f"{race},{product},{row}" for row, n in counts.items() for _ in range(10 * n)]
    path = tmp_path / "loans.csv"
    path.write_text("\n".join([*lines, ""]))
    metric = ("--metric", "demographic_parity", "--json")
    who = ("--within", "product", "--leave-out", "?", "--against", "White")
    answers = {}
    for direction in ("both", "below", "above"):
        done = equipoise("check", path, *COLUMNS, *metric, *who, "--direction", direction)
        answer = answers[direction] = json.loads(done.stdout)
        assert (answer["verdict"], done.stderr) == ("UNFAIR", "")
        assert answer["question"]["compare"]["within"] is True
        assert answer["assumptions"][0] == "not compared: boat | White, car | ?"
    assert answers["below"]["decided_by"]["lower"] == "car | Black"
    assert answers["above"]["decided_by"]["higher"] == "home | Black"
    refused = equipoise("check", path, *COLUMNS, *metric, "--direction", "below")
    assert refused.returncode == 2
    assert "'direction' 'below' needs 'against'" in " ".join(refused.stderr.split())
