"""`roarfast report DIR`: from the records of a run folder to one HTML file, figures and tables."""

from __future__ import annotations

from pathlib import Path

from roarfast._files import remove_unfinished, write_atomic
from roarfast.report.figures.strips import IMAGE_FILES
from roarfast.report.folder import ReportFolder
from roarfast.report.material import gather
from roarfast.report.page import render
from roarfast.report.score_tables import score_rows
from roarfast.report.table import write_table
from roarfast.report.tables import write_csv, write_tables
from roarfast.study.results import StudyResults, load
from roarfast.study.runfolder import RunFolder


def build(folder: str | Path, out: str | Path | None = None, results: StudyResults | None = None) -> Path:
    """Writes the report of a study and returns the path of its HTML file.

    Works at any time: with cells missing, failed or still running, it reports what is there and says what is not.

    Args:
        folder: Run folder of the study.
        out: Folder for `index.html`, `figures/` and `tables/`; `<folder>/report` if not given.
        results: The results, if they are at hand; read from the folder otherwise.

    Raises:
        FileNotFoundError: If the folder has no results.

    Example:
        >>> page = build("runs/mine", out="report")  # doctest: +SKIP
    """
    files = RunFolder(folder)
    everything = load(folder) if results is None else results
    target = ReportFolder(out if out is not None else files.report)
    target.path.mkdir(parents=True, exist_ok=True)
    remove_unfinished(target.path, target.page.name)  # of a report that was killed
    for part in (target.figures, target.tables, target.page_tables):
        remove_unfinished(part)
    material = gather(everything, files, target.figures)
    page, book = render("page.html", **material)
    write_tables(everything, material["audits"], [view.parts for view in material["parts"]], target.tables)
    write_csv(target.tables / "scores.csv", score_rows(material["scored"]))
    for table in book.tables.values():
        write_table(table, target.page_tables)
    write_atomic(target.page, page)
    return target.page


def image_figures(folder: str | Path) -> list[Path]:
    """The figures that show images of the data set, in the folder of a report or of an export.

    Args:
        folder: Of the report.

    Example:
        >>> image_figures("report")  # nothing there yet
        []
    """
    return sorted(ReportFolder(folder).figures.glob(f"{IMAGE_FILES}*.png"))


def export(report: str | Path, out: str | Path, *, images: bool = False) -> list[Path]:
    """Copies what a page about a study shows, to be committed or published: PNG figures and CSV tables.

    Args:
        report: The folder of a report, as `build` wrote it.
        out: Gets `figures/*.png` and `tables/*.csv`; files of these names are replaced, others stay.
        images: Whether to copy also figures that show images of the data set, which not everybody may publish.

    Returns:
        The files written.

    Example:
        >>> export("report", "published", images=True)  # no report there yet
        []
    """
    left_out = () if images else image_figures(report)
    written = []
    source, copy = ReportFolder(report), ReportFolder(out)
    for part, target, pattern in ((source.figures, copy.figures, "*.png"), (source.tables, copy.tables, "*.csv")):
        target.mkdir(parents=True, exist_ok=True)
        for path in sorted(part.glob(pattern)):
            if path not in left_out:
                write_atomic(target / path.name, path.read_bytes())
                written.append(target / path.name)
    return written
