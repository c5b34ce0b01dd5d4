"""How results become a page: chapters of words, tables and pictures, as Markdown and as HTML.

A chapter's words are a Jinja text in the file of its experiment. They name what was measured in
double braces, and say where a table or a picture stands: ``{{ table("costs") }}``. Columns of a
table are headed by their names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined
from markdown_it import MarkdownIt
from pandas import DataFrame

from equipoise import __version__
from equipoise.display import format_number
from paper.items import items_table, map_table

PAPER_SEEDS = (1092, 42, 13, 729, 333)
"""The five seeds of the paper's experiments."""


@dataclass(frozen=True)
class Settings:
    """What the experiments of one run share; without ``law_school`` that table is left out."""

    quick: bool = False  # few repeats: does everything work?
    seed: int = 0
    law_school: Path | None = None
    paper_seeds: bool = False  # the paper's five seeds, one run each

    def run_seeds(self, n_runs: int) -> list[list[int]]:
        """Return the seeds of an experiment's runs: the paper's five, or ours from ``seed`` on."""
        if self.paper_seeds:
            return [[seed] for seed in PAPER_SEEDS]
        return [[self.seed, run] for run in range(n_runs)]


class Claim(NamedTuple):
    """One thing that the paper says, the number it gives, ours, and whether it holds."""

    where: str
    the_paper_says: str
    its_number: str
    ours: str
    verdict: str


@dataclass(frozen=True)
class Chapter:
    """One experiment as the page tells it.

    ``words`` is a Jinja text and ``facts`` what it names in braces; it names ``tables`` and
    ``pictures`` (SVG) too, and all tables are written as CSV. ``found`` is for Figure 1.
    ``left_out`` says what could not be run, and what would help.
    """

    title: str
    words: str
    facts: Mapping[str, object]
    tables: Mapping[str, DataFrame] = field(default_factory=dict)
    pictures: Mapping[str, str] = field(default_factory=dict)
    claims: Sequence[Claim] = ()
    found: Mapping[str, Any] = field(default_factory=dict)
    left_out: str = ""


def write_page(
    chapters: Mapping[str, Chapter],
    figure_1: str | None,
    command: str,
    *,
    out: Path,
    docs: Path | None = None,
) -> None:
    """Write tables, pictures and the page under ``out``; the page and pictures under ``docs``."""
    page = to_markdown(chapters, command, with_figure_1=figure_1 is not None)
    shown = {"paper.md": page} | ({"paper/figure-1.svg": figure_1} if figure_1 else {})
    tables = {}
    for name, chapter in chapters.items():
        shown |= {f"paper/{name}-{at}.svg": svg for at, svg in chapter.pictures.items()}
        for at, rows in chapter.tables.items():
            tables[f"paper/{name}-{at}.csv"] = rows.to_csv(index=False, lineterminator="\n")
    files = {out: {**shown, **tables, "paper.html": to_html(page)}}
    if docs is not None:
        files[docs] = shown
    for folder, texts in files.items():
        for file, text in texts.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text, encoding="utf-8")


def to_markdown(
    chapters: Mapping[str, Chapter], command: str, *, with_figure_1: bool = False
) -> str:
    """Return the page; ``command`` makes all of it."""
    jinja = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    jinja.filters["pct"] = lambda share, digits=0: f"{share:.{digits}%}"
    jinja.filters["n"], jinja.filters["span"] = number, span
    texts = []
    for name, chapter in chapters.items():

        def table(table: str, name: str = name, chapter: Chapter = chapter) -> str:
            return f"{markdown_table(chapter.tables[table])}\n\n(`{name}-{table}.csv`)"

        def picture(picture: str, caption: str, name: str = name) -> str:
            return f"![{caption}](paper/{name}-{picture}.svg)\n\n*{caption}*"

        words = jinja.from_string(chapter.words).render(chapter.facts, table=table, picture=picture)
        made = f"Made by `{command} --only {name}`."
        left_out = [f"**{chapter.left_out}**"] if chapter.left_out else []
        texts.append("\n\n".join([f"## {chapter.title}", made, *left_out, words.strip()]))
    claims = DataFrame([claim for chapter in chapters.values() for claim in chapter.claims])
    return jinja.from_string(PAGE).render(
        claims=markdown_table(claims) if len(claims) else "",
        map=markdown_table(map_table()),
        items=markdown_table(items_table()),
        figure_1=with_figure_1,
        chapters=texts,
        command=command,
        version=__version__,
    )


def markdown_table(rows: DataFrame) -> str:
    """Return rows as a Markdown table, headed by the names of the columns."""
    heads = [str(name).replace("_", " ") for name in rows.columns]
    words = [rows[name].map(lambda value: isinstance(value, str)).any() for name in rows.columns]
    cells = [[number(value) for value in row] for row in rows.astype(object).values.tolist()]
    lines = [heads, ["---" if w else "---:" for w in words], *cells]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in lines)


def to_html(markdown: str) -> str:
    """Return the page as HTML beside its pictures."""
    return HTML.replace("BODY", MarkdownIt("commonmark").enable("table").render(markdown))


def number(value: object, digits: int = 4) -> str:
    """Return a value as a person reads it.

    Examples
    --------
    >>> number(0.4351234), number(1234567.0), number(14430000000.0), number("FAIR"), number(None)
    ('0.4351', '1,234,567', '14,430,000,000', 'FAIR', '–')
    >>> number(0.4351234, 2), number(0.0000123)
    ('0.44', '0.0000123')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return str(value)
    size = abs(value)
    if 1000 <= size < 1e7 or (isinstance(value, int) and size < 1e7):
        return f"{value:,.0f}"
    return "0" if size < 1e-12 else format_number(value, digits)


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


def listed(values: Iterable[object], form: str = "g") -> str:
    """Return values as words, with commas between them.

    Examples
    --------
    >>> listed([0.25, 3.0]), listed([74.2, 1520.9], ",.0f")
    ('0.25, 3', '74, 1,521')
    """
    return ", ".join(format(value, form) for value in values)


def holds(it_does: bool, otherwise: str = "does not hold") -> str:
    """Return the verdict on a claim."""
    return "holds" if it_does else otherwise


def where(rows: DataFrame, **values: object) -> DataFrame:
    """Return the rows whose entries have these values."""
    for name, value in values.items():
        rows = rows[rows[name] == value]
    return rows


PAGE = """\
# The paper, reproduced

*Cost Efficient Fairness Audit Under Partial Feedback* (Das, Sharma, Nanavati, Shiragur, Deshpande).
This page has a map from the paper to the code and a list of everything that the paper says. It
also has the paper's claims beside our numbers, and its experiments. `{{ command }}` (Equipoise
{{ version }}) makes the page. It needs the repository, because the experiments are not in the
wheel.

## Map from the paper to the code

{{ map }}

## Items of the paper and their state

“Note” is the number of a note at the end of this page.

{{ items }}

## Claims

The command under a heading makes that part alone. “(plot)” means read from a figure of the paper
or of
the authors' repository. “(file)” means from a result file of the authors' repository, which the
notes
name.

{{ claims }}
{% if figure_1 %}

![Figure 1 of the paper](paper/figure-1.svg)

*Figure 1 of the paper: estimated EOD (left) and cost (right). Top: Baseline and RS-Audit on Adult.
Middle and bottom: RS-Audit and Exp-Audit on embedded Adult and on synthetic people, c_feat = 0,
c_lab = 1, with the authors' constants and caps. The adaptive audit is ours.*
{% endif %}
{% for text in chapters %}

{{ text }}
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
body { max-width: 1060px; margin: 0 auto; padding: 24px; font: 16px/1.55 system-ui, sans-serif; }
img { display: block; max-width: 100%; margin: 0 auto; }
table { display: block; overflow-x: auto; border-collapse: collapse; font-size: 13.5px; }
th, td { padding: 4px 9px; border-bottom: 1px solid #d5dbe1; vertical-align: top; }
th { text-align: left; }
</style>
</head>
<body>
BODY
</body>
</html>
"""
