"""The options of an audit that looks at a score or a price before it asks for a label."""

from __future__ import annotations

from dataclasses import dataclass, fields

from equipoise._json import JsonValue
from equipoise.errors import InvalidInput, plain_number, require_finite


@dataclass(frozen=True)
class Assist(JsonValue):
    """Let an audit look at a score, or a price, before it asks for a label.

    Everybody welcome is looked at, some are asked; nothing is assumed about the score. A score
    that turns out useless is not used.

    Parameters
    ----------
    people_per_label
        At most so many people are looked at per label: the price in calendar time.
    gate
        A group is assisted only while its projected cost is below this share of the uniform
        audit's.
    max_price
        The most that a label of outcome 0 may cost, where people have prices of their own; None
        if they all cost what the audit's costs say.
    seed
        Where the draws start. None: nobody can foresee them, which the guarantee needs if whoever
        gives scores and prices could.

    Examples
    --------
    >>> Assist(max_price=20.0).people_per_label
    8.0
    >>> Assist(gate=1.5)
    Traceback (most recent call last):
    equipoise.errors.InvalidInput: 'gate' must be in (0, 1]; got 1.5
    """

    people_per_label: float = 8.0
    gate: float = 0.85
    max_price: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        found = {f.name: plain_number(getattr(self, f.name)) for f in fields(self)}
        for name, number in found.items():
            if number is not None:  # one of numpy's is stored as a plain one
                object.__setattr__(self, name, number)
        if not (found["people_per_label"] or 0.0) >= 1.0:
            raise InvalidInput(
                f"'people_per_label' must be a number >= 1; got {self.people_per_label!r}"
            )
        if not 0.0 < (found["gate"] or 0.0) <= 1.0:
            raise InvalidInput(f"'gate' must be in (0, 1]; got {self.gate!r}")
        if self.max_price is not None and not (found["max_price"] or 0.0) > 0.0:
            raise InvalidInput(f"'max_price' must be a number > 0; got {self.max_price!r}")
        if self.seed is not None and (type(self.seed) is not int or self.seed < 0):
            raise InvalidInput(f"'seed' must be a whole number >= 0, or None; got {self.seed!r}")

    def require_label_cost(self, label: float) -> None:
        """Raise unless people without a price of their own stay within the declared one."""
        if self.max_price is not None and self.max_price < label:
            raise InvalidInput(
                f"'max_price' must be at least the label cost, {label:g}, which people without a "
                f"price of their own cost; got {self.max_price!r}"
            )

    def require_price(self, price: float) -> None:
        """Raise unless a price of a person is within what was declared."""
        if self.max_price is None:
            raise InvalidInput(
                "'price' needs a largest price, declared before any is read: "
                f"Assist(max_price=...) (audit new --assist --max-price); got {price!r}"
            )
        if not 0.0 <= price <= self.max_price:
            raise InvalidInput(
                "'price' must be between 0 and the declared 'max_price', "
                f"{self.max_price:g}; got {price!r}"
            )


def require_seen(assist: Assist | None, score: float | None, price: float | None) -> None:
    """Refuse scores and prices that an audit cannot use, whatever it would decide."""
    if assist is None:
        if score is not None or price is not None:
            given = "score" if score is not None else "price"
            raise InvalidInput(
                f"{given!r} is for audits that look before they ask: the adaptive one, made with "
                "assist=equipoise.Assist(...) (audit new --assist)"
            )
        return
    require_finite("score", score)
    require_finite("price", price)
    if price is not None:
        assist.require_price(float(price))
