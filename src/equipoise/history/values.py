"""What the values of a table mean, whatever words, cases and blanks they use.

Groups are named by their most frequent spelling. Decisions and outcomes are 0/1 or true/false, or a
person says which values mean 1; nothing is guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import TypeVar

import numpy as np

from equipoise.errors import BadData

MISSING_KEYS = frozenset(("", "na", "n/a", "nan", "nat", "null", "none", "<na>", "#n/a"))
"""Keys that stand for no value."""
STANDARD_BITS = {"1": 1, "0": 0}
T = TypeVar("T")
Words = tuple[str, ...]
Counts = Mapping[str, int]
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
    word = text_of(value).strip().casefold()
    word = {"true": "1", "false": "0"}.get(word, word)
    try:
        number = float(word)
    except ValueError:
        return word
    return f"{number:.15g}" if abs(number) < 1e15 else word


def is_missing(value: object, extra_keys: Collection[str] = ()) -> bool:
    """Whether a value stands for none; ``also`` holds further keys that do."""
    return (key := key_of(value)) in MISSING_KEYS or key in extra_keys


def require_single_values(name: str, values: Iterable[object]) -> None:
    """Refuse a column that holds lists: a person has one value."""
    if any(isinstance(value, list | tuple | np.ndarray) for value in islice(values, 1_000)):
        raise BadData(
            f"column {name!r} must hold one value per person, and holds lists; take one entry of "
            "each, or make a column of every entry"
        )


def list_values(values: Iterable[str], limit: int = 5) -> str:
    """Return the first few values for a message."""
    values = list(values)
    return ", ".join(repr(value) for value in values[:limit]) + (
        ", …" if len(values) > limit else ""
    )


def list_with_counts(row_counts: Counts, limit: int = 8) -> str:
    """Return values with how often each occurs, the frequent ones first: 'Y' (1,200), 'y ' (3)."""
    ranked = Counter(row_counts).most_common()
    names = ", ".join(f"{value!r} ({count:,})" for value, count in ranked[:limit])
    return names + (f" and {len(ranked) - limit:,} more" if len(ranked) > limit else "")


def tally(pairs: Iterable[tuple[T, int]]) -> dict[T, int]:
    """Return how many rows have each value, from values with numbers of rows."""
    counts: Counter[T] = Counter()
    for value, n in pairs:
        counts[value] += n
    return dict(counts)


def choose_labels(row_counts: Counts) -> dict[str, str]:
    """Return how each key is called: by its most frequent spelling, without blanks around it."""
    spellings: dict[str, Counter[str]] = {}
    for value, n in row_counts.items():
        spellings.setdefault(key_of(value), Counter())[value.strip()] += n
    return {
        key: min(by_spelling, key=lambda value: (-by_spelling[value], value))
        for key, by_spelling in spellings.items()
    }


def spelling_notes(column: str, row_counts: Counts) -> list[str]:
    """Say which values are read as another because of blanks and cases, if there are any."""
    labels, odd_spellings = choose_labels(row_counts), dict[str, dict[str, int]]()
    for value, n in row_counts.items():
        if (key := key_of(value)) not in STANDARD_BITS and value != labels[key]:
            odd_spellings.setdefault(labels[key], {})[value] = n
    parts = [
        f"{list_with_counts(spellings)} are read as {label!r}"
        for label, spellings in sorted(odd_spellings.items())
    ]
    return [f"Column {column!r}: {'; '.join(parts)}."] if parts else []


def rows_text(count: int) -> str:
    """Return a number of rows in words."""
    return f"{count:,} row{'' if count == 1 else 's'}"
