"""Why a free check answers as it does: its assumptions, its reason, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from equipoise._arrays import Array
from equipoise.errors import few_of
from equipoise.free_check.past_bounds import CheckInputs, bands_from_past
from equipoise.history.past import Past
from equipoise.levels import ErrorBudget
from equipoise.metrics import METRICS
from equipoise.question import Question, Verdict
from equipoise.rates import Bands


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


def explain_verdict(
    verdict: Verdict, lower: float, upper: float, question: Question, inputs: CheckInputs
) -> str:
    """Return the reason of a verdict, in a sentence."""
    if verdict is Verdict.INCONCLUSIVE:
        return f"the past data leave the gap anywhere between {lower:.3f} and {upper:.3f}"
    condition = "whatever the denied would have done"
    if inputs.uses_random_accepts:
        condition = "with what the test programme says of the denied"
    elif inputs.uses_deciders:
        condition = "if cases fall to deciders as if at random"
    elif inputs.assume:
        condition = "under what is assumed"
    bound = f"above {question.gamma:g}"
    if verdict is Verdict.FAIR:
        bound = f"at most {question.threshold:g}"
    return f"{condition}, the gap is {bound}"


def list_missing(
    past: Past, question: Question, budget: ErrorBudget, bands: Bands
) -> tuple[str, ...]:
    """Return what would decide the question, one line each."""
    cells = past.cells
    compared_groups = [cells.groups[position] for position in question.resolve(cells).groups]
    need_labels = [group for group in compared_groups if _needs_labels(group, bands)]
    lines = []
    if need_labels:
        lines.append(f"outcomes of denied people in {few_of(need_labels)}")
    if cells.unknown:
        lines.append(f"outcomes of {cells.unknown:,g} approved people")
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
    widths = _band_widths(past, question, budget.past_fair, r)
    lines = []
    for block in question.resolve(names).blocks:
        pair_widths = [(widths[:, a] + widths[:, b]).max() / 2.0 for a, b in block.pairs]
        widest = float(max(pair_widths))
        if widest >= question.threshold:
            n_rows = sum(past.cells[names[position]].total for position in block.groups)
            # Widths shrink with the square root of the number of rows.
            n_more_rows = n_rows * ((widest / (question.epsilon / 4.0)) ** 2 - 1.0)
            lines.append(
                f"about {n_more_rows:,.0f} more past rows of the stratum {block.stratum!r}: with "
                f"its {n_rows:,g} no number of labels brings FAIR"
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
