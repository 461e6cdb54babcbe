"""The report as one HTML file that opens offline: an overview, and a page for each run with its charts.

Must not know: pytest, or how a record was made. What a run left beside its record is read by `session/`.
"""

from __future__ import annotations

from .document import html_report, write_html

__all__ = ["html_report", "write_html"]
