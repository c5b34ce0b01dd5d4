"""Draw diagrams in the page itself: in the reader's colours, and never out of date."""

from __future__ import annotations

import html
import inspect
import re
import tomllib
from importlib import import_module
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]


class Diagram(SphinxDirective):
    """``{diagram} name``: one of the functions at the end of this file."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the drawing."""
        return [nodes.raw("", DIAGRAMS[self.arguments[0]](), format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the directive."""
    app.add_directive("diagram", Diagram)
    return {"parallel_read_safe": True}


def layers() -> str:
    """Stack the layers of the package as the contract of its imports has them."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = config["tool"]["importlinter"]["contracts"]
    rows = []
    for layer in contract["layers"]:
        names = re.findall(r"[\w.]+", layer)
        cells = "".join(f"<div><code>{name}</code> {_about(name)}</div>" for name in names)
        rows.append(f"<li>{cells}</li>")
    return f'<ol class="layers">{"".join(rows)}</ol>'


def loop() -> str:
    """Draw who talks to whom during an audit."""
    drawing = _Drawing(
        720,
        250,
        "A person arrives; the audit says what it wants; the outcome comes back late; the audit "
        "ends with a verdict",
    )
    drawing.box(20, 95, 150, 60, "your decisions", "who is approved")
    drawing.box(285, 20, 150, 60, "audit", "counts evidence")
    drawing.box(550, 95, 150, 60, "verdict", "with its interval")
    drawing.box(285, 170, 150, 60, "the world", "weeks or months")
    drawing.arrow((130, 95), (285, 50), "ask: group, decision", "end")
    drawing.arrow((285, 65), (165, 95), "ticket", "start", below=True)
    drawing.arrow((165, 155), (285, 200), "override a denial", "end", below=True)
    drawing.arrow((360, 170), (360, 80), "tell: outcome", "start")
    drawing.arrow((435, 50), (590, 95), "enough evidence", "start")
    return drawing.done()


def person() -> str:
    """Draw the states of a person in a ledger."""
    drawing = _Drawing(
        750,
        230,
        "States of a person in a ledger: skipped, scored only, or reserved; a reserved one is "
        "executed, withdrawn or overdue; then revealed or written off, and perhaps corrected",
    )
    drawing.box(10, 85, 110, 50, "arrives", "ask")
    drawing.box(170, 15, 130, 50, "RESERVED", "worst cost held")
    drawing.box(170, 85, 130, 50, "SCORE_ONLY", "features wanted")
    drawing.box(170, 155, 130, 50, "SKIPPED", "nothing wanted")
    drawing.box(360, 15, 130, 50, "EXECUTED", "carried out")
    drawing.box(360, 85, 130, 50, "OVERDUE", "hold kept")
    drawing.box(360, 155, 130, 50, "WITHDRAWN", "hold released")
    drawing.box(590, 15, 140, 50, "CORRECTED", "another outcome")
    drawing.box(590, 85, 140, 50, "REVEALED", "outcome known")
    drawing.box(590, 155, 140, 50, "WRITTEN_OFF", "worst cost posted")
    for start, end in (
        ((120, 98), (170, 52)), ((120, 110), (170, 110)), ((120, 122), (170, 168)),
        ((300, 40), (360, 40)), ((300, 52), (360, 100)), ((300, 58), (360, 170)),
        ((425, 65), (425, 85)), ((490, 40), (590, 98)), ((490, 110), (590, 110)),
        ((490, 122), (590, 170)), ((660, 155), (660, 135)), ((660, 85), (660, 65)),
    ):  # fmt: skip
        drawing.arrow(start, end)
    return drawing.done()


DIAGRAMS = {"layers": layers, "loop": loop, "person": person}


class _Drawing:
    """Boxes and arrows that take their colours from the page."""

    def __init__(self, width: int, height: int, words: str) -> None:
        self.parts = [
            f'<div class="diagram"><svg viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{html.escape(words)}" style="min-width:{width * 0.8:g}px">'
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" class="head"/></marker></defs>'
        ]

    def box(self, x: int, y: int, width: int, height: int, title: str, words: str) -> None:
        middle = x + width / 2
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="7"/>'
            f'<text x="{middle}" y="{y + height / 2 - 3}" class="title">{html.escape(title)}</text>'
            f'<text x="{middle}" y="{y + height / 2 + 15}">{html.escape(words)}</text>'
        )

    def arrow(
        self,
        start: tuple[int, int],
        end: tuple[int, int],
        words: str = "",
        side: str = "start",
        *,
        below: bool = False,
    ) -> None:
        x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
        shift = -10 if side == "end" else 10
        self.parts.append(
            f'<path d="M{start[0]} {start[1]}L{end[0]} {end[1]}" marker-end="url(#head)"/>'
            f'<text x="{x + shift}" y="{y + (16 if below else -6)}" class="{side}">'
            f"{html.escape(words)}</text>"
        )

    def done(self) -> str:
        return "".join([*self.parts, "</svg></div>"])


def _about(module: str) -> str:
    text = inspect.getdoc(import_module(module)) or ""
    return html.escape(text.partition("\n")[0]).replace("``", "")
