"""Pictures of the mixture-model experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise.paper.kept_work import Record, real
from equipoise.paper.mixture_runs import cost_of
from equipoise.paper.style import AUDITS, TRUTH, band, legend_below, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_costs", "draw_estimates"]

Pairs = Sequence[tuple[float, float]]


def draw_costs(
    records: Sequence[Record],
    regime: str,
    pairs: Pairs,
    *,
    published: Mapping[tuple[float, float], Mapping[str, Sequence[tuple[float, float]]]],
    bounds: Sequence[Record] = (),
) -> Figure:
    """Draw cost against epsilon, a panel per pair of costs.

    ``published`` maps a pair to audit -> (epsilon, cost) as the authors' code books it.
    """
    columns = 2
    figure, panels = new_figure(-(-len(pairs) // columns), columns, height=3.3)
    flat = [axes for row in panels for axes in row]
    for axes, pair in zip(flat, pairs, strict=False):
        for audit in ("rs", "exp"):
            rows = _runs(records, regime, audit)
            _line(axes, audit, rows, pair)
            if points := published.get(pair, {}).get(audit):
                name, colour, *_ = AUDITS[audit]
                label = f"{name} as the authors' code books it"
                x, y = ([point[i] for point in points] for i in (0, 1))
                axes.plot(x, y, color=colour, lw=1.2, linestyle=(0, (1, 2)), label=label)
        _adaptive(axes, records, pair)
        here = [r for r in bounds if (r["feature_cost"], r["label_cost"]) == pair]
        if here:
            name, colour, _, dashes = AUDITS["bound"]
            x, y = ([real(r, key) for r in here] for key in ("epsilon", "bound"))
            axes.plot(x, y, color=colour, linestyle=dashes, lw=1.4, label=name)
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


def draw_estimates(
    records: Sequence[Record], regimes: Sequence[str], truth: float, titles: Sequence[str]
) -> Figure:
    """Draw the estimated EOD against epsilon, a panel per regime, the true value marked."""
    figure, panels = new_figure(1, len(regimes), height=3.8)
    for axes, regime, title in zip(panels[0], regimes, titles, strict=True):
        for audit in ("rs", "exp", "exp sgd"):
            rows = _runs(records, regime, audit)
            epsilons = sorted({real(r, "epsilon") for r in rows})
            runs = [[real(r, "estimate") for r in rows if r["epsilon"] == e] for e in epsilons]
            means, spreads = [np.mean(x) for x in runs], [np.std(x, ddof=1) for x in runs]
            if rows:
                band(axes, audit, epsilons, means, spreads)
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


def _line(axes: Axes, audit: str, rows: Sequence[Record], pair: tuple[float, float]) -> None:
    epsilons = sorted({real(r, "epsilon") for r in rows})
    costs = [[cost_of(r, *pair) for r in rows if r["epsilon"] == e] for e in epsilons]
    band(axes, audit, epsilons, [np.mean(c) for c in costs], [np.std(c, ddof=1) for c in costs])


def _adaptive(axes: Axes, records: Sequence[Record], pair: tuple[float, float]) -> None:
    rows = [r for r in records if r["kind"] == "adaptive"]
    rows = [r for r in rows if (r["feature_cost"], r["label_cost"]) == pair]
    rows = [r for r in rows if real(r, "cost") > 0.0]  # what is free has no place on a log scale
    if rows:
        x, costs, spreads = ([real(r, k) for r in rows] for k in ("epsilon", "cost", "cost_sd"))
        band(axes, "adaptive", x, costs, spreads)


def _runs(records: Sequence[Record], regime: str, audit: str) -> list[Record]:
    runs = [r for r in records if r["kind"] == "run"]
    return [r for r in runs if r["regime"] == regime and r["audit"] == audit]
