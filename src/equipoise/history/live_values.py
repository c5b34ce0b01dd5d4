"""What is said of people who arrive, understood as the past's own table was."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from equipoise.errors import InvalidInput
from equipoise.history.values import STANDARD, Coding, is_missing, key_of

__all__ = ["LiveValues"]

PLAIN = {"decision": ("approved", "denied"), "outcome": ("good", "bad")}


class LiveValues:
    """What is said of people who arrive: groups by name, in any case, and 0/1 or plain words.

    Where the past was read from a table its words are understood as well.
    """

    def __init__(self, groups: Iterable[str], coding: Coding | None) -> None:
        self.coding = coding
        self._groups: dict[str, list[str]] = {}
        for name in groups:
            self._groups.setdefault(key_of(name), []).append(name)

    def group(self, value: object) -> str:
        """Return the group that a value stands for; one that is unknown is left to the audit.

        A tuple holds the values of several group columns.
        """
        if isinstance(value, tuple) and self.coding is not None:
            return self.coding.group_of(value)
        named = self._groups.get(key_of(value), [])
        if value in named or len(named) == 1:
            return str(value) if value in named else named[0]
        if self.coding is not None and len(self.coding.grouping.labels) == 1:
            return self.coding.group_of([value])
        return str(value)

    def bit(self, role: str, value: object) -> Any:
        """Return a decision or an outcome; what nobody explained is left to the audit to refuse."""
        key, coding = key_of(value), self.coding
        if (plain := STANDARD.get(key)) is not None:
            if coding is not None and getattr(coding, role).bit(value) == 1 - plain:
                one, zero = PLAIN[role]
                raise InvalidInput(
                    f"{role!r} of {value!r} may mean either: the past's column "
                    f"{getattr(coding.columns, role)!r} was read the other way round; say {one!r} "
                    f"or {zero!r}, or give a file with that column"
                )
            return plain
        if key in PLAIN[role] and (coding is None or getattr(coding, role).bit(value) is None):
            return int(key == PLAIN[role][0])
        return value if coding is None else coding.bit_of(role, value)

    def is_missing(self, value: object) -> bool:
        """Whether a value stands for none."""
        return is_missing(value, () if self.coding is None else self.coding.missing_values)
