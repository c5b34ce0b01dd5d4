"""Where each group's unknown may lie under what a user assumes, and when labels contradict it."""

from __future__ import annotations

from collections.abc import Mapping

from equipoise.assume import Assume
from equipoise.bands import band_from_counts
from equipoise.cells import Cells
from equipoise.errors import UnknownName
from equipoise.metrics import RATES

__all__ = ["Box", "assumed_limits", "contradiction", "within"]

Box = Mapping[str, tuple[float, float]]
"""Group -> the least and the largest r."""


def assumed_limits(cells: Cells, assume: Assume | None, alpha: float | None) -> Box | None:
    """Return the limits of every group's r; None where nothing is assumed.

    That the denied do no better than the approved bounds r by the precision, of which a finite past
    gives an upper bound, missed with probability at most ``alpha`` per group (None: the counts are
    the population). A least r above a largest one is left as it is: a contradiction.

    Examples
    --------
    >>> from equipoise.cells import GroupCells
    >>> cells = Cells({"A": GroupCells(20, 20, 60), "B": GroupCells(0, 0, 5)})
    >>> assumed_limits(cells, Assume(denied_no_better=True, r_at_least={"B": 0.2}), None)
    {'A': (0.0, 0.5), 'B': (0.2, 1.0)}
    """
    if not assume:
        return None
    for name, word in (("r_at_most", "at-most"), ("r_at_least", "at-least")):
        for group in getattr(assume, name):
            if group not in cells:
                raise UnknownName(f"group in {name!r} (--assume {word})", group, cells.groups)
    limits = {}
    for group, counts in cells.items():
        most = assume.r_at_most.get(group, 1.0)
        if assume.denied_no_better:
            most = min(most, band_from_counts(RATES["precision"], counts, alpha).high.at(0.0))
        limits[group] = (assume.r_at_least.get(group, 0.0), most)
    return limits


def within(boxes: Box, limits: Box | None) -> dict[str, tuple[float, float]]:
    """Return what boxes and limits have in common; the boxes alone where they contradict."""
    if limits is None or contradiction(boxes, limits):
        return dict(boxes)
    return {
        group: (max(low, limits[group][0]), min(high, limits[group][1]))
        for group, (low, high) in boxes.items()
    }


def contradiction(boxes: Box, limits: Box | None) -> str | None:
    """Return which group's r cannot be as assumed; None if every one can.

    Examples
    --------
    >>> contradiction({"A": (0.5, 0.7)}, {"A": (0.0, 0.4)})
    'what is assumed does not hold for A: of its denied at least 0.500 would do well, assumed are at
    most 0.400'
    """
    for group, (low, high) in boxes.items():
        least, most = (0.0, 1.0) if limits is None else limits[group]
        start = f"what is assumed does not hold for {group}: "
        if least > most:
            return f"{start}at least {least:.3f} and at most {most:.3f} of its denied would do well"
        if low > most:
            return (
                f"{start}of its denied at least {low:.3f} would do well, assumed are at most "
                f"{most:.3f}"
            )
        if high < least:
            return (
                f"{start}of its denied at most {high:.3f} would do well, assumed are at least "
                f"{least:.3f}"
            )
    return None
