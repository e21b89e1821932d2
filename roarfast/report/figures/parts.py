"""The damage taken apart: stacked bars, plain against post-processed; and own accuracy at equal damage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from roarfast.metrics.damage_plot import COLOURS
from roarfast.report.figures import plotting
from roarfast.report.figures.plotting import Figure, Handle
from roarfast.report.grid import pretty
from roarfast.report.parts import StudyParts
from roarfast.report.text import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from roarfast.metrics.damage_parts import EstimatorParts

MOST_BARS = 36  # side by side: with more, the numbers above them run into each other
_HATCHES = {"shape": "", "image": "//", "model": "xx"}  # never by colour alone


def parts_figure(one: StudyParts, folder: Path) -> Figure:
    """Stacked bars of shape, image and model for every map, those of one estimator side by side, the raw score above them."""
    names, ks = one.estimators, one.postprocesses
    width, per_row = 0.84 / len(ks), max(1, MOST_BARS // len(ks))
    rows = [names[i : i + per_row] for i in range(0, len(names), per_row)]
    with plotting.style() as new_figure:
        figure = new_figure(plotting.WIDTH, 2.9 * len(rows) + 1)
        axes = figure.subplots(len(rows), 1, sharey=True, squeeze=False)[:, 0]
        handles: dict[str, Handle] = {}
        for axis, shown in zip(axes, rows):
            for i, estimator in enumerate(shown):
                mine = [k for k in ks if (estimator, k) in one.rows]
                for j, k in enumerate(mine):
                    x = i + (j - (len(mine) - 1) / 2) * width
                    _stack(axis, one.rows[estimator, k], x, 0.9 * width, handles)
            axis.axhline(0, color=plotting.BLACK, linewidth=0.8)
            axis.set_xticks(range(len(shown)), [pretty(e) for e in shown], rotation=30 if len(shown) > 10 else 0)
            axis.set_xlim(-0.6, (per_row if len(rows) > 1 else len(shown)) - 0.4)
            axis.margins(y=0.12)
            axis.grid(visible=False, axis="x")
            axis.set_ylabel("accuracy lost (points)")
        title = f"{one.title}: what the lost accuracy is made of. Bars of an estimator: {', '.join(ks)}; above: accuracy left (%)"
        plotting.legend(figure, title, handles.values(), handles.keys())
        note = (
            f"Stacked bars of the shape, image and model parts of the damage for {len(names)} estimators with {', '.join(ks)}; "
            "the accuracy left stands above each bar."
        )
        return plotting.finish(figure, folder, f"{one.slug}-parts", f"Shape, image, model: {one.title}", note)


def _stack(axis: Axes, row: EstimatorParts, x: float, width: float, handles: dict[str, Handle]) -> None:
    up = down = 0.0
    for part, colour in COLOURS.items():
        height = 100 * getattr(row, part).value
        bottom = up if height >= 0 else down
        words = {"shape": "shape: any image", "image": "image: any model", "model": "model: this model"}[part]
        handles[words] = axis.bar(
            x, height, width, bottom, color=colour, hatch=_HATCHES[part], edgecolor="white", linewidth=0.4
        )
        up, down = up + max(height, 0.0), down + min(height, 0.0)
    axis.text(x, up, percent(row.own, 0), ha="center", va="bottom", fontsize=7.5)


def equal_damage_figure(one: StudyParts, folder: Path) -> Figure:
    """Own accuracy against the accuracy with other images' masks over all rates; one axes per estimator."""
    with plotting.style() as new_figure:
        figure, axes = plotting.grid_of_axes(new_figure, len(one.estimators))
        handles: dict[str, Handle] = {}
        every = [v for c in one.equal.values() for v in (*c.null, *c.own)]
        ends = plotting.y_limits(every)
        for axis, estimator in zip(axes, one.estimators):
            (handles["knows nothing"],) = axis.plot(ends, ends, color=plotting.GREY, linewidth=0.8, linestyle=":")
            for i, k in enumerate(one.postprocesses):
                curve = one.equal.get((estimator, k))
                if curve is not None:
                    colour, marker, line = plotting.K_STYLES[i % len(plotting.K_STYLES)]
                    (handles[k],) = axis.plot(
                        curve.null, curve.own, color=colour, marker=marker, linestyle=line, markersize=4, linewidth=1.2
                    )
            axis.set_title(pretty(estimator), loc="left")
            axis.set_xlim(*ends)
            axis.set_ylim(*ends)
            plotting.percent_axis(axis.xaxis)
            plotting.percent_axis(axis.yaxis)
        figure.supxlabel("accuracy (%) with other images' masks of this kind", fontsize=9)
        figure.supylabel("accuracy (%) with its own masks", fontsize=9)
        title = f"{one.title}: further below the diagonal is better; blur moves a map along its curve, not off it"
        plotting.legend(figure, title, handles.values(), handles.keys())
        note = f"Accuracy with own masks against accuracy with masks of other images, for {len(one.estimators)} estimators."
        return plotting.finish(figure, folder, f"{one.slug}-equal-damage", f"Equal damage: {one.title}", note)
