"""The words that an audit and its caller exchange: what is wanted of a person, and the ticket.

The methods that use them, ``ask`` and ``tell``, are in ``audits/base.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from equipoise._json import JsonValue


class Want(StrEnum):
    """What an audit wants to know about one person.

    After SCORE_ONLY the person counts as an observation, though the label is not asked for; after
    NOTHING the person does not count at all.

    Examples
    --------
    >>> [want.value for want in Want][-1]
    'LABEL'
    """

    NOTHING = "NOTHING"
    SCORE_ONLY = "SCORE_ONLY"
    FEATURES = "FEATURES"
    LABEL = "LABEL"


@dataclass(frozen=True)
class ScoreRecord(JsonValue):
    """A person's score and price, and the draw that decided whether to ask for the label.

    Attributes
    ----------
    score, version, price
        As given; ``price`` is what this person's label costs if it is 0.
    m, pi
        The guess of the outcome, and the chance of asking.
    low, high
        The range of ``m + (Y - m)/pi`` that was declared for all people of this person's group.
    draw
        A number of [0, 1); the label is asked for if it is below ``pi``.

    Examples
    --------
    >>> record = ScoreRecord(0.7, "1", price=1.0, m=0.6, pi=0.25, low=-2.0, high=3.0, draw=0.3)
    >>> record.asked
    False
    """

    score: float | None
    version: str
    price: float
    m: float
    pi: float
    low: float
    high: float
    draw: float

    @property
    def asked(self) -> bool:
        """Whether the label is asked for."""
        return self.draw < self.pi  # never at pi = 0, always at pi = 1, since draw is in [0, 1)


@dataclass(frozen=True)
class Ticket(JsonValue):
    """What an audit answers when a person arrives.

    ``number`` is the person's place in request order; ``hold`` is the most that the request can
    cost, held until the outcome is told; ``score_record`` says how a score or price decided on it.

    Examples
    --------
    >>> ticket = Ticket(number=0, group="B", decision=0, want=Want.LABEL, hold=1.0)
    >>> print(ticket)
    #0 B: label
    >>> Ticket.from_json(ticket.to_json()) == ticket
    True
    """

    number: int
    group: str
    decision: int
    want: Want
    hold: float = 0.0
    score_record: ScoreRecord | None = None

    def __str__(self) -> str:
        return f"#{self.number} {self.group}: {self.want.lower()}"
