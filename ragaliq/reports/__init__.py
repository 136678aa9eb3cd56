"""Reports: one HTML page that needs no network, made from stored results."""

from ragaliq.reports.report import ReportSummary, write_report

__all__ = ["ReportSummary", "write_report"]
