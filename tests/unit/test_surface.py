"""The public surface: every name that ``import equipoise as eq`` offers, and how it is called."""

from __future__ import annotations

import ast
import inspect
import re
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType

import equipoise as eq

SURFACE = Path(__file__).with_name("surface.txt")

RESULTS = {  # what people get, and give on: imported from its module
    "cells": "Cells GroupCells",
    "errors": "BadData Conflict InvalidInput LedgerError MissingExtra ProtocolError UnknownName",
    "finding": "Finding Interval",
    "free_check": "Check",
    "history": "Past",
    "ledger": "Checkpoint Reply Status",
    "planning": "Plan Forecast Scenario",
    "protocol": "ScoreRecord Ticket",
    "report": "Report",
    "simulation": "Simulation Summary Sweep",
}
METHODS = {
    "AdaptiveAudit": ("ask", "tell", "withdraw", "conclude"),
    "History": ("read", "from_cells"),
    "LiveAudit": (
        *("create", "open", "ask", "tell", "conclude", "status", "checkpoint", "verify"),
        *("evidence_history", "spending_history"),
    ),
}


def surface() -> str:
    """Return a line per name: what it is called with, in the order of ``eq.__all__``."""
    lines = []
    for name in eq.__all__:
        value = getattr(eq, name)
        lines.append(f"{name}{_called(value)}")
        methods = (m for m in METHODS.get(name, ()) if hasattr(value, m))
        lines += [f"  .{method}{_called(getattr(value, method))}" for method in methods]
    return "\n".join(lines) + "\n"


def exported(module: ModuleType) -> list[str]:
    """Return the names in ``__all__``, or those that a module without it defines."""
    own = [n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__]
    return getattr(module, "__all__", sorted(name for name in own if not name.startswith("_")))


def _called(value: object) -> str:
    if inspect.ismodule(value):
        return f": {', '.join(exported(value))}"
    if isinstance(value, type) and issubclass(value, Enum):
        return f": {', '.join(member.name for member in value)}"
    if isinstance(value, type) and issubclass(value, Exception):
        return f": {value.__mro__[1].__name__}"
    if not _has_signature(value):
        return ": a type"
    parameters = inspect.signature(value).parameters.values()
    plain = [p.replace(annotation=p.empty) for p in parameters if p.name != "self"]
    return re.sub(r"<function (\w+) at 0x\w+>", r"\1", str(inspect.Signature(plain)))


def _has_signature(value: object) -> bool:
    if isinstance(value, type):
        abstract = getattr(value, "_is_protocol", False) or inspect.isabstract(value)
        return not abstract and not issubclass(value, Exception)
    return inspect.isroutine(value)


def test_names_and_signatures_change_only_on_purpose() -> None:
    # To accept a change: python -m tests.unit.test_surface, and a line in the changelog.
    assert surface() == SURFACE.read_text()


def test_no_class_name_is_there_twice() -> None:
    places: dict[str, list[str]] = {}
    package = Path(str(eq.__file__)).parent
    for path in sorted(package.rglob("*.py")):
        where = str(path.relative_to(package))
        if where == "service/wire.py":
            continue  # the API's own names: OpenAPI shows them, whatever else is called so
        for name in re.findall(r"^ *class (\w+)[(:]", path.read_text(), re.MULTILINE):
            places.setdefault(name, []).append(where)
    assert len(places) > 100
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_every_name_is_known_to_type_checkers() -> None:
    tree = ast.parse(Path(str(eq.__file__)).read_text())
    (known,) = [n for n in tree.body if isinstance(n, ast.If)]
    typed = {alias.asname for n in known.body if isinstance(n, ast.ImportFrom) for alias in n.names}
    assert typed == set(eq.__all__)


def test_data_come_first_and_every_argument_has_a_name() -> None:
    for name in eq.__all__:
        value = getattr(eq, name)
        if not _has_signature(value):
            continue
        order = [p.name for p in inspect.signature(value).parameters.values()]
        for first in (["history", "question", "costs"], ["world", "question", "costs"]):
            here = [n for n in order if n in first]
            assert here == [n for n in first if n in here], name
        assert not {"rng", "jobs", "advance", "label"} & set(order) or name == "Costs", name


def public_names() -> dict[str, object]:
    """Return every public class and function of the package and its modules, by full name."""
    homes = [eq, *(getattr(eq, name) for name in eq.__all__ if inspect.ismodule(getattr(eq, name)))]
    found = {
        f"{home.__name__}.{name}": getattr(home, name)
        for home in homes
        for name in exported(home)
        if not name.startswith("require_")
    }
    for home, names in RESULTS.items():
        module = import_module(f"equipoise.{home}")
        found |= {f"{module.__name__}.{name}": getattr(module, name) for name in names.split()}
    return {  # neither constants nor aliases of types
        name: value
        for name, value in found.items()
        if getattr(value, "__name__", "") == name.rpartition(".")[2]
    }


def test_every_public_name_has_an_example_that_runs() -> None:
    names = public_names().items()
    without = [value for _, value in names if ">>> " not in str(inspect.getdoc(value))]
    # Of most errors a name and a sentence say it all: an example would raise what it shows.
    errors = eq.EquipoiseError
    assert [v for v in without if not (isinstance(v, type) and issubclass(v, errors))] == []
    assert not [n for n, v in names if "+SKIP" in str(inspect.getdoc(v))]


if __name__ == "__main__":
    SURFACE.write_text(surface())
