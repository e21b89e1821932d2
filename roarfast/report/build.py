"""`roarfast report DIR`: from the records of a run folder to one HTML file, figures and CSV tables."""

from __future__ import annotations

from pathlib import Path

from roarfast._files import write_atomic
from roarfast.report import figures, html, sections, tv_figures
from roarfast.report.audit import audit
from roarfast.report.grid import panels
from roarfast.report.leakage import leakage_figure, leakages
from roarfast.report.material import Material
from roarfast.report.parts import parts_figure, parts_rows, study_parts
from roarfast.report.strips import strips
from roarfast.report.summary import study_name
from roarfast.report.tables import write_csv, write_tables
from roarfast.study.results import StudyResults, load


def build(folder: str | Path, out: str | Path | None = None, results: StudyResults | None = None) -> Path:
    """Writes the report of a study and returns the path of its HTML file.

    Works at any time: with cells missing, failed or still running, it reports what is there and says what is not.

    Args:
        folder: Run folder of the study.
        out: Folder for `index.html`, `figures/` and `tables/`; `<folder>/report` if not given.
        results: The results, if they are at hand; read from the folder otherwise.

    Raises:
        FileNotFoundError: If the folder has no results.
    """
    source = Path(folder)
    everything = load(source) if results is None else results
    # Curves, tables and audits are about explanations; cells with null masks are no results of an estimator.
    results = StudyResults([record for record in everything if record.null == "own"], everything.meta)
    target = Path(out) if out is not None else source / "report"
    target.mkdir(parents=True, exist_ok=True)
    pictures = target / "figures"
    parts = study_parts(everything)
    audits = [audit(panel) for panel in panels(results)]
    estimators = list(dict.fromkeys(e for a in audits for e in a.panel.estimators))
    material = Material(
        results,
        audits,
        curves=[figures.accuracy_curves(a.panel, pictures) for a in audits],
        arrows=[tv_figures.tv_arrows(a.panel, pictures) for a in audits],
        scatters=[tv_figures.tv_scatter(a.panel, pictures) for a in audits],
        strips=strips(source / "examples", estimators, pictures),
        leakages=[(one, leakage_figure(one, pictures)) for one in leakages(results)],
        parts=[(one, parts_figure(one, pictures)) for one in parts],
        config_text=_text(source / "study.toml"),
    )
    for a in audits:
        figures.table_figure(a, pictures)
    write_tables(results, audits, target / "tables")
    everything.to_csv(target / "tables" / "records.csv")
    if parts:
        write_csv(target / "tables" / "parts.csv", parts_rows(parts))
    page = html.page(f"Study report: {study_name(results)}", sections.header(material), sections.all_sections(material))
    path = target / "index.html"
    write_atomic(path, page)
    return path


def export(report: str | Path, out: str | Path) -> list[Path]:
    """Copies what a page about a study shows, to be committed or published: PNG figures and CSV tables.

    Args:
        report: The folder of a report, as `build` wrote it.
        out: Gets `figures/*.png` and `tables/*.csv`; files of these names are replaced, others stay.

    Returns:
        The files written.
    """
    written = []
    for part, pattern in (("figures", "*.png"), ("tables", "*.csv")):
        target = Path(out) / part
        target.mkdir(parents=True, exist_ok=True)
        for path in sorted((Path(report) / part).glob(pattern)):
            write_atomic(target / path.name, path.read_bytes())
            written.append(target / path.name)
    return written


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
