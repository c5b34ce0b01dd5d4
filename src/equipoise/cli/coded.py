"""People of a live audit, read as the audit's past decisions were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from equipoise.errors import InvalidInput, UnknownName
from equipoise.history.coding import Coding
from equipoise.history.values import STANDARD, is_missing, key_of

__all__ = ["CodedRows", "LiveValues"]


PLAIN = {"decision": ("approved", "denied"), "outcome": ("good", "bad")}


class LiveValues:
    """What is said of one person: groups by name, in any case, decisions and outcomes as 0/1.

    Where the past was read from a table its words are understood as well.
    """

    def __init__(self, groups: Iterable[str], coding: Mapping[str, Any]) -> None:
        self.coding = Coding.from_dict(coding) if coding else None
        self._groups: dict[str, list[str]] = {}
        for name in groups:
            self._groups.setdefault(key_of(name), []).append(name)

    def group(self, value: object) -> str:
        """Return the group that a value stands for; one that is unknown is left to the audit."""
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


class CodedRows:
    """What the columns of a file mean.

    A file may have the columns of the past decisions, whose coding is kept with the audit, or
    plain ones (``group``, ``decision``, ``outcome``). What ``given`` names goes first.
    """

    def __init__(
        self,
        values: LiveValues,
        names: Sequence[str],
        given: Mapping[str, str],
        header: Sequence[str],
    ) -> None:
        for name in given:
            if name not in names:
                raise UnknownName("column in '--column'", name, names)
        self._values = values
        self._coded: dict[str, list[str]] = {}
        self.columns: dict[str, str] = {}
        for name in names:
            past = self._past_columns(name)
            named = name not in given or (given[name],) == tuple(past)
            if named and past and all(column in header for column in past):
                self._coded[name] = [f"{name} {at}" for at in range(len(past))]
                self.columns |= dict(zip(self._coded[name], past, strict=True))
            else:
                self.columns[name] = given.get(name, name)

    def value(self, name: str, row: Mapping[str, Any]) -> Any:
        """Return what a column says of a person, as the ledger takes it."""
        if name == "person":
            return row[name]
        coding, own = self._values.coding, [row[at] for at in self._coded.get(name, [name])]
        if name == "group":
            if name in self._coded and coding is not None:
                return coding.group_of(own)
            return self._values.group(own[0])
        if name in self._coded and coding is not None:
            return coding.bit_of(name, own[0])
        return self._values.bit(name, own[0])

    def lacks_outcome(self, row: Mapping[str, Any]) -> bool:
        """Whether a row has a cell for the outcome, and nothing in it."""
        own = [row[at] for at in self._coded.get("outcome", ["outcome"]) if at in row]
        return bool(own) and self._values.is_missing(own[0])

    def _past_columns(self, name: str) -> Sequence[str]:
        coding = self._values.coding
        if coding is None or name == "person":
            return ()
        columns = coding.columns
        return columns.groups if name == "group" else (getattr(columns, name),)
