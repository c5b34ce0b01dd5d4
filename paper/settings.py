"""How much is run, and on what."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """What the experiments of one run share.

    Parameters
    ----------
    quick
        Few repeats: to see that everything works.
    seed
        Where randomness starts, other than the paper's own five seeds.
    law_school
        The file ``law_school_clean.csv``, or None to leave Law School out.
    """

    quick: bool = False
    seed: int = 0
    law_school: Path | None = None
