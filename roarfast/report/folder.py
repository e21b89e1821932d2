"""`ReportFolder`: where every file of a report lies, also of one that was exported."""

from __future__ import annotations

from pathlib import Path


class ReportFolder:
    """The folder of a report.

    Example:
        >>> ReportFolder("runs/demo/report").records.as_posix()
        'runs/demo/report/tables/records.csv'
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def page(self) -> Path:
        """The page, one HTML file."""
        return self.path / "index.html"

    @property
    def figures(self) -> Path:
        """Every figure as SVG and PNG."""
        return self.path / "figures"

    @property
    def tables(self) -> Path:
        """The numbers behind the report as CSV files."""
        return self.path / "tables"

    @property
    def page_tables(self) -> Path:
        """The tables of the page as CSV and LaTeX files."""
        return self.tables / "page"

    @property
    def records(self) -> Path:
        """One row per cell: `StudyResults.to_csv`."""
        return self.tables / "records.csv"
