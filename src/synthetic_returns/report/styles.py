"""The style sheets of pages that report: about runs, comparisons and logs."""

__all__ = ["STYLES"]

STYLES = ("viewer/theme.css", "report/report.css")
