"""Pictures of the black-box experiments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paper.blackbox import QUESTION, Adaptive, Audited, Means, Ratio, Run, Truth
from paper.classifiers import CLASSIFIERS
from paper.kept_work import of_kind
from paper.style import AUDITS, TRUTH, band, legend_below, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["TITLES", "draw_dataset", "draw_ratios"]

TITLES = {"adult": "Adult", "law": "Law School"}
COLOURS, MARKERS = ("#000000", "#E69F00", "#0072B2", "#009E73", "#CC79A7"), "os^vD"
LOOKS = {c: look for c, *look in zip(CLASSIFIERS, COLOURS, MARKERS, strict=True)}


def draw_dataset(audited: Sequence[Audited], dataset: str) -> Figure:
    """Draw cost against tau and estimated EOD against labels, a row per classifier."""
    truths = [t for t in of_kind(audited, Truth) if t.dataset == dataset]
    figure, panels = new_figure(len(truths), 2, height=2.75)
    for row, truth in zip(panels, truths, strict=True):
        name = dataset, truth.classifier
        here = [r for r in audited if (r.dataset, r.classifier) == name]
        (adaptive,) = (r for r in of_kind(here, Adaptive) if r.gamma == QUESTION.gamma)
        _cost(row[0], here, adaptive)
        _estimate(row[1], here, adaptive, truth)
    legend_below(figure, [axes for row in panels for axes in row], columns=3)
    return figure


def draw_ratios(audited: Sequence[Audited], datasets: Sequence[str]) -> Figure:
    """Draw the cost ratio against tau, a panel per table."""
    figure, panels = new_figure(1, len(datasets), width=4.6 * len(datasets), height=3.6)
    for axes, dataset in zip(panels[0], datasets, strict=True):
        here = [r for r in audited if r.dataset == dataset]
        for truth in of_kind(here, Truth):
            rows = [r for r in of_kind(here, Ratio) if r.classifier == truth.classifier]
            colour, marker = LOOKS[truth.classifier]
            axes.axhline(truth.rs / truth.baseline, color=colour, lw=1, alpha=0.7)
            axes.errorbar(
                [r.tau for r in rows],
                [r.ratio for r in rows],
                yerr=[2 * r.ratio_se for r in rows],
                color=colour,
                marker=marker,
                linestyle="none",
                capsize=2,
                label=truth.classifier,
            )
        axes.set(
            title=TITLES[dataset],
            xscale="log",
            ylim=(0, 1),
            xlabel="tau (stopping threshold)",
            ylabel="cost of RS-Audit / cost of Baseline",
        )
    legend_below(figure, panels[0], columns=5)
    return figure


def _cost(axes: Axes, here: Sequence[Audited], adaptive: Adaptive) -> None:
    for audit in ("baseline", "rs"):
        many = [r for r in of_kind(here, Means) if r.audit == audit]
        taus = [r.tau for r in many]
        band(axes, audit, taus, [r.cost for r in many], [r.cost_sd for r in many])
        runs = [r for r in of_kind(here, Run) if r.audit == audit]
        _five(axes, audit, [r.tau for r in runs], [r.cost for r in runs])
    name, colour, _, dashes = AUDITS["adaptive"]
    axes.axhline(adaptive.cost, color=colour, linestyle=dashes, label=f"{name} (no tau)")
    axes.set_title(adaptive.classifier, loc="left")
    axes.set(xlabel="tau (stopping threshold)", ylabel="cost (failed overrides)", xlim=(0, 1020))
    axes.set_ylim(bottom=-0.03 * axes.get_ylim()[1])


def _estimate(axes: Axes, here: Sequence[Audited], adaptive: Adaptive, truth: Truth) -> None:
    for audit in ("baseline", "rs"):
        many = [r for r in of_kind(here, Means) if r.audit == audit]
        labels = [r.labels for r in many]
        band(axes, audit, labels, [r.estimate for r in many], [r.estimate_sd for r in many])
        runs = [r for r in of_kind(here, Run) if r.audit == audit]
        _five(axes, audit, [r.labels for r in runs], [r.estimate for r in runs])
    axes.axhline(truth.eod, color=TRUTH, lw=1.5, label="true EOD")
    effort = "no label" if adaptive.labels == 0 else f"{adaptive.labels:,.0f} labels"
    axes.set_title(
        f"adaptive audit: {adaptive.verdict}, {effort}",
        loc="right",
        fontsize=8.5,
        fontweight="normal",
        color=AUDITS["adaptive"][1],
    )
    settled = [r for r in of_kind(here, Means) if r.tau >= 10]
    top = max(r.estimate + r.estimate_sd for r in settled)
    axes.set_title(truth.classifier, loc="left")
    axes.set(
        xscale="log",
        xlabel="labels requested (log scale)",
        ylabel="estimated EOD",
        ylim=(0, max(top, 1.25 * truth.eod)),
    )


def _five(axes: Axes, audit: str, x: Sequence[float], y: Sequence[float]) -> None:
    colour = AUDITS[audit][1]
    axes.plot(x, y, linestyle="none", marker=".", ms=3, color=colour, alpha=0.45)
