"""What the values of a table mean, whatever words, cases and blanks they use.

Groups are named by their most frequent spelling. Decisions and outcomes are 0/1 or true/false, or a
person says which values mean 1; nothing is guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from equipoise._json import JsonValue
from equipoise.comparison import WITHIN
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.history.options import MEANINGS, Choice, Problem, ReadOptions, one_or_list

MISSING = frozenset(("", "na", "n/a", "nan", "nat", "null", "none", "<na>", "#n/a"))
"""Keys that stand for no value."""
STANDARD = {"1": 1, "0": 0}
PLAIN = {"decision": ("approved", "denied"), "outcome": ("good", "bad")}
# By these words a remedy is proposed; no table is read by them.
YES, NO = frozenset(("yes", "y", "t", "1")), frozenset(("no", "n", "f", "0"))
GOOD = (
    r"approved?|accept(ed)?|granted|admitted|hired|released|repaid|(fully )?paid|good|success|"
    r"pass(ed)?"
)
BAD = (
    r"den(y|ied)|reject(ed)?|declined?|refused|bad|default(ed|er|ing|s)?|delinquen(t|cy)|"
    r"(charged?|write) ?off|unpaid|lost|fail(ed|s|ures?)?"
)
NOTHING = (  # words for no decision, or no outcome yet
    r"withdr(awn|ew)|cancell?ed( by \w+)?|incomplete|expired|abandoned|pending|open|running|"
    r"current|active|ongoing|unknown|not applicable|no loan|n\.a\.?|[-?]+"
)
FRACTION = r"-?\d+(\.\d+(e-\d+)?|e-\d+)"  # as key_of writes numbers
T = TypeVar("T")
Words = tuple[str, ...]
Counts = Mapping[str, int]
"""Values with their numbers of rows."""
AND = " & "  # between the values of several group columns
MOST_VALUES = 100  # of a decision or an outcome


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


def is_missing(value: object, also: Collection[str] = ()) -> bool:
    """Whether a value stands for none; ``also`` holds further keys that do."""
    return (key := key_of(value)) in MISSING or key in also


def require_plain(name: str, values: Iterable[object]) -> None:
    """Refuse a column that holds lists: a person has one value."""
    if any(isinstance(value, list | tuple | np.ndarray) for value in islice(values, 1_000)):
        raise BadData(
            f"column {name!r} must hold one value per person, and holds lists; take one entry of "
            "each, or make a column of every entry"
        )


def shown(values: Iterable[str], most: int = 5) -> str:
    """Return the first few values for a message."""
    values = list(values)
    return ", ".join(repr(v) for v in values[:most]) + (", …" if len(values) > most else "")


def with_counts(found: Counts, most: int = 8) -> str:
    """Return values with how often each occurs, the frequent ones first: 'Y' (1,200), 'y ' (3)."""
    ranked = Counter(found).most_common()
    names = ", ".join(f"{value!r} ({count:,})" for value, count in ranked[:most])
    return names + (f" and {len(ranked) - most:,} more" if len(ranked) > most else "")


def tally(pairs: Iterable[tuple[T, int]]) -> dict[T, int]:
    """Return how many rows have each value, from values with numbers of rows."""
    counts: Counter[T] = Counter()
    for value, n in pairs:
        counts[value] += n
    return dict(counts)


def labels_of(found: Counts) -> dict[str, str]:
    """Return how each key is called: by its most frequent spelling, without blanks around it."""
    spelled: dict[str, Counter[str]] = {}
    for value, n in found.items():
        spelled.setdefault(key_of(value), Counter())[value.strip()] += n
    return {key: min(s, key=lambda value: (-s[value], value)) for key, s in spelled.items()}


def spelling_notes(column: str, found: Counts) -> list[str]:
    """Say which values are read as another because of blanks and cases, if there are any."""
    labels, odd = labels_of(found), dict[str, dict[str, int]]()
    for value, n in found.items():
        if (key := key_of(value)) not in STANDARD and value != labels[key]:
            odd.setdefault(labels[key], {})[value] = n
    parts = [f"{with_counts(own)} are read as {label!r}" for label, own in sorted(odd.items())]
    return [f"Column {column!r}: {'; '.join(parts)}."] if parts else []


# -- what was understood, kept so that later tables are read the same way --------------------------


@dataclass(frozen=True)
class Grouping(JsonValue):
    """The names of groups."""

    labels: tuple[Mapping[str, str], ...]  # per group column: key of a value -> how it is called
    missing: str | None = None  # what people without a value are called, None if they are refused
    strata: int = 0  # how many columns, the first ones, name the stratum of the comparison

    def name(self, values: Iterable[object]) -> str:
        """Return the name of the group with these values, one per column."""
        parts = []
        for value, labels in zip(values, self.labels, strict=True):
            if is_missing(value) and self.missing is None:
                raise BadData("the group is missing")
            label = self.missing if is_missing(value) else labels.get(key_of(value))
            if label is None:
                raise UnknownName("group", text_of(value), labels.values())
            parts.append(label)
        within, group = AND.join(parts[: self.strata]), AND.join(parts[self.strata :])
        return f"{within}{WITHIN}{group}" if self.strata else group


@dataclass(frozen=True)
class YesNo(JsonValue):
    """Which keys of a column mean 1 and which mean 0."""

    ones: tuple[str, ...]
    zeros: tuple[str, ...]

    def bit(self, value: object) -> int | None:
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

    def bit_of(self, role: str, value: object, also: Words = ()) -> int:
        """Return what a decision or an outcome means; ``also`` are further words that are known."""
        reading: YesNo = getattr(self, role)
        bit = reading.bit(value)
        if bit is None or is_missing(value, self.missing_values):
            known = {*also, *reading.ones, *reading.zeros}
            if also and "1" in reading.zeros:  # 0 and 1 may mean either
                known -= STANDARD.keys()
            raise UnknownName(f"{role} (column {self.columns[role][0]!r})", value, sorted(known))
        return bit


@dataclass(frozen=True)
class LiveValues:
    """How people who arrive may be described: groups by name in any case, 0/1 or plain words.

    Where the past was read from a table, its words are understood as well.
    """

    groups: Collection[str]
    coding: Coding | None

    def group(self, value: object) -> str:
        """Return the group that a value stands for; one that is unknown is left to the audit.

        A tuple holds the values of several group columns.
        """
        if isinstance(value, tuple) and self.coding is not None:
            return self.coding.grouping.name(value)
        named = [name for name in self.groups if key_of(name) == key_of(value)]
        if len(named) == 1:
            return named[0]
        if self.coding is None or len(self.coding.grouping.labels) > 1 or value in named:
            return str(value)
        return self.coding.grouping.name([value])

    def bit(self, role: str, value: object) -> Any:
        """Return a decision or an outcome; what nobody explained is left to the audit to refuse."""
        key, coding = key_of(value), self.coding
        if (plain := STANDARD.get(key)) is not None:
            if coding is not None and getattr(coding, role).bit(value) == 1 - plain:
                one, zero = PLAIN[role]
                raise InvalidInput(
                    f"{role!r} of {value!r} may mean either: the past's column "
                    f"{coding.columns[role][0]!r} was read the other way round; say {one!r} "
                    f"or {zero!r}, or give a file with that column"
                )
            return plain
        if key in PLAIN[role] and (coding is None or getattr(coding, role).bit(value) is None):
            return int(key == PLAIN[role][0])
        return value if coding is None else coding.bit_of(role, value, PLAIN[role])

    def is_missing(self, value: object) -> bool:
        """Whether a value stands for none."""
        return is_missing(value, () if self.coding is None else self.coding.missing_values)


# -- decisions and outcomes ------------------------------------------------------------------------


def read_yes_no(role: str, options: ReadOptions, found: Counts, known: Counts) -> YesNo:
    """Return which values of a decision or an outcome mean 1 and which 0; raise if that is open.

    ``found`` are the values that are there, with their numbers of rows. Of ``positive`` and
    ``negative`` one is enough for a column with one other value; one of 0/1 or true/false needs
    neither. ``known`` says, by the key of a decision, how many of its rows have an outcome.
    """
    column = getattr(options, role)
    keys = {key_of(value) for value in found}
    if len(keys) > MOST_VALUES or any(re.fullmatch(FRACTION, key) for key in keys):
        raise Problem(
            f"column {column!r} must hold yes/no values; found {len(keys):,} different ones, such "
            f"as {shown(sorted(found), 3)}; is it a score or a probability? Cut it where it was "
            f"cut, as in frame['yes'] = frame[{column!r}] >= 0.5 (in SQL: {column} >= 0.5 AS yes), "
            "and name that column"
        )
    said = [map(key_of, options.said(argument, role)) for argument in MEANINGS]
    ones, zeros = (tuple(dict.fromkeys(own)) for own in said)
    if both := set(ones) & set(zeros):
        raise InvalidInput(f"column {column!r}: {shown(both)} cannot be both positive and negative")
    if keys <= set(STANDARD):
        explained = set(STANDARD) & {*ones, *zeros}
        if keys and not explained and _yes_means(role, column) == 0:
            raise Problem(
                f"column {column!r} is called after what went wrong, so that 1 may be the bad "
                f"outcome; found {with_counts(found)}; say which value is the good one",
                positive={role: labels_of(found).get("0", "0")},
            )
        return YesNo(("0",), ("1",)) if "0" in ones or "1" in zeros else YesNo(("1",), ("0",))
    if keys.isdisjoint({*ones, *zeros}):
        ones, zeros = (), ()  # they are the other column's
    rest = keys - {*ones, *zeros}
    clash = ("1" if ones else "0") in rest  # beside words for it
    if rest and (clash or bool(ones) == bool(zeros) or len(rest) > 1):
        raise _unexplained(role, column, found, ones, zeros, known)
    return YesNo(ones or tuple(sorted(rest)), (*zeros, *(sorted(rest) if ones else ())))


def _yes_means(role: str, column: str) -> int | None:
    """Return what yes means in a column; of an outcome its name must say it."""
    words = re.sub(r"[\W_]+", " ", column.casefold())
    if role == "outcome" and re.search(rf"\b({BAD})\b", words):
        return 0
    return 1 if role == "decision" or re.search(rf"\b({GOOD})\b", words) else None


def _unexplained(
    role: str, column: str, found: Counts, ones: Words, zeros: Words, known: Counts
) -> Problem:
    """Return the problem of values that nobody explained, with a remedy as far as it is clear.

    Some are clear by their words. Of decisions the approval is the one after which outcomes are
    known, if there is hardly one after any other. What else a value may mean only a person can
    choose.
    """
    labels = labels_of(found)
    sizes = tally((key_of(value), n) for value, n in found.items())
    rest = {key: label for key, label in labels.items() if key not in {*ones, *zeros}}
    said = {"positive": ones, "negative": zeros}
    yes, no = {1: (YES, NO), 0: (NO, YES), None: ((), ())}[_yes_means(role, column)]
    clear = {
        "positive": {key for key in rest if re.fullmatch(GOOD, key) or key in yes},
        "negative": {key for key in rest if re.fullmatch(BAD, key) or key in no},
    }
    if any(key.replace(".", "").isdigit() and key not in STANDARD for key in labels):
        clear = {argument: set() for argument in MEANINGS}
    shares = {key: known.get(key, 0) / n for key, n in sizes.items()}
    nothing = {key for key in rest if re.fullmatch(NOTHING, key)}
    often = {key for key, share in shares.items() if 10 * share > max(shares.values())}
    if len(often) > 1 or any(re.fullmatch(BAD, key) for key in often):
        often &= clear["positive"]  # others may have a word for no outcome
    nothing, often = nothing - often, often - nothing
    if often and len(often) < len(shares) and not (ones or zeros):
        clear = {"positive": often, "negative": clear["negative"] - often}
    nothing = nothing.difference(*clear.values())
    left = set(rest).difference(nothing, *clear.values())
    lacking = [argument for argument in MEANINGS if not (said[argument] or clear[argument])]
    if len(left) == len(lacking) == 1:  # one value, and one meaning that has none
        clear[lacking.pop()] |= left
        left = set()
    elif role == "decision" and len(left) < len(lacking):
        left, nothing = left | nothing, set()  # one of them may be the denial
    fix: dict[str, Any] = {
        argument: {role: one_or_list(sorted(rest[key] for key in own))}
        for argument, own in clear.items()
        if own
    }
    # A meaning that still lacks a value is chosen among those that are left, 0 and 1 before others.
    # What no meaning takes is proposed as missing.
    free = [rest[key] for key in sorted(left, key=lambda key: (-sizes[key], key))]
    bits = [own for own in free if key_of(own) in STANDARD]
    among = bits if len(bits) == len(lacking) == 2 else free if lacking else []
    choices = [Choice([own, *(other for other in among if other != own)]) for own in among]
    fix |= {argument: {role: own} for argument, own in zip(lacking, choices, strict=False)}
    alone = [Choice([own]) for own in free if own not in among]
    if none := [*choices[len(lacking) :], *alone, *(rest[key] for key in sorted(nothing))]:
        fix["missing_values"] = none
        fix |= {"undecided": "leave_out"} if role == "decision" else {}
    listing = with_counts({value: n for value, n in found.items() if key_of(value) in rest})
    what = f"must be 0/1 or true/false; found {listing}"
    if ones or zeros:
        what = f"holds values of which nobody said what they mean: {listing}"
    without = "no decision, as when somebody withdrew" if role == "decision" else "no outcome yet"
    return Problem(
        f"column {column!r} {what}; say which mean 1 (positive), which mean 0 (negative), and "
        f"which that there is {without} (missing_values)",
        **fix,
    )


def rows(count: int) -> str:
    """Return a number of rows in words."""
    return f"{count:,} row{'' if count == 1 else 's'}"
