"""What was understood of a table's values, kept so that later tables are read the same way."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from equipoise._json import JsonValue
from equipoise.comparison import WITHIN
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.history.values import STANDARD_BITS, Words, is_missing, key_of, text_of

PLAIN_WORDS = {"decision": ("approved", "denied"), "outcome": ("good", "bad")}
AND = " & "  # between the values of several group columns


@dataclass(frozen=True)
class Grouping(JsonValue):
    """The names of groups."""

    labels: tuple[Mapping[str, str], ...]  # per group column: key of a value -> how it is called
    missing: str | None = None  # what people without a value are called, None if they are refused
    strata: int = 0  # how many columns, the first ones, name the stratum of the comparison

    def group_name(self, values: Iterable[object]) -> str:
        """Return the name of the group with these values, one per column."""
        parts = []
        for value, labels in zip(values, self.labels, strict=True):
            if is_missing(value) and self.missing is None:
                raise BadData("the group is missing")
            label = self.missing if is_missing(value) else labels.get(key_of(value))
            if label is None:
                raise UnknownName("group", text_of(value), labels.values())
            parts.append(label)
        stratum, group = AND.join(parts[: self.strata]), AND.join(parts[self.strata :])
        return f"{stratum}{WITHIN}{group}" if self.strata else group


@dataclass(frozen=True)
class YesNo(JsonValue):
    """Which keys of a column mean 1 and which mean 0."""

    ones: tuple[str, ...]
    zeros: tuple[str, ...]

    def bit_of(self, value: object) -> int | None:
        """Return what a value means, None if nobody said."""
        key = key_of(value)
        return 1 if key in self.ones else 0 if key in self.zeros else None


@dataclass(frozen=True)
class Coding(JsonValue):
    """What the columns of each role (group, decision, outcome) are, and what their values mean."""

    columns: Mapping[str, tuple[str, ...]]
    grouping: Grouping
    decision: YesNo
    outcome: YesNo
    missing_values: tuple[str, ...] = ()

    def read_bit(self, role: str, value: object, extra_words: Words = ()) -> int:
        """Return what a decision or an outcome means; ``also`` are further words that are known."""
        reading: YesNo = getattr(self, role)
        bit = reading.bit_of(value)
        if bit is None or is_missing(value, self.missing_values):
            known_words = {*extra_words, *reading.ones, *reading.zeros}
            if extra_words and "1" in reading.zeros:  # 0 and 1 may mean either
                known_words -= STANDARD_BITS.keys()
            raise UnknownName(
                f"{role} (column {self.columns[role][0]!r})", value, sorted(known_words)
            )
        return bit


@dataclass(frozen=True)
class ValueReader:
    """How people who arrive may be described: groups by name in any case, 0/1 or plain words.

    Where the past was read from a table, its words are understood as well.
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
        if self.coding is None or len(self.coding.grouping.labels) > 1 or value in matching_groups:
            return str(value)
        return self.coding.grouping.group_name([value])

    def read_bit(self, role: str, value: object) -> Any:
        """Return a decision or an outcome; what nobody explained is left to the audit to refuse."""
        key, coding = key_of(value), self.coding
        if (standard_bit := STANDARD_BITS.get(key)) is not None:
            if coding is not None and getattr(coding, role).bit_of(value) == 1 - standard_bit:
                positive_word, negative_word = PLAIN_WORDS[role]
                raise InvalidInput(
                    f"{role!r} of {value!r} may mean either: the past's column "
                    f"{coding.columns[role][0]!r} was read the other way round; say "
                    f"{positive_word!r} or {negative_word!r}, or give a file with that column"
                )
            return standard_bit
        if key in PLAIN_WORDS[role] and (
            coding is None or getattr(coding, role).bit_of(value) is None
        ):
            return int(key == PLAIN_WORDS[role][0])
        return value if coding is None else coding.read_bit(role, value, PLAIN_WORDS[role])

    def is_missing(self, value: object) -> bool:
        """Whether a value stands for none."""
        return is_missing(value, () if self.coding is None else self.coding.missing_values)
