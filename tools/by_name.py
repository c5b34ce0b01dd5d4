"""Run the modules of a folder by name, each with options of its own: studies and benchmarks."""

from __future__ import annotations

import argparse
import pkgutil
from importlib import import_module
from types import ModuleType

from rich.console import Console

__all__ = ["run_by_name"]


def run_by_name(folder: ModuleType, arguments: list[str]) -> int:
    """Run one module of ``folder`` with its options, or all of them with their defaults.

    A module that can be run has a function ``run``; others are shared parts.
    """
    names = [m.name for m in pkgutil.iter_modules(folder.__path__) if not m.name.startswith("_")]
    modules = {name: import_module(f"{folder.__name__}.{name}") for name in names}
    parser = argparse.ArgumentParser(
        prog=f"python -m {folder.__name__}", description=folder.__doc__
    )
    commands = parser.add_subparsers(dest="name", metavar="NAME")
    runnable = [name for name in names if hasattr(modules[name], "run")]
    for name in runnable:
        module = modules[name]
        command = commands.add_parser(name, help=(module.__doc__ or "").partition("\n")[0])
        if hasattr(module, "add_options"):
            module.add_options(command)
    for line in [arguments] if arguments else [[name] for name in runnable]:
        options = parser.parse_args(line)
        Console().print(modules[options.name].run(options))
    return 0
