"""How long work says how far it has come: a function that is called with the share done."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress", "silent"]

Progress = Callable[[float], object]
"""Is called with the share of the work that is done, from 0 to 1."""


def silent(share: float) -> None:
    """Take no notice: the progress of those who do not watch."""
