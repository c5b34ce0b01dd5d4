"""What past data alone establish, at no cost.

As the unknown ``r = P[Y=1 | f=0]`` of every group ranges over [0, 1], the gap ranges over an
interval. If it lies below ``gamma + epsilon`` or above ``gamma``, the audit ends before it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from equipoise.cells import Cells, GroupCells
from equipoise.display import Row
from equipoise.errors import InvalidInput, UnknownName, few_of, require_kind
from equipoise.finding import Finding, Interval, gap_interval, separation
from equipoise.free_check.assumptions import Assume
from equipoise.free_check.deciders import ASSUMES_DECIDERS
from equipoise.free_check.gaps import _pairs_of_rates, gap_bounds, rate_intervals
from equipoise.free_check.past_bounds import (
    CheckInputs,
    bands_from_past,
    group_shares,
    past_bounds_at,
)
from equipoise.history.history import as_past
from equipoise.history.past import Past
from equipoise.levels import ErrorBudget
from equipoise.metrics import METRICS, gap_given_r
from equipoise.question import Question, Verdict, as_question
from equipoise.rates import Bands

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_ROUNDING = 1e-12  # a gap that is larger by less may be equal


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
    >>> found = check(History.from_cells({"A": counts, "B": counts}), Question("equal_opportunity"))
    >>> found.approved_only, found.lower, round(found.upper, 2)
    (0.0, 0.0, 0.37)
    """

    approved_only: float | None = None
    denied_as_failures: float | None = None
    base_rates: Mapping[str, Interval] = field(default_factory=dict)

    def __str__(self) -> str:
        naive = "; ".join(f"{way}: {_shown(value)}" for way, value in self._naive.items())
        more = [
            *(f"  would do well  {g}: {one}" for g, one in self.base_rates.items()),
            f"  naive       {naive}",
        ]
        return "\n".join([super().__str__(), *more])

    def opinion(self, answer: float | None) -> str:
        """Say what to think of a naive answer, a single number that is given as the gap."""
        if answer is None:
            return "no answer"
        if not self.lower <= answer <= self.upper:
            return "wrong: the data rule it out"
        if self.lower == self.upper:
            return "right"
        return "a guess: the data allow others"

    @property
    def _naive(self) -> dict[str, float | None]:
        one, other = self.approved_only, self.denied_as_failures
        return {"approved rows only": one, "denials as failures": other}

    def answer_rows(self) -> list[Row]:
        """Return the two naive answers beside the honest one."""
        holds = f"holds with probability {1 - self.question.delta:g}"
        lines = [(way, _shown(gap), self.opinion(gap)) for way, gap in self._naive.items()]
        lines.append(("all that the data allow", f"{self.lower:.3f} to {self.upper:.3f}", holds))
        names = ("way of counting", "gap", "what to think of it")
        return [dict(zip(names, line, strict=True)) for line in lines]

    def _draw(self, ax: Axes) -> None:
        super()._draw(ax)
        for mark, (words, value) in zip("x+", self._naive.items(), strict=True):
            if value is not None:
                ax.plot([value], [0], mark, color="black", ms=9, label=words, clip_on=False)
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
        past must have been read with ``decider=``. INCONCLUSIVE where two deciders contradict it;
        that none do is no support for it.
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
    history, question = as_past(history, reading), as_question(question)
    assume = Assume() if assume is None else assume
    require_kind("assume", assume, Assume, "an Assume, such as Assume(denied_no_better=True)")
    if deciders not in (None, "as_random"):
        raise UnknownName("value of 'deciders'", deciders, ["as_random"])
    if deciders and not history.deciders:
        raise InvalidInput(
            "deciders='as_random' (--deciders) needs past decisions that were read with "
            "decider=COLUMN (--decider COLUMN), the column that names who decided"
        )
    cells, compare = history.cells, question.comparison
    labels = any(counts.random_accepts for counts in cells.values())
    given = CheckInputs(history, labels, assume, deciders is not None)
    budget = ErrorBudget.of_check(
        question,
        len(cells),
        labels=labels,
        precisions=assume.denied_no_better,
        deciders=[len(own) for own in history.deciders] if deciders else (),
    )
    known = past_bounds_at(given, question.metric, budget.past_intervals)
    lower, upper = gap_bounds(known.bands, known.boxes, compare=compare)
    table = past_bounds_at(replace(given, deciders=False), question.metric, budget.past_table)
    verdict = Verdict.INCONCLUSIVE if known.contradiction else free_verdict(given, question, budget)
    seen = {g: c for g, c in cells.items() if c.approved > c.approved_unknown}
    approved = {g: GroupCells(c.approved_positive, c.approved_negative, 0) for g, c in seen.items()}
    undecided, rates = verdict is Verdict.INCONCLUSIVE, rate_intervals(known.bands, known.boxes)
    return Check(
        question=question,
        verdict=verdict,
        lower=lower,
        upper=upper,
        reason=known.contradiction or _reason(verdict, lower, upper, question, given),
        rates=rates,
        decided_by=separation(rates, compare) if verdict is Verdict.UNFAIR else None,
        missing=_missing(history, question, budget, known.bands) if undecided else (),
        assumptions=(
            *list_assumptions(history, question),
            *(f"{line} (granted)" for line in assume.lines),
            *([ASSUMES_DECIDERS] if deciders else []),
        ),
        warnings=(known.contradiction,) if known.contradiction else (),
        approved_only=_naive(approved, question),
        denied_as_failures=_naive(cells.like_known, question),
        base_rates=known.base_rates,
        shares=group_shares(
            history, budget.past_table, {g: Interval(*box) for g, box in table.boxes.items()}
        ),
    )


def list_assumptions(history: Past, question: Question) -> tuple[str, ...]:
    """Return what is assumed of past data, and who is not compared."""
    cells, left_out = history.cells.values(), question.resolve(history.cells).left_out
    lines = [f"not compared: {few_of(left_out)}"] if left_out else []
    if history.exact:
        lines.append("the past data are so many that their shares are the population's")
    else:
        lines.append(
            "past and present people come from the same population, and past rows are independent"
        )
    if any(counts.cohorts for counts in cells):
        lines.append(
            "outcomes of approved people that are not known yet are like the known ones of the "
            "same group (and cohort)"
        )
    if any(counts.random_accepts for counts in cells):
        lines.append(
            "the test programme accepted every denied person of a group with the same chance "
            "(untested, unless the notes on the past data say otherwise), and its file lists "
            "everybody whom it accepted, outcome known or not, up to one last day that no outcome "
            "chose"
        )
    return tuple(lines)


# -- the verdict -----------------------------------------------------------------------------------


def free_verdict(given: CheckInputs, question: Question, budget: ErrorBudget) -> Verdict:
    """Return the verdict that follows from past data at the levels of a budget.

    INCONCLUSIVE where past data contradict what is assumed.
    """
    compare = question.comparison
    behind_fair = past_bounds_at(given, question.metric, budget.past_fair)
    behind_unfair = past_bounds_at(given, question.metric, budget.past_unfair)
    if behind_fair.contradiction or behind_unfair.contradiction:
        return Verdict.INCONCLUSIVE
    upper = gap_interval(rate_intervals(behind_fair.bands, behind_fair.boxes), compare).upper
    bands, boxes = behind_unfair.bands, behind_unfair.boxes
    gamma, pairs = question.gamma + _ROUNDING, _pairs_of_rates(bands, boxes, compare)
    unfair = gap_interval(rate_intervals(bands, boxes), compare).lower > gamma or any(
        pair.exceeds(gamma) for pair in pairs
    )
    fair = upper <= question.threshold
    if fair and unfair:  # both are right; name the nearer one
        lower, _ = gap_bounds(bands, boxes, compare=compare)
        fair = lower + upper <= 2.0 * question.gamma + question.epsilon
    if fair:
        return Verdict.FAIR
    return Verdict.UNFAIR if unfair else Verdict.INCONCLUSIVE


# -- words -----------------------------------------------------------------------------------------


def name_short_strata(
    history: Past, question: Question, budget: ErrorBudget, r: Mapping[str, float]
) -> tuple[str, ...]:
    """Name the strata with so few past rows that no number of labels brings FAIR at this r.

    The bands are so wide there that two groups with the same rates could be UNFAIR.
    """
    if history.exact or not question.comparison.within:
        return ()
    names, scale, lines = history.cells.groups, question.gap_scale, []
    bands = bands_from_past(history, question.metric, budget.past_fair).values()
    ends = np.array([[band.rate_range(r[g], r[g]) for g, band in by.items()] for by in bands])
    wide = scale.gap(ends[..., 0], ends[..., 1])
    for block in question.resolve(names).blocks:
        worst = max(float((wide[:, a] + wide[:, b]).max()) / 2.0 for a, b in block.pairs)
        if worst >= question.threshold:
            rows = sum(history.cells[names[g]].total for g in block.groups)
            more = rows * ((worst / (question.epsilon / 4.0)) ** 2 - 1.0)
            lines.append(
                f"about {more:,.0f} more past rows of the stratum {block.stratum!r}: with its "
                f"{rows:,g} no number of labels brings FAIR"
            )
    return tuple(lines)


def _naive(cells: Mapping[str, GroupCells], question: Question) -> float | None:
    try:
        return gap_given_r(
            Cells(cells), dict.fromkeys(cells, 0.0), question.metric, question.comparison
        )
    except InvalidInput:  # an empty denominator, or nobody is left to be compared
        return None


def _reason(
    verdict: Verdict, lower: float, upper: float, question: Question, given: CheckInputs
) -> str:
    if verdict is Verdict.INCONCLUSIVE:
        return f"the past data leave the gap anywhere between {lower:.3f} and {upper:.3f}"
    fair = verdict is Verdict.FAIR
    bound = f"at most {question.threshold:g}" if fair else f"above {question.gamma:g}"
    whatever = "under what is assumed" if given.assume else "whatever the denied would have done"
    if given.labels:
        whatever = "with what the test programme says of the denied"
    elif given.deciders:
        whatever = "if cases fall to deciders as if at random"
    return f"{whatever}, the gap is {bound}"


def _missing(
    history: Past, question: Question, budget: ErrorBudget, bands: Bands
) -> tuple[str, ...]:
    cells = history.cells
    names = [cells.groups[at] for at in question.resolve(cells).groups]
    needs_labels = [g for g in names if any(by[g].depends_on_r for by in bands.values())]
    denied = [f"outcomes of denied people in {few_of(needs_labels)}"] if needs_labels else []
    unknown = [f"outcomes of {cells.unknown:,g} approved people"] if cells.unknown else []
    rows = f"more past rows: {METRICS[question.metric].words} needs no outcome of the denied"
    strata = name_short_strata(history, question, budget, dict.fromkeys(cells, 0.5))
    return (*(denied + unknown or [rows]), *strata)


def _shown(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"
