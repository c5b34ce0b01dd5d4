"""The two worlds of the paper's lower-bound proof: nearly alike, one fair, one not."""

from __future__ import annotations

from equipoise.errors import InvalidInput
from equipoise.worlds.cells import CellWorld

__all__ = ["lower_bound_pair"]


def lower_bound_pair(epsilon: float, p: float = 0.2, q: float = 0.2) -> tuple[CellWorld, CellWorld]:
    """Return the FAIR and the UNFAIR world of the proof of Theorem 3.

    Everything free to see is the same in both: ``P[f=1,Y=1|a] = q/2``, ``P[f=1,Y=0|a] = p/2``.
    Only among the denied of group "1" does the UNFAIR world hide more good people,
    ``P[f=0,Y=1|a=1] = q/2 (1 + 8 epsilon)``. Delta is 0 in the one, above epsilon in the other.

    Parameters
    ----------
    epsilon
        In (0, 1/8).
    p, q
        In (0, 1/3).

    Examples
    --------
    >>> fair, unfair = lower_bound_pair(epsilon=0.1)
    >>> fair.difference("equalized_odds"), round(unfair.difference("equalized_odds"), 4)
    (0.0, 0.1429)
    """
    for name, value, limit in (("epsilon", epsilon, 1 / 8), ("p", p, 1 / 3), ("q", q, 1 / 3)):
        if not 0.0 < value < limit:
            raise InvalidInput(f"{name!r} must be in (0, {limit:.4g}); got {value!r}")
    alike = _counts(q, p, 0.0)
    fair = CellWorld.from_counts({"0": alike, "1": alike})
    unfair = CellWorld.from_counts({"0": alike, "1": _counts(q, p, 4.0 * epsilon * q)})
    return fair, unfair


def _counts(q: float, p: float, hidden: float) -> dict[str, float]:
    return {
        "approved_positive": q / 2.0,
        "approved_negative": p / 2.0,
        "denied_positive": q / 2.0 + hidden,
        "denied_negative": 1.0 - q - p / 2.0 - hidden,
    }
