"""The command `roarfast report`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from roarfast.study.errors import StudyError


def report(
    folder: Annotated[Path, typer.Argument(help="Run folder of a study.", exists=True, file_okay=False)],
    out: Annotated[Path | None, typer.Option("--out", help="Where to write; FOLDER/report if not given.")] = None,
) -> None:
    """Write the report of a study: one HTML file, PNG/SVG figures, CSV tables; print a short summary."""
    from roarfast.report import build, summary
    from roarfast.study.results import load

    try:
        results = load(folder)
    except (StudyError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    path = build(folder, out, results)
    print(summary(results, path))
