"""Baseline (paper, Algorithm 3): label everybody until tau people of each kind have arrived."""

from __future__ import annotations

from typing import ClassVar

from equipoise.audits.tau_audit import TauAudit


class BaselineAudit(TauAudit):
    """Label every person until tau people of group a with outcome y have arrived, for each (y, a).

    The phases follow one another, each with a fresh start, unless ``reuse_labels`` lets one
    stream serve all of them. UNFAIR if the largest estimated difference is above
    ``gamma + epsilon/2``, else FAIR. (Algorithm 3 as printed leaves out gamma.)

    Algorithm 3 line by line, in :mod:`equipoise.audits.tau_audit`: ``tau`` (line 1), a goal (y, a)
    for each turn of the loops (2, 3), :class:`~equipoise.audits.tau_audit.Online` with one stream
    for all groups (4), ``_read_past`` (5), ``_decide`` (6 to 8).

    Examples
    --------
    >>> from equipoise.question import Costs, Question
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> audit = BaselineAudit(world.past(), Question(), Costs(), tau=2)
    >>> for person in world.draw(100):
    ...     ticket = audit.ask(person.group, person.decision)
    ...     if audit.finding is None:
    ...         audit.tell(ticket, person.outcome)
    >>> audit.finding.verdict
    <Verdict.UNFAIR: 'UNFAIR'>
    """

    name: ClassVar[str] = "baseline"
    within_group: ClassVar[bool] = False
