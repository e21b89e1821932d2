"""Total variation against accuracy over estimators, with the fitted line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from roarfast.report.figures import plotting
from roarfast.report.figures.plotting import Figure, Handle
from roarfast.report.grid import BASELINES, Panel, pretty
from roarfast.report.regression import FEWEST_POINTS, TV_KINDS, fit_at, points_at, shown_rates
from roarfast.report.text import number, p_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

_SHOWN = ("tv_mask", "tv_map")  # the maps of train images look like those of test images: they are in the table


def tv_scatter(panel: Panel, folder: Path) -> Figure | None:
    """Plain maps: TV against accuracy over estimators with the fitted line; mask TV left, min-max map TV right."""
    drops = [t for t in shown_rates(panel) if len(points_at(panel, "tv_mask", t, "paper")) >= FEWEST_POINTS]
    if not drops:
        return None
    with plotting.style() as new_figure:
        figure = new_figure(plotting.WIDTH, 2.9 * len(drops) + 0.6)
        axes = figure.subplots(len(drops), 2, sharey="row", squeeze=False)
        for row, drop in zip(axes, drops):
            for axis, kind in zip(row, _SHOWN):
                _scatter(axis, panel, kind, drop)
                axis.set_xlabel(TV_KINDS[kind])
                plotting.percent_axis(axis.yaxis)
            row[0].set_ylabel("accuracy (%)")
        _scatter_legend(figure, panel)
        for row, drop in zip(axes, drops):
            for axis, kind in zip(row, _SHOWN):
                points = points_at(panel, kind, drop)
                plotting.place_labels(axis, list(points.values()), [pretty(e) for e in points])
        note = (
            "Total variation of plain masks and maps against accuracy, with the least-squares line and its 95 % band."
        )
        return plotting.finish(figure, folder, f"{panel.slug}-scatter", f"Regression: {panel.title}", note)


def _scatter(axis: Axes, panel: Panel, kind: str, drop: float) -> None:
    points = points_at(panel, kind, drop)
    for estimator, (x, y) in points.items():
        hollow = estimator in BASELINES
        face = "white" if hollow else plotting.BLUE
        axis.plot(x, y, "o", markersize=6, markerfacecolor=face, markeredgecolor=plotting.BLUE, zorder=4)
    fit = fit_at(panel, kind, drop)
    axis.margins(0.12)
    if points:
        axis.set_ylim(*plotting.y_limits([y for _, y in points.values()]))
    title = f"t = {drop:g}"
    if not math.isnan(fit.r2):
        grid = np.linspace(min(p[0] for p in points.values()), max(p[0] for p in points.values()), 60)
        axis.plot(grid, fit.line(grid), color=plotting.VERMILION, linewidth=1.4, zorder=3)
        line, half = fit.line(grid), fit.band(grid)
        axis.fill_between(grid, line - half, line + half, color=plotting.VERMILION, alpha=0.12, linewidth=0, zorder=1)
        title += f":  R² = {fit.r2:.2f} ({p_text(fit.p)}),  Spearman ρ = {number(fit.spearman, 2)} ({p_text(fit.spearman_p)})"
    axis.set_title(title, loc="left", fontweight="normal", fontsize=8.5)


def _scatter_legend(figure: MplFigure, panel: Panel) -> None:
    from matplotlib.lines import Line2D

    handles: dict[str, Handle] = {
        "estimator, plain map": Line2D([], [], marker="o", color=plotting.BLUE, linestyle="none")
    }
    if any(e in BASELINES for e in panel.estimators):
        hollow = Line2D([], [], marker="o", markerfacecolor="white", color=plotting.BLUE, linestyle="none")
        handles["random baseline"] = hollow
    handles["least squares, 95 % band"] = Line2D([], [], color=plotting.VERMILION, linewidth=1.4)
    title = (
        f"{panel.title}: total variation of masks (left) and maps (right) against accuracy ({panel.better} is better)"
    )
    plotting.legend(figure, title, handles.values(), handles.keys())
