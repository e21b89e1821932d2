"""The command `roarfast report`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from roarfast.report.text import counted
from roarfast.study.errors import StudyError
from roarfast.study.results import load


def report(
    folder: Annotated[Path, typer.Argument(help="Run folder of a study.", exists=True, file_okay=False)],
    out: Annotated[Path | None, typer.Option("--out", help="Where to write; FOLDER/report if not given.")] = None,
    copy: Annotated[
        Path | None,
        typer.Option("--export", help="Also copy the PNG figures and CSV tables to this folder, to commit or publish."),
    ] = None,
    images: Annotated[
        bool, typer.Option("--images", help="Let --export also copy the figures that show images of the data set.")
    ] = False,
) -> None:
    """Write the report of a study: one HTML file, PNG/SVG figures, CSV tables; print a short summary."""
    from roarfast.report import build, export, image_figures, summary  # matplotlib: `--help` need not wait for it

    if images and copy is None:
        print("error: --images says what --export copies: add --export FOLDER", file=sys.stderr)
        raise typer.Exit(2)
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
            print(f"Exported {len(export(path.parent, copy, images=images))} figures and tables to {copy}")
            if not images and (said := _left_out(image_figures(path.parent), image_figures(copy))):
                print(said)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def _left_out(missing: Sequence[Path], old: Sequence[Path]) -> str:
    """What an export without images did not copy, and what an earlier one with images left there; empty if nothing."""
    said = []
    if missing:
        figures = f"{counted(len(missing), 'figure')} with images of the data set"
        said.append(f"Left out {figures} (figures/examples-*.png); --images copies them too")
    if old:
        said.append(
            f"Still there from an earlier export: {counted(len(old), 'figure')} with images, in {old[0].parent}"
        )
    return ". ".join(said)


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
