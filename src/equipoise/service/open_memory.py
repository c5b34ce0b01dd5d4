"""Giving memory back to the system that audits no longer use."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

from equipoise.evidence.covers_kept import forget_covers


def release_memory() -> None:
    """Forget what is kept for audits to come, and give back what nobody uses any more."""
    forget_covers()
    gc.collect()
    # The allocator of GNU systems keeps what was freed unless it is asked.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
