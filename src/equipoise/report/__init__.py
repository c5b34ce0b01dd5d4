"""The report of an audit: one HTML file without network, Markdown, and JSON."""

from equipoise.report.content import Report
from equipoise.report.live_simulation import simulate_live
from equipoise.report.write import to_html, to_markdown, write_report

__all__ = ["Report", "simulate_live", "to_html", "to_markdown", "write_report"]
