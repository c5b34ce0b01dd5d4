"""Turns of limited work: one piece at a time for auditors, and one at a time for all others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from equipoise.service.problems import HttpProblem
from equipoise.service.tokens import Role

MAX_WAITING = 8  # callers of a queue, the one whose turn it is included; each holds a thread


class WorkTurns:
    """Lets callers do limited work in turn, so that memory and processors are enough.

    Auditors have a queue of their own. So no plan that somebody else asks for, which may take
    minutes, keeps them from beginning an audit.

    Parameters
    ----------
    wait_seconds
        How long a caller waits for the turn.
    """

    def __init__(self, wait_seconds: float) -> None:
        self._wait_seconds = wait_seconds
        self._auditors = _Queue()
        self._others = _Queue()

    @contextmanager
    def turn(self, role: Role) -> Iterator[None]:
        """Have the turn; raise ``busy`` if it does not come in time, or if too many wait."""
        queue = self._auditors if role is Role.AUDITOR else self._others
        if not queue.places.acquire(blocking=False):
            raise HttpProblem("busy", "too many plans and new audits wait for their turn")
        try:
            if not queue.turn.acquire(timeout=self._wait_seconds):
                raise HttpProblem("busy", "another long calculation is under way")
            try:
                yield
            finally:
                queue.turn.release()
        finally:
            queue.places.release()


class _Queue:
    def __init__(self) -> None:
        self.places = threading.BoundedSemaphore(MAX_WAITING)
        self.turn = threading.Lock()
