"""Past decisions as an audit sees them: counts, and features where they are given."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from equipoise._json import to_plain_data
from equipoise.cells import Cells, Decider
from equipoise.display import format_count
from equipoise.errors import require_kind, require_whole
from equipoise.history.rows_until import draw_rows_until
from equipoise.question import Question

Goal = tuple[int, str]
"""An outcome y and a group a: tau approved people with both are waited for."""


@dataclass(frozen=True)
class Past:
    """Past decisions.

    Attributes
    ----------
    cells
        Counts per group, or shares of the population.
    exact
        Whether ``cells`` are the population itself (an unlimited past) and not a finite sample.
    seed
        Another seed for :meth:`rows_until`. An audit that is run with another seed is another
        audit, so it is named in the finding; None is the seed of these counts.
    model
        A mixture model of approved people's features, where they are given.
    features
        The past people's features (:class:`equipoise.mixture.PastFeatures`), where they are given.
    deciders
        Of each group, in the order of ``cells``, what every decider did, where they are named.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> world.past(1000).exact, world.past().exact
    (False, True)
    >>> rows = world.past(1000).rows_until(20, Question(), outcomes=(1,))
    >>> rows[1, "A"] < rows[1, "B"]
    True
    """

    cells: Cells
    exact: bool = False
    seed: int | None = None
    model: Any = field(default=None, repr=False, compare=False, kw_only=True)
    features: Any = field(default=None, repr=False, compare=False, kw_only=True)
    deciders: tuple[tuple[Decider, ...], ...] = field(default=(), repr=False, kw_only=True)

    def __repr__(self) -> str:
        size = "unlimited" if self.exact else f"{format_count(self.cells.total)} people"
        return f"<Past of {len(self.cells)} groups, {size}>"

    def restricted_to(self, groups: Collection[str]) -> Self:
        """Return the past decisions about people of these groups alone, in the order of cells."""
        names = [group for group in self.cells if group in groups]
        if len(names) == len(self.cells):
            return self
        deciders: tuple[tuple[Decider, ...], ...] = ()
        if self.deciders:
            deciders_by_group = dict(zip(self.cells, self.deciders, strict=True))
            deciders = tuple(deciders_by_group[group] for group in names)
        cells = Cells({group: self.cells[group] for group in names})
        return replace(self, cells=cells, deciders=deciders)

    def rows_until(
        self,
        tau: int,
        question: Question,
        *,
        outcomes: Sequence[int] = (0, 1),
        within_group: bool = True,
    ) -> dict[Goal, int]:
        """Return how many past people are read until ``tau`` approved ones met each goal.

        A group's people alone are read if ``within_group`` (RS-Audit), everybody otherwise
        (Baseline). A goal for which the past runs dry is left out. The draw is seeded by the
        counts and the question, so that the same data give the same answer wherever they are kept.
        """
        require_whole("tau", tau)
        # Denied people, and approved ones of unknown outcome, are read and meet no goal.
        kinds: dict[str, tuple[float, float, float]] = {}
        # Sorted, so that the order of groups in a table does not change the draw.
        for group, c in sorted(self.cells.items()):
            no_goal = c.denied + c.approved_unknown
            kinds[group] = (c.approved_negative, c.approved_positive, no_goal)
        # NumPy promises that the streams of RandomState never change: an audit that is kept for
        # years is replayed to the same answer.
        rng = np.random.RandomState(self._seed_words(kinds, question))
        group_indices = range(len(kinds))
        blocks = [[index] for index in group_indices] if within_group else [[*group_indices]]
        counts = np.array([[*kinds.values()]])  # one repeat: shape (1, groups, 3)
        n_unlimited = 1 if self.exact else None
        # One repeat, so ravel leaves outcomes times groups, the order of goals below.
        rows = draw_rows_until(rng, int(tau), outcomes, blocks, counts, n_unlimited).ravel()
        goals = product(outcomes, kinds)
        return {goal: int(n) for goal, n in zip(goals, rows, strict=True) if not np.isnan(n)}

    def _seed_words(
        self, kinds: Mapping[str, tuple[float, float, float]], question: Question
    ) -> NDArray[np.uint32]:
        """Return a seed that depends on the counts, the question and ``seed`` alone."""
        counts = [[group, *map(float, by_kind)] for group, by_kind in kinds.items()]
        asked_for = [
            question.metric,
            question.compare,
            question.gamma,
            question.epsilon,
            question.delta,
        ]
        # A digest of text, since Python's hash differs from process to process.
        text = json.dumps([counts, to_plain_data(asked_for), self.seed])
        return np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype="<u4")


def require_past(history: object) -> None:
    """Raise :class:`InvalidInput` unless ``history`` is past decisions."""
    description = "past decisions as History.read or a world's past() return them"
    require_kind("history", history, Past, description)
