"""Draw every picture of the documentation: ``python -m docs.pictures`` (needs matplotlib).

Nothing is sketched: curves, cells, evidence and intervals come from the library, with fixed seeds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from paper.pictures import small_svg

import equipoise as eq
from equipoise.rates import RATES

HERE = Path(__file__).parent / "pictures"
INK, FAIR, UNFAIR, GREY = "#22313f", "#3a7d5d", "#c8553d", "#b8c0c8"
WORLD = eq.worlds.CellWorld.from_shares({"A": (0.45, 0.1, 0.45, 0.3), "B": (0.3, 0.1, 0.6, 0.33)})
QUESTION = eq.Question("equal_opportunity", gamma=0.05, epsilon=0.05, delta=0.05)


def main(kind: str = "svg") -> None:
    """Draw all pictures."""
    mpl.rcParams.update(
        {
            "font.size": 9,
            "text.color": INK,
            "axes.labelcolor": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "svg.hashsalt": "equipoise",
            "font.family": "sans-serif",
        }
    )
    for draw in (plan, rates, square, staircase, evidence, order):
        place = HERE / f"{draw.__name__}.{kind}"
        if kind == "svg":
            place.write_text(small_svg(draw()), encoding="utf-8")
        else:
            draw().savefig(place)


def plan() -> Figure:
    """Show what an audit of the demonstration's lender may cost, case by case."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axis = figure.subplots()
    eq.plan(eq.data.fico_lender().history(), QUESTION, eq.Costs()).plot(axis)
    axis.set_title("What an audit of this lender would cost", loc="left", fontsize=10)
    return figure


def rates() -> Figure:
    """Both rates of a group as functions of the one unknown number."""
    figure = Figure(figsize=(7.2, 2.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    r = np.linspace(0.0, 1.0, 201)
    panels = ((left, "true_positive_rate"), (right, "false_positive_rate"))
    for axis, rate in panels:
        for group, colour in (("A", INK), ("B", UNFAIR)):
            curve = RATES[rate].curve(*WORLD.cells[group].shares)
            assert curve is not None
            axis.plot(r, curve.value(r), color=colour)
            ends = curve.value([0.0, 1.0])
            axis.plot([1.04, 1.04] if group == "A" else [1.08, 1.08], ends, color=colour, lw=4)
            above = 0.04 if group == "A" else -0.09
            axis.annotate(group, (0.5, float(curve.value(0.5)) + above), color=colour)
        axis.set_xlabel("r: share of the denied who would have done well")
        axis.set_title(rate.replace("_", " "), fontsize=9)
        axis.set_ylim(0.0, 1.05)
    left.set_ylabel("rate")
    return figure


def square() -> Figure:
    """Where the two unknowns make the decision-maker fair, unfair, or neither."""
    figure = Figure(figsize=(4.2, 3.9), layout="constrained")
    axis = figure.subplots()
    _paint_regions(axis)
    r_a, r_b = WORLD.r["A"], WORLD.r["B"]
    axis.plot([r_b], [r_a], "o", color=INK)
    axis.annotate("the truth, unknown", (r_b, r_a), xytext=(8, -3), textcoords="offset points")
    axis.annotate("FAIR", (0.62, 0.93), color=FAIR, weight="bold")
    axis.annotate("UNFAIR", (0.75, 0.25), color=UNFAIR, weight="bold")
    axis.annotate("UNFAIR", (0.05, 0.9), color=UNFAIR, weight="bold")
    return figure


def staircase() -> Figure:
    """Show the cells that still stand after some labels."""
    figure = Figure(figsize=(8.4, 3.1), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    audit = eq.AdaptiveAudit(WORLD.past(), QUESTION, eq.Costs())
    rng, told = np.random.default_rng(2), 0
    for axis, wanted in zip(axes, (0, 60, 4000), strict=True):
        while told < wanted and audit.finding is None:
            told += _label_somebody(audit, rng)
        _paint_regions(axis, faint=True)
        assert audit.evidence is not None
        for (low, high, lacks), colour in zip(_standing(audit), (UNFAIR, FAIR), strict=True):
            ends = (end[lacks > 0.0][:, _a_first(audit)] for end in (low, high))
            _paint_cells(axis, *ends, colour)
        axis.plot([WORLD.r["B"]], [WORLD.r["A"]], "o", color=INK, markersize=4)
        verdict = "" if audit.finding is None else f": {audit.finding.verdict}"
        axis.set_title(f"{told} labels{verdict}", fontsize=9)
        if axis is not axes[0]:
            axis.set_ylabel("")
    return figure


def evidence() -> Figure:
    """How the least evidence against each wrong answer grows, label by label."""
    figure = Figure(figsize=(7.2, 2.9), layout="constrained")
    axis = figure.subplots()
    for seed in range(6):
        audit = eq.AdaptiveAudit(WORLD.past(), QUESTION, eq.Costs())
        rng, against = np.random.default_rng(seed), [0.0]
        while audit.finding is None and len(against) < 4000:
            _label_somebody(audit, rng)
            if audit.finding is None:
                against.append(_least_evidence(audit))
        assert audit.evidence is not None
        goal = float(np.log(audit.evidence.refutation.fair_set.bar))
        axis.plot(range(len(against)), against, color=INK, alpha=0.6, linewidth=1)
        axis.plot([len(against)], [goal], "o", color=UNFAIR, markersize=4)
    axis.axhline(goal, color=UNFAIR, linewidth=1)
    axis.annotate(f"evidence {np.exp(goal):.0f}: refuted", (0, goal + 0.12), color=UNFAIR)
    axis.set_ylim(-2.5, goal + 0.8)
    axis.set_xlabel("labels")
    axis.set_ylabel("log evidence against the\nbest-standing FAIR world")
    return figure


def order() -> Figure:
    """Estimates of a rate of one half when failures show early, in two orders of counting."""
    figure = Figure(figsize=(7.2, 2.7), layout="constrained")
    axis = figure.subplots()
    rng = np.random.default_rng(1)
    people, wait = 1500, {1: 365, 0: 30}
    outcome = (rng.random(people) < 0.5).astype(int)
    asked = np.arange(people) // 4  # four overrides a day
    shown = asked + np.array([wait[y] for y in outcome.tolist()])
    days = np.arange(31, 700)
    arrived = [outcome[shown <= day].mean() for day in days]
    prefix = [_mean_of_prefix(outcome, shown <= day) for day in days]
    axis.plot(days, arrived, color=UNFAIR)
    axis.plot(days, prefix, color=FAIR)
    axis.axhline(0.5, color=INK, linestyle=":", linewidth=1)
    axis.annotate("in order of arrival", (120, 0.03), color=UNFAIR)
    axis.annotate("in order of request", (420, 0.56), color=FAIR)
    axis.set_ylim(0.0, 0.7)
    axis.set_xlabel("days (failures show after 30 days, successes after 365)")
    axis.set_ylabel("estimated share of successes")
    return figure


def _paint_regions(axis: Axes, *, faint: bool = False) -> None:
    r = np.linspace(0.0, 1.0, 101)
    curves = [RATES["true_positive_rate"].curve(*WORLD.cells[g].shares) for g in ("A", "B")]
    assert curves[0] is not None
    assert curves[1] is not None
    gap = np.abs(curves[0].value(r)[:, None] - curves[1].value(r)[None, :])
    levels = [0.0, QUESTION.gamma, QUESTION.threshold, 1.0]
    axis.contourf(
        r, r, gap, levels=levels, colors=[FAIR, GREY, UNFAIR], alpha=0.12 if faint else 0.3
    )
    axis.set_xlabel("r of group B")
    axis.set_ylabel("r of group A")
    axis.set_aspect("equal")


def _a_first(audit: eq.AdaptiveAudit) -> list[int]:
    return [audit.groups.index(group) for group in ("A", "B")]


def _paint_cells(axis: Axes, low: np.ndarray, high: np.ndarray, colour: str) -> None:
    if not len(low):
        return
    outlines = []
    for y, x in np.stack([low, high], axis=2).tolist():
        corners = [(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1]), (x[0], y[0])]
        outlines.append(Outline(np.round(corners, 3), closed=True))
    whole = Outline.make_compound_path(*outlines)
    style = {"edgecolor": colour, "linewidth": 0.4, "alpha": 0.7}
    axis.add_patch(PathPatch(whole, fill=False, rasterized=True, **style))  # thousands of cells


def _label_somebody(audit: eq.AdaptiveAudit, rng: np.random.Generator) -> int:
    group = "A" if rng.random() < 0.5 else "B"
    ticket = audit.ask(group, 0)
    if ticket.want is not eq.Want.LABEL:
        return 0
    audit.tell(ticket, int(rng.random() < WORLD.r[group]))
    return 1


def _least_evidence(audit: eq.AdaptiveAudit) -> float:
    assert audit.evidence is not None
    _, (_, _, missing) = _standing(audit)
    return float(np.log(audit.evidence.refutation.fair_set.bar) - missing.max())


def _standing(audit: eq.AdaptiveAudit) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return the boxes that stand, of the UNFAIR and of the FAIR set, and the nats each lacks."""
    evidence = audit.evidence
    assert evidence is not None
    refutation = evidence.refutation
    look = evidence.log.current_counts()
    found = []
    for cover in (*refutation.unfair_set.covers, *refutation.fair_set.covers):
        missing = refutation.missing_nats(cover, look)
        cells = cover.cells
        found.append((cells.low[cover.standing], cells.high[cover.standing], missing))
    return found


def _mean_of_prefix(outcome: np.ndarray, known: np.ndarray) -> float:
    length = len(known) if known.all() else int(np.argmin(known))
    return float(outcome[:length].mean()) if length >= 20 else float("nan")


if __name__ == "__main__":
    main(*sys.argv[1:])
