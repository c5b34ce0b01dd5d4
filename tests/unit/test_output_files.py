"""Files that are written: never in place of what is read, complete or not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from equipoise._output_files import refuse_overwriting, replace_file
from equipoise.errors import InvalidInput


@pytest.fixture
def past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "past.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("data/past.csv")
    os.link("data/past.csv", "hard.csv")
    return tmp_path / "data" / "past.csv"


@pytest.mark.parametrize(
    "output", ["data/past.csv", "data/../data/past.csv", "link.csv", "hard.csv"]
)
@pytest.mark.parametrize("source", ["data/past.csv", "data/*.csv", "data", "link.csv"])
def test_an_input_is_recognised_by_any_path(past: Path, output: str, source: str) -> None:
    with pytest.raises(InvalidInput, match="it is the table"):
        refuse_overwriting(output, [source], "the table")
    refuse_overwriting("data/other.csv", [source], "the table")


def test_two_outputs_that_do_not_exist_yet_are_one_file(past: Path) -> None:
    with pytest.raises(InvalidInput, match="it is the other output"):
        refuse_overwriting("data/../new.csv", ["new.csv"], "the other output")


def test_a_file_is_replaced_whole_or_stays(past: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        _stop_half_way("link.csv")
    assert past.read_text() == "old"
    past.chmod(0o640)
    with replace_file("link.csv") as file:
        file.write("new")
        assert past.read_text() == "old"
    assert past.read_text() == "new"
    assert past.stat().st_mode & 0o777 == 0o640
    assert Path("link.csv").is_symlink()
    assert Path("hard.csv").read_text() == "old"  # another name of the old file
    assert sorted(os.listdir("data")) == ["past.csv"]  # nothing is left beside it


def _stop_half_way(path: str) -> None:
    with replace_file(path) as file:
        file.write("half")
        raise KeyboardInterrupt


def test_what_cannot_be_written_is_refused(past: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot write 'data': it is a folder"):
        replace_file("data").__enter__()
    with pytest.raises(InvalidInput, match=r"cannot write 'link\.csv/x': "):
        replace_file("link.csv/x").__enter__()
