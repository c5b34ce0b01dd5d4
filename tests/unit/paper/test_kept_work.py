"""Parts are done once, and again only if something changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from paper import kept_work as module
from paper.kept_work import Done, Part, Result, code_of, do_parts, of_kind


@dataclass(frozen=True)
class Square(Result):
    number: int
    square: int


def square(number: int) -> list[Square]:
    return [Square(number, number * number)]


def part(number: int, name: str = "squares/one") -> Part:
    return Part(name, square, {"number": number}, (Square,))


@pytest.fixture(autouse=True)
def _code_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let functions of this file count as code of the package."""
    monkeypatch.setattr(module, "code_of", lambda name: name)


def kept(done: dict[str, Done]) -> list[bool]:
    return [d.kept for d in done.values()]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_second_run_redoes_only_what_changed(tmp_path: Path, jobs: int) -> None:
    first = [part(3), part(4, "squares/two")]
    done = do_parts(first, tmp_path, n_jobs=jobs)
    assert {name: of_kind(d.results, Square)[0].square for name, d in done.items()} == {
        "squares/one": 9,
        "squares/two": 16,
    }
    assert not any(kept(done))
    assert all(kept(do_parts(first, tmp_path)))
    changed = do_parts([part(3), part(5, "squares/two")], tmp_path)
    assert changed["squares/one"].kept
    assert not changed["squares/two"].kept
    assert changed["squares/two"].results == [Square(5, 25)]


def test_other_code_makes_other_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    do_parts([part(3)], tmp_path)
    monkeypatch.setattr(module, "core_version", lambda: "another version")
    assert kept(do_parts([part(3)], tmp_path)) == [False]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"key": 1}',
        "null",
        '{"key": "KEY", "seconds": 1, "results": [["Path", {}]]}',  # no kind of this part's
        '{"key": "KEY", "seconds": 1, "results": [["Square", {"number": 3}]]}',
    ],
)
def test_a_damaged_result_is_made_anew(tmp_path: Path, content: str) -> None:
    do_parts([part(3)], tmp_path)
    (place,) = tmp_path.glob("*.json")
    place.write_text(content.replace("KEY", part(3).key()))
    done = do_parts([part(3)], tmp_path)
    assert done["squares/one"].results == [Square(3, 9)]
    assert kept(done) == [False]


def test_progress_is_told_the_share_of_parts_that_are_done(tmp_path: Path) -> None:
    seen: list[float] = []
    do_parts([part(3)], tmp_path)
    do_parts([part(3), part(4, "squares/two")], tmp_path, progress=seen.append)
    assert seen == [1.0]  # one was kept from before


def test_code_counts_as_far_as_results_depend_on_it() -> None:
    code = code_of("checks")
    assert "def find_world" in code  # through two imports
    assert "def make_chapter" not in code  # only shows results
    assert "def draw_costs" not in code
