"""Which column marks the denied people whose outcome is known: perhaps those of a test programme.

Outcomes of denied people are refused. If they stand where a yes/no column says yes, as a pilot's
flag does, leaving them out would throw away the best evidence there is. So the column is proposed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.history.options import ReadOptions, as_tuple
from equipoise.history.tables import Table
from equipoise.history.values import STANDARD_BITS, is_missing, key_of, tally, text_of
from equipoise.messages import Fix, OpenChoice, Problem

MAX_COLUMNS = 200  # columns that are looked at
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
    for column in [name for name in table.columns if name not in options.used][:MAX_COLUMNS]:
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
    # What a person still has to choose may well be an outcome.
    missing_values = [v for v in as_tuple(options.missing_values) if not isinstance(v, OpenChoice)]
    missing_keys = tuple(map(key_of, missing_values))
    counted = table.count([column, options.decision, options.outcome], MAX_COMBINATIONS)
    with_outcome: Mapping[str, int] = tally(
        (text_of(mark).strip(), int(count))
        for mark, decision, outcome, count in counted
        if _is_denied(decision, denied_keys) and not is_missing(text_of(outcome), missing_keys)
    )
    if not with_outcome:
        return None
    mark = max(with_outcome, key=lambda value: with_outcome[value])
    n_marked = with_outcome[mark]
    n_of_mark = sum(
        int(count)
        for value, decision, _, count in counted
        if text_of(value).strip() == mark and _is_denied(decision, denied_keys)
    )
    is_mark = (
        not is_missing(mark)
        and n_marked >= MIN_SHARE_MARKED * sum(with_outcome.values())
        and n_marked >= MIN_SHARE_KNOWN * n_of_mark
    )
    return mark if is_mark else None


def _is_denied(decision: Any, denied_keys: set[str]) -> bool:
    return key_of(text_of(decision)) in denied_keys
