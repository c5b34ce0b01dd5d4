"""How results become a page: chapters of words, tables and pictures, as Markdown and as HTML.

A chapter's words are a Jinja text in the file of its experiment. They name what was measured in
double braces, and say where a table or a picture stands: ``{{ table("costs") }}``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined
from markdown_it import MarkdownIt
from pandas import DataFrame

from equipoise import __version__
from paper.style import to_svg
from paper.work import Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Chapter", "Claim", "Edition", "Table", "number", "span", "write_results"]


@dataclass(frozen=True)
class Table:
    """Rows for people and for programs.

    ``columns`` are entry -> heading of what the page shows; the CSV file holds all entries.
    """

    caption: str
    rows: DataFrame
    columns: Mapping[str, str] = field(default_factory=dict)

    def to_csv(self) -> str:
        """Return every entry of every row."""
        return self.rows.to_csv(index=False, lineterminator="\n")

    def to_markdown(self) -> str:
        """Return the shown columns as a Markdown table."""
        shown = [[number(row[key]) for key in self.columns] for row in self.rows.to_dict("records")]
        words = [
            self.rows[key].map(lambda value: isinstance(value, str)).any() for key in self.columns
        ]
        rows = [list(self.columns.values()), ["---" if w else "---:" for w in words], *shown]
        lines = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows)
        return "\n".join(f"| {line} |" for line in lines)


@dataclass(frozen=True)
class Claim:
    """One thing that the paper says, the number it gives, ours, and whether it holds."""

    where: str
    claim: str
    published: str
    ours: str
    verdict: str


@dataclass(frozen=True)
class Chapter:
    """One experiment as the page tells it.

    Parameters
    ----------
    name, title
        What the command line and the page call it.
    words
        A Jinja text; ``facts`` are what it names in braces.
    tables, pictures
        By the names that the words give them; a picture is its caption and how to draw it.
    claims
        What the paper says that this experiment can tell.
    left_out
        What could not be run, and what would help.
    """

    name: str
    title: str
    words: str
    facts: Mapping[str, object]
    tables: Mapping[str, Table] = field(default_factory=dict)
    pictures: Mapping[str, tuple[str, Callable[[], Figure]]] = field(default_factory=dict)
    claims: Sequence[Claim] = ()
    left_out: Sequence[str] = ()


@dataclass(frozen=True)
class Edition:
    """All chapters, Figure 1 if all that it shows was run, and the processor seconds of each."""

    chapters: Sequence[Chapter]
    figure_1: Callable[[], Figure] | None
    seconds: Mapping[str, float]
    kept: int
    parts: int
    settings: Settings


def write_results(edition: Edition, out: Path, *, docs: Path | None = None) -> list[Path]:
    """Write tables, pictures and the page under ``out``; the page's Markdown under ``docs`` too."""
    pictures = {
        f"{chapter.name}-{name}.svg": to_svg(draw)
        for chapter in edition.chapters
        for name, (_, draw) in chapter.pictures.items()
    }
    if edition.figure_1 is not None:
        pictures[FIGURE_1] = to_svg(edition.figure_1)
    tables = {
        f"{chapter.name}-{name}.csv": table.to_csv()
        for chapter in edition.chapters
        for name, table in chapter.tables.items()
    }
    page = to_markdown(edition)
    html = to_html(to_markdown(edition, inline=True))
    for name, svg in pictures.items():
        html = html.replace(_place(name), svg)
    written = _write({**tables, **pictures, "paper.md": page, "paper.html": html}, out)
    if docs is not None:
        shown = {f"paper/{name}": svg for name, svg in pictures.items()}
        written += _write({**shown, "paper.md": to_markdown(edition, folder="paper/")}, docs)
    return written


def to_markdown(edition: Edition, *, folder: str = "", inline: bool = False) -> str:
    """Return the page; pictures are links into ``folder``, or places to put them ``inline``."""
    flags = " --quick" if edition.settings.quick else ""
    flags += f" --seed {edition.settings.seed}" if edition.settings.seed else ""
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    claims = DataFrame([vars(claim) for chapter in edition.chapters for claim in chapter.claims])
    texts = []

    def shown(caption: str, file: str) -> str:
        link = _place(file) if inline else f"![{caption}]({folder}{file})"
        return f"{link}\n\n*{caption}*\n"

    for chapter in edition.chapters:
        command = f"`python -m paper --only {chapter.name}{flags}`"

        def table(name: str, chapter: Chapter = chapter) -> str:
            made = chapter.tables[name]
            file = f"`{chapter.name}-{name}.csv`"
            return f"*{made.caption} ({file})*\n\n{made.to_markdown()}\n"

        def picture(name: str, chapter: Chapter = chapter) -> str:
            return shown(chapter.pictures[name][0], f"{chapter.name}-{name}.svg")

        words = environment.from_string(chapter.words).render(
            chapter.facts, table=table, picture=picture
        )
        head = f"## {chapter.title}\n\nMade by {command}."
        texts.append("\n\n".join([head, *(f"**{line}**" for line in chapter.left_out), words]))
    return environment.from_string(PAGE).render(
        claims=Table("", claims, CLAIM_COLUMNS).to_markdown() if len(claims) else "",
        figure_1="" if edition.figure_1 is None else shown(FIGURE_1_CAPTION, FIGURE_1),
        chapters=[text.strip() for text in texts],
        whole=f"python -m paper{flags}",
        quick=edition.settings.quick,
        version=__version__,
        seconds=edition.seconds,
    )


def _place(picture: str) -> str:
    return f'<figure id="{picture}"></figure>'


def to_html(markdown: str) -> str:
    """Return the page as one HTML file that needs nothing else."""
    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)
    body = body.replace("<table>", '<div class="scroll"><table>').replace(
        "</table>", "</table></div>"
    )
    return HTML.replace("BODY", body)


def _write(files: Mapping[str, str], folder: Path) -> list[Path]:
    written = []
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def number(value: object) -> str:
    """Return a value as a person reads it.

    Examples
    --------
    >>> number(0.4351234), number(1234567.0), number(14430000000.0), number("FAIR"), number(None)
    ('0.4351', '1,234,567', '1.443e+10', 'FAIR', '–')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return str(value)
    size = abs(value)
    if isinstance(value, int) and size < 10_000_000:
        return f"{value:,}"
    if size < 1e-12:
        return "0"
    if size >= 10_000_000:
        return f"{value:.4g}"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if size >= 0.01 else f"{value:.3g}"


def span(numbers: Iterable[float]) -> str:
    """Return the least and the largest number as words.

    Examples
    --------
    >>> span([0.4269, 0.4367, 0.43])
    '0.427 to 0.437'
    """
    values = list(numbers)
    low, high = f"{min(values):.3f}", f"{max(values):.3f}"
    return low if low == high else f"{low} to {high}"


FIGURE_1 = "figure-1.svg"
FIGURE_1_CAPTION = (
    "Figure 1 of the paper: estimated EOD (left) and cost (right). Top: Baseline and RS-Audit on "
    "Adult. Middle and bottom: RS-Audit and Exp-Audit on embedded Adult and on synthetic people, "
    "c_feat = 0, c_lab = 1, with the authors' constants and caps. The adaptive audit is ours."
)
CLAIM_COLUMNS = {
    "where": "where",
    "claim": "the paper says",
    "published": "its number",
    "ours": "ours",
    "verdict": "verdict",
}

PAGE = """\
# The paper, reproduced

*Cost Efficient Fairness Audit Under Partial Feedback* (Das, Sharma, Nanavati, Shiragur, Deshpande),
claim by claim. Everything on this page is made by `{{ whole }}` (Equipoise {{ version }}
{%- if quick %}, a quick look with few repeats{% endif %}); the command under a heading makes that
part alone.

{{ claims }}

{{ figure_1 }}
{% for text in chapters %}

{{ text }}
{% endfor %}

## Processor seconds
{% for name, spent in seconds.items() %}
- {{ name }}: {{ "%.0f" | format(spent) }}
{% endfor %}
"""

HTML = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The paper, reproduced</title>
<link rel="icon" href="data:,">
<style>
body { margin: 0; background: #f5f6f8; color: #1f2933; font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 1060px; margin: 0 auto; padding: 32px 40px 72px; background: #ffffff; }
h2 { margin: 48px 0 6px; padding-top: 20px; border-top: 1px solid #d5dbe1; }
p, li { max-width: 88ch; overflow-wrap: anywhere; }
svg { display: block; max-width: 100%; height: auto; margin: 0 auto; }
.scroll { overflow-x: auto; margin: 16px 0; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 9px; border-bottom: 1px solid #d5dbe1; vertical-align: top; }
th { color: #5f6c7b; text-align: left; }
code { font-size: 13.5px; overflow-wrap: anywhere; }
@media (max-width: 760px) { main { padding: 20px 16px 40px; } }
@media print { body { background: none; } main { padding: 0; max-width: none; } }
</style>
</head>
<body>
<main>
BODY
</main>
</body>
</html>
"""
