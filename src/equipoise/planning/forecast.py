"""What a plan says about one audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from equipoise._json import JsonValue
from equipoise.bounds import Price

__all__ = ["Forecast", "Outlook"]


@dataclass(frozen=True)
class Forecast(JsonValue):
    """What one audit would cost on this history.

    Attributes
    ----------
    audit
        Its name.
    guess
        The expected price if the denied were like the approved of their group: a guess, since
        nobody knows.
    least, most
        Each number's range over everything the denied could be; for an audit with an outlook, the
        range of eight in ten rehearsals.
    bound
        What a theorem says the price stays below, at the same guess; None without a theorem.
    guarantees
        What its verdict promises.
    assumes
        What that rests on, one line each.
    missing
        Why it cannot run on this history, one line each; empty if it can.
    outlook
        How its cost is spread over plausible unknowns, where it was rehearsed.
    """

    audit: str
    guess: Price
    least: Price
    most: Price
    guarantees: str
    assumes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    bound: Price | None = None
    outlook: Outlook | None = None

    @property
    def possible(self) -> bool:
        """Whether the audit can run on this history."""
        return not self.missing


@dataclass(frozen=True)
class Outlook(JsonValue):
    """What rehearsed audits cost.

    Attributes
    ----------
    audits
        How many were rehearsed.
    quantiles
        "0.5" -> the labels and the cost that half of them stay below, and so on; infinite where
        no number of labels decides.
    free
        Share of them that cost nothing.
    extrapolated
        Share that was broken off after so many labels (``cap``); they count with what they had
        spent plus what they still had to go by their own estimate.
    verdicts
        Share of each verdict among those that ended.
    labels
        Mean labels per group among those whose end is in sight.
    """

    audits: int
    quantiles: Mapping[str, Price]
    free: float
    extrapolated: float
    cap: int
    verdicts: Mapping[str, float]
    labels: Mapping[str, float]

    @property
    def median(self) -> Price:
        """What half of the audits stay below."""
        return self.quantiles["0.5"]
