"""Pages without network or script: the report of an audit, and what past decisions establish."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from equipoise._output_files import replace_file
from equipoise._version import __version__
from equipoise.audits.base import Audit
from equipoise.comparison import Comparison
from equipoise.display import format_level, format_number, round_down, round_up
from equipoise.errors import InvalidInput, UnknownName
from equipoise.finding import Finding, Interval
from equipoise.free_check import Check
from equipoise.history import History, Past
from equipoise.history.history import past_rows
from equipoise.ledger import LiveAudit
from equipoise.ledger.inputs import file_name
from equipoise.messages import audit_words
from equipoise.messages.answer import build_answer, name_gap_unit
from equipoise.metrics import METRICS
from equipoise.question import Question
from equipoise.report import event_log, pictures, sentences, tables
from equipoise.report.content import Report, widen_free_check
from equipoise.report.selection import SelectionRow, selection_table
from equipoise.report.tables import Table

if TYPE_CHECKING:
    from jinja2 import Environment

REPORT_SUFFIXES = (".html", ".json")


def write_report(audit: Report | LiveAudit | Audit, path: str | Path | None = None) -> Path:
    """Write the report of an audit, in a ledger or in memory; return where it is.

    Parameters
    ----------
    audit
        A live audit, its :class:`Report`, or an audit in memory such as ``AdaptiveAudit``. An audit
        in memory has no ledger, so its report has no proof, no test of drift and no log of events.
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
    if path.suffix not in REPORT_SUFFIXES:
        raise UnknownName("form of report", path.suffix or path.name, REPORT_SUFFIXES)
    # A report over the ledger's own file would destroy the audit.
    if isinstance(audit, LiveAudit):
        audit.refuse_overwriting(path)
    report = Report.of(audit) if isinstance(audit, LiveAudit) else audit
    is_json = path.suffix == ".json"
    if isinstance(report, Audit):
        finding = report.so_far()
        text = _to_json(finding.to_full_dict()) if is_json else _audit_page(report, finding)
    elif is_json:
        text = _to_json(report.to_dict() | {"finding": report.finding.to_full_dict()})
    else:
        text = to_html(report)
    return _write_text(path, text)


def _to_json(data: dict[str, Any]) -> str:
    # allow_nan would write NaN, which is no JSON, so that other programs refuse the file.
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _audit_page(audit: Audit, finding: Finding) -> str:
    """Return the page of an audit in memory."""
    # Pictures put one below the other, where a range that grew would look like a mistake.
    before = widen_free_check(audit.known_for_free, finding)
    title = f"Fairness audit ({audit.name})"
    is_in_progress = audit.finding is None
    return _finding_page(audit.history, title, [(before, finding)], is_in_progress=is_in_progress)


def write_check(history: Past, findings: Sequence[Check], path: str | Path) -> Path:
    """Write what past decisions establish as one HTML file; several questions make one page."""
    path = Path(path)
    if path.suffix != ".html":
        raise InvalidInput(f"'path' of a check's page must end in .html; got {path.name!r}")
    return _write_text(path, check_page(history, findings))


def to_html(report: Report) -> str:
    """Return one HTML file that needs nothing else: no network, no script."""
    question = report.finding.question
    all_tables = _all_tables(report.finding)
    return _render(
        "report.html.j2",
        sections=_number_sections(report, has_metrics=bool(all_tables)),
        who=tables.group_figures(report.finding),
        report=report,
        finding=report.finding,
        status=report.status,
        question=question,
        rates=[rate.name for rate in METRICS[question.metric].rates],
        all_tables=all_tables,
    )


def check_page(history: Past, findings: Sequence[Check]) -> str:
    """Return one HTML file with the free answers to some questions about the same past."""
    title = "What past decisions establish, at no cost"
    pairs = [(None, finding) for finding in findings]
    return _finding_page(history, title, pairs, is_in_progress=False)


def _finding_page(
    history: Past,
    title: str,
    pairs: Sequence[tuple[Finding | None, Finding]],
    *,
    is_in_progress: bool,
) -> str:
    """Return a page of findings about the same past.

    Parameters
    ----------
    pairs
        Per question, what was known before the audit (None for a free check), and the finding.
    """
    summary = getattr(history, "summary", None)  # of a past that was read from a table
    _, first_finding = pairs[0]
    return _render(
        "finding.html.j2",
        title=title,
        source="Past decisions" if summary is None else Path(summary.source).name,
        read=None if summary is None else str(summary),
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M UTC}",
        pairs=pairs,
        in_progress=is_in_progress,
        first_finding=first_finding,
        past_table=tables.rows_as_table(past_rows(history.cells, exact=history.exact)),
        notes=getattr(history, "notes", ()),
        all_tables=_all_tables(first_finding),
        selection_tables=_selection_tables(history, first_finding.question),
        version=__version__,
    )


class SelectionTable(NamedTuple):
    """Selection rates by group or by an attribute, as a page shows them.

    Attributes
    ----------
    heading
        The attribute; empty for the groups of the audit.
    rows, ratio
        See :func:`equipoise.report.selection.selection_table`.
    without_value
        What people without a value are called, and how many they are; None if there are none.
    """

    heading: str
    rows: tuple[SelectionRow, ...]
    ratio: Interval
    without_value: tuple[str, float] | None


def _selection_tables(history: Past, question: Question) -> list[SelectionTable]:
    """Return selection rates by group and, of intersections, by each attribute."""
    if not isinstance(history, History):
        return [_selection_table("", history, question, None)]
    missing_name = None if history.coding is None else history.coding.grouping.missing
    tables = [_selection_table("", history, question, missing_name)]
    for column, cells in history.attributes.items():
        # An attribute has other groups than the intersections of the question: "against" names
        # none of them, so all pairs are compared.
        left_out = [name for name in question.comparison.leave_out if name in cells]
        comparison = Comparison(question.comparison.by, leave_out=left_out)
        question_by_column = replace(question, compare=comparison)
        past = Past(cells, history.exact)
        tables.append(_selection_table(column, past, question_by_column, missing_name))
    return tables


def _selection_table(
    heading: str, past: Past, question: Question, missing_name: str | None
) -> SelectionTable:
    rows, ratio = selection_table(past, question)
    without_value = None
    if missing_name is not None and missing_name in past.cells:
        without_value = missing_name, past.cells[missing_name].total
    return SelectionTable(heading, rows, ratio, without_value)


def _all_tables(finding: Finding) -> dict[str, Table]:
    """Return every rate of every group, and every metric, as tables; none where none follow."""
    rate_rows, metric_rows = finding.all_rows()
    all_tables = {}
    if rate_rows:
        all_tables["Every rate by group"] = tables.rows_as_table(rate_rows)
    if metric_rows:
        all_tables["Every metric"] = tables.rows_as_table(metric_rows)
    return all_tables


def _number_sections(report: Report, *, has_metrics: bool) -> dict[str, tuple[str, str]]:
    """Return the parts of the appendix: the place in the page -> number and name."""
    names = {
        "groups": "Groups",
        "evidence": "Evidence over time",
        "money": "Money over time",
        "people": "People by group",
        "metrics": "All fairness metrics",
        "approvals": "Approval rates",
        "drift": "Drift checks",
        "actors": "Who did what",
        "proof": "Proof",
    }
    if not has_metrics:
        del names["metrics"]
    # Nothing was spent and nothing will be: there is no curve to draw.
    is_free = report.status.spent == 0 and report.status.reserved == 0
    if is_free and report.forecast is None:
        del names["money"]
    # Numbered at the end: a part that is missing leaves no gap.
    numbered = enumerate(names.items(), start=1)
    return {place: (f"A{number}", name) for number, (place, name) in numbered}


def _write_text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Whole or not at all: a reader never meets half of a report.
    with replace_file(path) as file:
        file.write(text)
    return path


def _render(template: str, **context: object) -> str:
    return template_environment("equipoise.report").get_template(template).render(**context)


@cache  # a template is compiled once for all pages
def template_environment(package: str) -> Environment:
    """Return a package's templates; every word in them is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # `status` draws no page

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
        level=format_level,
        number=format_number,
        round_down=round_down,
        round_up=round_up,
        count=lambda amount: f"{amount:,.0f}",
        part=lambda name: quote(name, safe=""),
        moment=lambda time: f"{time[:10]} {time[11:16]}" if time else "never",
        plain=lambda text: str(text).replace("_", " ").lower(),
        shell=shlex.quote,
    )
    templates.globals.update(
        audit_words=audit_words,
        build_answer=build_answer,
        name_gap_unit=name_gap_unit,
        event_log=event_log,
        pictures=pictures,
        sentences=sentences,
        tables=tables,
    )
    return templates
