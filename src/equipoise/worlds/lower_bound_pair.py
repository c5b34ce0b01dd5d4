"""Theorem 3's pair of instances: alike in all that is free to see, FAIR the one, UNFAIR the other.

The paper's Table 1 has the classifier of the UNFAIR instance, its Table 2 the probabilities. How
many labels an audit needs to tell the two apart is :func:`equipoise.bounds.family_bound`.
"""

from __future__ import annotations

from equipoise.errors import InvalidInput
from equipoise.worlds.world import CellWorld

UPPER_LIMITS = {"epsilon": 1.0 / 8.0, "p": 1.0 / 3.0, "q": 1.0 / 3.0}
"""Below these the proof of Theorem 3 holds."""


def lower_bound_pair(epsilon: float, p: float = 0.2, q: float = 0.2) -> tuple[CellWorld, CellWorld]:
    """Return the FAIR and the UNFAIR world of the proof of Theorem 3.

    Groups "0" and "1" are equally large. Everything that is free to see is the same in both
    worlds: ``P[f=1, Y=1 | a] = q/2`` and ``P[f=1, Y=0 | a] = p/2``. In the FAIR world both groups
    have ``P[f=0, Y=1 | a] = q/2``, so the gap of equalized odds is 0. In the UNFAIR world group
    "1" hides more good people among the denied, ``P[f=0, Y=1 | a=1] = q/2 (1 + 8 epsilon)``, and
    the gap is at least ``2 epsilon/(1 + 4 epsilon)``, which is above epsilon.

    Parameters
    ----------
    epsilon
        In (0, 1/8).
    p, q
        Twice the shares of approved people with outcome 0 and with outcome 1, in (0, 1/3).

    Raises
    ------
    InvalidInput
        If a number lies outside its interval.

    Examples
    --------
    >>> fair, unfair = lower_bound_pair(epsilon=0.1)
    >>> fair.gap("equalized_odds"), round(unfair.gap("equalized_odds"), 4)
    (0.0, 0.1429)
    """
    for name, value in {"epsilon": epsilon, "p": p, "q": q}.items():
        if not 0.0 < value < UPPER_LIMITS[name]:
            raise InvalidInput(f"{name!r} must be in (0, {UPPER_LIMITS[name]:.4g}); got {value!r}")
    fair_group = _group_counts(p, q, hidden=0.0)
    unfair_group = _group_counts(p, q, hidden=4.0 * epsilon * q)  # q/2 times 8 epsilon
    fair = CellWorld.from_counts({"0": fair_group, "1": fair_group})
    unfair = CellWorld.from_counts({"0": fair_group, "1": unfair_group})
    return fair, unfair


def _group_counts(p: float, q: float, hidden: float) -> dict[str, float]:
    """Return a column of the paper's Table 2; ``hidden`` more good people are among the denied."""
    return {
        "approved_positive": q / 2.0,
        "approved_negative": p / 2.0,
        "denied_positive": q / 2.0 + hidden,
        "denied_negative": 1.0 - q - p / 2.0 - hidden,
    }
