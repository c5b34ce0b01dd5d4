"""Run studies by name: ``python -m study``, ``python -m study ledger_kill --kills 100``."""

from __future__ import annotations

import argparse
import pkgutil
import sys
from importlib import import_module

from rich.console import Console

import study

SHARED = ("postgres",)


def main(arguments: list[str]) -> int:
    """Run one study with its options, or all of them with their defaults."""
    names = [m.name for m in pkgutil.iter_modules(study.__path__) if not m.name.startswith("_")]
    names = [name for name in names if name not in SHARED]
    parser = argparse.ArgumentParser(prog="python -m study", description=study.__doc__)
    commands = parser.add_subparsers(dest="name", metavar="NAME")
    modules = {name: import_module(f"study.{name}") for name in names}
    for name, module in modules.items():
        command = commands.add_parser(name, help=(module.__doc__ or "").partition("\n")[0])
        if hasattr(module, "add_options"):
            module.add_options(command)
    chosen = [arguments] if arguments else [[name] for name in names]
    for line in chosen:
        options = parser.parse_args(line)
        Console().print(modules[options.name].run(options))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
