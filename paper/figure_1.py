"""Figure 1 of the paper: six panels in one picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pandas import DataFrame

from paper import black_box, mixture_runs
from paper.style import legend_below, new_figure
from paper.synthetic import find_world
from paper.work import where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["NEEDS", "draw"]

NEEDS = ("blackbox", "embedded", "synthetic")
PAIR = (0.0, 1.0)


def draw(found: Mapping[str, dict[str, DataFrame]]) -> Figure:
    """Draw estimated EOD (left) and cost (right): Adult, embedded Adult, synthetic people."""
    figure, panels = new_figure(3, 2, height=3.0)
    here = black_box.of(found["blackbox"], "adult", "all_LR")
    black_box.draw_estimate(panels[0][0], here)
    black_box.draw_cost(panels[0][1], here)
    truths = {
        "embedded": float(found["embedded"]["network"].eod.iloc[0]),
        "synthetic": find_world()[0].gap("equalized_odds"),
    }
    for row, (name, truth) in zip(panels[1:], truths.items(), strict=True):
        runs = where(found[name]["runs"], regime="as run")
        runs = runs[runs.audit.isin(("rs", "exp"))]
        mixture_runs.draw_estimate(row[0], runs, truth)
        mixture_runs.draw_cost(row[1], runs, found[name]["adaptive"], PAIR)
    titles = ("Adult, all_LR", "Adult, embedded", "synthetic")
    for row, title in zip(panels, titles, strict=True):
        row[1].set_title("")
        row[0].set_title(title, loc="left")
    legend_below(figure, [axes for row in panels for axes in row], columns=3)
    return figure
