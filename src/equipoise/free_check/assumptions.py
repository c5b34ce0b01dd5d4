"""Limits of ``r = P[Y=1 | f=0]`` that a user grants, so that less has to be found out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from equipoise._json import JsonValue
from equipoise.cells import Cells
from equipoise.errors import InvalidInput, UnknownName, require_in_unit, require_kind
from equipoise.rates import RATES, band_from_counts

RangesOfR = Mapping[str, tuple[float, float]]
"""Group -> the least and the largest r."""

NO_BETTER = "denied-no-better"


@dataclass(frozen=True)
class Assume(JsonValue):
    """Where ``r = P[Y=1 | f=0]`` may lie. Under it the question's error probability holds.

    If it does not hold, nothing is promised. A check whose past data contradict it is INCONCLUSIVE
    and says so; that they do not is no support.

    Parameters
    ----------
    denied_no_better
        The denied of every group would do no better than its approved: r is at most their share of
        good outcomes, which is the same as TPR >= selection rate >= FPR.
    r_at_most, r_at_least
        Bounds of some groups' r.

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
        for group, least in self.r_at_least.items():
            if least > (most := self.r_at_most.get(group, 1.0)):
                raise InvalidInput(
                    f"'r_at_least' of {group!r} must not be above its 'r_at_most'; "
                    f"got {least!r} and {most!r}"
                )

    @classmethod
    def parse(cls, words: Iterable[str]) -> Assume:
        """Read what people write on a command line or in a form.

        Examples
        --------
        >>> print(Assume.parse(["denied-no-better", "at-most:B=0.4"]))
        the denied of every group would do no better than its approved; at most 0.4 of the denied of
        B would do well
        """
        words = [*words]
        limits: dict[str, dict[str, float]] = {"at-most": {}, "at-least": {}}
        for word in (word for word in words if word != NO_BETTER):
            kind, _, rest = word.partition(":")
            group, _, number = rest.rpartition("=")
            try:
                limits[kind][group] = float(number)
            except (KeyError, ValueError):
                raise InvalidInput(
                    f"'assume' must be {NO_BETTER}, at-most:GROUP=NUMBER or at-least:GROUP=NUMBER; "
                    f"got {word[:80]!r}"
                ) from None
        return cls(NO_BETTER in words, limits["at-most"], limits["at-least"])

    def __bool__(self) -> bool:
        return bool(self.denied_no_better or self.r_at_most or self.r_at_least)

    @property
    def lines(self) -> tuple[str, ...]:
        """What is assumed, one line each."""
        no_better = ["the denied of every group would do no better than its approved"]
        lines = no_better if self.denied_no_better else []
        for side, limits in (("at most", self.r_at_most), ("at least", self.r_at_least)):
            lines += [f"{side} {r:g} of the denied of {g} would do well" for g, r in limits.items()]
        return tuple(lines)

    def __str__(self) -> str:
        return "; ".join(self.lines) or "nothing"

    def limits(self, cells: Cells, alpha: float | None) -> RangesOfR:
        """Return the limits of every group's r.

        That the denied do no better than the approved bounds r by the precision, of which a finite
        past gives an upper bound, missed with probability at most ``alpha`` per group (None: the
        counts are the population). A least r above a largest one is left as it is: a contradiction.

        Examples
        --------
        >>> from equipoise.cells import GroupCells
        >>> cells = Cells({"A": GroupCells(20, 20, 60), "B": GroupCells(0, 0, 5)})
        >>> Assume(denied_no_better=True, r_at_least={"B": 0.2}).limits(cells, None)
        {'A': (0.0, 0.5), 'B': (0.2, 1.0)}
        """
        for name, word in (("r_at_most", "at-most"), ("r_at_least", "at-least")):
            for group in getattr(self, name):
                if group not in cells:
                    raise UnknownName(f"group in {name!r} (--assume {word})", group, cells.groups)
        limits = {}
        for group, counts in cells.items():
            most = self.r_at_most.get(group, 1.0)
            if self.denied_no_better:
                most = min(
                    most, band_from_counts(RATES["precision"], counts, alpha).high.value_at(0.0)
                )
            limits[group] = self.r_at_least.get(group, 0.0), most
        return limits
