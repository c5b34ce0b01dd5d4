"""Pictures of the mixture-model experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from paper.kept_work import Result, of_kind
from paper.mixture_runs import AdaptiveRuns, runs_of
from paper.style import AUDITS, TRUTH, band, legend_below, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Line", "Pair", "draw_costs", "draw_estimates"]

Pair = tuple[float, float]
Line = Sequence[tuple[float, float]]


def draw_costs(
    results: Sequence[Result],
    regime: str,
    pairs: Sequence[Pair],
    *,
    published: Mapping[Pair, Mapping[str, Line]] | None = None,
    bounds: Mapping[Pair, Line] | None = None,
) -> Figure:
    """Draw cost against epsilon, a panel per pair of costs.

    ``published`` maps a pair to audit -> (epsilon, cost) as the authors' code books it, ``bounds``
    to (epsilon, C*).
    """
    figure, panels = new_figure(-(-len(pairs) // 2), 2, height=3.3)
    flat = [axes for row in panels for axes in row]
    for axes, pair in zip(flat, pairs, strict=False):
        for audit in ("rs", "exp"):
            rows = runs_of(results, regime, audit)
            _band(axes, audit, [(r.epsilon, r.cost(*pair)) for r in rows])
            if line := (published or {}).get(pair, {}).get(audit):
                name, colour, *_ = AUDITS[audit]
                label = f"{name} as the authors' code books it"
                x, y = zip(*line, strict=True)
                axes.plot(x, y, color=colour, linestyle=(0, (1, 2)), lw=1.2, label=label)
        _adaptive(axes, results, pair)
        if bound := (bounds or {}).get(pair):
            name, colour, _, dashes = AUDITS["bound"]
            axes.plot(*zip(*bound, strict=True), color=colour, linestyle=dashes, lw=1.4, label=name)
        axes.set(
            title=f"c_feat = {pair[0]:g}, c_lab = {pair[1]:g}",
            xscale="log",
            yscale="log",
            xlabel="epsilon (log scale)",
            ylabel="cost (log scale)",
        )
    for axes in flat[len(pairs) :]:
        axes.set_visible(False)
    legend_below(figure, flat[: len(pairs)], columns=2)
    return figure


def draw_estimates(results: Sequence[Result], truth: float) -> Figure:
    """Draw the estimated EOD against epsilon, a panel per regime, the true value marked."""
    titles = {"as run": "as run, with caps", "without caps": "without caps"}
    figure, panels = new_figure(1, len(titles), height=3.8)
    for axes, (regime, title) in zip(panels[0], titles.items(), strict=True):
        for audit in ("rs", "exp", "exp sgd"):
            if rows := runs_of(results, regime, audit):
                _band(axes, audit, [(r.epsilon, r.estimate) for r in rows])
        axes.axhline(truth, color=TRUTH, lw=1.5, label="true EOD")
        axes.set(
            title=title,
            xscale="log",
            xlabel="epsilon (log scale)",
            ylabel="estimated EOD",
            ylim=(0, None),
        )
    legend_below(figure, panels[0], columns=3)
    return figure


def _band(axes: Axes, audit: str, points: Line) -> None:
    """Draw the mean over the runs at every epsilon, and their spread."""
    epsilons = sorted({epsilon for epsilon, _ in points})
    values = [[y for x, y in points if x == epsilon] for epsilon in epsilons]
    band(axes, audit, epsilons, [np.mean(v) for v in values], [np.std(v, ddof=1) for v in values])


def _adaptive(axes: Axes, results: Sequence[Result], pair: Pair) -> None:
    rows = [r for r in of_kind(results, AdaptiveRuns) if (r.feature_cost, r.label_cost) == pair]
    rows = [r for r in rows if r.cost > 0.0]  # what is free has no place on a log scale
    if rows:
        x = [r.epsilon for r in rows]
        band(axes, "adaptive", x, [r.cost for r in rows], [r.cost_sd for r in rows])
