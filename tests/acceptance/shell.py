"""Run the installed command as a person does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["equipoise", "python"]

BIN = Path(sys.executable).parent


def equipoise(*arguments: object, columns: int = 80) -> subprocess.CompletedProcess[str]:
    """Run ``equipoise`` with arguments in a terminal so many columns wide."""
    return _run([str(BIN / "equipoise"), *map(str, arguments)], columns)


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in a fresh interpreter."""
    return _run([sys.executable, "-c", code], 80)


def _run(command: list[str], columns: int) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "COLUMNS": str(columns),
        "NO_COLOR": "1",
        "PYTHONWARNINGS": "error",
    }
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
