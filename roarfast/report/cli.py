"""The command `roarfast report`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from roarfast.study.errors import StudyError
from roarfast.study.results import load


def report(
    folder: Annotated[Path, typer.Argument(help="Run folder of a study.", exists=True, file_okay=False)],
    out: Annotated[Path | None, typer.Option("--out", help="Where to write; FOLDER/report if not given.")] = None,
    copy: Annotated[
        Path | None,
        typer.Option("--export", help="Also copy the PNG figures and CSV tables to this folder, to commit or publish."),
    ] = None,
) -> None:
    """Write the report of a study: one HTML file, PNG/SVG figures, CSV tables; print a short summary."""
    from roarfast.report import build, export, summary  # matplotlib: `--help` need not wait for it

    try:
        results = load(folder)
    except (StudyError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    for name, target in (("--out", out), ("--export", copy)):
        if target is not None and target.is_file():
            print(f"error: {name} {target} is a file: choose a folder", file=sys.stderr)
            raise typer.Exit(2)
    try:
        path = build(folder, out, results)
        print(summary(results, path))
        if copy is not None:
            print(f"Exported {len(export(path.parent, copy))} figures and tables to {copy}")
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def compare(
    studies: Annotated[
        list[str],
        typer.Argument(help="Run folders, tables of records (CSV), or published results such as cifar10-subset."),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Also write an HTML page, CSV and LaTeX tables there.")
    ] = None,
) -> None:
    """Put the maps of several studies into one table, without running anything again."""
    from roarfast.report import compare as comparing  # SciPy: `--help` need not wait for it

    try:
        if len(studies) < 2:
            raise StudyError("compare takes at least two studies: roarfast compare runs/mine cifar10-subset")
        found = comparing.compare(studies)
        print(found)
        if out is not None:
            print(f"\nPage: {comparing.write_comparison(found, out)}")
    except (StudyError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
