"""A program that tries large work of a web request within limits of memory and time.

What an audit or a plan takes grows with the number of groups, and one request must not take the
memory of the server. So work for many groups is tried in a separate process first. The answer is
``done`` if the limits sufficed, also where the work itself was refused: the server then repeats it
and shows why.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equipoise._json import to_plain_data
from equipoise.cells import Cells
from equipoise.errors import EquipoiseError
from equipoise.question import Costs, Question
from equipoise.service.table_reader import limit_resources

FEW_GROUPS = 4  # work for more groups is tried in the limited process
PROGRAM = (sys.executable, "-P", str(Path(__file__)))


def is_large(cells: Cells) -> bool:
    """Whether work about these groups is tried in the limited process first."""
    return len(cells) > FEW_GROUPS


def fits_limits(
    work: str, cells: Cells, question: Question, costs: Costs, *, memory: int, seconds: int,
    **more: Any
) -> bool:  # fmt: skip
    """Try work in a process of so many bytes and seconds of processor time; say if it sufficed.

    Parameters
    ----------
    work
        ``plan`` or ``create``.
    more
        Further arguments of ``plan``, or of ``new_settings``.
    """
    job = {
        "work": work,
        "cells": cells.to_dict(),
        "question": to_plain_data(question),
        "costs": to_plain_data(costs),
        "memory": memory,
        "seconds": seconds,
        "more": to_plain_data(more),
    }
    try:
        process = subprocess.run(
            PROGRAM, input=json.dumps(job).encode(), capture_output=True, timeout=2 * seconds
        )
    except subprocess.TimeoutExpired:
        return False
    return process.stdout == b"done"


def _main() -> None:
    job = json.load(sys.stdin)
    limit_resources(job["memory"], job["seconds"])
    try:
        _work(job)
    except MemoryError:
        return
    except EquipoiseError:  # the server will find the same, and say it
        pass
    sys.stdout.write("done")


def _work(job: Mapping[str, Any]) -> None:
    from equipoise.history import History
    from equipoise.ledger.settings import new_settings
    from equipoise.planning import plan

    past = History.from_cells(Cells.from_dict(job["cells"]))
    question = Question.from_dict(job["question"])
    costs = Costs.from_dict(job["costs"])
    if job["work"] == "plan":
        plan(past, question, costs, **job["more"])
    else:
        new_settings("trial", past, question, costs, seed="0" * 64, **job["more"])


if __name__ == "__main__":
    _main()
