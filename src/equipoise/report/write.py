"""A report as HTML, Markdown or JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from equipoise.errors import UnknownName
from equipoise.metrics import METRICS
from equipoise.report import pictures, sentences
from equipoise.report.content import Report

__all__ = ["to_html", "to_markdown", "write_report"]


def write_report(report: Report, path: str | Path) -> None:
    """Write the report in the form that the file's name asks for."""
    path = Path(path)
    forms: dict[str, Callable[[Report], str]] = {
        ".html": to_html,
        ".md": to_markdown,
        ".json": lambda made: made.to_json(indent=2) + "\n",
    }
    if path.suffix not in forms:
        raise UnknownName("form of report", path.suffix or path.name, forms)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(forms[path.suffix](report), encoding="utf-8")


def to_html(report: Report) -> str:
    """Return one HTML file that needs nothing else: no network, no script."""
    return _render("report.html.j2", report, autoescape=True)


def to_markdown(report: Report) -> str:
    """Return the report as Markdown."""
    return _render("report.md.j2", report, autoescape=False)


def _render(template: str, report: Report, *, autoescape: bool) -> str:
    environment = Environment(
        loader=PackageLoader("equipoise.report", "templates"),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["percent"] = lambda share: f"{share * 100:.1f}%"
    environment.filters["points"] = lambda share: f"{share * 100:.1f}"
    environment.filters["count"] = lambda number: f"{number:,}"
    return environment.get_template(template).render(
        report=report,
        finding=report.finding,
        status=report.status,
        question=report.question,
        rates=[rate.name for rate in METRICS[report.question.metric].rates],
        pictures=pictures,
        words=sentences,
    )
