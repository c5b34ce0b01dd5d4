"""Starting up: CPU time of ``import equipoise`` and of the command line's help."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys

from rich.table import Table
from tests.support.tables import table

TASKS = {
    "python alone": "pass",
    "import equipoise": "import equipoise",
    "import equipoise; Question()": "import equipoise; equipoise.Question()",
    "import equipoise; History": "import equipoise; equipoise.History",
    "equipoise --help": "import sys; sys.argv = ['equipoise', '--help']\n"
    "from equipoise.cli import app\napp()",
}


def run(options: argparse.Namespace) -> Table:
    out = table("Starting up", "task", "CPU seconds", "beyond python alone")
    seconds = {name: min(_cpu_seconds(code) for _ in range(5)) for name, code in TASKS.items()}
    alone = seconds["python alone"]
    for name, spent in seconds.items():
        out.add_row(name, f"{spent:.3f}", f"{spent - alone:.3f}")
    return out


def _cpu_seconds(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
