"""What the values of a table mean, whatever words, cases and blanks they use.

Groups are named by their most frequent spelling. Decisions and outcomes are 0/1 or true/false, or a
person says which values mean 1; nothing is guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from equipoise._json import JsonValue
from equipoise.comparison import WITHIN
from equipoise.errors import BadData, InvalidInput, UnknownName, few_of
from equipoise.history.options import Meaning, Open, Problem, ReadOptions, listed, short

__all__ = [
    "MISSING",
    "OTHER",
    "STANDARD",
    "TURNED",
    "Coding",
    "Columns",
    "Grouping",
    "LiveValues",
    "YesNo",
    "is_missing",
    "key_of",
    "labels_of",
    "name_of",
    "read_groups",
    "read_yes_no",
    "require_plain",
    "require_there",
    "rows",
    "shown",
    "spelling_notes",
    "tally",
    "text_of",
    "with_counts",
]

MISSING = frozenset(("", "na", "n/a", "nan", "nat", "null", "none", "<na>", "#n/a"))
"""Keys that stand for no value."""
STANDARD = {"1": 1, "0": 0}
PLAIN = {"decision": ("approved", "denied"), "outcome": ("good", "bad")}
YES, NO = frozenset(("yes", "y", "t", "1")), frozenset(("no", "n", "f", "0"))
GOOD = re.compile(
    r"approved?|accept(ed)?|granted|admitted|hired|released|repaid|(fully )?paid|good|success|"
    r"pass(ed)?"
)
BAD = re.compile(
    r"den(y|ied)|reject(ed)?|declined?|refused|bad|default(ed)?|fail(ed)?|lost|unpaid|charged off"
)
NAMED_AFTER_BAD = re.compile(
    r"\b(bad|default\w*|delinquen\w*|charged? ?off|write ?off|unpaid|lost|fail\w*)\b"
)
OTHER = "other groups"
MOST_VALUES_OF_A_GROUP = 50  # unless a larger 'max_groups' is said
MOST_VALUES = 100  # of a decision or an outcome
SURELY_NO_GROUPS = 1_000  # values: it is for a person to say that these are groups


def text_of(value: object) -> str:
    """Return a value of a table as text, the empty one if there is none."""
    return "" if value is None else str(value)


@lru_cache(maxsize=100_000)
def _key(word: str) -> str:
    word = word.strip().casefold()
    word = {"true": "1", "false": "0"}.get(word, word)
    try:
        number = float(word)
    except ValueError:
        return word
    return f"{number:.15g}" if abs(number) < 1e15 else word


def key_of(value: object) -> str:
    """Return what a value is compared by: no blanks around, no cases, numbers by their size.

    True is 1 and false is 0.

    Examples
    --------
    >>> [key_of(value) for value in (" Repaid", "REPAID ", 1, "1.0", True)]
    ['repaid', 'repaid', '1', '1', '1']
    """
    return _key(text_of(value))


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


def with_counts(found: Mapping[str, int], most: int = 8) -> str:
    """Return values with how often each occurs, the frequent ones first.

    Examples
    --------
    >>> with_counts({"Y": 3, "y ": 1200})
    "'y ' (1,200), 'Y' (3)"
    """
    ranked = Counter(found).most_common()
    names = ", ".join(f"{value!r} ({count:,})" for value, count in ranked[:most])
    return names + (f" and {len(ranked) - most:,} more" if len(ranked) > most else "")


def tally(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return how many rows have each value, from values with numbers of rows."""
    counts: Counter[str] = Counter()
    for value, n in pairs:
        counts[value] += n
    return dict(counts)


def require_there(what: str, said: Iterable[object], found: Iterable[str]) -> None:
    """Raise if of values that somebody said something about none was found."""
    said, found = list(said), list(found)
    if {key_of(value) for value in said}.isdisjoint(map(key_of, found)):
        known = sorted({value.strip() for value in found if not is_missing(value)})
        raise Problem(str(UnknownName(f"value of {what}", ", ".join(map(text_of, said)), known)))


def labels_of(found: Mapping[str, int]) -> dict[str, str]:
    """Return how each key is called: by its most frequent spelling, without blanks around it."""
    spelled: dict[str, Counter[str]] = {}
    for value, n in found.items():
        spelled.setdefault(key_of(value), Counter())[value.strip()] += n
    return {key: min(s, key=lambda value: (-s[value], value)) for key, s in spelled.items()}


def spelling_notes(column: str, found: Mapping[str, int]) -> list[str]:
    """Say which values are read as another because of blanks and cases, if there are any."""
    labels, odd = labels_of(found), dict[str, dict[str, int]]()
    for value, n in found.items():
        if value != (label := labels[key_of(value)]):
            odd.setdefault(label, {})[value] = n
    parts = [f"{with_counts(own)} are read as {label!r}" for label, own in sorted(odd.items())]
    return [f"Column {column!r}: {'; '.join(parts)}."] if parts else []


# -- what was understood, kept so that later tables are read the same way --------------------------


@dataclass(frozen=True)
class Columns(JsonValue):
    """The columns of a table by their roles."""

    groups: tuple[str, ...]
    decision: str
    outcome: str


@dataclass(frozen=True)
class Grouping(JsonValue):
    """The names of groups.

    Attributes
    ----------
    labels
        One mapping per group column: key of a value -> how it is called.
    missing
        What a person without a value is called, None if there must be one.
    folded
        Names of the small groups that are counted as :data:`OTHER`.
    strata
        How many of the columns, the first ones, name the stratum within which groups are compared.
    """

    labels: tuple[Mapping[str, str], ...]
    missing: str | None = None
    folded: tuple[str, ...] = ()
    strata: int = 0

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
        within, group = name_of(parts[: self.strata]), name_of(parts[self.strata :])
        name = f"{within}{WITHIN}{group}" if self.strata else group
        return self.other(name) if name in self.folded else name

    def other(self, name: str) -> str:
        """Return what a small group is called, of its stratum."""
        return f"{name.partition(WITHIN)[0]}{WITHIN}{OTHER}" if self.strata else OTHER


@dataclass(frozen=True)
class YesNo(JsonValue):
    """Which keys of a column mean 1 and which mean 0."""

    ones: tuple[str, ...]
    zeros: tuple[str, ...]

    def bit(self, value: object) -> int | None:
        """Return what a value means, None if nobody said.

        Examples
        --------
        >>> YesNo(("repaid",), ("lost",)).bit(" Repaid")
        1
        """
        key = key_of(value)
        return 1 if key in self.ones else 0 if key in self.zeros else None


TURNED = YesNo(("0",), ("1",))


@dataclass(frozen=True)
class Coding(JsonValue):
    """Columns, and what their values mean."""

    columns: Columns
    grouping: Grouping
    decision: YesNo
    outcome: YesNo
    missing_values: tuple[str, ...] = ()

    def group_of(self, values: Iterable[object]) -> str:
        """Return a person's group from the values of the group columns."""
        return self.grouping.name(values)

    def bit_of(self, role: str, value: object) -> int:
        """Return what a decision or an outcome means."""
        reading: YesNo = getattr(self, role)
        bit = reading.bit(value)
        if bit is None or is_missing(value, self.missing_values):
            known = sorted({*reading.ones, *reading.zeros})
            raise UnknownName(f"{role} (column {getattr(self.columns, role)!r})", value, known)
        return bit


def name_of(values: Iterable[str]) -> str:
    """Return a group's name from its values, one per group column.

    Examples
    --------
    >>> name_of(["Black", "female"])
    'Black & female'
    """
    return " & ".join(values)


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


# -- groups ----------------------------------------------------------------------------------------


def read_groups(
    options: ReadOptions, found: Sequence[tuple[tuple[str, ...], int]]
) -> tuple[Grouping, list[str]]:
    """Name the groups: spellings that differ in blanks and cases alone are one.

    ``found`` are values of the group columns with their numbers of rows. The notes say what was
    counted together.
    """
    labels, notes = [], []
    for at, column in enumerate(options.groups):
        values = tally((own[at], n) for own, n in found)
        missing = {value: n for value, n in values.items() if is_missing(value)}
        there = {value: n for value, n in values.items() if value not in missing}
        own_labels = labels_of(there)
        _require_few_groups(column, own_labels, options.max_groups)
        notes += spelling_notes(column, there) + _short_forms(column, own_labels)
        if missing:
            notes.append(_name_missing(column, missing, own_labels, options.missing_group))
        labels.append(own_labels)
    named = None if options.missing_group == "refuse" else options.missing_group
    grouping = Grouping(tuple(labels), named, strata=len(listed(options.within)))
    for value in (value for own in labels for value in own.values() if grouping.strata):
        if WITHIN in value:
            raise Problem(
                f"columns {shown(options.groups)}: rename the value {value!r}, which holds "
                f"{WITHIN!r}: it stands between stratum and group"
            )
    behind: dict[str, tuple[str, ...]] = {}
    for values_of, _ in found:
        keys = tuple("" if is_missing(value) else key_of(value) for value in values_of)
        if behind.setdefault(name := grouping.name(values_of), keys) != keys:
            raise Problem(
                f"columns {shown(options.groups)}: two groups would both be called {name!r}; "
                "rename a value that contains ' & '"
            )
    return grouping, notes


def _require_few_groups(column: str, labels: Mapping[str, str], most: int) -> None:
    fractions = any(is_fraction(key) for key in labels)
    if len(labels) <= most and (not fractions or most != MOST_VALUES_OF_A_GROUP):
        return
    what = (
        f"column {column!r} must hold groups; found {len(labels):,} different values, such as "
        f"{shown([*labels.values()][:3])}; is it a score or an identifier? If these are groups "
        "indeed"
    )
    enough = max(len(labels), MOST_VALUES_OF_A_GROUP + 1)
    if enough > SURELY_NO_GROUPS:
        raise Problem(f"{what}, max_groups={enough} (--max-groups {enough}) reads them")
    raise Problem(what, max_groups=enough)


def _name_missing(
    column: str, missing: Mapping[str, int], labels: Mapping[str, str], name: str
) -> str:
    count = sum(missing.values())
    if name == "refuse":
        raise Problem(
            f"column {column!r} must name a group in every row; empty in {rows(count)}, written "
            f"{with_counts(missing)}; fill it in, or give these people a name of their own",
            missing_group="not stated",
        )
    if key_of(name) in labels:
        raise InvalidInput(
            f"'missing_group' {name!r} is a group in column {column!r} already; choose another name"
        )
    return (
        f"Column {column!r}: {rows(count)} without a group are called {name!r} and compared like "
        f"any group; --leave-out {name!r} counts and does not compare them."
    )


def _short_forms(column: str, labels: Mapping[str, str]) -> list[str]:
    pairs = [
        f"{labels[short]!r} and {labels[long]!r}"
        for short in sorted(labels)
        for long in sorted(labels)
        if len(short) == 1 < len(long) and short.isalpha() and long.startswith(short)
    ]
    return [
        f"Column {column!r}: {few_of(pairs)} are counted as different groups; if they are the "
        "same, write them alike in the table and read it again."
        for _ in pairs[:1]
    ]


# -- decisions and outcomes ------------------------------------------------------------------------


def read_yes_no(
    role: str,
    column: str,
    found: Mapping[str, int],
    positive: Meaning = None,
    negative: Meaning = None,
    known: Mapping[str, int] | None = None,
) -> YesNo:
    """Say what each value of a column means, or what is to be said of it.

    Parameters
    ----------
    role
        ``decision`` or ``outcome``.
    column
        The column's name.
    found
        The values, the missing ones left out -> how many rows have them.
    positive, negative
        The values that mean 1 and those that mean 0. One of the two is enough for a column with
        one other value; a column of 0/1 or true/false needs neither.
    known
        Of a decision: key of a value -> how many of its rows have an outcome.

    Examples
    --------
    >>> read_yes_no("outcome", "end", {"paid": 7, "Paid": 1, "lost": 2}, positive="paid")
    YesNo(ones=('paid',), zeros=('lost',))
    """
    keys = {key_of(value) for value in found}
    if len(keys) > MOST_VALUES or any(map(is_fraction, keys)):
        raise Problem(
            f"column {column!r} must hold yes/no values; found {len(keys):,} different ones, such "
            f"as {shown(sorted(found), 3)}; is it a score or a probability? Cut it where it was "
            f"cut, as in frame['yes'] = frame[{column!r}] >= 0.5 (in SQL: {column} >= 0.5 AS yes), "
            "and name that column"
        )
    standard = keys <= set(STANDARD)
    ones, zeros = (_said(meaning, role, keys) for meaning in (positive, negative))
    if both := set(ones) & set(zeros):
        raise InvalidInput(
            f"column {column!r}: {shown(both)} cannot be both 'positive' and 'negative'"
        )
    said = {*ones, *zeros}
    bits = standard and said <= set(STANDARD)
    if keys and said.isdisjoint(keys) and said and not bits:
        argument, meaning = ("positive", positive) if ones else ("negative", negative)
        values = meaning.get(role) if isinstance(meaning, Mapping) else meaning
        require_there(f"{argument!r} for column {column!r}", listed(values), found)
    if bits:
        if role == "outcome" and keys and not said and _named_after_bad(column):
            raise Problem(
                f"column {column!r} is called after what went wrong, so that 1 may be the bad "
                f"outcome; found {with_counts(found)}; say which value is the good one, by the "
                "column's name",
                positive={role: labels_of(found).get("0", "0")},
            )
        return TURNED if "0" in ones or "1" in zeros else YesNo(("1",), ("0",))
    rest = keys - said
    clash = bool(ones) == bool(zeros) or (not standard and ("1" if ones else "0") in rest)
    if rest and (clash or len(rest) > 1):
        raise _unsaid(role, column, found, ones, zeros, known or {})
    return YesNo(ones or tuple(sorted(rest)), (*zeros, *(sorted(rest) if ones else ())))


def _said(meaning: Meaning, role: str, present: set[str]) -> tuple[str, ...]:
    """Return the keys that were said of a column; words for both may belong to the other one."""
    by_role = isinstance(meaning, Mapping)
    values = listed(meaning.get(role) if isinstance(meaning, Mapping) else meaning)
    keys = tuple(dict.fromkeys(key_of(value) for value in values))
    if present <= set(STANDARD) and (bits := tuple(key for key in keys if key in STANDARD)):
        return bits
    return keys if by_role or present & set(keys) else ()


def _named_after_bad(column: str) -> bool:
    return NAMED_AFTER_BAD.search(re.sub(r"[\W_]+", " ", column.casefold())) is not None


def _unsaid(
    role: str,
    column: str,
    found: Mapping[str, int],
    ones: tuple[str, ...],
    zeros: tuple[str, ...],
    known: Mapping[str, int],
) -> Problem:
    """Return what is to be said of values of which nobody said what they mean, as far as is clear.

    A decision after which outcomes are known is an approval. What else a value may mean stays open.
    """
    labels = labels_of(found)
    rest = {key: label for key, label in labels.items() if key not in {*ones, *zeros}}
    unsaid = {value: n for value, n in found.items() if key_of(value) in rest}
    good, bad = _clear(role, column, rest, {*labels} - {*rest})
    if role == "decision" and (approved := _approvals(found, known)) and not (ones or zeros):
        good, bad = approved & set(rest), bad - approved
    for said, other in ((ones, bad), (zeros, good)):  # of 0 and 1 each says what the other means
        other |= {bit for bit in STANDARD if bit in rest and len({*said, bit} & set(STANDARD)) == 2}
    left = set(rest) - good - bad
    if len(left) == 1 and bool(good or ones) != bool(bad or zeros):
        good, bad, left = (good, left, set()) if good or ones else (left, bad, set())
    fix: dict[str, Any] = {}
    one_is_enough = good and not (left or zeros or set(bad) & set(STANDARD)) and len(bad) <= 1
    for argument, own in (("positive", good), ("negative", bad if not one_is_enough else ())):
        if own:
            fix[argument] = {role: short(sorted(rest[key] for key in own))}
    lacking = [a for a, own in (("positive", good or ones), ("negative", bad or zeros)) if not own]
    sizes = tally((labels[key_of(value)], n) for value, n in found.items())
    free = sorted((rest[key] for key in left), key=lambda label: (-sizes[label], label))
    bits = [rest[bit] for bit in STANDARD if bit in left]
    choices = sorted(bits) if len(bits) == len(lacking) == 2 else free
    if len(free) == len(lacking) == 2:
        fix["positive"], free = {role: Open(sorted(choices))}, []
    elif lacking and choices:
        opened = [Open([own, *(o for o in choices if o != own)]) for own in choices]
        fix |= {argument: {role: own} for argument, own in zip(lacking, opened, strict=False)}
        words = [own for own in free if own not in choices]
        free = [*opened[len(lacking) :], *words]
    if free:
        fix["missing_values"] = free if isinstance(free[0], Open) else sorted(free)
    if free and role == "decision":
        fix["undecided"] = "leave_out"
    none = "no decision, as when somebody withdrew" if role == "decision" else "no outcome yet"
    what = (
        f"column {column!r} must be 0/1 or true/false; found {with_counts(unsaid)}"
        if not (ones or zeros)
        else f"column {column!r} holds values of which nobody said what they mean: "
        f"{with_counts(unsaid)}"
    )
    return Problem(
        f"{what}; say which mean 1 (positive), which mean 0 (negative), and which that there is "
        f"{none} (missing_values)",
        **fix,
    )


def _clear(
    role: str, column: str, rest: Collection[str], said: Collection[str]
) -> tuple[set[str], set[str]]:
    """Return the keys that surely mean 1 and 0; what 'yes' means, an outcome's name must say."""
    numbers = {key for key in (*rest, *said) if key.replace(".", "").isdigit()}
    if numbers - set(STANDARD):
        return set(), set()
    yes, no = YES, NO
    words = re.sub(r"[\W_]+", " ", column.casefold()).split()
    if role == "outcome" and _named_after_bad(column):
        yes, no = no, yes
    elif role == "outcome" and not any(GOOD.fullmatch(word) for word in words):
        yes, no = frozenset(), frozenset()
    good = {key for key in rest if GOOD.fullmatch(key) or key in yes}
    return good, {key for key in rest if BAD.fullmatch(key) or key in no}


def _approvals(found: Mapping[str, int], known: Mapping[str, int]) -> set[str]:
    """Return the decisions after which outcomes are known; none if all are alike."""
    sizes = tally((key_of(value), n) for value, n in found.items())
    shares = {key: known.get(key, 0) / n for key, n in sizes.items()}
    most = max(shares.values(), default=0.0)
    often = {key for key, share in shares.items() if 2 * share > most}
    return often if most and len(often) < len(shares) else set()


def is_fraction(key: str) -> bool:
    """Whether a key is a number that is not whole, as no group and no decision is."""
    try:
        return key not in MISSING and not float(key).is_integer()
    except (ValueError, OverflowError):
        return False


def rows(count: int) -> str:
    """Return a number of rows in words."""
    return f"{count:,} row{'' if count == 1 else 's'}"
