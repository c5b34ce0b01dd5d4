"""Limits of ``r = P[Y=1 | f=0]`` that a user grants, so that fewer labels are needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from equipoise._json import JsonValue
from equipoise.cells import Cells
from equipoise.display import format_number
from equipoise.errors import InvalidInput, UnknownName, require_in_unit, require_kind
from equipoise.rates import RATES, band_from_counts

RangesOfR = Mapping[str, tuple[float, float]]
"""Group -> the least and the largest r."""

NO_BETTER = "denied-no-better"


@dataclass(frozen=True)
class Assume(JsonValue):
    """An assumption about ``r = P[Y=1 | f=0]``, the share of the denied who would do well.

    The question's error probability holds if the assumption is true; otherwise nothing is promised.
    A check whose past data contradict the assumption is INCONCLUSIVE and says so. Finding no
    contradiction does not confirm it.

    Parameters
    ----------
    denied_no_better
        The denied of every group would do no better than its approved: r is at most their share of
        good outcomes, which is the same as TPR >= selection rate >= FPR.
    r_at_most, r_at_least
        Group -> bound of its r, for some groups.

    Examples
    --------
    >>> print(Assume(denied_no_better=True, r_at_least={"B": 0.1}))
    the denied of every group would do no better than its approved; at least 0.1 of the denied of B
    would do well
    """

    denied_no_better: bool = False
    r_at_most: Mapping[str, float] = field(default_factory=dict)
    r_at_least: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_kind("denied_no_better", self.denied_no_better, bool, "True or False")
        for name in ("r_at_most", "r_at_least"):
            limits = getattr(self, name)
            require_kind(name, limits, Mapping, "a mapping of groups to numbers")
            for group, limit in limits.items():
                require_in_unit(f"{name}[{group!r}]", limit)
        for group, r_low in self.r_at_least.items():
            r_high = self.r_at_most.get(group, 1.0)
            if r_low > r_high:
                raise InvalidInput(
                    f"'r_at_least' of {group!r} must not be above its 'r_at_most'; "
                    f"got {r_low!r} and {r_high!r}"
                )

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Assume:
        """Read assumptions as people write them on a command line or in a form.

        Examples
        --------
        >>> print(Assume.parse(["denied-no-better", "at-most:B=0.4"]))
        the denied of every group would do no better than its approved; at most 0.4 of the denied of
        B would do well
        """
        denied_no_better = False
        limits: dict[str, dict[str, float]] = {"at-most": {}, "at-least": {}}
        for text in texts:
            if text == NO_BETTER:
                denied_no_better = True
                continue
            # From the left for the side, from the right for the limit: a group may contain both
            # signs.
            side, _, group_and_limit = text.partition(":")
            group, _, limit = group_and_limit.rpartition("=")
            try:
                limits[side][group] = float(limit)
            except (KeyError, ValueError):
                raise InvalidInput(
                    f"'assume' must be {NO_BETTER}, at-most:GROUP=NUMBER or at-least:GROUP=NUMBER; "
                    f"got {text[:80]!r}"
                ) from None
        return cls(denied_no_better, limits["at-most"], limits["at-least"])

    def __bool__(self) -> bool:
        return bool(self.denied_no_better or self.r_at_most or self.r_at_least)

    @property
    def lines(self) -> tuple[str, ...]:
        """What is assumed, one line each."""
        lines = []
        if self.denied_no_better:
            lines.append("the denied of every group would do no better than its approved")
        for group, r in self.r_at_most.items():
            lines.append(f"at most {format_number(r)} of the denied of {group} would do well")
        for group, r in self.r_at_least.items():
            lines.append(f"at least {format_number(r)} of the denied of {group} would do well")
        return tuple(lines)

    def __str__(self) -> str:
        return "; ".join(self.lines) or "nothing"

    def limits(self, cells: Cells, alpha: float | None) -> RangesOfR:
        """Return the limits of every group's r.

        If the denied do no better than the approved, r is at most the precision. Finite past data
        give an upper bound of it, missed with probability at most ``alpha`` per group (None: the
        counts are the population). A contradiction shows as a least r above the largest one.

        Raises
        ------
        UnknownName
            If a limit is for a group that ``cells`` does not have.

        Examples
        --------
        >>> from equipoise.cells import GroupCells
        >>> cells = Cells({"A": GroupCells(20, 20, 60), "B": GroupCells(0, 0, 5)})
        >>> Assume(denied_no_better=True, r_at_least={"B": 0.2}).limits(cells, None)
        {'A': (0.0, 0.5), 'B': (0.2, 1.0)}
        """
        _require_groups("'r_at_most'", self.r_at_most, cells)
        _require_groups("'r_at_least'", self.r_at_least, cells)
        # Lower and upper limit are not compared here: data that contradict an assumption are an
        # answer and no error (section 3.17 of docs/understand/guarantees.md).
        limits = {}
        for group, counts in cells.items():
            r_low = self.r_at_least.get(group, 0.0)
            r_high = self.r_at_most.get(group, 1.0)
            if self.denied_no_better:
                precision = band_from_counts(RATES["precision"], counts, alpha)
                r_high = min(r_high, precision.high.value_at(0.0))  # it does not depend on r
            limits[group] = r_low, r_high
        return limits


def _require_groups(option: str, limits: Mapping[str, float], cells: Cells) -> None:
    for group in limits:
        if group not in cells:
            raise UnknownName(f"group in {option}", group, cells.groups)
