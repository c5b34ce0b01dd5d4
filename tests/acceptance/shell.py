"""Run the command as a person does: in this process, or in a real shell where that is the point."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

__all__ = ["equipoise", "in_a_shell", "python", "run_module", "run_paper"]

BIN = Path(sys.executable).parent

Done = subprocess.CompletedProcess[str]


def equipoise(*arguments: object, columns: int = 80) -> Done:
    """Run ``equipoise`` in this process, as if in a terminal so many columns wide.

    An exception that a shell would show as a traceback is shown the same way, with code 1.
    """
    from equipoise.cli import app

    return _in_process(
        partial(app, prog_name="equipoise", standalone_mode=True), arguments, columns
    )


def run_paper(*arguments: object) -> Done:
    """Run ``python -m paper`` in this process."""
    from paper.__main__ import main

    return _in_process(main, arguments, 80)


def _in_process(
    program: Callable[[list[str]], Any], arguments: Sequence[object], columns: int
) -> Done:
    words = [*map(str, arguments)]
    out, err = io.StringIO(), io.StringIO()
    with patch.dict(os.environ, _environment(columns)), redirect_stdout(out), redirect_stderr(err):
        try:
            code = program(words)
        except SystemExit as end:
            code = end.code
        except Exception:
            traceback.print_exc()
            code = 1
    return subprocess.CompletedProcess(words, int(code or 0), out.getvalue(), err.getvalue())


def in_a_shell(*arguments: object, columns: int = 80) -> Done:
    """Run the installed ``equipoise`` as a program of its own."""
    return _run([str(BIN / "equipoise"), *map(str, arguments)], columns)


def run_module(name: str, *arguments: object) -> Done:
    """Run ``python -m`` with a package that stands beside this one."""
    return _run([sys.executable, "-m", name, *map(str, arguments)], 80)


def python(code: str) -> Done:
    """Run Python code in a fresh interpreter."""
    return _run([sys.executable, "-c", code], 80)


def _run(command: list[str], columns: int) -> Done:
    environment = {**os.environ, **_environment(columns), "PYTHONWARNINGS": "error"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


def _environment(columns: int) -> dict[str, str]:
    return {"COLUMNS": str(columns), "NO_COLOR": "1"}
