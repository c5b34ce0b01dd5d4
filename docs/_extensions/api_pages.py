"""Write a page for every public name, so that none can be forgotten."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import GenericAlias, ModuleType
from typing import Any

from sphinx.application import Sphinx

import equipoise

FOLDER = Path("generated") / "api"

# Where a name is listed; a new one appears under "More" until it is listed here.
SECTIONS = {
    "Ask": ["Question", "Costs", "Verdict", "Want"],
    "Know": ["History", "check", "Assume", "lower_bound"],
    "Plan": ["plan", "simulate", "run"],
    "Audit": ["AdaptiveAudit", "RSAudit", "BaselineAudit", "ExpAudit", "Assist"],
    "Audit for months": ["LiveAudit", "list_audits", "write_report"],
}
# Public, but not names of the package: what people get, and give on.
MODULES = ("cells", "client", "finding", "free_check", "history", "ledger", "planning", "question",
           "rates", "report", "simulation")  # fmt: skip


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before sources are read."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / FOLDER))
    return {"parallel_read_safe": True}


def write(folder: Path) -> None:
    """Write the index and a page per name; take away pages of names that are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {"index.rst": _index()}
    for home, names in _homes().items():
        for name in names:
            pages[f"{home}.{name}.rst"] = _page(home, name)
    for old in set(folder.glob("*.rst")) - {folder / name for name in pages}:
        old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _homes() -> dict[str, list[str]]:
    own = [n for n in equipoise.__all__ if not inspect.ismodule(getattr(equipoise, n))]
    homes = {"equipoise": own}
    for module in _modules():  # what the package exports itself has its page already
        homes[module.__name__] = [name for name in _public(module) if name not in own]
    return homes


def _public(module: ModuleType) -> list[str]:
    """Return what a package exports, or what a module defines; of constants those explained."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    body = ast.parse(inspect.getsource(module)).body
    found = [node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    for node, after in pairwise(body):
        if isinstance(node, ast.Assign) and isinstance(after, ast.Expr):
            found += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return sorted(name for name in found if not name.startswith("_"))


def _modules() -> list[ModuleType]:
    found = [getattr(equipoise, n) for n in equipoise.__all__]
    found = [value for value in found if inspect.ismodule(value)]
    for name in MODULES:
        try:
            found.append(import_module(f"equipoise.{name}"))
        except ModuleNotFoundError as error:  # not part of this version
            if error.name != f"equipoise.{name}":
                raise
    return sorted(found, key=lambda module: module.__name__)


def _index() -> str:
    homes = _homes()
    left = set(homes["equipoise"])
    parts = [_title("Python reference", "="), "Every public name, from its docstring.\n"]
    parts.append("::\n\n    import equipoise as eq\n")
    for section, names in {**SECTIONS, "More": sorted(left)}.items():
        here = [name for name in names if name in left]
        left -= set(here)
        if here:
            parts += [_title(section, "-"), _table("equipoise", here)]
    for module in _modules():
        if not homes[module.__name__]:
            continue
        first = (inspect.getdoc(module) or "").partition("\n")[0]
        parts += [_title(module.__name__, "-"), f"{first}\n"]
        parts.append(_table(module.__name__, homes[module.__name__]))
    listed = [f"   {home}.{name}" for home, names in homes.items() for name in names]
    return "\n".join([*parts, ".. toctree::\n   :hidden:\n", *listed, ""])


def _table(home: str, names: list[str]) -> str:
    rows = [".. list-table::", "   :widths: 30 70", "   :class: names", ""]
    for name in names:
        rows.append(f"   * - :doc:`{name} <{home}.{name}>`")
        rows.append(f"     - {_first_line(getattr(import_module(home), name))}")
    return "\n".join([*rows, ""])


def _first_line(value: Any) -> str:
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return f"``{value!r}``" if len(repr(value)) < 80 else "A constant."
    text = (inspect.getdoc(value) or "").partition("\n\n")[0]
    return " ".join(text.split())


def _page(home: str, name: str) -> str:
    value = getattr(import_module(home), name)
    lines = [_title(name, "="), f".. currentmodule:: {home}", ""]
    if inspect.isclass(value):
        lines += [f".. autoclass:: {name}", "   :members:"]
        if _inherits_ours_only(value):
            lines.append("   :inherited-members:")
    elif inspect.isroutine(value):
        lines.append(f".. autofunction:: {name}")
    elif isinstance(value, GenericAlias):  # a name for a type: autodata cannot write its signature
        lines += [
            f".. py:type:: {name}",
            f"   :canonical: {value}",
            "",
            f"   {_words_below(home, name)}",
        ]
    else:
        lines.append(f".. autodata:: {name}")
    return "\n".join([*lines, ""])


def _words_below(home: str, name: str) -> str:
    """Return the string that stands below an assignment and explains it."""
    body = ast.parse(inspect.getsource(import_module(home))).body
    for node, after in pairwise(body):
        targets = node.targets if isinstance(node, ast.Assign) else []
        is_wanted = any(isinstance(target, ast.Name) and target.id == name for target in targets)
        if is_wanted and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            return " ".join(str(after.value.value).split())
    return ""


def _inherits_ours_only(value: type) -> bool:
    """Say whether inherited members are ours; those of ``str`` or ``Exception`` are not news."""
    homes = {base.__module__.partition(".")[0] for base in value.__mro__ if base is not object}
    return homes <= {"equipoise", "abc", "typing"}


def _title(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"
