"""Which values of decisions and outcomes mean 1 and which mean 0: as a person says.

No table is read by a guess. Where a person said nothing about a value, the problem that is raised
proposes a meaning, and the person confirms it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from equipoise.errors import InvalidInput
from equipoise.history.coding import YesNo
from equipoise.history.options import MEANINGS, MeaningArgument, ReadOptions, Role
from equipoise.history.problems import UnreadTable
from equipoise.history.values import STANDARD_BITS, RowCounts, choose_labels, key_of, tally
from equipoise.messages import Fix, OpenChoice, Problem
from equipoise.messages.texts import list_values

# By these words a meaning is proposed; no table is read by them.
YES_WORDS = frozenset(("yes", "y", "t", "1"))
NO_WORDS = frozenset(("no", "n", "f", "0"))
GOOD_WORDS = (
    r"approved?|accept(ed)?|granted|admitted|hired|released|repaid|(fully )?paid|good|success|"
    r"pass(ed)?"
)
BAD_WORDS = (
    r"den(y|ied)|reject(ed)?|declined?|refused|turned down|"
    r"not (accepted|admitted|approved|granted|hired|selected)|"
    r"bad|default(ed|er|ing|s)?|delinquen(t|cy)|"
    r"(charged?|write) ?off|unpaid|lost|fail(ed|s|ures?)?"
)
NOTHING_WORDS = (  # words for no decision, or no outcome yet
    r"withdr(awn|ew)|(\w+ )?cancell?ed( by \w+)?|incomplete|expired|abandoned|pending|open|running|"
    r"on hold|duplicate( \w+)?|not (\w+ )?yet( \w+)?|no \w+ yet|"
    r"current|active|ongoing|unknown|not applicable|no loan|n\.a\.?|[-?]+"
)
GOING_WORDS = r"current|active|ongoing|running"
"""Words of :data:`NOTHING_WORDS` that may also say that a loan is repaid as agreed."""
FRACTION = r"-?\d+(\.\d+(e-\d+)?|e-\d+)"  # as key_of writes numbers
MAX_YES_NO_VALUES = 100  # of a decision or an outcome
MUCH_RARER = 10  # times: a decision after which outcomes are so much rarer is no approval


def read_yes_no(
    role: Role, options: ReadOptions, row_counts: RowCounts, labelled_counts: Mapping[str, int]
) -> YesNo:
    """Return which values of a decision or an outcome mean 1 and which mean 0.

    Of ``positive`` and ``negative`` one is enough for a column with one other value. A column of
    0/1 or true/false needs neither.

    Parameters
    ----------
    row_counts
        The values that are there, with their numbers of rows.
    labelled_counts
        For decisions: how many rows have an outcome, by the key of their decision.

    Raises
    ------
    InvalidInput
        If a value was said to mean both.
    UnreadTable
        If the meaning of a value is open.
    """
    column = options.column_of(role)
    keys = {key_of(value) for value in row_counts}
    # Probabilities or amounts: the threshold that made them a decision is not in the table.
    if len(keys) > MAX_YES_NO_VALUES or any(re.fullmatch(FRACTION, key) for key in keys):
        fields = {"column": column, "different": len(keys), "examples": sorted(row_counts)[:4]}
        raise UnreadTable(Problem("not-yes-no", fields))
    positive_keys = _explained_keys(options, "positive", role)
    negative_keys = _explained_keys(options, "negative", role)
    contradictory = set(positive_keys) & set(negative_keys)
    if contradictory:
        raise InvalidInput(
            f"column {column!r}: {list_values(contradictory)} cannot be both positive and negative"
        )
    if keys <= set(STANDARD_BITS):
        return _read_standard_bits(role, column, row_counts, positive_keys, negative_keys)
    if keys.isdisjoint({*positive_keys, *negative_keys}):  # what was said is about the other column
        positive_keys = ()
        negative_keys = ()
    unexplained = keys - {*positive_keys, *negative_keys}
    if unexplained and not _is_other_side(unexplained, positive_keys, negative_keys):
        problem = propose_meanings(
            role, column, row_counts, positive_keys, negative_keys, labelled_counts
        )
        raise UnreadTable(problem)
    # What is unexplained here has the meaning that no explained value has.
    if positive_keys:
        return YesNo(positive_keys, (*negative_keys, *sorted(unexplained)))
    return YesNo(tuple(sorted(unexplained)), negative_keys)


def _is_other_side(
    unexplained: Collection[str], positive_keys: Collection[str], negative_keys: Collection[str]
) -> bool:
    """Return whether unexplained values can only mean what no explained value means."""
    # Two values beside those of one side may be the other side and no decision: a person must say.
    if len(unexplained) != 1 or bool(positive_keys) == bool(negative_keys):
        return False
    # A 1 beside words for 1 may be another code, so that it needs a word of its own.
    bit_of_explained = "1" if positive_keys else "0"
    return bit_of_explained not in unexplained


def _explained_keys(options: ReadOptions, argument: MeaningArgument, role: Role) -> tuple[str, ...]:
    keys = map(key_of, options.explained_values(argument, role))
    return tuple(dict.fromkeys(keys))


def _read_standard_bits(
    role: Role,
    column: str,
    row_counts: RowCounts,
    positive_keys: Collection[str],
    negative_keys: Collection[str],
) -> YesNo:
    """Return what 0 and 1 mean in a column that holds nothing else."""
    is_explained = not set(STANDARD_BITS).isdisjoint({*positive_keys, *negative_keys})
    # In a column called "default" 1 is the bad outcome. Reading it as good would reverse the
    # answer, so a person must say what 1 means.
    if row_counts and not is_explained and bit_of_yes(role, column) == 0:
        zero_label = choose_labels(row_counts).get("0", "0")
        fix = Fix("positive", (zero_label,), role)
        fields = {"column": column, "written": dict(row_counts)}
        raise UnreadTable(Problem("named-after-failure", fields, (fix,)))
    is_reversed = "0" in positive_keys or "1" in negative_keys
    return YesNo(("0",), ("1",)) if is_reversed else YesNo(("1",), ("0",))


def bit_of_yes(role: Role, column: str) -> int | None:
    """Return what yes means in a column, None if that is not clear.

    Of an outcome the column's name must say it: in ``is_default`` yes means the bad outcome.
    """
    if role == "decision":
        return 1
    name = re.sub(r"[\W_]+", " ", column.casefold())
    if re.search(rf"\b({BAD_WORDS})\b", name):
        return 0
    return 1 if re.search(rf"\b({GOOD_WORDS})\b", name) else None


# -- proposals for values that nobody explained ----------------------------------------------------


class Clue(Enum):
    """Why a value may have a meaning."""

    POSITIVE_WORD = "a word for approved or good"
    NEGATIVE_WORD = "a word for denied or bad"
    NOTHING_WORD = "a word for no decision, or no outcome yet"
    OUTCOMES_KNOWN = "a decision after which outcomes are known: the approval"
    NONE = "only a person can know"


@dataclass(frozen=True)
class _Unexplained:
    """Values of one column that nobody explained, by their keys."""

    role: Role
    labels: Mapping[str, str]  # key -> how the value is called
    sizes: Mapping[str, int]  # key -> number of rows
    clues: Mapping[str, Clue]

    def with_clue(self, *clues: Clue) -> set[str]:
        return {key for key, clue in self.clues.items() if clue in clues}


def propose_meanings(
    role: Role,
    column: str,
    row_counts: RowCounts,
    positive_keys: Collection[str],
    negative_keys: Collection[str],
    labelled_counts: Mapping[str, int],
) -> Problem:
    """Return the problem of values that nobody explained, with fixes as far as they are clear.

    Some values are clear by their words. Of decisions the approval is the one after which outcomes
    are known, if outcomes are much rarer after every other one. The rest is left to a person as
    open choices.

    Parameters are those of :func:`read_yes_no`; ``positive_keys`` and ``negative_keys`` are
    keys of values that were said to mean 1 and 0.
    """
    all_labels = choose_labels(row_counts)
    sizes = tally((key_of(value), count) for value, count in row_counts.items())
    explained = {*positive_keys, *negative_keys}
    labels = {key: label for key, label in all_labels.items() if key not in explained}
    word_clues = _classify_words(role, column, sizes)
    clues = _classify_by_outcomes(word_clues, sizes, labelled_counts, explained)
    values = _Unexplained(role, labels, sizes, {key: clues[key] for key in labels})
    fixes = _propose_fixes(
        values, is_explained={"positive": bool(positive_keys), "negative": bool(negative_keys)}
    )
    written = {value: n for value, n in row_counts.items() if key_of(value) in labels}
    code = f"{role}-partly-explained" if explained else f"{role}-unexplained"
    return Problem(code, {"column": column, "written": written}, fixes)


def _classify_words(role: Role, column: str, keys: Collection[str]) -> dict[str, Clue]:
    """Return what the word of each value suggests."""
    yes = bit_of_yes(role, column)
    positive_words = {1: YES_WORDS, 0: NO_WORDS, None: frozenset[str]()}[yes]
    negative_words = {1: NO_WORDS, 0: YES_WORDS, None: frozenset[str]()}[yes]
    # A code such as 2 beside 0 and 1 means that 0 and 1 are codes as well, not yes and no.
    has_codes = any(key.replace(".", "").isdigit() and key not in STANDARD_BITS for key in keys)
    clues = {}
    for key in keys:
        clues[key] = Clue.NONE
        if re.fullmatch(NOTHING_WORDS, key):
            clues[key] = Clue.NOTHING_WORD
        elif has_codes:
            continue
        elif re.fullmatch(GOOD_WORDS, key) or key in positive_words:
            clues[key] = Clue.POSITIVE_WORD
        elif re.fullmatch(BAD_WORDS, key) or key in negative_words:
            clues[key] = Clue.NEGATIVE_WORD
    return clues


def _classify_by_outcomes(
    word_clues: Mapping[str, Clue],
    sizes: Mapping[str, int],
    labelled_counts: Mapping[str, int],
    explained: Collection[str],
) -> dict[str, Clue]:
    """Return clues by words, corrected by how often outcomes are known after a decision."""
    often_known = _decisions_with_outcomes(word_clues, sizes, labelled_counts, explained)
    approvals = {key for key in often_known if word_clues[key] is not Clue.NOTHING_WORD}
    # What a person said goes before statistics. And where outcomes are known after every decision,
    # they tell no decision from another.
    if explained or len(approvals) == len(sizes):
        approvals = set()
    clues = dict(word_clues)
    for key, clue in word_clues.items():
        if key in approvals:
            clues[key] = Clue.OUTCOMES_KNOWN
        elif clue is Clue.NOTHING_WORD and key in often_known:
            clues[key] = Clue.NONE  # the word and the outcomes contradict each other
        elif clue is Clue.POSITIVE_WORD and approvals:
            clues[key] = Clue.NONE  # another decision is the approval
    return clues


def _decisions_with_outcomes(
    word_clues: Mapping[str, Clue],
    sizes: Mapping[str, int],
    labelled_counts: Mapping[str, int],
    explained: Collection[str],
) -> set[str]:
    """Return the decisions after which outcomes are known, and not much rarer than after any."""
    shares = {key: labelled_counts.get(key, 0) / size for key, size in sizes.items()}
    largest_share = max(shares.values())
    # Relative to the largest share, because outcomes may be missing after every decision.
    often_known = {key for key, share in shares.items() if MUCH_RARER * share > largest_share}
    has_denial = any(re.fullmatch(BAD_WORDS, key) for key in often_known)
    if len(often_known) <= 1 and not has_denial:
        return often_known
    # A denial or a withdrawal may have a word for no outcome, which looks like an outcome. So only
    # a word for an approval counts.
    positive_words = {key for key, clue in word_clues.items() if clue is Clue.POSITIVE_WORD}
    return (often_known & positive_words) - set(explained)


@dataclass(frozen=True)
class _ResolvedKeys:
    """Keys of unexplained values by what they most likely mean."""

    clear: Mapping[MeaningArgument, set[str]]  # argument -> keys that it should name
    lacking: Sequence[MeaningArgument]  # arguments that no value has been named for yet
    unclear: set[str]  # keys that a person has to choose among
    nothing: set[str]  # keys that stand for no decision, or no outcome yet


def _resolve_keys(
    values: _Unexplained, is_explained: Mapping[MeaningArgument, bool]
) -> _ResolvedKeys:
    """Sort keys by their clues, and settle by elimination what clues leave open."""
    clear: dict[MeaningArgument, set[str]] = {
        "positive": values.with_clue(Clue.POSITIVE_WORD, Clue.OUTCOMES_KNOWN),
        "negative": values.with_clue(Clue.NEGATIVE_WORD),
    }
    nothing = values.with_clue(Clue.NOTHING_WORD)
    unclear = values.with_clue(Clue.NONE)
    lacking = [argument for argument in MEANINGS if not (is_explained[argument] or clear[argument])]
    if len(unclear) == len(lacking) == 1:  # one value, and one meaning that has none
        clear[lacking[0]] = unclear
        unclear = set()
        lacking = []
    elif values.role == "decision" and len(unclear) < len(lacking):
        unclear |= nothing  # one of these words may be the denial
        nothing = set()
    elif values.role == "outcome" and "positive" in lacking and not unclear:
        # Otherwise no outcome at all would be good.
        unclear = {key for key in nothing if re.fullmatch(GOING_WORDS, key)}
        nothing -= unclear
    return _ResolvedKeys(clear, lacking, unclear, nothing)


def _propose_fixes(
    values: _Unexplained, is_explained: Mapping[MeaningArgument, bool]
) -> tuple[Fix, ...]:
    """Return the meanings that clues give, and open choices for the others.

    ``is_explained`` tells by argument whether a person named a value for it.
    """
    keys = _resolve_keys(values, is_explained)
    fixes = []
    for argument in MEANINGS:
        if keys.clear[argument]:
            labels = sorted(values.labels[key] for key in keys.clear[argument])
            fixes.append(Fix(argument, tuple(labels), values.role))
    choices, only_missing = _open_choices(values, keys.unclear, len(keys.lacking))
    for argument, choice in zip(keys.lacking, choices, strict=False):
        fixes.append(Fix(argument, (choice,), values.role))
    # What no meaning takes is proposed as missing.
    missing = [*choices[len(keys.lacking) :], *only_missing]
    missing_labels = [values.labels[key] for key in sorted(keys.nothing)]
    if missing or missing_labels:
        fixes.append(Fix("missing_values", (*missing, *missing_labels), values.role, is_list=True))
        # Rows without a decision are refused unless a person leaves them out, so one fix needs the
        # other.
        if values.role == "decision":
            fixes.append(Fix("undecided", ("leave_out",)))
    return tuple(fixes)


def _open_choices(
    values: _Unexplained, unclear: Collection[str], n_lacking: int
) -> tuple[list[OpenChoice], list[OpenChoice]]:
    """Return choices among the unclear values, and those values that no choice is among.

    A meaning that lacks a value is chosen among 0 and 1, if both are there, before other values.
    The most frequent value is the first choice of the first meaning.
    """
    by_size = sorted(unclear, key=lambda key: (-values.sizes[key], key))
    bits = [key for key in by_size if key in STANDARD_BITS]
    candidates = by_size if n_lacking else []
    if len(bits) == n_lacking == 2:
        candidates = bits
    choices = []
    for first in candidates:
        other_labels = [values.labels[key] for key in candidates if key != first]
        choices.append(OpenChoice((values.labels[first], *other_labels)))
    only_missing = [OpenChoice((values.labels[key],)) for key in by_size if key not in candidates]
    return choices, only_missing
