"""Claims: what a piece of a wrong answer says of the rates of two groups."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise._arrays import Array
from equipoise.comparison import GapScale


@dataclass(frozen=True)
class Claim:
    """What a piece of a wrong answer says of one rate of a, given that of b.

    Parameters
    ----------
    rate
        The place of the rate.
    gap
        How far the level of a is above or below that of b.
    above
        Whether it is above.
    at_least
        Whether a's rate is at least that level, or at most.
    side
        +1 if populations outside the piece have a larger unknown of a, -1 if a smaller one.
    """

    rate: int
    gap: float
    above: bool
    at_least: bool
    side: int

    @property
    def sign(self) -> int:
        """The sign of bets on rows of a; those on rows of b have the other one."""
        # Against "at least" rows are bets that the rate is lower: the product of 1 - eta W.
        return -1 if self.at_least else 1

    def level(self, t: Array, compare: GapScale) -> Array:
        """Return the level of a's rate that belongs to a rate t of b."""
        return compare.above(t, self.gap) if self.above else compare.below(t, self.gap)


@dataclass(frozen=True)
class Piece:
    """A set of populations of two groups: those for which all of its claims hold.

    ``near`` is the side that most of the stake expects the truth on; ``far_share`` of it expects
    the truth on the other side.
    """

    a: int
    b: int
    claims: tuple[Claim, ...]
    near: int = 1
    far_share: float = 0.0

    def on_side(self, side: int) -> tuple[Claim, ...]:
        """Return the claims that a truth on one side contradicts."""
        return tuple(claim for claim in self.claims if claim.side == side)

    def has_opposite(self, claim: Claim) -> bool:
        """Say whether another claim bets on rows of b in the other direction."""
        return any(
            other_claim.rate == claim.rate and other_claim.sign != claim.sign
            for other_claim in self.claims
        )
