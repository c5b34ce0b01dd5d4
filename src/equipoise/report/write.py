"""A report as HTML, Markdown or JSON, and a page of what past decisions establish."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from equipoise._version import __version__
from equipoise.errors import InvalidInput, UnknownName, require_kind
from equipoise.finding import Interval
from equipoise.free_check import Check
from equipoise.history import History
from equipoise.rates import METRICS
from equipoise.report import pictures, sentences
from equipoise.report.content import Report

__all__ = ["check_page", "to_html", "to_markdown", "write_check", "write_report"]


def write_report(report: Report, path: str | Path) -> None:
    """Write the report in the form that the file's name asks for.

    Examples
    --------
    >>> from equipoise import Costs, Question, worlds
    >>> from equipoise.report import simulate_live
    >>> world = worlds.CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> live = simulate_live(world, Question(), Costs(label=100), audit="rs", options={"tau": 5})
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(Report.of(live), f"{folder}/report.md")
    ...     Path(f"{folder}/report.md").read_text().partition(":")[0]
    '# Fairness audit'
    """
    require_kind("report", report, Report, "a Report, as Report.of(live) makes it")
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


def write_check(history: History, findings: Sequence[Check], path: str | Path) -> None:
    """Write what past decisions establish as one HTML file; several questions make one page."""
    path = Path(path)
    if path.suffix != ".html":
        raise InvalidInput(f"'--report' of a check must end in .html; got {path.name!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(check_page(history, findings), encoding="utf-8")


def to_html(report: Report) -> str:
    """Return one HTML file that needs nothing else: no network, no script."""
    return _render("report.html.j2", True, **_of_report(report))


def to_markdown(report: Report) -> str:
    """Return the report as Markdown."""
    return _render("report.md.j2", False, **_of_report(report))


def check_page(history: History, findings: Sequence[Check]) -> str:
    """Return one HTML file with the free answers to some questions about the same past."""
    summary = history.summary
    return _render(
        "check.html.j2",
        True,
        source="Past decisions" if summary is None else Path(summary.source).name,
        read=None if summary is None else str(summary),
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M UTC}",
        findings=findings,
        cells=history.cells,
        notes=history.notes,
        version=__version__,
        interval=Interval,
        rows=_rows,
    )


def _rows(by_group: Mapping[str, Interval]) -> list[pictures.RateRow]:
    return [(group, None, one) for group, one in by_group.items()]


def _of_report(report: Report) -> dict[str, object]:
    return {
        "report": report,
        "finding": report.finding,
        "status": report.status,
        "question": report.question,
        "rates": [rate.name for rate in METRICS[report.question.metric].rates],
    }


def _words_only(value: object) -> object:
    """Keep names and reasons from being markup: HTML, links or cells of a Markdown table."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    text = str(escape(value)).replace("&#39;", "'").replace("&#34;", '"')
    return " ".join(text.replace("|", "\\|").replace("](", "]\\(").split("\n"))


def _render(template: str, autoescape: bool, **values: object) -> str:
    environment = Environment(
        loader=PackageLoader("equipoise.report", "templates"),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=None if autoescape else _words_only,
    )
    environment.filters["percent"] = lambda share: f"{share * 100:.1f}%"
    environment.filters["points"] = lambda share: f"{share * 100:.1f}"
    environment.filters["gap"] = lambda gap: "undefined" if gap is None else f"{gap:.3f}"
    environment.filters["count"] = lambda number: f"{number:,}"
    return environment.get_template(template).render(pictures=pictures, words=sentences, **values)
