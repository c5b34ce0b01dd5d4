"""Pages without network or script: the report of an audit, and what past decisions establish."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from equipoise._output_files import replace_file
from equipoise._version import __version__
from equipoise.audits.base import Audit
from equipoise.comparison import Comparison
from equipoise.display import html_table
from equipoise.errors import InvalidInput, UnknownName
from equipoise.finding import Finding
from equipoise.free_check import Check
from equipoise.history import History, Past
from equipoise.history.history import past_rows
from equipoise.ledger import LiveAudit
from equipoise.ledger.inputs import file_name
from equipoise.metrics import METRICS
from equipoise.question import Question
from equipoise.report import event_log, pictures, sentences
from equipoise.report.content import Report, widen_free_check
from equipoise.report.selection import selection_table

FORMS = (".html", ".json")


def write_report(audit: Report | LiveAudit | Audit, path: str | Path | None = None) -> Path:
    """Write the report of an audit, in a ledger or in memory; return where it is.

    Parameters
    ----------
    audit
        A live audit, its :class:`Report`, or an audit in memory such as ``AdaptiveAudit``: its
        report has no ledger to speak of, and so no proof, no drift and nobody who did things.
    path
        A file that ends in ``.html`` (one page for people) or ``.json`` (for programs); the
        audit's name and ``.html`` if left out.

    Examples
    --------
    >>> import tempfile
    >>> import equipoise as eq
    >>> counts = {"approved_positive": 60, "approved_negative": 20, "denied": 20}
    >>> past = eq.History.from_cells({"A": counts, "B": counts})
    >>> audit = eq.AdaptiveAudit(past, eq.Question("equal_opportunity"), eq.Costs())
    >>> audit.tell(audit.ask("A", 0), 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     eq.write_report(audit, f"{folder}/report.html").name
    'report.html'
    """
    if not isinstance(audit, Report | LiveAudit | Audit):
        raise InvalidInput(
            "'audit' must be an audit, as LiveAudit.open or AdaptiveAudit(...) make it, or its "
            f"Report; got {type(audit).__name__}"
        )
    name = audit.settings.name if isinstance(audit, LiveAudit) else audit.name
    path = Path(file_name(name, ".html") if path is None else path)
    if path.suffix not in FORMS:
        raise UnknownName("form of report", path.suffix or path.name, FORMS)
    if isinstance(audit, LiveAudit):
        audit.refuse_overwriting(path)
    report = Report.of(audit) if isinstance(audit, LiveAudit) else audit
    finding = report.so_far() if isinstance(report, Audit) else report.finding
    if path.suffix == ".json":
        finding_json = finding.to_full_dict()
        data = (
            finding_json
            if isinstance(report, Audit)
            else report.to_dict() | {"finding": finding_json}
        )
        text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    elif isinstance(report, Audit):
        before_and_after, title = (
            [(widen_free_check(report.known_for_free, finding), finding)],
            f"Fairness audit ({name})",
        )
        text = _finding_page(
            report.history, title, before_and_after, in_progress=report.finding is None
        )
    else:
        text = to_html(report)
    return _write_text(path, text)


def write_check(history: Past, findings: Sequence[Check], path: str | Path) -> Path:
    """Write what past decisions establish as one HTML file; several questions make one page."""
    path = Path(path)
    if path.suffix != ".html":
        raise InvalidInput(f"'--report' of a check must end in .html; got {path.name!r}")
    return _write_text(path, check_page(history, findings))


def to_html(report: Report) -> str:
    """Return one HTML file that needs nothing else: no network, no script."""
    question = report.finding.question
    return _render(
        "report.html.j2",
        report=report,
        finding=report.finding,
        status=report.status,
        question=question,
        rates=[rate.name for rate in METRICS[question.metric].rates],
        all_tables=_all_tables(report.finding),
    )


def check_page(history: Past, findings: Sequence[Check]) -> str:
    """Return one HTML file with the free answers to some questions about the same past."""
    title = "What past decisions establish, at no cost"
    return _finding_page(
        history, title, [(None, finding) for finding in findings], in_progress=False
    )


def _finding_page(
    history: Past, title: str, pairs: Sequence[tuple[Finding | None, Finding]], *, in_progress: bool
) -> str:
    """Return a page of findings, each with what was known before it where that is less."""
    summary = getattr(history, "summary", None)
    return _render(
        "finding.html.j2",
        title=title,
        source="Past decisions" if summary is None else Path(summary.source).name,
        read=None if summary is None else str(summary),
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M UTC}",
        pairs=pairs,
        in_progress=in_progress,
        past_table=Markup(html_table(past_rows(history.cells, exact=history.exact))),
        notes=getattr(history, "notes", ()),
        all_tables=_all_tables(pairs[0][1]),
        tables=_selection_tables(history, pairs[0][1].question),
        version=__version__,
    )


def _selection_tables(history: Past, question: Question) -> dict[str, tuple[object, ...]]:
    """Return selection rates by group and, of intersections, by each attribute, under headings.

    With each: the ratio of the lowest to the highest, and what people without a value are called
    and how many they are.
    """
    questions, name_of_missing = {"": (history, question)}, None
    if isinstance(history, History):
        name_of_missing = None if history.coding is None else history.coding.grouping.missing
        for column, cells in history.attributes.items():
            left_out = [name for name in question.comparison.leave_out if name in cells]
            question_of_attribute = replace(
                question, compare=Comparison(question.comparison.by, leave_out=left_out)
            )
            questions[column] = Past(cells, history.exact), question_of_attribute
    tables: dict[str, tuple[object, ...]] = {}
    for heading, (past, question_of_table) in questions.items():
        people_without_value = None
        if name_of_missing is not None and name_of_missing in past.cells:
            people_without_value = name_of_missing, past.cells[name_of_missing].total
        tables[heading] = *selection_table(past, question_of_table), people_without_value
    return tables


def _all_tables(finding: Finding) -> dict[str, Markup]:
    """Return every rate of every group, and every metric, as tables; none where none follow."""
    names = ("Every rate by group", "Every metric")
    rows = zip(names, finding.all_rows(), strict=True)
    return {name: Markup(html_table(table_rows)) for name, table_rows in rows if table_rows}


def _write_text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as file:
        file.write(text)
    return path


def _render(template: str, **context: object) -> str:
    return template_environment("equipoise.report").get_template(template).render(**context)


@cache
def template_environment(package: str) -> Environment:
    """Return a package's templates; every word in them is escaped."""
    templates = Environment(
        loader=PackageLoader(package, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters.update(
        percent=lambda share: f"{share * 100:.1f}%",
        points=lambda share: f"{share * 100:.1f}",
        count=lambda amount: f"{amount:,.0f}",
        part=lambda name: quote(name, safe=""),
        moment=lambda time: f"{time[:10]} {time[11:16]}" if time else "never",
        plain=lambda text: str(text).replace("_", " ").lower(),
        shell=shlex.quote,
    )
    templates.globals.update(event_log=event_log, pictures=pictures, sentences=sentences)
    return templates
