"""People of a live audit, read as the audit's past decisions were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.errors import UnknownName
from equipoise.history.values import LiveValues

__all__ = ["CodedRows"]


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
