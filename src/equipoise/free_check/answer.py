"""The free check: what past data alone establish, at no cost.

As the unknown ``r = P[Y=1 | f=0]`` of every group ranges over [0, 1], the gap ranges over an
interval. If it lies below ``gamma + epsilon`` or above ``gamma``, the audit ends before it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from equipoise.cells import Cells, GroupCells
from equipoise.display import Row
from equipoise.errors import InvalidInput, UnknownName, require_kind
from equipoise.finding import Finding, GroupShares, Interval, separation
from equipoise.free_check.assumptions import Assume
from equipoise.free_check.deciders import ASSUMES_DECIDERS
from equipoise.free_check.explanations import explain_verdict, list_assumptions, list_missing
from equipoise.free_check.gaps import gap_bounds, rate_intervals
from equipoise.free_check.past_bounds import CheckInputs, group_shares, past_bounds_at
from equipoise.free_check.verdict import free_verdict
from equipoise.history.history import as_past
from equipoise.history.past import Past
from equipoise.levels import ErrorBudget
from equipoise.metrics import gap_given_r
from equipoise.question import Question, Verdict, as_question

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Check(Finding):
    """What is known for free, next to what a toolkit that ignores the problem would say.

    Attributes
    ----------
    approved_only
        The gap computed from approved rows alone, None where a denominator is empty.
    denied_as_failures
        The gap computed with every denial counted as a failure, None where a denominator is empty.
    base_rates
        With ``deciders``: where each group's share of good outcomes lies, approved or not.

    Examples
    --------
    >>> from equipoise import History, check
    >>> counts = {"approved_positive": 60, "approved_negative": 20, "denied": 20}
    >>> past = History.from_cells({"A": counts, "B": counts})
    >>> finding = check(past, Question("equal_opportunity"))
    >>> finding.approved_only, finding.lower, round(finding.upper, 2)
    (0.0, 0.0, 0.37)
    """

    approved_only: float | None = None
    denied_as_failures: float | None = None
    base_rates: Mapping[str, Interval] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [super().__str__()]
        for group, base_rate in self.base_rates.items():
            lines.append(f"  would do well  {group}: {base_rate}")
        answers = [f"{method}: {_format_gap(gap)}" for method, gap in self._naive_gaps.items()]
        lines.append(f"  naive       {'; '.join(answers)}")
        return "\n".join(lines)

    def opinion(self, answer: float | None) -> str:
        """Return what to think of a naive answer: one number in place of the range."""
        if answer is None:
            return "no answer"
        if not self.lower <= answer <= self.upper:
            return "wrong: the data rule it out"
        if self.lower == self.upper:
            return "right"
        return "a guess: the data allow others"

    @property
    def _naive_gaps(self) -> dict[str, float | None]:
        """Way of counting -> the gap that it gives."""
        return {
            "approved rows only": self.approved_only,
            "denials as failures": self.denied_as_failures,
        }

    def answer_rows(self) -> list[Row]:
        """Return the two naive answers, and then the range that the data support."""
        rows: list[Row] = []
        for method, gap in self._naive_gaps.items():
            rows.append(_answer_row(method, _format_gap(gap), self.opinion(gap)))
        rows.append(
            _answer_row(
                "all that the data allow",
                f"{self.lower:.3f} to {self.upper:.3f}",
                f"holds with probability {1 - self.question.delta:g}",
            )
        )
        return rows

    def _draw(self, ax: Axes) -> None:
        super()._draw(ax)
        for marker, (method, gap) in zip("x+", self._naive_gaps.items(), strict=True):
            if gap is not None:
                ax.plot([gap], [0], marker, color="black", ms=9, label=method, clip_on=False)
        ax.legend(loc="lower left", title="naive answers", fontsize=8.5)


def check(
    history: object,
    question: Question | str,
    *,
    assume: Assume | None = None,
    deciders: Literal["as_random"] | None = None,
    **reading: object,
) -> Check:
    """Return what past data alone say about the question, at no cost.

    The reported interval holds with probability at least ``1 - delta`` whatever the population
    (exact Clopper-Pearson sets, simultaneous over groups and rates); the verdict is wrong with at
    most the question's error probability.

    Parameters
    ----------
    history
        Past decisions, or any table that :meth:`equipoise.History.read` takes.
    question
        What is asked, or the name of a metric.
    assume
        What may be taken for granted of the denied; nothing if None. The answer holds under it, and
        is INCONCLUSIVE where past data contradict it.
    deciders
        ``"as_random"``: within each group cases fall to deciders as if at random, and how a case
        turns out does not depend on who approves it. Then no decider approves more people who turn
        out well, or badly, than there are, which bounds how many of the denied would do well. The
        past must have been read with ``decider=``. INCONCLUSIVE where two deciders contradict it.
        Finding no contradiction does not confirm it.
    reading
        How a table is read: ``group``, ``decision``, ``outcome`` and all that
        :meth:`equipoise.History.read` takes.

    Examples
    --------
    >>> from equipoise import History
    >>> past = History.from_cells({
    ...     "A": {"approved_positive": 700, "approved_negative": 50, "denied": 250},
    ...     "B": {"approved_positive": 300, "approved_negative": 50, "denied": 650},
    ... })
    >>> check(past, Question("equal_opportunity")).verdict  # the denied may be anything
    <Verdict.INCONCLUSIVE: 'INCONCLUSIVE'>
    >>> check(past, Question("demographic_parity")).verdict  # all that it needs is known
    <Verdict.UNFAIR: 'UNFAIR'>
    >>> import pandas as pd
    >>> rows = [("A", 1, 1), ("B", 0, None)] * 50
    >>> table = pd.DataFrame(rows, columns=["race", "granted", "paid"])
    >>> check(table, "demographic_parity", group="race", decision="granted", outcome="paid").verdict
    <Verdict.UNFAIR: 'UNFAIR'>
    """
    past = as_past(history, reading)
    question = as_question(question)
    inputs = _make_inputs(past, assume, deciders)
    budget = _divide_error_level(inputs, question)

    bounds = past_bounds_at(inputs, question.metric, budget.past_intervals)
    lower, upper = gap_bounds(bounds.bands, bounds.r_ranges, compare=question.comparison)

    # The verdict has error levels of its own: a wrong FAIR, for example, takes fewer failed bounds
    # than a wrong interval.
    verdict = Verdict.INCONCLUSIVE
    if not bounds.contradiction:
        verdict = free_verdict(inputs, question, budget)

    rates = rate_intervals(bounds.bands, bounds.r_ranges)
    missing: tuple[str, ...] = ()
    if verdict is Verdict.INCONCLUSIVE:
        missing = list_missing(past, question, budget, bounds.bands)
    return Check(
        question=question,
        verdict=verdict,
        lower=lower,
        upper=upper,
        reason=bounds.contradiction or explain_verdict(verdict, lower, upper, question, inputs),
        rates=rates,
        decided_by=separation(rates, question.comparison) if verdict is Verdict.UNFAIR else None,
        missing=missing,
        assumptions=_list_all_assumptions(inputs, question),
        warnings=(bounds.contradiction,) if bounds.contradiction else (),
        approved_only=_gap_of_approved(past.cells, question),
        denied_as_failures=_gap_with_denied_as_failures(past.cells, question),
        base_rates=bounds.base_rates,
        shares=_established_shares(inputs, question, budget),
    )


# -- the steps of a check --------------------------------------------------------------------------


def _make_inputs(past: Past, assume: Assume | None, deciders: str | None) -> CheckInputs:
    """Return what the answer rests on; raise if arguments or past decisions do not allow it."""
    assume = Assume() if assume is None else assume
    require_kind("assume", assume, Assume, "an Assume, such as Assume(denied_no_better=True)")
    if deciders not in (None, "as_random"):
        raise UnknownName("value of 'deciders'", deciders, ["as_random"])
    if deciders and not past.deciders:
        raise InvalidInput(
            "deciders='as_random' (--deciders) needs past decisions that were read with "
            "decider=COLUMN (--decider COLUMN), the column that names who decided"
        )
    return CheckInputs(
        past,
        uses_random_accepts=any(counts.random_accepts for counts in past.cells.values()),
        assume=assume,
        uses_deciders=deciders is not None,
    )


def _divide_error_level(inputs: CheckInputs, question: Question) -> ErrorBudget:
    """Return the error level of every bound that the answer rests on."""
    n_deciders: list[int] = []
    if inputs.uses_deciders:
        n_deciders = [len(deciders) for deciders in inputs.past.deciders]
    return ErrorBudget.of_check(
        question,
        len(inputs.past.cells),
        uses_random_accepts=inputs.uses_random_accepts,
        uses_precisions=inputs.assume.denied_no_better,
        n_deciders=n_deciders,
    )


def _established_shares(
    inputs: CheckInputs, question: Question, budget: ErrorBudget
) -> dict[str, GroupShares]:
    """Return what is established of every group's confusion matrix, at its own error level.

    Deciders bound P[Y=1] and not r, so the shares do without them.
    """
    without_deciders = replace(inputs, uses_deciders=False)
    bounds = past_bounds_at(without_deciders, question.metric, budget.past_table)
    r_intervals = {group: Interval(low, high) for group, (low, high) in bounds.r_ranges.items()}
    return group_shares(inputs.past, budget.past_table, r_intervals)


def _list_all_assumptions(inputs: CheckInputs, question: Question) -> tuple[str, ...]:
    lines = list(list_assumptions(inputs.past, question))
    lines += [f"{line} (granted)" for line in inputs.assume.lines]
    if inputs.uses_deciders:
        lines.append(ASSUMES_DECIDERS)
    return tuple(lines)


# -- naive answers ---------------------------------------------------------------------------------


def _gap_of_approved(cells: Cells, question: Question) -> float | None:
    """Return the gap of the approved with known outcomes, as if there were no denied people."""
    approved = {}
    for group, counts in cells.items():
        if counts.approved > counts.approved_unknown:
            approved[group] = GroupCells(counts.approved_positive, counts.approved_negative, 0)
    return _gap_if_all_denied_fail(approved, question)


def _gap_with_denied_as_failures(cells: Cells, question: Question) -> float | None:
    return _gap_if_all_denied_fail(cells.like_known, question)


def _gap_if_all_denied_fail(cells: Mapping[str, GroupCells], question: Question) -> float | None:
    """Return the gap with r = 0 in every group; None where a denominator is empty."""
    r = dict.fromkeys(cells, 0.0)
    try:
        return gap_given_r(Cells(cells), r, question.metric, question.comparison)
    except InvalidInput:  # an empty denominator, or no two groups are left to compare
        return None


def _answer_row(method: str, gap: str, opinion: str) -> Row:
    return {"way of counting": method, "gap": gap, "what to think of it": opinion}


def _format_gap(gap: float | None) -> str:
    return "undefined" if gap is None else f"{gap:.3f}"
