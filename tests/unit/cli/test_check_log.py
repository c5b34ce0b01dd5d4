"""A file of checks: nothing of what is added gets lost, and what others changed is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from equipoise import Compare, History, Question, check
from equipoise.cli.check_log import FIRST_COLUMNS, append_checks, read_checks
from equipoise.errors import BadData
from equipoise.free_check import Check
from tests.acceptance.shell import equipoise

COUNTS = {"approved_positive": 60, "approved_negative": 20, "denied": 20}
PAST = History.from_cells({"A": COUNTS, "B": COUNTS})


def answer(question: Question | None = None) -> Check:
    return check(PAST, question or Question("demographic_parity"))


def test_programs_that_add_at_once_lose_no_check(tmp_path: Path) -> None:
    path = tmp_path / "checks.parquet"
    finding = answer()

    def add(_: int) -> None:
        for _ in range(3):
            append_checks(path, [finding], 200)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    assert len({row["time"] for row in read_checks(path)}) == 12


def test_the_file_keeps_its_rights_and_a_link_stays_a_link(tmp_path: Path) -> None:
    path = tmp_path / "checks.parquet"
    append_checks(path, [answer()], 200)
    path.chmod(0o600)
    link = tmp_path / "link.parquet"
    link.symlink_to(path)
    append_checks(link, [answer()], 200)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(read_checks(path)) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("* REPLACE (CAST(time AS VARCHAR) AS time)", "'time' .* must be TIMESTAMP"),
        ("* REPLACE (CAST(NULL AS DOUBLE) AS gap_lower)", "'gap_lower' .* must not be empty"),
        ("* REPLACE (CAST(NULL AS TIMESTAMP) AS time)", "'time' .* must not be empty"),
        ("* REPLACE (CAST('inf' AS DOUBLE) AS gap_upper)", "'gap_upper' .* between 0 and 1"),
        ("* REPLACE (CAST('nan' AS DOUBLE) AS rate_upper)", "'rate_upper' .* between 0 and 1"),
        ("* REPLACE (CAST('nan' AS DOUBLE) AS gamma)", "'gamma' .* must be a number"),
        ("* EXCLUDE (verdict)", "no file that check .* no column 'verdict'"),
    ],
)
def test_what_another_program_changed_is_refused(tmp_path: Path, change: str, message: str) -> None:
    path = tmp_path / "checks.parquet"
    append_checks(path, [answer()], 200)
    changed = tmp_path / "changed.parquet"
    duckdb.sql(f"COPY (SELECT {change} FROM '{path}') TO '{changed}'")
    with pytest.raises(BadData, match=message):
        read_checks(changed)
    with pytest.raises(BadData, match=message):
        append_checks(changed, [answer()], 200)


def test_each_question_is_drawn_apart_with_its_tolerance(tmp_path: Path) -> None:
    path = tmp_path / "checks.parquet"
    questions = [
        Question("demographic_parity"),
        Question("demographic_parity", gamma=0.4),
        Question("demographic_parity", gamma=0.2, compare="ratio"),
        Question("demographic_parity", compare=Compare(against="A", direction="below")),
    ]
    for question in questions * 2:
        append_checks(path, [answer(question)], 200, source="may.csv")
    append_checks(path, [answer()], 200, source="june.csv")
    append_checks(path, [answer()], 200, assumptions=["denied-no-better"])
    drawn = equipoise("trend", path, columns=160).stdout
    assert drawn.count("selection rate") == 5
    for words in (
        *("the tolerated gap: 5 points", "the tolerated gap: 40 points", "june.csv"),
        *("the tolerated gap: 20% of the highest rate", "gap, % of the highest rate"),
        *("each against A, where it is below", "assuming denied-no-better"),
    ):
        assert words in " ".join(drawn.split())


def test_a_file_of_an_older_version_is_read_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "checks.parquet"
    append_checks(path, [answer()], 200)
    old = tmp_path / "old.parquet"
    duckdb.sql(f"COPY (SELECT {', '.join(FIRST_COLUMNS)} FROM '{path}') TO '{old}'")
    append_checks(old, [answer()], 200)
    assert [row["compare"] for row in read_checks(old)] == [None, None, "difference", "difference"]
    drawn = " ".join(equipoise("trend", old, columns=160).stdout.split())
    assert "an older version stored these checks" in drawn
    assert "the tolerated gap: 5 points" in drawn
