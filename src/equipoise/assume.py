"""What a user grants about the denied, so that less has to be found out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from equipoise._json import JsonValue
from equipoise.errors import InvalidInput, require_in_unit

__all__ = ["Assume"]

NO_BETTER = "denied-no-better"


@dataclass(frozen=True)
class Assume(JsonValue):
    """Where ``r = P[Y=1 | f=0]`` may lie. Under it the question's error probability holds.

    If it does not hold, nothing is promised. An audit whose own labels contradict it ends
    INCONCLUSIVE and says so; that it does not is no support.

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
        if not isinstance(self.denied_no_better, bool):
            raise InvalidInput(
                f"'denied_no_better' must be True or False; got {self.denied_no_better!r}"
            )
        for name in ("r_at_most", "r_at_least"):
            limits = getattr(self, name)
            if not isinstance(limits, Mapping):
                raise InvalidInput(f"{name!r} must map groups to numbers; got {limits!r}")
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
        words, no_better = list(words), False
        limits: dict[str, dict[str, float]] = {"at-most": {}, "at-least": {}}
        for word in words:
            kind, _, rest = word.partition(":")
            group, _, number = rest.rpartition("=")
            try:
                if word == NO_BETTER:
                    no_better = True
                elif kind in limits and group:
                    limits[kind][group] = float(number)
                else:
                    raise ValueError
            except ValueError:
                raise InvalidInput(
                    f"'assume' must be {NO_BETTER}, at-most:GROUP=NUMBER or at-least:GROUP=NUMBER; "
                    f"got {word[:80]!r}"
                ) from None
        try:
            return cls(no_better, limits["at-most"], limits["at-least"])
        except InvalidInput:
            raise InvalidInput(
                "'assume' takes numbers from 0 to 1, and of a group no at-least above its at-most; "
                f"got {', '.join(words)[:200]}"
            ) from None

    def __hash__(self) -> int:
        sides = (tuple(sorted(x.items())) for x in (self.r_at_most, self.r_at_least))
        return hash((self.denied_no_better, *sides))

    def __bool__(self) -> bool:
        return bool(self.denied_no_better or self.r_at_most or self.r_at_least)

    @property
    def lines(self) -> tuple[str, ...]:
        """What is assumed, one line each."""
        return (
            *(
                ["the denied of every group would do no better than its approved"]
                if self.denied_no_better
                else []
            ),
            *(
                f"at most {x:g} of the denied of {g} would do well"
                for g, x in self.r_at_most.items()
            ),
            *(
                f"at least {x:g} of the denied of {g} would do well"
                for g, x in self.r_at_least.items()
            ),
        )

    def __str__(self) -> str:
        return "; ".join(self.lines) or "nothing"
