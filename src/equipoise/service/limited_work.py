"""A program that does large work of a web request within limits of memory and time.

What an audit or a plan takes grows with the number of groups, and one request must not take the
memory of the server. So work for many groups, and trial runs, are done in a separate process. It
answers in JSON. No answer means that the limits were reached. Work that was refused is repeated by
the server, which then shows why: it fits the limits.
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
from equipoise.history.past import Past
from equipoise.question import Costs, Question
from equipoise.service.job_program import limit_resources

MOST_GROUPS_IN_PROCESS = 4  # work for more groups is done in a process of its own, with limits
# -P: Python must not look for modules in the folder of this file, whose names hide others.
PROGRAM = (sys.executable, "-P", str(Path(__file__)))


def is_large(cells: Cells) -> bool:
    """Whether work about these groups is done in the limited process."""
    return len(cells) > MOST_GROUPS_IN_PROCESS


def work_within_limits(
    work: str,
    past: Past,
    question: Question,
    costs: Costs,
    *,
    memory: int,
    seconds: int,
    arguments: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Do work in a process of so many bytes and seconds of processor time; None if it needs more.

    Parameters
    ----------
    work
        ``plan``, whose answer has the plan's data under ``plan``, or ``create``, whose answer has
        ``is_possible``. The answer has ``is_refused`` if a value breaks a rule.
    arguments
        Further arguments of ``plan``, or of ``new_settings``.
    """
    job = {
        "work": work,
        "cells": past.cells.to_dict(),
        "exact": past.exact,
        "question": to_plain_data(question),
        "costs": to_plain_data(costs),
        "memory": memory,
        "seconds": seconds,
        "arguments": to_plain_data(arguments),
    }
    # The process limits its own processor time. The timeout is for one that waits instead.
    try:
        process = subprocess.run(
            PROGRAM, input=json.dumps(job).encode(), capture_output=True, timeout=2 * seconds
        )
    except subprocess.TimeoutExpired:
        return None
    if not process.stdout:
        return None
    answer: dict[str, Any] = json.loads(process.stdout)
    return answer


def _main() -> None:
    job = json.load(sys.stdin)
    limit_resources(job["memory"], job["seconds"])
    try:
        answer = _work(job)
    except MemoryError:  # no answer says that the limits were reached
        return
    except EquipoiseError:  # the server will find the same, and say it
        answer = {"is_refused": True}
    sys.stdout.write(json.dumps(answer))


def _work(job: Mapping[str, Any]) -> dict[str, Any]:
    from equipoise.ledger.settings import new_settings
    from equipoise.planning import plan

    past = Past(Cells.from_dict(job["cells"]), job["exact"])
    question = Question.from_dict(job["question"])
    costs = Costs.from_dict(job["costs"])
    if job["work"] == "plan":
        return {"plan": plan(past, question, costs, **job["arguments"]).to_dict()}
    new_settings("trial", past, question, costs, seed="0" * 64, **job["arguments"])
    return {"is_possible": True}


if __name__ == "__main__":
    _main()
