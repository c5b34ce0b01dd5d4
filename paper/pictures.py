"""How the pictures look: one style, colours that everybody can tell apart, a mark per audit."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from pandas import DataFrame

from equipoise.display import plot_style
from paper.page import where

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TRUTH = "#009E73"

# Okabe and Ito's palette; shape and dash tell the lines apart without colour.
Dashes: TypeAlias = str | tuple[int, tuple[int, ...]]

AUDITS: dict[str, tuple[str, str, str, Dashes]] = {
    "baseline": ("Baseline", "#D55E00", "s", "-."),
    "rs": ("RS-Audit", "#000000", "o", "-"),
    "exp": ("Exp-Audit", "#0072B2", "^", "--"),
    "adaptive": ("adaptive audit", "#CC79A7", "D", (0, (4, 1, 1, 1, 1, 1))),
    "bound": ("lower bound C*", "#009E73", "", "-"),
}

NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))


def new_figure(
    rows: int, columns: int, *, width: float = 9.0, height: float = 3.2
) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure with a grid of panels; ``height`` is that of a row, in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False).tolist()


def to_svg(draw: Callable[[], Figure]) -> str:
    """Draw a figure in the product's style and return it as SVG text."""
    with plot_style():
        return small_svg(draw())


def small_svg(figure: Figure) -> str:
    """Return a figure as SVG text, the same for the same data, and small."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none"}):  # text, not outlines
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata=NO_METADATA, dpi=160)
    text = out.getvalue()
    text = re.sub(r"<!--.*?-->", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r"<[^>]*>", _rounded, " ".join(text.split()))
    return text.replace("> <", "><").replace('<g id="', '\n<g id="') + "\n"


def _rounded(tag: re.Match[str]) -> str:
    """Round coordinates to a hundredth of a point; what stands between tags is for people."""
    return re.sub(r"(\.\d\d)\d+", r"\1", tag[0])


def band(axes: Axes, audit: str, rows: DataFrame, x: str, y: str) -> None:
    """Draw an audit's ``y`` against ``x``, and a band of ± ``{y}_sd`` around it."""
    name, colour, marker, dashes = AUDITS[audit]
    rows = where(rows, audit=audit)
    width = rows[f"{y}_sd"]
    axes.fill_between(rows[x], rows[y] - width, rows[y] + width, color=colour, alpha=0.18, lw=0)
    axes.plot(rows[x], rows[y], color=colour, marker=marker, linestyle=dashes, label=name)


def legend_below(figure: Figure, columns: int = 3) -> None:
    """Put one legend for all panels under them, where it covers nothing; drop minor ticks."""
    found: dict[str, Artist] = {}
    for axes in figure.axes:
        axes.minorticks_off()
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=columns)
