"""Draw the picture at the top of the README: ``python -m docs.preview``.

Three panels tell the story of ``equipoise demo`` from its own figures: what the lender has, what
usual shortcuts answer, what Equipoise answers. There is a wide picture and a narrow one for
telephones. Both follow the reader's light or dark mode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from equipoise.cli.demo import Story, _live_through
from equipoise.display import format_hundredths

HERE = Path(__file__).parent / "pictures"
SHOWN_GROUPS = ("Asian", "Black")  # the true gap lies between these two
DOTS_PER_ROW = 20
MAX_GAP = 0.5  # at the right end of the scale
TOOLKITS = ("fairlearn", "Aequitas", "AIF360")  # measured: docs/understand/comparison.md

STYLE = """
  text { font-family: system-ui, 'Segoe UI', 'DejaVu Sans', Arial, sans-serif; fill: #1f2933; }
  .card { fill: #ffffff; } .quiet { fill: #52606d; } .line { stroke: #d5dbe1; }
  .repaid { fill: #24588f; } .failed { fill: #d98e2b; }
  .denied { fill: none; stroke: #7b8794; stroke-width: 1.4; }
  .verdict { fill: #b0440d; } .fair { fill: #d9efe6; } .grey { fill: #e6e9ec; }
  .unfair { fill: #f7e3d6; } .range { fill: #24588f; } .truth { stroke: #1f2933; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e8edf2; } .card { fill: #161b22; } .quiet { fill: #a9b4c0; }
    .line { stroke: #39424d; } .repaid, .range { fill: #6ea8e5; } .failed { fill: #e8b15c; }
    .denied { stroke: #8c98a5; } .verdict { fill: #ff9a62; } .fair { fill: #1d3d31; }
    .grey { fill: #333b44; } .unfair { fill: #4a2f20; } .truth { stroke: #e8edf2; }
  }
"""


@dataclass(frozen=True)
class Panel:
    """Where a panel begins, and how large its texts are."""

    x: float
    y: float
    width: float
    size: float  # of ordinary text, in pixels


def main() -> None:
    """Draw both pictures."""
    for name, picture in pictures(_live_through(lambda share: None)).items():
        HERE.joinpath(name).write_text(picture, encoding="utf-8")


def pictures(story: Story) -> dict[str, str]:
    """Return both pictures by the names of their files."""
    return {"preview.svg": draw_wide(story), "preview-narrow.svg": draw_narrow(story)}


def draw_wide(story: Story) -> str:
    """Return the picture with its panels side by side, 1280 by 530."""
    parts = [
        write(40, 62, f"Is the lender fair? {describe_missing(story)}", 36, bold=True),
        write(
            40, 98, "The lender knows who repaid only among the people it approved.", 20, "quiet"
        ),
        *draw_data(story, Panel(40, 150, 380, 18)),
        rule(430, 130, 500),
        *draw_shortcuts(Panel(450, 150, 380, 18)),
        rule(840, 130, 500),
        *draw_answer(story, Panel(860, 150, 380, 18)),
    ]
    return assemble(1280, 530, parts)


def draw_narrow(story: Story) -> str:
    """Return the picture with its panels one below the other, 390 wide."""
    parts = [
        write(20, 40, "Is the lender fair?", 18, bold=True),
        write(20, 66, describe_missing(story), 18, bold=True),
        *draw_data(story, Panel(20, 108, 350, 15)),
        *draw_shortcuts(Panel(20, 425, 350, 15)),
        *draw_answer(story, Panel(20, 690, 350, 15)),
    ]
    return assemble(390, 990, parts)


def describe_missing(story: Story) -> str:
    """Say how many outcomes the lender does not know."""
    return f"{denied_share(story):.0%} of the outcomes are missing."


def denied_share(story: Story) -> float:
    """Return the share of applicants who were denied."""
    cells = story.history.cells
    n_approved = sum(
        counts.approved_positive + counts.approved_negative for counts in cells.values()
    )
    return 1.0 - n_approved / cells.total


def draw_data(story: Story, panel: Panel) -> list[str]:
    """Draw a hundred people of two groups as dots."""
    parts = [heading(panel, "What the lender has")]
    step = panel.width / (DOTS_PER_ROW + 1)
    y = panel.y + 2.0 * panel.size
    for group in SHOWN_GROUPS:
        counts = story.history.cells[group]
        parts.append(write(panel.x, y, f"{group} applicants, per 100", panel.size, "quiet"))
        n_repaid = round(100.0 * counts.approved_positive / counts.total)
        n_failed = round(100.0 * counts.approved_negative / counts.total)
        kinds = ["repaid"] * n_repaid + ["failed"] * n_failed
        kinds += ["denied"] * (100 - len(kinds))
        for number, kind in enumerate(kinds):
            row, column = divmod(number, DOTS_PER_ROW)
            dot_x = panel.x + (column + 0.4) * step
            dot_y = y + (row + 1) * step
            parts.append(f'<circle class="{kind}" cx="{dot_x:.1f}" cy="{dot_y:.1f}" '
                         f'r="{0.34 * step:.1f}"/>')  # fmt: skip
        y += 7.1 * step
    x = panel.x
    for kind, label in (("repaid", "repaid"), ("failed", "failed"), ("denied", "denied: unknown")):
        parts.append(f'<circle class="{kind}" cx="{x + 6:.0f}" cy="{y - 5:.0f}" r="6"/>')
        parts.append(write(x + 18, y, label, panel.size))
        x += 0.5 * panel.size * (len(label) + 4.0)
    return parts


def draw_shortcuts(panel: Panel) -> list[str]:
    """Say what a table answers in which denied people are dropped or counted as failures."""
    size = panel.size
    y = panel.y + 4.6 * size
    return [
        heading(panel, "What the usual shortcuts say"),
        write(panel.x, y, "0.0 points", 3.2 * size, "quiet", bold=True),
        write(panel.x, y + 2.2 * size, "if denied people are dropped", size),
        write(panel.x, y + 3.6 * size, "or counted as failures.", size),
        write(panel.x, y + 5.6 * size, f"{', '.join(TOOLKITS)}: no warning", size),
        write(panel.x, y + 7.6 * size, "Both shortcuts report 0 for every", size, "quiet"),
        write(panel.x, y + 9.0 * size, "lender, fair or unfair.", size, "quiet"),
    ]


def draw_answer(story: Story, panel: Panel) -> list[str]:
    """Show the verdict, what it took, and the range of the gap with the truth marked."""
    audit = story.audit
    size = panel.size
    y = panel.y + 4.2 * size
    overrides = f"after {audit.labels:,} denials were overridden"
    failed = f"({audit.cost:,.0f} of these people did not repay)."
    promise = f"is at most {audit.question.delta:.0%}."
    return [
        heading(panel, "What Equipoise says"),
        write(panel.x, y, str(audit.verdict), 3.0 * size, "verdict", bold=True),
        write(panel.x, y + 2.0 * size, overrides, size),
        write(panel.x, y + 3.4 * size, failed, size),
        write(panel.x, y + 5.2 * size, "The chance of a wrong verdict", size, bold=True),
        write(panel.x, y + 6.6 * size, promise, size, bold=True),
        *draw_scale(story, Panel(panel.x, y + 8.8 * size, panel.width, size)),
    ]


def draw_scale(story: Story, panel: Panel) -> list[str]:
    """Draw the three zones, the established range and the true gap."""

    def place(gap: float) -> float:
        return panel.x + panel.width * min(gap, MAX_GAP) / MAX_GAP

    question = story.audit.question
    height = 2.6 * panel.size
    zones = [(0.0, question.gamma, "fair"), (question.gamma, question.threshold, "grey"),
             (question.threshold, MAX_GAP, "unfair")]  # fmt: skip
    parts = [
        box(kind, place(low), panel.y, place(high) - place(low), height)
        for low, high, kind in zones
    ]
    truth = place(story.gap)
    parts += draw_range(story, place, panel)
    bottom = panel.y + height
    parts.append(
        f'<line class="truth" x1="{truth:.1f}" x2="{truth:.1f}" y1="{panel.y:.1f}" '
        f'y2="{bottom:.1f}" stroke-width="2" stroke-dasharray="4 3"/>'
    )
    zone_y = panel.y - 0.4 * panel.size
    parts.append(write(place(0.0), zone_y, "fair", 0.8 * panel.size, "quiet"))
    parts.append(write(place(question.threshold), zone_y, "unfair", 0.8 * panel.size, "quiet"))
    size = 0.85 * panel.size
    label_y = bottom + 1.2 * panel.size
    truth_x = truth - 2.6 * panel.size
    highest = f"{100.0 * MAX_GAP:.0f} points"
    parts.append(write(panel.x, label_y, "0", size, "quiet"))
    parts.append(write(truth_x, label_y, f"true gap {100.0 * story.gap:.1f}", size))
    parts.append(write(panel.x + panel.width, label_y, highest, size, "quiet", is_end=True))
    between = f"between {SHOWN_GROUPS[0]} and {SHOWN_GROUPS[1]} applicants"
    parts.append(write(truth_x, label_y + panel.size, between, size))
    zone = (
        f"Grey, {100.0 * question.gamma:.0f} to {100.0 * question.threshold:.0f}: "
        "either verdict counts as right."
    )
    parts.append(write(panel.x, label_y + 2.2 * panel.size, zone, size, "quiet"))
    return parts


def draw_range(story: Story, place: Callable[[float], float], panel: Panel) -> list[str]:
    """Draw the established range as a bar that names its ends, right of the true gap."""
    lower, upper = story.audit.lower, story.audit.upper
    top = panel.y + 0.65 * panel.size
    label_x = place(story.gap) + 0.5 * panel.size
    label = f"range {format_hundredths(lower, upper)}"
    return [
        box("range", place(lower), top, place(upper) - place(lower), 1.3 * panel.size),
        write(label_x, top + 0.95 * panel.size, label, 0.85 * panel.size, "card"),
    ]


def heading(panel: Panel, text: str) -> str:
    """Return a panel's title."""
    return write(panel.x, panel.y, text, 1.25 * panel.size, bold=True)


def write(
    x: float,
    y: float,
    text: str,
    size: float,
    kind: str = "",
    *,
    bold: bool = False,
    is_end: bool = False,
) -> str:
    """Return a line of text that begins at a point, or ends there."""
    weight = ' font-weight="700"' if bold else ""
    anchor = ' text-anchor="end"' if is_end else ""
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size:.1f}"'
    return f'<text class="{kind}" {place}{anchor}{weight}>{escape(text)}</text>'


def box(kind: str, x: float, y: float, width: float, height: float) -> str:
    """Return a filled rectangle."""
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
    )


def rule(x: float, top: float, bottom: float) -> str:
    """Return a vertical line between panels."""
    return f'<line class="line" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}" stroke-width="2"/>'


def assemble(width: int, height: int, parts: list[str]) -> str:
    """Return the whole picture."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
    title = (
        "<title>A lender knows outcomes of approved applicants only. The usual shortcuts "
        "report a gap of 0.0 points. Equipoise answers UNFAIR, with the range of the gap.</title>"
    )
    card = f'<rect class="card" width="{width}" height="{height}" rx="12"/>'
    return "\n".join([head, title, f"<style>{STYLE}</style>", card, *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    main()
