"""Values of a table as text: compared without regard to blanks and cases, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TypeVar

import numpy as np

from equipoise.errors import BadData
from equipoise.messages import Note

MISSING_KEYS = frozenset(("", "na", "n/a", "nan", "nat", "null", "none", "<na>", "#n/a"))
"""Keys that stand for no value."""
STANDARD_BITS = {"1": 1, "0": 0}
"""Keys that mean 1 and 0 unless a person says otherwise."""
T = TypeVar("T")
RowCounts = Mapping[str, int]
"""Values with their numbers of rows."""


def text_of(value: object) -> str:
    """Return a value of a table as text, the empty one if there is none."""
    return "" if value is None else str(value)


def key_of(value: object) -> str:
    """Return what a value is compared by: no blanks around, no cases, numbers by their size.

    True is 1 and false is 0.

    Examples
    --------
    >>> [key_of(value) for value in (" Repaid", "REPAID ", 1, "1.0", True)]
    ['repaid', 'repaid', '1', '1', '1']
    """
    return _key_of_text(text_of(value))


@lru_cache(maxsize=10_000)  # a table has few different values, and each is in many combinations
def _key_of_text(text: str) -> str:
    word = text.strip().casefold()
    word = {"true": "1", "false": "0"}.get(word, word)
    # "1.0" of one engine and "1" of another are one value.
    try:
        number = float(word)
    except ValueError:
        return word
    # Larger numbers may be identifiers, of which a float would lose digits.
    return f"{number:.15g}" if abs(number) < 1e15 else word


def is_missing(value: object, extra_keys: Collection[str] = ()) -> bool:
    """Return whether a value stands for none; ``extra_keys`` are further keys that do."""
    key = key_of(value)
    return key in MISSING_KEYS or key in extra_keys


@dataclass(frozen=True)
class MissingWords:
    """Which values of one column stand for none: keys that were said to, and the usual words.

    What a value means in this column goes before what was said of the whole table, because a code
    such as 2 may be a decision that was never taken and a bad outcome.

    Attributes
    ----------
    explained
        Keys that mean 1 or 0 in this column.
    of_column, of_table
        Keys that stand for none in this column, and in every column where they mean nothing else.

    Examples
    --------
    >>> outcome = MissingWords(explained=frozenset(("1", "2")), of_table=("2", "9"))
    >>> [value for value in ("1", "2", "9", "NA", "") if outcome.include(value)]
    ['9', 'NA', '']
    """

    explained: Collection[str] = ()
    of_column: Collection[str] = ()
    of_table: Collection[str] = ()

    def include(self, value: object) -> bool:
        """Return whether a value stands for none."""
        key = key_of(value)
        if key in self.of_column:
            return True
        # A blank stands for none whatever is said of it.
        if key and key in self.explained:
            return False
        return is_missing(value, self.of_table)


def require_single_values(name: str, values: Iterable[object]) -> None:
    """Refuse a column that holds lists: a person has one value."""
    # A column of lists holds them from the start, so the first thousand show it.
    if any(isinstance(value, list | tuple | np.ndarray) for value in islice(values, 1_000)):
        raise BadData(
            f"column {name!r} must hold one value per person, and holds lists; take one entry of "
            "each, or make a column of every entry"
        )


def tally(pairs: Iterable[tuple[T, int]]) -> dict[T, int]:
    """Return how many rows have each value, from values with numbers of rows."""
    counts: Counter[T] = Counter()
    for value, count in pairs:
        counts[value] += count
    return dict(counts)


def choose_labels(row_counts: RowCounts) -> dict[str, str]:
    """Return how each key is called: by its most frequent spelling, without blanks around it."""
    spellings: dict[str, Counter[str]] = {}
    for value, count in row_counts.items():
        spellings.setdefault(key_of(value), Counter())[value.strip()] += count
    labels = {}
    for key, by_spelling in spellings.items():
        # The first in the alphabet where several are equally frequent.
        labels[key] = min(by_spelling, key=lambda text: (-by_spelling[text], text))
    return labels


def spelling_notes(column: str, row_counts: RowCounts) -> list[Note]:
    """Return a note on values that are read as another one because of blanks and cases."""
    labels = choose_labels(row_counts)
    readings: dict[str, dict[str, int]] = {}
    for value, count in row_counts.items():
        key = key_of(value)
        # That true is 1 goes without a note.
        if key not in STANDARD_BITS and value != labels[key]:
            readings.setdefault(labels[key], {})[value] = count
    if not readings:
        return []
    fields = {"column": column, "readings": dict(sorted(readings.items()))}
    return [Note("spellings", fields)]
