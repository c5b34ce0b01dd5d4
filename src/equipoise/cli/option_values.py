"""What people type as the value of an option, turned into values or refused with the right form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from equipoise.errors import InvalidInput, UnknownName
from equipoise.question import Verdict


def parse_cents(text: object) -> int:
    """Return an amount of money as the ledger keeps it: whole minor units, at least 0.

    Raises
    ------
    typer.BadParameter
        If the text is anything else; Typer adds the name of the option.
    """
    # Typer hands over the default of the option as well, which is a number.
    if not str(text).isdecimal():
        raise typer.BadParameter(
            "it must be in whole minor units (cents; with --decimals 2 the number 50 is 0.50), at "
            f"least 0; got {str(text)!r}"
        )
    return int(str(text))


def parse_tau(text: object) -> int | str:
    """Return a threshold of Baseline and RS-Audit: a whole number, or ``exact``.

    Raises
    ------
    typer.BadParameter
        If the text is anything else; Typer adds the name of the option.
    """
    if str(text) == "exact":
        return "exact"
    if not str(text).isdecimal():
        raise typer.BadParameter(f"it must be a whole number, or exact; got {str(text)!r}")
    return int(str(text))


def parse_verdicts(text: str) -> frozenset[Verdict]:
    """Return the verdicts of ``--fail-on``, which are joined by commas."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in list(Verdict):
            raise UnknownName("verdict in '--fail-on'", name, [*Verdict])
    return frozenset(Verdict(name) for name in names)


def parse_pairs(
    flag: str, texts: Sequence[str] | None, form: str = "NAME=VALUE", *, split_at_last: bool = True
) -> dict[str, str]:
    """Split values that look like NAME=VALUE.

    Parameters
    ----------
    flag
        The option, for messages.
    texts
        The values, as typed.
    form
        What a value must look like, for messages.
    split_at_last
        Whether the last ``=`` divides name and value, since names of groups may hold one; else the
        first does.
    """
    values: dict[str, str] = {}
    for text in texts or ():
        name, mark, value = text.rpartition("=") if split_at_last else text.partition("=")
        if not mark or not name or not value:
            raise InvalidInput(f"{flag!r} must look like {form}; got {text!r}")
        if name in values:
            raise InvalidInput(f"{flag!r} says {name!r} twice; got {text!r} last")
        values[name] = value
    return values


def parse_audit_options(texts: Sequence[str] | None) -> dict[str, Any]:
    """Return the values of ``--option NAME=JSON``; text that is no JSON stays text."""
    pairs = parse_pairs("--option", texts, split_at_last=False)
    return {name: _read_json_or_text(text) for name, text in pairs.items()}


def _read_json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def parse_group_counts(flag: str, texts: Sequence[str] | None) -> dict[str, int]:
    """Return the counts that options such as ``--max-in-flight-of GROUP=N`` give."""
    counts = {}
    for group, text in parse_pairs(flag, texts).items():
        counts[group] = parse_whole_numbers(flag, text, "GROUP=N")[0]
    return counts


def parse_denied_rates(texts: Sequence[str] | None) -> Mapping[str, float]:
    """Return what ``--denied-rate`` says, by group."""
    try:
        pairs = parse_pairs("--denied-rate", texts)
        return {group: float(rate) for group, rate in pairs.items()}
    except ValueError:  # of float, or that of parse_pairs, which is one as well
        raise InvalidInput(f"'--denied-rate' must be GROUP=R, as in B=0.3; got {texts}") from None


def parse_whole_numbers(flag: str, text: str, form: str) -> list[int]:
    """Return whole numbers that are joined by commas, as many as the form has."""
    numbers = text.split(",")
    is_complete = len(numbers) == len(form.split(","))
    if not is_complete or not all(number.strip().isdecimal() for number in numbers):
        raise InvalidInput(f"{flag!r} must look like {form}, in whole numbers; got {text!r}")
    return [int(number) for number in numbers]
