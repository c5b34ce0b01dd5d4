"""Points that fill a cube more evenly than random ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scipy.stats.qmc import Sobol

__all__ = ["sobol"]


def sobol(dimensions: int, seed: int) -> Sobol:
    """Return a scrambled Sobol sequence."""
    from scipy.stats import qmc  # takes longer to import than most commands to run

    return qmc.Sobol(dimensions, seed=seed)
