"""The picture of a plan: what the adaptive audit costs, and how that moves with the question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from equipoise.planning import Plan, Variation

__all__ = ["draw_plan", "require_drawable"]

KINDS = (".svg", ".png", ".pdf")
INK, RANGE, HERE = "#22313f", "#9db4c0", "#c8553d"
WORDS = {
    "gamma": "gamma: tolerated difference",
    "epsilon": "epsilon: width of the grey zone",
    "delta": "delta: chance of a wrong answer",
}


def require_drawable(path: Path) -> None:
    """Raise unless a picture can be written there, before any work is done for it."""
    if path.suffix not in KINDS:
        raise InvalidInput(f"'--picture' must end in {', '.join(KINDS)}; got {path.name!r}")
    if not path.absolute().parent.is_dir():
        raise InvalidInput(f"'--picture' needs an existing folder; got {path}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtra("matplotlib", extra="report", purpose="pictures") from None


def draw_plan(made: Plan, variations: Sequence[Variation], path: Path) -> None:
    """Draw the cost of the adaptive audit against gamma, epsilon and delta."""
    require_drawable(path)
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(one.name for one in variations))
    figure = Figure(figsize=(3.2 * len(names), 3.4), layout="constrained")
    axes = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axis, name in zip(axes, names, strict=True):
        _panel(axis, [one for one in variations if one.name == name], getattr(made.question, name))
        axis.set_xlabel(WORDS[name])
    axes[0].set_ylabel("cost of the adaptive audit")
    figure.suptitle(
        "Dots: half of the rehearsed audits cost less. Bars: eight in ten. Red: your question.",
        fontsize=9,
        color=INK,
    )
    figure.savefig(path)


def _panel(axis: Axes, variations: Sequence[Variation], here: float) -> None:
    shown = [(at, one) for at, one in enumerate(variations) if one.seen is not None]
    known = [q.value for _, one in shown if one.seen for q in one.seen.cost.values() if q.value]
    top = 3.0 * max(known, default=1.0)  # where a cost that no rehearsal reached is drawn
    for at, one in shown:
        assert one.seen is not None
        low, middle, high = (
            top if q.value is None else max(q.value, 0.5) for q in one.seen.cost.values()
        )
        colour = HERE if one.value == here else INK
        axis.plot([at, at], [low, high], color=RANGE, linewidth=9, solid_capstyle="butt", zorder=1)
        axis.plot([at], [middle], "o", color=colour, zorder=2)
        axis.annotate(
            f"{middle:,.0f}" if middle < top else "no end",
            (at, middle),
            xytext=(9, -3),
            textcoords="offset points",
            fontsize=8,
            color=colour,
        )
    axis.set_yscale("log")
    axis.set_xticks(range(len(variations)), [f"{one.value:g}" for one in variations])
    axis.set_xlim(-0.5, len(variations) - 0.3)
    axis.spines[["top", "right"]].set_visible(False)
