"""RS-Audit (paper, Algorithm 1): label everybody of a group until tau have each outcome."""

from __future__ import annotations

from typing import ClassVar

from equipoise.audits.tau_audit import TauAudit


class RSAudit(TauAudit):
    """Label every person of group a until tau with outcome y have arrived, for each (y, a).

    Groups are seen without cost, so the people of other groups are passed over (rejection
    sampling). A group's phases do not depend on other groups, and the groups run side by side.
    UNFAIR if the largest estimated difference is above ``gamma + epsilon/2``, else FAIR.
    ``reuse_labels`` lets one stream of a group serve both outcomes.

    Algorithm 1 line by line, in :mod:`equipoise.audits.tau_audit`: ``tau`` (line 1), a goal (y, a)
    for each turn of the loops (2, 3), :class:`~equipoise.audits.tau_audit.Online` with a stream
    for each group, and ``_read_past`` (4), ``_decide`` (5 to 7).

    Examples
    --------
    >>> from equipoise.question import Costs, Question
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> audit = RSAudit(world.past(), Question(), Costs())
    >>> print(audit.ask(group="B", decision=0), audit.tau)
    #0 B: label 1329022
    """

    name: ClassVar[str] = "rs"
    within_group: ClassVar[bool] = True
