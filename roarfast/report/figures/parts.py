"""The damage taken apart: stacked bars."""

from __future__ import annotations

from pathlib import Path

from roarfast.metrics.damage_plot import plot_parts
from roarfast.report.figures import plotting
from roarfast.report.figures.plotting import Figure
from roarfast.report.parts import StudyParts


def parts_figure(one: StudyParts, folder: Path) -> Figure:
    """Stacked bars per estimator and post-processing."""
    with plotting.style() as new_figure:
        figure = new_figure(plotting.WIDTH, 3.6)
        plot_parts(one.table, figure.subplots())
        note = f"Stacked bars of the shape, image and model parts of the damage, for {len(one.table.rows)} rows."
        return plotting.finish(figure, folder, one.slug, f"Shape, image, model: {one.title}", note)
