"""Figure 1 of the paper: six panels in one picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from paper import blackbox, mixture_runs
from paper.page import Found, where
from paper.pictures import legend_below, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEEDS = ("blackbox", "embedded", "synthetic")


def draw(found: Mapping[str, Found]) -> Figure:
    """Draw estimated EOD (left) and cost (right): Adult, embedded Adult, synthetic people."""
    figure, panels = new_figure(3, 2, height=3.0)
    here = blackbox.of(found["blackbox"], "adult", "all_LR")
    blackbox.draw_estimate(panels[0][0], here)
    blackbox.draw_cost(panels[0][1], here)
    for row, name in zip(panels[1:], ("embedded", "synthetic"), strict=True):
        tables = found[name]
        runs = where(tables["runs"], regime="as run")
        mixture_runs.draw_estimate(row[0], runs, tables["world"].EOD.iloc[0])
        mixture_runs.draw_cost(row[1], runs, tables["adaptive"], (0.0, 1.0))
    titles = ("Adult, all_LR", "Adult, embedded", "synthetic")
    for row, title in zip(panels, titles, strict=True):
        row[1].set_title("")
        row[0].set_title(title, loc="left")
    legend_below(figure, [axes for row in panels for axes in row], columns=3)
    return figure
