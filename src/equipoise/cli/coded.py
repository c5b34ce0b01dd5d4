"""Rows of people, read as the audit's past decisions were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.cli.run_file import whole_number
from equipoise.history.coding import Coding

__all__ = ["CodedRows"]


class CodedRows:
    """What the columns of a file mean.

    A file may have the columns of the past decisions, whose coding is kept with the audit, or
    plain ones (``group``, ``decision``, ``outcome``) with the groups' names and 0/1. What
    ``given`` names goes first.
    """

    def __init__(
        self,
        coding: Mapping[str, Any],
        names: Sequence[str],
        given: Mapping[str, str],
        header: Sequence[str],
    ) -> None:
        self._coding = Coding.from_dict(coding) if coding else None
        self._coded: dict[str, list[str]] = {}
        self.columns: dict[str, str] = {}
        for name in names:
            past = self._past_columns(name)
            if name not in given and past and all(column in header for column in past):
                self._coded[name] = [f"{name} {at}" for at in range(len(past))]
                self.columns |= dict(zip(self._coded[name], past, strict=True))
            else:
                self.columns[name] = given.get(name, name)

    def value(self, name: str, row: Mapping[str, Any]) -> Any:
        """Return what a column says of a person, as the ledger takes it."""
        if name == "person":
            return row[name]
        return self.group(row) if name == "group" else self.bit(name, row)

    def group(self, row: Mapping[str, Any]) -> str:
        """Return a person's group."""
        if "group" not in self._coded or self._coding is None:
            return str(row["group"])
        return self._coding.group_of(row[meaning] for meaning in self._coded["group"])

    def bit(self, role: str, row: Mapping[str, Any]) -> Any:
        """Return a decision or an outcome."""
        if self._coding is None:
            return whole_number(row[role])
        value = row[self._coded[role][0] if role in self._coded else role]
        plain = whole_number(value)
        if role not in self._coded and plain in (0, 1):
            return plain
        return self._coding.bit_of(role, value)

    def _past_columns(self, name: str) -> Sequence[str]:
        if self._coding is None or name == "person":
            return ()
        columns = self._coding.columns
        return columns.groups if name == "group" else (getattr(columns, name),)
