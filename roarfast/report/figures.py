"""The figures of one panel: accuracy curves, the table figure, arrows of total variation, and the regression."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

from roarfast.report import plotting
from roarfast.report.audit import Audit
from roarfast.report.grid import BASELINES, PLAIN, Panel, pretty
from roarfast.report.plotting import Figure
from roarfast.report.regression import TV_KINDS, fit_at, points_at

DIFFERENCE_COLOURS = {"lower": ("#CFE3F3", "#9CC6E6"), "higher": ("#FCE0C2", "#F5BE85"), "zero": ("#F1F3F4",) * 2}
"""Backgrounds of differences: lighter, and stronger where significant. Blue is minus, orange is plus."""


def accuracy_curves(panel: Panel, folder: Path) -> Figure:
    """Small multiples, one per estimator: mean and 95 % interval for each k, baselines and the base model in each."""
    real = [e for e in panel.estimators if e not in BASELINES] or panel.estimators
    values = [v for cell in panel.cells.values() for v in cell.values("accuracy")]
    if not math.isnan(panel.base.mean):
        values.append(panel.base.mean)
    with plotting.style() as new_figure:
        figure, axes = plotting.grid_of_axes(new_figure, len(real), 4, (2.55, 2.15), 0.55)
        for axis, estimator in zip(axes, real):
            _baselines(axis, panel, skip=estimator)
            for i, k in enumerate(panel.postprocesses):
                _curve(axis, panel, estimator, k, i)
            axis.set_title(pretty(estimator), loc="left")
            axis.set_ylim(*plotting.y_limits(values))
            axis.set_xlim(min(panel.drops) - 0.04, max(panel.drops) + 0.04)
            if len(panel.drops) <= 5:
                axis.set_xticks(panel.drops)
            plotting.percent_axis(axis.yaxis)
        figure.supxlabel(panel.rate_name, fontsize=9)
        figure.supylabel("accuracy (%)", fontsize=9)
        handles: dict[str, Any] = {}
        for axis in axes:
            for handle, label in zip(*axis.get_legend_handles_labels()):
                handles.setdefault(label, handle)
        figure.legend(handles.values(), handles.keys(), loc="outside upper left", ncols=6 if len(real) > 2 else 4)
        note = f"Accuracy against the {panel.rate_name} for {len(real)} estimators; {panel.better} is better."
        return plotting.finish(figure, folder, f"{panel.slug}-curves", f"Accuracy curves: {panel.title}", note)


def _curve(axis: Any, panel: Panel, estimator: str, k: str, i: int) -> None:
    found = [(t, c.accuracy()) for t in panel.drops if (c := panel.get(estimator, k, t))]
    if not found:
        return
    colour, marker, line = plotting.K_STYLES[i % len(plotting.K_STYLES)]
    x, y = [t for t, _ in found], [a.mean for _, a in found]
    half = [0.0 if math.isnan(a.half_width) else a.half_width for _, a in found]
    axis.errorbar(
        x, y, half if any(half) else None, color=colour, marker=marker, linestyle=line, markersize=4, linewidth=1.3,
        elinewidth=0.9, capsize=2, label=k, zorder=3 + i,
    )  # fmt: skip


def _baselines(axis: Any, panel: Panel, skip: str) -> None:
    for name, words in BASELINES.items():
        found = [(t, c.accuracy()) for t in panel.drops if (c := panel.get(name, PLAIN, t))]
        if not found or name == skip:
            continue
        colour, dashes = plotting.BASELINE_STYLES[name]
        x, y = [t for t, _ in found], [a.mean for _, a in found]
        axis.plot(x, y, color=colour, linestyle=dashes, linewidth=1.2, label=words, zorder=2)
        if len(found) > 1 and not math.isnan(found[0][1].low):
            low, high = [a.low for _, a in found], [a.high for _, a in found]
            axis.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0, zorder=1)
    if not math.isnan(panel.base.mean):
        axis.axhline(panel.base.mean, color=plotting.PURPLE, linewidth=0.9, label="nothing removed", zorder=1)


def table_figure(audit: Audit, folder: Path) -> Figure:
    """The paper's table figure: plain accuracies, and differences from plain coloured by sign, for every rate."""
    panel = audit.panel
    rows, ks, drops = panel.estimators, panel.postprocesses, panel.main_drops
    rows = [e for e in rows if any(panel.get(e, k, t) for k in ks for t in drops)]
    columns = [(t, k) for t in drops for k in ks]
    from matplotlib.patches import Rectangle

    with plotting.style() as new_figure:
        width, height, left = 0.74, 0.27, 1.15
        figure = new_figure(left + width * len(columns) + 0.1, height * (len(rows) + 2) + 0.1)
        figure.set_layout_engine(None)
        axis = figure.add_axes((0, 0, 1, 1))
        axis.set_xlim(-left / width, len(columns) + 0.1 / width)
        axis.set_ylim(len(rows) + 0.2, -2.15)
        axis.axis("off")
        for j, (t, k) in enumerate(columns):
            axis.text(j + 0.5, -0.45, k, ha="center", va="center", fontsize=8)
            if j % len(ks) == 0:
                axis.text(j + len(ks) / 2, -1.4, f"t = {t:g}", ha="center", va="center", fontweight="bold")
                axis.plot([j + 0.08, j + len(ks) - 0.08], [-0.95, -0.95], color="#5F6368", linewidth=0.7)
        for i, estimator in enumerate(rows):
            axis.text(-0.15, i + 0.5, pretty(estimator), ha="right", va="center")
            for j, (t, k) in enumerate(columns):
                text, colour = _table_cell(audit, estimator, k, t)
                axis.add_patch(Rectangle((j + 0.02, i + 0.03), 0.96, 0.94, color=colour, linewidth=0))
                axis.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=8)
        note = (
            "Plain accuracy in percent; for other post-processings the difference from plain in points. * significant."
        )
        return plotting.finish(figure, folder, f"{panel.slug}-table", f"Differences from plain: {panel.title}", note)


def _table_cell(audit: Audit, estimator: str, k: str, drop: float) -> tuple[str, str]:
    cell = audit.panel.get(estimator, k, drop)
    if cell is None:
        return "–", "#FFFFFF"
    if k == PLAIN:
        return f"{100 * cell.accuracy().mean:.1f}", "#FFFFFF"
    change = audit.change(estimator, k, drop)
    if change is None:
        return f"({100 * cell.accuracy().mean:.1f})", "#FFFFFF"
    return signed(change.difference) + ("*" if change.significant else ""), difference_colour(
        change.difference, change.significant
    )


def signed(difference: float, digits: int = 1) -> str:
    """Percentage points with a sign: "+1.2", "−0.3", and "0.0" when it rounds to zero."""
    text = f"{100 * difference:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def difference_colour(difference: float, significant: bool) -> str:
    """Background for a difference: by the sign of the rounded number."""
    text = signed(difference)
    kind = "lower" if text.startswith("−") else "higher" if text.startswith("+") else "zero"
    return DIFFERENCE_COLOURS[kind][significant]


def tv_arrows(panel: Panel, folder: Path) -> Figure | None:
    """Mask TV against accuracy, arrows plain → max → gaussian… for every rate, one axes per estimator.

    One axes per rate instead would put the arrows of all estimators over each other: they lie near one line.
    """
    paths = {e: _paths(panel, e) for e in panel.estimators if _paths(panel, e)}
    if not paths:
        return None
    every = [point for by_rate in paths.values() for path in by_rate.values() for _, point in path]
    with plotting.style() as new_figure:
        figure, axes = plotting.grid_of_axes(new_figure, len(paths), 4, (2.55, 2.15), 0.55)
        for axis, (estimator, by_rate) in zip(axes, paths.items()):
            axis.set_title(pretty(estimator), loc="left")
            axis.set_ylim(*plotting.y_limits([y for _, y in every]))
            axis.set_xlim(0, 1.12 * max(x for x, _ in every))
            plotting.percent_axis(axis.yaxis)
            for path in by_rate.values():
                _draw_path(axis, panel, path)
        figure.supxlabel("total variation of the masks, per pair of neighbours", fontsize=9)
        figure.supylabel("accuracy (%)", fontsize=9)
        _marker_legend(figure, panel)
        for axis, by_rate in zip(axes, paths.values()):
            own = [point for path in by_rate.values() for _, point in path]
            plotting.place_labels(axis, [path[0][1] for path in by_rate.values()], [f"t = {t:g}" for t in by_rate], own)
        note = f"How post-processing moves mask total variation and accuracy; {panel.better} accuracy is better."
        return plotting.finish(figure, folder, f"{panel.slug}-arrows", f"Blur and accuracy: {panel.title}", note)


def shown_rates(panel: Panel) -> list[float]:
    """At most four of the rates, evenly chosen with the first and the last: more cannot be told apart."""
    drops = panel.main_drops
    if len(drops) <= 4:
        return drops
    return [drops[round(i * (len(drops) - 1) / 3)] for i in range(4)]


def _draw_path(axis: Any, panel: Panel, path: list[tuple[str, tuple[float, float]]]) -> None:
    for (_, start), (_, end) in itertools.pairwise(path):
        arrow = {"arrowstyle": "-|>", "color": plotting.GREY, "linewidth": 0.9, "shrinkA": 2, "shrinkB": 2}
        arrow["mutation_scale"] = 7
        axis.annotate("", end, start, arrowprops=arrow, zorder=3).set_in_layout(False)
    for k, point in path:
        colour, marker, _ = plotting.K_STYLES[panel.postprocesses.index(k) % len(plotting.K_STYLES)]
        axis.plot(*point, marker=marker, color=colour, markersize=4.5, linestyle="none", zorder=4)


def _paths(panel: Panel, estimator: str) -> dict[float, list[tuple[str, tuple[float, float]]]]:
    """Rate → points (k, (mask TV, accuracy)) in the order of k, where there are at least two."""
    paths = {}
    for drop in shown_rates(panel):
        cells = ((k, panel.get(estimator, k, drop)) for k in panel.postprocesses)
        path = [
            (k, (c.mean("tv_mask"), c.accuracy().mean)) for k, c in cells if c and not math.isnan(c.mean("tv_mask"))
        ]
        if len(path) > 1:
            paths[drop] = path
    return paths


def _marker_legend(figure: Any, panel: Panel) -> None:
    from matplotlib.lines import Line2D

    styles = [plotting.K_STYLES[i % len(plotting.K_STYLES)] for i in range(len(panel.postprocesses))]
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=k)
        for (colour, marker, _), k in zip(styles, panel.postprocesses)
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=len(handles))


def tv_scatter(panel: Panel, folder: Path) -> Figure | None:
    """Plain maps: TV against accuracy over estimators with the fitted line; mask TV left, min-max map TV right."""
    drops = [t for t in shown_rates(panel) if len(points_at(panel, "tv_mask", t, "paper")) >= 3]
    if not drops:
        return None
    with plotting.style() as new_figure:
        figure = new_figure(10.2, 3.5 * len(drops) + 0.2)
        axes = figure.subplots(len(drops), 2, sharey="row", squeeze=False)
        for row, drop in zip(axes, drops):
            for axis, (kind, label) in zip(row, TV_KINDS.items()):
                _scatter(axis, panel, kind, drop)
                axis.set_xlabel(label)
                plotting.percent_axis(axis.yaxis)
            row[0].set_ylabel("accuracy (%)")
        for row, drop in zip(axes, drops):
            for axis, kind in zip(row, TV_KINDS):
                points = points_at(panel, kind, drop)
                plotting.place_labels(axis, list(points.values()), [pretty(e) for e in points])
        note = (
            "Total variation of plain masks and maps against accuracy, with the least-squares line and its 95 % band."
        )
        return plotting.finish(figure, folder, f"{panel.slug}-scatter", f"Regression: {panel.title}", note)


def _scatter(axis: Any, panel: Panel, kind: str, drop: float) -> None:
    import numpy as np

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
        if fit.n > 2:
            line, half = fit.line(grid), fit.band(grid)
            axis.fill_between(
                grid, line - half, line + half, color=plotting.VERMILION, alpha=0.12, linewidth=0, zorder=1
            )
        title += f":  R² = {fit.r2:.2f}, {p_text(fit.p)};  Spearman ρ = {fit.spearman:.2f}, {p_text(fit.spearman_p)}"
    axis.set_title(title, loc="left", fontweight="normal")


def p_text(p: float) -> str:
    """A p-value in words: "p = 0.03", "p < 0.001", "no p"."""
    if math.isnan(p):
        return "no p"
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}" if p < 0.1 else f"p = {p:.2f}"
