"""A program that makes plans and tries new audits, each in a process with limits of its own.

The server's side of it is ``limited_work.py``. Nothing of the service is imported here: the program
starts sooner, and its processes are smaller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

from equipoise._job_program import Job, peak_memory, serve_jobs
from equipoise.cells import Cells
from equipoise.errors import EquipoiseError
from equipoise.history import History
from equipoise.history.coding import Coding
from equipoise.history.past import Past
from equipoise.ledger.settings import Settings, require_end, try_audit
from equipoise.planning import plan
from equipoise.planning.feasibility import NotFeasible
from equipoise.question import Costs, Question

LOADED_WHERE_NEEDED = ("joblib", "scipy.optimize", "equipoise.mixture.map_weights")
"""Modules that plans load late; here they are loaded once, and not in every process."""


def _main() -> None:
    for module in LOADED_WHERE_NEEDED:
        import_module(module)
    serve_jobs(_answer)


def _answer(job: Job) -> dict[str, Any]:
    """Return what comes of a job, or why it is refused."""
    do_work = {"plan": _plan, "try": _try}[job["work"]]
    try:
        return {"done": do_work(job)}
    except NotFeasible as error:
        return {"obstacle": error.obstacle.to_dict()}
    except EquipoiseError as error:
        return {"refused": str(error)}


def _plan(job: Job) -> dict[str, Any]:
    past = job["past"]
    history = _past_from_data(Cells.from_dict(past["cells"]), past, past["coding"])
    question = Question.from_dict(job["question"])
    costs = Costs.from_dict(job["costs"])
    return plan(history, question, costs, **job["options"]).to_dict()


def _try(job: Job) -> dict[str, Any]:
    settings = Settings.from_data(job["settings"])
    memory_before = peak_memory()
    audit = try_audit(settings)
    memory = peak_memory() - memory_before
    if not job["confirm"]:
        past = job["settings"]["past"]
        history = _past_from_data(settings.past.cells, past, job["settings"]["coding"])
        require_end(replace(settings, past=history))
    return {"has_verdict": audit.finding is not None, "memory": memory}


def _past_from_data(cells: Cells, data: Mapping[str, Any], coding: Any) -> Past:
    """Return past decisions, with what the values of their table mean where that is known."""
    if not coding:
        return Past(cells, data["exact"], data["seed"])
    return History(cells, data["exact"], data["seed"], coding=Coding.from_dict(coding))


if __name__ == "__main__":
    _main()
