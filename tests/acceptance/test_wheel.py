"""The wheel holds everything that the package needs; ``make matrix`` installs it and walks."""

from __future__ import annotations

import zipfile
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

from tests.acceptance.documents import ROOT

SOURCE = ROOT / "src" / "equipoise"


def test_every_file_of_the_package_is_in_the_wheel(tmp_path: Path) -> None:
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(built) as wheel:
        packed = set(wheel.namelist())
    ours = {
        f"equipoise/{path.relative_to(SOURCE).as_posix()}"
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert len(ours) > 100
    assert ours <= packed
    assert not any(name.startswith(("tests/", "study/", "docs/")) for name in packed)
