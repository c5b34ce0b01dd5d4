"""How much memory an audit's state takes, so that a server can let go of what it hardly uses."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from equipoise.ledger.state import AuditState

BYTES_PER_STEP = 1000  # of the log, with its ticket and its entries in dictionaries


def state_memory(state: AuditState | None, counted: set[int]) -> int:
    """Return about how many bytes a state takes, most of them in the arrays of its evidence.

    None takes nothing.

    Parameters
    ----------
    counted
        The ids of what was counted before: two handles on an audit share much. It is added to.
    """
    if state is None:
        return 0
    return BYTES_PER_STEP * len(state.steps) + array_bytes(state.audit_in_memory, counted)


def array_bytes(root: object, counted: set[int]) -> int:
    """Return how many bytes the arrays take that an object of this package leads to."""
    n_bytes = 0
    pending = [root]
    while pending:
        value = pending.pop()
        # A view has no bytes of its own, but keeps those of its base.
        if isinstance(value, np.ndarray) and isinstance(value.base, np.ndarray):
            value = value.base
        if id(value) in counted:
            continue
        parts = _parts_of(value)
        if parts or isinstance(value, np.ndarray):
            counted.add(id(value))
            pending.extend(parts)
        if isinstance(value, np.ndarray):
            n_bytes += value.nbytes
    return n_bytes


def _parts_of(value: Any) -> list[Any]:
    """Return what a container, or an object of this package, holds; nothing for all else."""
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return list(value)
    is_own = type(value).__module__.startswith("equipoise.")
    return list(vars(value).values()) if is_own and hasattr(value, "__dict__") else []
