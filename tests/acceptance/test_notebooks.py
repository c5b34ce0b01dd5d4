"""The example notebooks: stored without outputs, and written with public names only."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import equipoise
from tests.acceptance.documents import ROOT
from tests.profiles import only_in_full

EXAMPLES = ROOT / "docs" / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
KEYS = {"markdown": {"cell_type", "id", "metadata", "source"}}
KEYS["code"] = KEYS["markdown"] | {"execution_count", "outputs"}
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")

every_notebook = pytest.mark.parametrize("place", NOTEBOOKS, ids=lambda place: place.stem)


def test_the_index_lists_every_notebook() -> None:
    text = (EXAMPLES / "index.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 3
    for place in NOTEBOOKS:
        assert text.count(f"]({place.name})") == text.count(f"{{download}}`{place.name}`") == 1
        assert re.search(rf"^{place.stem}$", text, re.MULTILINE)


@every_notebook
def test_a_notebook_is_valid_and_has_no_outputs(place: Path) -> None:
    notebook = _read(place)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    names = [cell["id"] for cell in notebook["cells"]]
    assert 8 <= len(names) == len(set(names)) <= 16
    assert all(re.fullmatch(r"[\w-]{1,64}", name) for name in names)
    for cell in notebook["cells"]:
        assert cell.keys() == KEYS[cell["cell_type"]], cell["id"]
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@every_notebook
def test_a_notebook_begins_with_what_is_learnt_and_ends_with_what_is_next(place: Path) -> None:
    cells = _read(place)["cells"]
    title, learnt = "".join(cells[0]["source"]).split("\n\n")
    assert title.startswith("# ")
    assert len(re.findall(r"\.(?=\s|$)", learnt)) == 2  # sentences
    assert "".join(cells[-1]["source"]).startswith("## Next\n")
    for cell in cells:
        if cell["cell_type"] == "markdown":
            for target in LINK.findall("".join(cell["source"])):
                assert target.startswith("https://") or (EXAMPLES / target).exists(), target


@every_notebook
def test_a_notebook_uses_public_names_only(place: Path) -> None:
    names = set()
    for cell in _code(place):
        for node in ast.walk(compile(cell, place.name, "exec", ast.PyCF_ONLY_AST)):
            if isinstance(node, ast.ImportFrom):
                assert not str(node.module).startswith("equipoise")
            elif isinstance(node, ast.Import):
                imported = [name for name in node.names if name.name.startswith("equipoise")]
                assert all((name.name, name.asname) == ("equipoise", "eq") for name in imported)
            elif isinstance(node, ast.Attribute):
                assert not node.attr.startswith("_"), node.attr
                names.add(ast.unparse(node))
    own = sorted(name for name in names if re.fullmatch(r"eq(\.\w+)+", name))
    assert len(own) >= 5
    for name in own:
        _require_public(name)


def test_a_private_name_is_found() -> None:
    _require_public("eq.worlds.MixtureWorld.synthetic")
    for name in ("eq.display", "eq.worlds.cells_of", "eq.Question.asked"):
        with pytest.raises((AssertionError, AttributeError)):
            _require_public(name)


@only_in_full
@every_notebook
def test_a_notebook_runs(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the site does, without a kernel."""
    from matplotlib import pyplot

    pyplot.switch_backend("Agg")
    monkeypatch.setattr(pyplot, "show", lambda: pyplot.close("all"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in _code(place):
        exec(compile(cell, place.name, "exec"), names)
    pyplot.close("all")


def _read(place: Path) -> dict:
    return json.loads(place.read_text(encoding="utf-8"))


def _code(place: Path) -> Iterator[str]:
    for cell in _read(place)["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(cell["source"])


def _require_public(name: str) -> None:
    """Follow a name such as ``eq.worlds.CellWorld``; a module shows what its ``__all__`` lists."""
    found: object = equipoise
    for part in name.split(".")[1:]:
        if isinstance(found, ModuleType):
            assert part in found.__all__, f"{name}: {part} is not public"
        found = getattr(found, part)
