"""Which column marks the denied people whose outcome is known: perhaps those of a test programme.

Outcomes of denied people are refused. If they stand where a yes/no column says yes, as a pilot's
flag does, leaving them out would throw away the best evidence there is. So the column is proposed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from equipoise.history.options import ReadOptions
from equipoise.history.tables import Table
from equipoise.history.values import STANDARD_BITS, MissingWords, is_missing, key_of, text_of
from equipoise.messages import Fix, OpenChoice, Problem

MAX_MARK_COLUMNS = 200  # columns that are looked at
MAX_COMBINATIONS = 10_000  # of a mark, a decision and an outcome
MIN_SHARE_MARKED = 0.95  # of the denied people with an outcome
MIN_SHARE_KNOWN = 0.5  # of the marked people: the outcome of others may not be known yet


def propose_mark(problem: Problem, table: Table, options: ReadOptions) -> Problem:
    """Return the problem of denied people with outcomes, with the column that marks them as fix.

    Another problem, and one for which no column is found, is returned as it is.
    """
    if problem.code != "denied-with-outcome" or options.random_accepts is not None:
        return problem
    denied_keys = {key_of(value) for value in problem.fields["denied"]}
    for column in [name for name in table.columns if name not in options.used][:MAX_MARK_COLUMNS]:
        if not _is_yes_no(table, column):
            continue
        mark = _mark_of(table, column, denied_keys, options)
        if mark is not None:
            fixes = [Fix("random_accepts", (column,))]
            # 1 and true are understood without a word, so only another mark must be explained.
            if key_of(mark) != "1":
                fixes.append(Fix("positive", (mark,), role="random_accepts"))
            fields = {**problem.fields, "mark_column": column, "mark": mark}
            return Problem("denied-with-outcome-marked", fields, tuple(fixes))
    return problem


def _is_yes_no(table: Table, column: str) -> bool:
    """Return whether a column has two values, or one beside blanks."""
    # Eight texts suffice: they leave room for spellings such as "Yes" and "yes ".
    values = {key_of(text_of(row[0])) for row in table.count([column], 8)}
    present = {value for value in values if not is_missing(value)}
    if present <= set(STANDARD_BITS):
        return len(present) == 2 or (len(present) == 1 and present != values)
    return len(present) == 2 or (len(present) == 1 < len(values))


def _mark_of(table: Table, column: str, denied_keys: set[str], options: ReadOptions) -> str | None:
    """Return the value that nearly all denied people with an outcome have, and few others."""
    # Rows of denied people, by what stands in the column and by their outcome.
    denied_rows: list[tuple[str, str, int]] = []
    counted = table.count([column, options.decision, options.outcome], MAX_COMBINATIONS)
    for value, decision, outcome, count in counted:
        if key_of(text_of(decision)) in denied_keys:
            denied_rows.append((text_of(value).strip(), text_of(outcome), int(count)))
    # Without the outcomes that are said or guessed to be unknown, such as those of loans that are
    # current, a mark may seem to stand where nothing is known. So whatever is written is tried too.
    for words in (_said_to_be_missing(options), MissingWords()):
        mark = _find_mark(denied_rows, words)
        if mark is not None:
            return mark
    return None


def _said_to_be_missing(options: ReadOptions) -> MissingWords:
    """Return which outcomes stand for none; what a person still has to choose may well be one."""
    words = options.missing_words("outcome")
    of_column = options.missing_values_for("outcome")
    said_keys = [key_of(value) for value in of_column if not isinstance(value, OpenChoice)]
    return replace(words, of_column=said_keys)


def _find_mark(denied_rows: Sequence[tuple[str, str, int]], words: MissingWords) -> str | None:
    """Return the value of a column that stands where outcomes are known; rows as above."""
    denied_counts: Counter[str] = Counter()  # of the denied, by what stands in the column
    labelled_counts: Counter[str] = Counter()  # of those among them whose outcome is known
    for text, outcome, count in denied_rows:
        denied_counts[text] += count
        if not words.include(outcome):
            labelled_counts[text] += count
    if not labelled_counts:
        return None
    mark = max(labelled_counts, key=lambda text: labelled_counts[text])
    n_labelled = labelled_counts[mark]
    is_mark = (
        not is_missing(mark)
        and n_labelled >= MIN_SHARE_MARKED * sum(labelled_counts.values())
        and n_labelled >= MIN_SHARE_KNOWN * denied_counts[mark]
    )
    return mark if is_mark else None
