"""The free check: what past data alone establish, at no cost.

As the unknown ``r = P[Y=1 | f=0]`` of every group ranges over [0, 1], the gap ranges over an
interval. If it lies below ``gamma + epsilon`` or above ``gamma``, the audit ends before it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from equipoise._arrays import Array
from equipoise.cells import Cells, GroupCells
from equipoise.comparison import GapScale
from equipoise.display import Row, format_count, format_level
from equipoise.errors import InvalidInput, UnknownName, few_of, require_kind
from equipoise.finding import Finding, GroupShares, Interval, ProofStatus, separation
from equipoise.free_check.assumptions import Assume
from equipoise.free_check.bounds import (
    CheckInputs,
    bands_from_past,
    group_shares,
    past_bounds_at,
)
from equipoise.free_check.deciders import ASSUMES_DECIDERS
from equipoise.free_check.verdict import answer_from_past
from equipoise.history.history import as_past
from equipoise.history.past import Past
from equipoise.levels import ErrorBudget, range_level
from equipoise.messages.opinions import OPINION_TEXT, Opinion
from equipoise.metrics import METRICS, gap_given_r
from equipoise.question import Question, Verdict, as_question
from equipoise.rates import Bands

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
    (0.0, 0.0, 0.36)
    """

    approved_only: float | None = None
    denied_as_failures: float | None = None
    base_rates: Mapping[str, Interval] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [super().__str__()]
        for group, base_rate in self.base_rates.items():
            lines.append(f"  would do well  {group}: {base_rate.percent}")
        scale = self.question.gap_scale
        answers = []
        for method, gap in self._naive_gaps.items():
            gap_text = "undefined" if gap is None else scale.format_gap(gap, 3)
            answers.append(f"{method}: {gap_text}")
        lines.append(f"  naive       {'; '.join(answers)}")
        return "\n".join(lines)

    def judge_answer(self, answer: float | None) -> Opinion:
        """Return what to think of a naive answer: one number in place of the range."""
        if answer is None:
            return Opinion.NO_ANSWER
        if not self.lower <= answer <= self.upper:
            return Opinion.RULED_OUT
        if self.lower == self.upper:
            return Opinion.RIGHT
        return Opinion.NOT_SUPPORTED

    def opinion(self, answer: float | None) -> str:
        """Return what to think of a naive answer, in words."""
        return OPINION_TEXT[self.judge_answer(answer)]

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
            hundredths = "undefined" if gap is None else f"{100.0 * gap:.1f}"
            rows.append(self._answer_row(method, hundredths, self.opinion(gap)))
        assert self.range_level is not None  # a finding fills it in
        level = format_level(self.range_level)
        rows.append(
            self._answer_row(
                "all that the data allow",
                Interval(self.lower, self.upper).hundredths,
                f"supported (error probability at most {level})",
            )
        )
        return rows

    def _answer_row(self, method: str, hundredths: str, opinion: str) -> Row:
        unit = "points" if self.question.gap_scale is GapScale.DIFFERENCE else "%"
        return {
            "way of counting": method,
            f"gap in {unit}": hundredths,
            "what to think of it": opinion,
        }

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
    """Return what past data alone prove about the question, at no cost.

    Verdict and ranges are right together with probability at least ``1 - delta``, whatever the
    population (exact Clopper-Pearson sets, simultaneous over groups and rates). The range of the
    gap keeps to what the verdict says.

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
    every_group = past
    # Groups that are left out take no part: no bound is spent on them.
    past = past.restricted_to(compared_groups(past, question))
    inputs = _make_inputs(past, _assume_of_compared(assume, every_group, past), deciders)
    budget = _divide_error_level(inputs, question)

    answer = answer_from_past(inputs, question, budget)
    verdict = answer.verdict
    is_contradicted = answer.contradiction is not None
    missing: tuple[str, ...] = ()
    if verdict is Verdict.INCONCLUSIVE:
        missing = list_missing(past, question, budget, answer.bounds.bands)
    decided_by = None
    if verdict is Verdict.UNFAIR:
        decided_by = separation(answer.rates, question.comparison)
    return Check(
        question=question,
        verdict=verdict,
        lower=answer.gap.lower,
        upper=answer.gap.upper,
        reason=answer.contradiction or explain_verdict(verdict, answer.gap, question, inputs),
        rates=answer.rates,
        decided_by=decided_by,
        missing=missing,
        assumptions=_list_all_assumptions(
            inputs, question, every_group, is_contradicted=is_contradicted
        ),
        warnings=(answer.contradiction,) if answer.contradiction else (),
        approved_only=_gap_of_approved(past.cells, question),
        denied_as_failures=_gap_with_denied_as_failures(past.cells, question),
        base_rates=answer.bounds.base_rates,
        proof=_proof_of_check(inputs, is_contradicted=is_contradicted),
        range_level=range_level(question),
        contradiction=answer.contradiction,
        shares=_established_shares(inputs, question, budget),
    )


# -- the steps of a check --------------------------------------------------------------------------


def compared_groups(past: Past, question: Question) -> tuple[str, ...]:
    """Return the groups that a question compares; raise if it names one that is not there."""
    names = past.cells.groups
    return tuple(names[position] for position in question.resolve(names).groups)


def _assume_of_compared(assume: Assume | None, every_group: Past, compared: Past) -> Assume | None:
    """Return what is assumed of the compared groups; limits of groups left out say nothing."""
    if not isinstance(assume, Assume):
        return assume
    assume.limits(every_group.cells, None)  # refuses groups that do not exist
    return replace(
        assume,
        r_at_most={g: r for g, r in assume.r_at_most.items() if g in compared.cells},
        r_at_least={g: r for g, r in assume.r_at_least.items() if g in compared.cells},
    )


def _make_inputs(past: Past, assume: Assume | None, deciders: str | None) -> CheckInputs:
    """Return what the answer rests on; raise if arguments or past decisions do not allow it."""
    assume = Assume() if assume is None else assume
    require_kind("assume", assume, Assume, "an Assume, such as Assume(denied_no_better=True)")
    if deciders not in (None, "as_random"):
        raise UnknownName("value of 'deciders'", deciders, ["as_random"])
    if deciders and not past.deciders:
        raise InvalidInput(
            "deciders='as_random' needs past decisions that were read with decider=COLUMN, the "
            "column that names who decided"
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


def _proof_of_check(inputs: CheckInputs, *, is_contradicted: bool) -> ProofStatus:
    """Return whether the answer takes more than every answer: limits of r, or deciders.

    What the data contradict is not used.
    """
    if not is_contradicted and (inputs.assume or inputs.uses_deciders):
        return ProofStatus.UNDER_ASSUMPTIONS
    return proof_from_past(inputs.past)


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


def _list_all_assumptions(
    inputs: CheckInputs, question: Question, every_group: Past, *, is_contradicted: bool
) -> tuple[str, ...]:
    """Return what the answer rests on; what the data contradict is granted, but not used."""
    lines = list(list_assumptions(every_group, question))
    use = "granted, but not used: the data contradict it" if is_contradicted else "granted"
    lines += [f"{line} ({use})" for line in inputs.assume.lines]
    if inputs.uses_deciders:
        support = "" if is_contradicted else "; finding no contradiction does not confirm it"
        lines.append(f"{ASSUMES_DECIDERS} ({use}{support})")
    return tuple(lines)


# -- explanations ----------------------------------------------------------------------------------


def list_assumptions(past: Past, question: Question) -> tuple[str, ...]:
    """Return what is assumed of past data and which groups are not compared, one line each."""
    group_counts = past.cells.values()
    left_out = question.resolve(past.cells).left_out
    lines = [f"not compared: {few_of(left_out)}"] if left_out else []
    if past.exact:
        lines.append("the past data are so many that their shares are the population's")
    else:
        lines.append(
            "past and present people come from the same population, and past rows are independent"
        )
        lines.append(
            "the days of the past data, with one end for all groups, were fixed without looking at "
            "their rows"
        )
    if any(counts.cohorts for counts in group_counts):
        lines.append(
            "outcomes of approved people that are not known yet are like the known ones of the "
            "same group (and cohort)"
        )
    if any(counts.random_accepts for counts in group_counts):
        lines.append(
            "the test programme accepted every denied person of a group with the same chance "
            "(untested, unless the notes on the past data say otherwise), and its file lists "
            "everybody whom it accepted, outcome known or not, up to one last day that no outcome "
            "chose"
        )
    return tuple(lines)


def proof_from_past(past: Past) -> ProofStatus:
    """Return whether past data are used under an assumption of the user.

    That is so where unknown outcomes count like the known ones, and where a test programme is taken
    to have drawn at random. A test of other columns may contradict that and cannot confirm it.
    """
    for counts in past.cells.values():
        if counts.random_accepts or (counts.cohorts and counts.approved_unknown):
            return ProofStatus.UNDER_ASSUMPTIONS
    return ProofStatus.PROVEN


def explain_verdict(
    verdict: Verdict, gap: Interval, question: Question, inputs: CheckInputs
) -> str:
    """Return the reason of a verdict, in a sentence."""
    if verdict is Verdict.INCONCLUSIVE:
        unit = question.gap_scale.unit
        return f"the historical data allow any gap from {gap.hundredths} {unit}"
    condition = "whatever the denied would have done"
    if inputs.uses_random_accepts:
        condition = "with what the test programme says of the denied"
    elif inputs.uses_deciders:
        condition = "if cases fall to deciders as if at random"
    elif inputs.assume:
        condition = "under what is assumed"
    bound = f"above {question.gap_scale.format_gap(question.gamma)}"
    if verdict is Verdict.FAIR:
        bound = f"at most {question.gap_scale.format_gap(question.threshold, 10)}"
    return f"{condition}, the gap is {bound}"


def list_missing(
    past: Past, question: Question, budget: ErrorBudget, bands: Bands
) -> tuple[str, ...]:
    """Return what would decide the question, one line each; ``past`` is of compared groups."""
    cells = past.cells
    need_labels = [group for group in cells if _needs_labels(group, bands)]
    lines = []
    if need_labels:
        lines.append(f"outcomes of denied people in {few_of(need_labels)}")
    if cells.unknown:
        lines.append(f"outcomes of {format_count(cells.unknown)} approved people")
    if not lines:
        metric = METRICS[question.metric].words
        lines.append(f"more past rows: {metric} needs no outcome of the denied")
    lines += name_short_strata(past, question, budget, dict.fromkeys(cells, 0.5))
    return tuple(lines)


def _needs_labels(group: str, bands: Bands) -> bool:
    """Say whether outcomes of a group's denied people narrow one of its rates."""
    return any(band_by_group[group].depends_on_r for band_by_group in bands.values())


def name_short_strata(
    past: Past, question: Question, budget: ErrorBudget, r: Mapping[str, float]
) -> tuple[str, ...]:
    """Name the strata with so few past rows that no number of labels brings FAIR at this r.

    The bands are so wide there that two groups with the same rates could be UNFAIR. Each line says
    about how many more rows would narrow the bands to a quarter of epsilon.
    """
    if past.exact or not question.comparison.within:
        return ()
    names = past.cells.groups
    # An audit that weighs past rows has no bounds behind FAIR: those of its intervals serve.
    level = max(budget.past_fair, budget.past_intervals)
    widths = _band_widths(past, question, level, r)
    lines = []
    for block in question.comparison.resolve(names).blocks:
        pair_widths = [(widths[:, a] + widths[:, b]).max() / 2.0 for a, b in block.pairs]
        widest = float(max(pair_widths))
        if widest >= question.threshold:
            n_rows = sum(past.cells[names[position]].total for position in block.groups)
            # Widths shrink with the square root of the number of rows.
            n_more_rows = n_rows * ((widest / (question.epsilon / 4.0)) ** 2 - 1.0)
            lines.append(
                f"about {n_more_rows:,.0f} more past rows of the stratum {block.stratum!r}: with "
                f"its {format_count(n_rows)} no number of labels brings FAIR"
            )
    return tuple(lines)


def _band_widths(past: Past, question: Question, alpha: float, r: Mapping[str, float]) -> Array:
    """Return how wide every rate's band is at r, as a gap; axes: rate, group."""
    bands = bands_from_past(past, question.metric, alpha)
    low = np.empty((len(bands), len(past.cells)))
    high = np.empty_like(low)
    for row, band_by_group in enumerate(bands.values()):
        for column, (group, band) in enumerate(band_by_group.items()):
            low[row, column], high[row, column] = band.rate_range(r[group], r[group])
    return question.gap_scale.gap(low, high)


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
