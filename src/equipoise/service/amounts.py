"""Amounts of money as people write them in forms."""

from __future__ import annotations

import re
from decimal import Decimal

from equipoise.errors import InvalidInput
from equipoise.ledger import inputs
from equipoise.service.forms import Form

MAX_AMOUNT_CHARACTERS = 40  # also what an error message repeats of an amount


def budget_of(form: Form, decimals: int) -> int | None:
    """Return the most that may be spent, None where a tick says that there is no limit."""
    amount = form.text("budget")
    if not amount and not form.text("no_cap"):
        raise InvalidInput("'budget' is needed: the most that may be spent, or a tick at no limit")
    return minor_units("budget", amount, decimals) if amount else None


def minor_units(name: str, amount: str, decimals: int) -> int:
    """Return an amount of money, as people write it, in whole minor units.

    A comma may stand between groups of three digits only. If "12,50" were accepted and its comma
    ignored, the amount would become a hundred times as large.

    Examples
    --------
    >>> minor_units("budget", "1,000.50", 2)
    100050
    """
    pattern = r"(\d+|\d{1,3}(,\d{3})+)"
    if decimals > 0:
        pattern += rf"(\.\d{{1,{decimals}}})?"
    # Only so many characters are matched, so that the pattern's time does not matter.
    if len(amount) > MAX_AMOUNT_CHARACTERS or not re.fullmatch(pattern, amount):
        raise InvalidInput(
            f"{name!r} must be an amount as in {12_345:,.{decimals}f}: at most {decimals} decimals "
            "after a point, and commas, if any, between groups of three digits; "
            f"got {amount[:MAX_AMOUNT_CHARACTERS]!r}"
        )
    return inputs.whole_amount(name, int(Decimal(amount.replace(",", "")).scaleb(decimals)))
