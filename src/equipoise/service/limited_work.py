"""Plans, and trials of new audits, within limits of memory and processor time.

What either takes depends on groups, margin and past rows, and no request may take the memory of the
server. So each is done in a process of its own (``work_program.py``), and the server uses what that
found: a plan, a refusal, or what the audit is like.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise._json import to_plain_data
from equipoise.errors import InvalidInput
from equipoise.history import History
from equipoise.history.past import Past
from equipoise.ledger.settings import Settings
from equipoise.planning.feasibility import NotFeasible, Obstacle
from equipoise.question import Costs, Question
from equipoise.service.job_process import JobProcess

LIMITED_WORK = JobProcess(Path(__file__).with_name("work_program.py"))  # one for this process


class LimitReached(Exception):
    """Work that needs more memory or time than it may have."""


@dataclass(frozen=True)
class Limits:
    """Bytes of memory and seconds of processor time that a piece of work may take."""

    memory: int
    seconds: int


@dataclass(frozen=True)
class TriedAudit:
    """What making an audit showed.

    Attributes
    ----------
    has_verdict
        Whether the historical data alone end the audit.
    memory
        Bytes that it took to make it.
    """

    has_verdict: bool
    memory: int


def plan_within_limits(
    past: Past, question: Question, costs: Costs, options: Mapping[str, Any], limits: Limits
) -> dict[str, Any]:
    """Return the data of a plan; ``options`` are further arguments of ``plan``.

    Raises
    ------
    LimitReached
        If it takes more than the limits.
    InvalidInput
        If a value breaks a rule.
    """
    work = {
        "work": "plan",
        "past": _past_to_data(past),
        "question": to_plain_data(question),
        "costs": to_plain_data(costs),
        "options": to_plain_data(options),
    }
    plan_data: dict[str, Any] = _do_within_limits(work, limits)
    return plan_data


def try_within_limits(settings: Settings, limits: Limits, *, confirm: bool) -> TriedAudit:
    """Make a new audit once, and unless that is confirmed forecast whether it ends.

    Raises
    ------
    LimitReached
        If it takes more than the limits.
    InvalidInput
        If no audit can have these settings, or it would probably not end.
    """
    work = {"work": "try", "settings": settings.to_data(), "confirm": confirm}
    return TriedAudit(**_do_within_limits(work, limits))


def _do_within_limits(work: Mapping[str, Any], limits: Limits) -> Any:
    job = {**work, "memory": limits.memory, "seconds": limits.seconds}
    answer = LIMITED_WORK.answer(job)
    if answer is None:
        raise LimitReached
    if "obstacle" in answer:
        raise NotFeasible(Obstacle.from_dict(answer["obstacle"]))
    if "refused" in answer:
        raise InvalidInput(answer["refused"])
    return answer["done"]


def _past_to_data(past: Past) -> dict[str, Any]:
    coding = past.coding if isinstance(past, History) else None
    return {
        "cells": past.cells.to_dict(),
        "exact": past.exact,
        "seed": past.seed,
        "coding": None if coding is None else coding.to_dict(),
    }
