"""``equipoise audit new --assist``: files with scores and prices, up to the proof."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.acceptance.shell import equipoise
from tests.profiles import FULL, quick

RATES = {"A": 0.15, "B": 0.65}
SEEN = ("--score", "model_score", "--price", "amount", "--score-version", "winter")


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("past") / "past.csv"
    cells = {"1,1": 300, "1,0": 100, "0,": 600}
    rows = [f"{group},{cell}" for group in RATES for cell, n in cells.items() for _ in range(n)]
    path.write_text("\n".join(["race,approved,repaid", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def begun(past: Path) -> Path:
    """A ledger with an audit that has just begun."""
    path = past.parent / "ledger.db"
    columns = ("--group", "race", "--decision", "approved", "--outcome", "repaid")
    question = ("--metric", "false_omission_parity", "--epsilon", 0.05, "--gamma", 0.1)
    money = ("--label-cost", 100, "--currency", "EUR", "--decimals", 2)
    looking = ("--assist", "--max-price", 900)
    done = equipoise(
        "audit", "new", "loans", past, *columns, *question, *money, *looking, "-l", path
    )
    assert (done.returncode, done.stderr) == (0, "")
    return path


@pytest.fixture
def ledger(begun: Path, tmp_path: Path) -> Path:
    """A copy of it for each test."""
    return Path(shutil.copy(begun, tmp_path / "ledger.db"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--assist", "--option", 'assist={"gate": 0.5}'), "leave out --assist"),
        (("--option", "assist={}", "--max-price", 900), "are for audits that look before"),
        (("--people-per-label", 3), "'--people-per-label' are for audits that look"),
        (("--assist", "--max-price", 900, "--budget", 200), "a person's price may be 9.00 EUR"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    given: tuple[object, ...], message: str, past: Path, tmp_path: Path
) -> None:
    columns = ("--group", "race", "--decision", "approved", "--outcome", "repaid")
    money = ("--label-cost", 100, "--currency", "EUR", "--decimals", 2)
    new = ("audit", "new", "loans", past, *columns, *money, "-l", tmp_path / "none.db")
    done = equipoise(*new, *given)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


def write_people(path: Path, first: int, many: int, dearest: int = 900) -> dict[str, int]:
    """Write applicants with what the lender knows of them; return what will become of them."""
    rng, outcomes = np.random.default_rng(first), {}
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["person", "group", "decision", "model_score", "amount"])
        for n in range(first, first + many):
            group = "AB"[int(rng.integers(2))]
            outcome = int(rng.random() < RATES[group])
            score = round(float(rng.normal() + 2.5 * outcome), 3)
            score = ("", "NA", "NaN")[n // 50 % 3] if n % 50 == 0 else score
            out.writerow([f"p{n}", group, 0, score, int(rng.integers(50, dearest + 1))])
            outcomes[f"p{n}"] = outcome
    return outcomes


def test_an_audit_that_looks_from_the_first_file_to_the_proof(ledger: Path, tmp_path: Path) -> None:
    results, told = tmp_path / "results.csv", tmp_path / "told.csv"
    status, first, wants = {"finding": None}, 0, {"LABEL": 0, "SCORE_ONLY": 0, "NOTHING": 0}
    for many in quick((100, 150), full=(100, 150, 150, 200, 200)):
        file = tmp_path / f"from-{first}.csv"
        outcomes = write_people(file, first, many)
        asked = equipoise(
            "audit", "ask", "loans", "-f", file, *SEEN, "-l", ledger, "--results", results
        )
        assert (asked.returncode, asked.stderr) == (0, "")
        with results.open() as rows:
            replies = list(csv.DictReader(rows))
        for reply in replies:
            wants[reply["want"]] += 1
        mine = [reply["person"] for reply in replies if reply["want"] == "LABEL"]
        told.write_text("person,outcome\n" + "".join(f"{p},{outcomes[p]}\n" for p in mine))
        if mine:
            done = equipoise("audit", "tell", "loans", "-f", told, "-l", ledger)
            assert (done.returncode, done.stderr) == (0, "")
        first += many
        status = json.loads(equipoise("audit", "status", "loans", "-l", ledger, "--json").stdout)
        if status["finding"] is not None:
            break
    assert wants["SCORE_ONLY"] > 0
    assert not FULL or status["finding"]["verdict"] == "UNFAIR"  # 0.15 against 0.65
    states = [group["states"] for group in status["groups"].values()]
    assert sum(one.get("SCORE_ONLY", 0) for one in states) == wants["SCORE_ONLY"]
    shown = equipoise("audit", "status", "loans", "-l", ledger).stdout
    assert "people looked at" in shown
    assert "per label" in shown
    again = equipoise("audit", "ask", "loans", "-f", file, *SEEN, "-l", ledger, "--json")
    assert json.loads(again.stdout)["repeated"] == many
    assert equipoise("audit", "verify", "loans", "-l", ledger).returncode == 0
    out = tmp_path / "proof.jsonl"
    assert equipoise("audit", "export", "loans", "--to", out, "-l", ledger).returncode == 0
    looks = [line for line in out.read_text().splitlines() if '"version":"winter"' in line]
    assert len(looks) == wants["SCORE_ONLY"] + wants["LABEL"]


def test_a_price_beyond_the_declared_one_is_refused_by_line(ledger: Path, tmp_path: Path) -> None:
    file = tmp_path / "dear.csv"
    file.write_text("person,group,decision,model_score,amount\np1,A,0,0.5,100\np2,B,0,0.5,901\n")
    done = equipoise("audit", "ask", "loans", "-f", file, *SEEN, "-l", ledger)
    assert done.returncode != 0
    assert "901" in done.stdout + done.stderr
    assert "max_price" in done.stdout + done.stderr
    file.write_text("person,group,decision,model_score,amount\np3,A,0,high,100\n")
    done = equipoise("audit", "ask", "loans", "-f", file, *SEEN, "-l", ledger)
    assert done.returncode != 0
    assert "must be a number; got 'high'" in done.stdout + done.stderr
    done = equipoise("audit", "ask", "loans", "-f", file, "--score", "scoer", "-l", ledger)
    assert "scoer" in done.stdout + done.stderr
    assert done.returncode != 0
