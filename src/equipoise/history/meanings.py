"""Which values of decisions and outcomes mean 1 and which 0: as a person says, never guessed."""

from __future__ import annotations

import re
from typing import Any

from equipoise.errors import InvalidInput
from equipoise.history.coding import YesNo
from equipoise.history.options import MEANINGS, OpenChoice, ReadOptions, unwrap_single
from equipoise.history.problems import Problem
from equipoise.history.values import (
    STANDARD_BITS,
    Counts,
    Words,
    choose_labels,
    key_of,
    list_values,
    list_with_counts,
    tally,
)

# By these words a remedy is proposed; no table is read by them.
YES_WORDS, NO_WORDS = frozenset(("yes", "y", "t", "1")), frozenset(("no", "n", "f", "0"))
GOOD_WORDS = (
    r"approved?|accept(ed)?|granted|admitted|hired|released|repaid|(fully )?paid|good|success|"
    r"pass(ed)?"
)
BAD_WORDS = (
    r"den(y|ied)|reject(ed)?|declined?|refused|bad|default(ed|er|ing|s)?|delinquen(t|cy)|"
    r"(charged?|write) ?off|unpaid|lost|fail(ed|s|ures?)?"
)
NOTHING_WORDS = (  # words for no decision, or no outcome yet
    r"withdr(awn|ew)|cancell?ed( by \w+)?|incomplete|expired|abandoned|pending|open|running|"
    r"current|active|ongoing|unknown|not applicable|no loan|n\.a\.?|[-?]+"
)
FRACTION = r"-?\d+(\.\d+(e-\d+)?|e-\d+)"  # as key_of writes numbers
MAX_YES_NO_VALUES = 100  # of a decision or an outcome


def read_yes_no(role: str, options: ReadOptions, found: Counts, known: Counts) -> YesNo:
    """Return which values of a decision or an outcome mean 1 and which 0; raise if that is open.

    ``found`` are the values that are there, with their numbers of rows. Of ``positive`` and
    ``negative`` one is enough for a column with one other value; one of 0/1 or true/false needs
    neither. ``known`` says, by the key of a decision, how many of its rows have an outcome.
    """
    column = getattr(options, role)
    keys = {key_of(value) for value in found}
    if len(keys) > MAX_YES_NO_VALUES or any(re.fullmatch(FRACTION, key) for key in keys):
        raise Problem(
            f"column {column!r} must hold yes/no values; found {len(keys):,} different ones, such "
            f"as {list_values(sorted(found), 3)}; is it a score or a probability? Cut it where it "
            f"was cut, as in frame['yes'] = frame[{column!r}] >= 0.5 (in SQL: {column} >= 0.5 AS "
            "yes), and name that column"
        )
    said = [map(key_of, options.said(argument, role)) for argument in MEANINGS]
    ones, zeros = (tuple(dict.fromkeys(own)) for own in said)
    if both := set(ones) & set(zeros):
        raise InvalidInput(
            f"column {column!r}: {list_values(both)} cannot be both positive and negative"
        )
    if keys <= set(STANDARD_BITS):
        explained = set(STANDARD_BITS) & {*ones, *zeros}
        if keys and not explained and bit_of_yes(role, column) == 0:
            raise Problem(
                f"column {column!r} is called after what went wrong, so that 1 may be the bad "
                f"outcome; found {list_with_counts(found)}; say which value is the good one",
                positive={role: choose_labels(found).get("0", "0")},
            )
        return YesNo(("0",), ("1",)) if "0" in ones or "1" in zeros else YesNo(("1",), ("0",))
    if keys.isdisjoint({*ones, *zeros}):
        ones, zeros = (), ()  # they are the other column's
    rest = keys - {*ones, *zeros}
    clash = ("1" if ones else "0") in rest  # beside words for it
    if rest and (clash or bool(ones) == bool(zeros) or len(rest) > 1):
        raise propose_meanings(role, column, found, ones, zeros, known)
    return YesNo(ones or tuple(sorted(rest)), (*zeros, *(sorted(rest) if ones else ())))


def bit_of_yes(role: str, column: str) -> int | None:
    """Return what yes means in a column; of an outcome its name must say it."""
    words = re.sub(r"[\W_]+", " ", column.casefold())
    if role == "outcome" and re.search(rf"\b({BAD_WORDS})\b", words):
        return 0
    return 1 if role == "decision" or re.search(rf"\b({GOOD_WORDS})\b", words) else None


def propose_meanings(
    role: str, column: str, found: Counts, ones: Words, zeros: Words, known: Counts
) -> Problem:
    """Return the problem of values that nobody explained, with a remedy as far as it is clear.

    Some are clear by their words. Of decisions the approval is the one after which outcomes are
    known, if there is hardly one after any other. What else a value may mean only a person can
    choose.
    """
    labels = choose_labels(found)
    sizes = tally((key_of(value), n) for value, n in found.items())
    rest = {key: label for key, label in labels.items() if key not in {*ones, *zeros}}
    said = {"positive": ones, "negative": zeros}
    yes, no = {1: (YES_WORDS, NO_WORDS), 0: (NO_WORDS, YES_WORDS), None: ((), ())}[
        bit_of_yes(role, column)
    ]
    clear = {
        "positive": {key for key in rest if re.fullmatch(GOOD_WORDS, key) or key in yes},
        "negative": {key for key in rest if re.fullmatch(BAD_WORDS, key) or key in no},
    }
    if any(key.replace(".", "").isdigit() and key not in STANDARD_BITS for key in labels):
        clear = {argument: set() for argument in MEANINGS}
    shares = {key: known.get(key, 0) / n for key, n in sizes.items()}
    nothing = {key for key in rest if re.fullmatch(NOTHING_WORDS, key)}
    often = {key for key, share in shares.items() if 10 * share > max(shares.values())}
    if len(often) > 1 or any(re.fullmatch(BAD_WORDS, key) for key in often):
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
        argument: {role: unwrap_single(sorted(rest[key] for key in own))}
        for argument, own in clear.items()
        if own
    }
    # A meaning that still lacks a value is chosen among those that are left, 0 and 1 before others.
    # What no meaning takes is proposed as missing.
    free = [rest[key] for key in sorted(left, key=lambda key: (-sizes[key], key))]
    bits = [own for own in free if key_of(own) in STANDARD_BITS]
    among = bits if len(bits) == len(lacking) == 2 else free if lacking else []
    choices = [OpenChoice([own, *(other for other in among if other != own)]) for own in among]
    fix |= {argument: {role: own} for argument, own in zip(lacking, choices, strict=False)}
    alone = [OpenChoice([own]) for own in free if own not in among]
    if none := [*choices[len(lacking) :], *alone, *(rest[key] for key in sorted(nothing))]:
        fix["missing_values"] = none
        fix |= {"undecided": "leave_out"} if role == "decision" else {}
    listing = list_with_counts({value: n for value, n in found.items() if key_of(value) in rest})
    what = f"must be 0/1 or true/false; found {listing}"
    if ones or zeros:
        what = f"holds values of which nobody said what they mean: {listing}"
    without = "no decision, as when somebody withdrew" if role == "decision" else "no outcome yet"
    return Problem(
        f"column {column!r} {what}; say which mean 1 (positive), which mean 0 (negative), and "
        f"which that there is {without} (missing_values)",
        **fix,
    )
