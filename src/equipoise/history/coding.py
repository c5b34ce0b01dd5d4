"""What was understood of a table's values, kept so that later tables are read the same way."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from equipoise._json import JsonValue
from equipoise.comparison import WITHIN
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.history.values import STANDARD_BITS, MissingWords, is_missing, key_of, text_of

PLAIN_WORDS = {"decision": ("approved", "denied"), "outcome": ("good", "bad")}
"""Role -> the words for 1 and 0 that are understood of every person who arrives."""
AND = " & "  # between the values of several group columns


@dataclass(frozen=True)
class Grouping(JsonValue):
    """The names of groups."""

    labels: tuple[Mapping[str, str], ...]  # per group column: key of a value -> how it is called
    missing: str | None = None  # what people without a value are called, None if they are refused
    strata: int = 0  # how many columns, the first ones, name the stratum of the comparison

    def group_name(self, values: Iterable[object]) -> str:
        """Return the name of the group with these values, one per column.

        Raises
        ------
        BadData
            If a value is missing and such people have no name.
        UnknownName
            If a value is not that of a group.
        """
        parts = self.part_names(values)
        group = AND.join(parts[self.strata :])
        if not self.strata:
            return group
        stratum = AND.join(parts[: self.strata])
        return f"{stratum}{WITHIN}{group}"

    def part_names(self, values: Iterable[object]) -> list[str]:
        """Return what each value is called; errors are those of :meth:`group_name`."""
        return [
            self._label(value, labels) for value, labels in zip(values, self.labels, strict=True)
        ]

    def _label(self, value: object, labels: Mapping[str, str]) -> str:
        if is_missing(value):
            if self.missing is None:
                raise BadData("the group is missing")
            return self.missing
        label = labels.get(key_of(value))
        if label is None:
            raise UnknownName("group", text_of(value), labels.values())
        return label


@dataclass(frozen=True)
class YesNo(JsonValue):
    """Which keys of a column mean 1 and which mean 0."""

    ones: tuple[str, ...]
    zeros: tuple[str, ...]

    def bit_of(self, value: object) -> int | None:
        """Return what a value means, None if no meaning of it is known."""
        key = key_of(value)
        if key in self.ones:
            return 1
        return 0 if key in self.zeros else None


@dataclass(frozen=True)
class Coding(JsonValue):
    """What the columns of each role (group, decision, outcome) are, and what their values mean.

    ``missing_values`` are keys that stand for none in every column where they mean nothing else,
    ``missing_by_role`` those that do in the column of a role alone.
    """

    _optional = frozenset(("missing_by_role",))

    columns: Mapping[str, tuple[str, ...]]
    grouping: Grouping
    decision: YesNo
    outcome: YesNo
    missing_values: tuple[str, ...] = ()
    missing_by_role: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def meanings_of(self, role: str) -> YesNo:
        """Return what the values of a decision or an outcome mean."""
        return {"decision": self.decision, "outcome": self.outcome}[role]

    def is_missing(self, role: str, value: object) -> bool:
        """Return whether a decision or an outcome stands for none."""
        meanings = self.meanings_of(role)
        words = MissingWords(
            explained=(*meanings.ones, *meanings.zeros),
            of_column=self.missing_by_role.get(role, ()),
            of_table=self.missing_values,
        )
        return words.include(value)

    def read_bit(self, role: str, value: object, extra_words: tuple[str, ...] = ()) -> int:
        """Return what a decision or an outcome means: 1 for approved or good, 0 otherwise.

        ``extra_words`` are plain words that the caller understands besides the table's. They are
        listed in the message if the value is not understood.

        Raises
        ------
        UnknownName
            If no meaning of the value is known.
        """
        meanings = self.meanings_of(role)
        bit = meanings.bit_of(value)
        if bit is not None and not self.is_missing(role, value):
            return bit
        accepted_words = {*extra_words, *meanings.ones, *meanings.zeros}
        # Where the table has 0 for 1, a caller with plain words refuses both digits: they may mean
        # either. The message must not recommend them.
        if extra_words and "1" in meanings.zeros:
            accepted_words -= STANDARD_BITS.keys()
        column = self.columns[role][0]
        raise UnknownName(f"{role} (column {column!r})", value, sorted(accepted_words))


@dataclass(frozen=True)
class ValueReader:
    """Reads what is said of people who arrive: groups by name in any case, 0/1 or plain words.

    Where the historical data were read from a table, its words are understood as well.
    """

    groups: Collection[str]
    coding: Coding | None

    def read_group(self, value: object) -> str:
        """Return the group that a value stands for; one that is unknown is left to the audit.

        A tuple holds the values of several group columns.
        """
        if isinstance(value, tuple) and self.coding is not None:
            return self.coding.grouping.group_name(value)
        matching_groups = [name for name in self.groups if key_of(name) == key_of(value)]
        if len(matching_groups) == 1:
            return matching_groups[0]
        # Groups of counts may differ in case alone ("a" and "A"): then only the exact name will do.
        if self.coding is None or value in matching_groups:
            return str(value)
        if len(self.coding.grouping.labels) > 1:  # one value cannot name an intersection
            return str(value)
        return self.coding.grouping.group_name([value])

    def read_bit(self, role: str, value: object) -> Any:
        """Return a decision or an outcome; an unknown value is left to the audit to refuse.

        Raises
        ------
        InvalidInput
            If 0 or 1 may mean either, because the table's column was read the other way round.
        UnknownName
            If the table's words are known and this is none of them.
        """
        key = key_of(value)
        table_bit = None if self.coding is None else self.coding.meanings_of(role).bit_of(value)
        standard_bit = STANDARD_BITS.get(key)
        positive_word, negative_word = PLAIN_WORDS[role]
        if standard_bit is not None:
            # Guessing which of the two readings is meant could reverse the answer of an audit.
            if self.coding is not None and table_bit == 1 - standard_bit:
                raise InvalidInput(
                    f"{role!r} of {value!r} may mean either: the past's column "
                    f"{self.coding.columns[role][0]!r} was read the other way round; say "
                    f"{positive_word!r} or {negative_word!r}, or give a file with that column"
                )
            return standard_bit
        # Where the table itself uses a plain word, what it meant there goes first.
        if key in PLAIN_WORDS[role] and table_bit is None:
            return int(key == positive_word)
        if self.coding is None:
            return value
        return self.coding.read_bit(role, value, PLAIN_WORDS[role])

    def is_missing(self, value: object, role: str = "") -> bool:
        """Return whether a value stands for none: as a decision, as an outcome or as a number."""
        if self.coding is None:
            return is_missing(value)
        if role in PLAIN_WORDS:
            return self.coding.is_missing(role, value)
        return is_missing(value, self.coding.missing_values)
