"""How post-processing moves the total variation of masks, and accuracy with it."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING

from roarfast.report.figures import plotting
from roarfast.report.figures.plotting import Figure
from roarfast.report.grid import Panel, pretty
from roarfast.report.regression import shown_rates

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

_ARROW = {"arrowstyle": "-|>", "color": plotting.GREY, "linewidth": 0, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 10}


def tv_arrows(panel: Panel, folder: Path) -> Figure | None:
    """Mask TV against accuracy, arrows plain → max → gaussian… for every rate, one axes per estimator.

    One axes per rate instead would put the arrows of all estimators over each other: they lie near one line.
    """
    paths = {e: _paths(panel, e) for e in panel.estimators if _paths(panel, e)}
    if not paths:
        return None
    every = [point for by_rate in paths.values() for path in by_rate.values() for _, point in path]
    with plotting.style() as new_figure:
        figure, axes = plotting.grid_of_axes(new_figure, len(paths))
        for axis, (estimator, by_rate) in zip(axes, paths.items()):
            axis.set_title(pretty(estimator), loc="left")
            axis.set_ylim(*plotting.y_limits([y for _, y in every]))
            axis.set_xlim(0, 1.12 * max(x for x, _ in every))
            plotting.percent_axis(axis.yaxis)
            for path in by_rate.values():
                _draw_path(axis, panel, path)
        figure.supxlabel("total variation of the masks, per pair of neighbours", fontsize=9)
        figure.supylabel("accuracy (%)", fontsize=9)
        filters = " → ".join(panel.postprocesses)
        title = f"{panel.title}: how {filters} moves the smoothness of masks and accuracy ({panel.better} is better)"
        _marker_legend(figure, panel, title)
        for axis, by_rate in zip(axes, paths.values()):
            own = [point for path in by_rate.values() for point in _along([p for _, p in path])]
            plotting.place_labels(axis, [path[0][1] for path in by_rate.values()], [f"t = {t:g}" for t in by_rate], own)
        note = f"How post-processing moves mask total variation and accuracy; {panel.better} accuracy is better."
        return plotting.finish(figure, folder, f"{panel.slug}-arrows", f"Blur and accuracy: {panel.title}", note)


def _draw_path(axis: Axes, panel: Panel, path: list[tuple[str, tuple[float, float]]]) -> None:
    for (_, start), (_, end) in itertools.pairwise(path):
        axis.plot(*zip(start, end), color=plotting.GREY, linewidth=0.9, zorder=3)
        # The head stands past the middle of the line: at its end, the point would cover it.
        head = (0.4 * start[0] + 0.6 * end[0], 0.4 * start[1] + 0.6 * end[1])
        axis.annotate("", head, start, arrowprops=_ARROW, zorder=3).set_in_layout(False)
    for k, point in path:
        colour, marker, _ = plotting.K_STYLES[panel.postprocesses.index(k) % len(plotting.K_STYLES)]
        axis.plot(*point, marker=marker, color=colour, markersize=4.5, linestyle="none", zorder=4)


def _along(path: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points on the lines of a path, close enough that no label fits between them."""
    steps = [i / 10 for i in range(11)]
    return [((1 - s) * x + s * u, (1 - s) * y + s * v) for (x, y), (u, v) in itertools.pairwise(path) for s in steps]


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


def _marker_legend(figure: MplFigure, panel: Panel, title: str) -> None:
    from matplotlib.lines import Line2D

    styles = [plotting.K_STYLES[i % len(plotting.K_STYLES)] for i in range(len(panel.postprocesses))]
    handles = [Line2D([], [], color=colour, marker=marker, linestyle="none") for colour, marker, _ in styles]
    plotting.legend(figure, title, handles, panel.postprocesses)
