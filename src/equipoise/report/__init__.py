"""The report of an audit, and the page of a free check: files without network or script."""

from equipoise.report.content import Report
from equipoise.report.write import check_page, to_html, write_check, write_report

__all__ = ["Report", "check_page", "to_html", "write_check", "write_report"]
