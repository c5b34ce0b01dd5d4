"""Pictures of the black-box experiments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from equipoise.paper.classifiers import CLASSIFIERS
from equipoise.paper.kept_work import Record, real
from equipoise.paper.style import AUDITS, TRUTH, band, legend_below, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_dataset", "draw_ratios"]


def draw_dataset(records: Sequence[Record], dataset: str) -> Figure:
    """Draw cost against tau and estimated EOD against labels, a row per classifier."""
    figure, panels = new_figure(len(CLASSIFIERS), 2, height=2.75)
    for row, classifier in zip(panels, CLASSIFIERS, strict=True):
        here = [r for r in records if r["dataset"] == dataset and r["classifier"] == classifier]
        _cost(row[0], here, classifier)
        _estimate(row[1], here, classifier)
    legend_below(figure, [axes for row in panels for axes in row], columns=3)
    return figure


def draw_ratios(records: Sequence[Record], datasets: Sequence[str]) -> Figure:
    """Draw the cost ratio against tau, a panel per table."""
    figure, panels = new_figure(1, len(datasets), width=4.6 * len(datasets), height=3.6)
    looks = zip(
        CLASSIFIERS, ("#000000", "#E69F00", "#0072B2", "#009E73", "#CC79A7"), "os^vD", strict=True
    )
    marks = {c: (colour, marker) for c, colour, marker in looks}
    for axes, dataset in zip(panels[0], datasets, strict=True):
        for classifier, (colour, marker) in marks.items():
            here = [r for r in records if r["dataset"] == dataset and r["classifier"] == classifier]
            rows = [r for r in here if r["kind"] == "ratio"]
            (truth,) = (r for r in here if r["kind"] == "truth")
            axes.axhline(real(truth, "ratio_analytic"), color=colour, lw=1, alpha=0.7)
            axes.errorbar(
                [real(r, "tau") for r in rows],
                [real(r, "ratio") for r in rows],
                yerr=[2 * real(r, "ratio_se") for r in rows],
                color=colour,
                marker=marker,
                linestyle="none",
                capsize=2,
                label=classifier,
            )
        axes.set(
            title={"adult": "Adult", "law": "Law School"}[dataset],
            xscale="log",
            ylim=(0, 1),
            xlabel="tau (stopping threshold)",
            ylabel="cost of RS-Audit / cost of Baseline",
        )
    legend_below(figure, panels[0], columns=5)
    return figure


def _cost(axes: Axes, here: Sequence[Record], classifier: str) -> None:
    for audit in ("baseline", "rs"):
        many = [r for r in here if r["kind"] == "many" and r["audit"] == audit]
        taus = [real(r, "tau") for r in many]
        costs, spreads = ([real(r, key) for r in many] for key in ("cost", "cost_sd"))
        band(axes, audit, taus, costs, spreads)
        _five(axes, here, audit, "tau", "cost")
    (adaptive,) = (r for r in here if r["kind"] == "adaptive")
    name, colour, _, dashes = AUDITS["adaptive"]
    axes.axhline(real(adaptive, "cost"), color=colour, linestyle=dashes, label=f"{name} (no tau)")
    axes.set_title(classifier, loc="left")
    axes.set(xlabel="tau (stopping threshold)", ylabel="cost (failed overrides)", xlim=(0, 1020))
    axes.set_ylim(bottom=-0.03 * axes.get_ylim()[1])


def _estimate(axes: Axes, here: Sequence[Record], classifier: str) -> None:
    (truth,) = (r for r in here if r["kind"] == "truth")
    for audit in ("baseline", "rs"):
        many = [r for r in here if r["kind"] == "many" and r["audit"] == audit]
        labels = [real(r, "labels") for r in many]
        guesses, spreads = ([real(r, key) for r in many] for key in ("estimate", "estimate_sd"))
        band(axes, audit, labels, guesses, spreads)
        _five(axes, here, audit, "labels", "estimate")
    axes.axhline(real(truth, "eod"), color=TRUTH, lw=1.5, label="true EOD")
    (adaptive,) = (r for r in here if r["kind"] == "adaptive")
    asked = real(adaptive, "labels")
    effort = "no label" if asked == 0 else f"{asked:,.0f} labels"
    axes.set_title(
        f"adaptive audit: {adaptive['verdict']}, {effort}",
        loc="right",
        fontsize=8.5,
        fontweight="normal",
        color=AUDITS["adaptive"][1],
    )
    settled = [r for r in here if r["kind"] == "many" and real(r, "tau") >= 10]
    top = max(real(r, "estimate") + real(r, "estimate_sd") for r in settled)
    axes.set_title(classifier, loc="left")
    axes.set(
        xscale="log",
        xlabel="labels requested (log scale)",
        ylabel="estimated EOD",
        ylim=(0, max(top, 1.25 * real(truth, "eod"))),
    )


def _five(axes: Axes, here: Sequence[Record], audit: str, x: str, y: str) -> None:
    runs = [r for r in here if r["kind"] == "run" and r["audit"] == audit]
    axes.plot(
        [real(r, x) for r in runs],
        [real(r, y) for r in runs],
        linestyle="none",
        marker=".",
        ms=3,
        color=AUDITS[audit][1],
        alpha=0.45,
    )
