"""What a plan says about one audit."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise._json import JsonValue
from equipoise.bounds import Price
from equipoise.planning.rehearsal import Rehearsal

__all__ = ["Forecast"]


@dataclass(frozen=True)
class Forecast(JsonValue):
    """What one audit would cost on this history.

    Attributes
    ----------
    audit
        Its name.
    guess
        The expected price in the usual case of :mod:`~equipoise.planning.scenarios`; for an audit
        that is rehearsed, the median's.
    least, most
        Each number's range over everything the denied could be; for an audit that is rehearsed,
        from the cheapest case's 10% quantile to the dearest one's 90% quantile.
    bound
        What a theorem says the price stays below, at the same guess; None without a theorem.
    guarantees
        What its verdict promises.
    assumes
        What that rests on, one line each.
    missing
        Why it cannot run on this history, one line each; empty if it can.
    cases
        What it costs case by case, where it was rehearsed.

    Examples
    --------
    >>> least, guess, most = Price(cost=50.0), Price(cost=110.0), Price(cost=900.0)
    >>> Forecast("adaptive", guess, least, most, "wrong with probability at most 0.05").possible
    True
    """

    audit: str
    guess: Price
    least: Price
    most: Price
    guarantees: str
    assumes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    bound: Price | None = None
    cases: tuple[Rehearsal, ...] = ()

    @property
    def possible(self) -> bool:
        """Whether the audit can run on this history."""
        return not self.missing
