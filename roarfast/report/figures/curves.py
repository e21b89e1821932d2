"""Accuracy against the drop rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from roarfast.report.figures import plotting
from roarfast.report.figures.plotting import Figure, Handle
from roarfast.report.grid import BASELINES, BITS, PLAIN, Panel, pretty

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def accuracy_curves(panel: Panel, folder: Path) -> Figure:
    """Small multiples, one per estimator: mean and 95 % interval for each k, baselines in each; curves begin where nothing is removed.

    Baselines often run at more rates than estimators. The axes of estimators then show their own rates, and one more
    shows the baselines at all of theirs.
    """
    real = [e for e in panel.estimators if e not in BASELINES]
    wider = bool(real) and panel.drops != panel.main_drops
    names = [*real, None] if wider or not real else real
    with plotting.style() as new_figure:
        figure, axes = plotting.grid_of_axes(new_figure, len(names))
        handles: dict[str, Handle] = {}
        for axis, estimator in zip(axes, names):
            drops = panel.drops if estimator is None else panel.main_drops
            _baselines(axis, panel, with_intervals=estimator is None or not wider)
            for i, k in enumerate(panel.postprocesses):
                if estimator is not None:
                    _curve(axis, panel, estimator, k, i)
            axis.set_title("random baselines" if estimator is None else pretty(estimator), loc="left")
            _curve_limits(axis, panel, drops, estimator is None)
            for handle, label in zip(*axis.get_legend_handles_labels()):
                handles.setdefault(label, handle)
        if wider:
            axes[-1].tick_params(labelleft=True)
        bars = f"   (bars: 95 % interval of {panel.n_trials} trials)" if panel.n_trials > 1 else ""
        figure.supxlabel(panel.rate_name + bars, fontsize=9)
        figure.supylabel("accuracy (%)", fontsize=9)
        title = f"{panel.title}: accuracy against the {panel.rate_name} ({panel.better} is better)"
        plotting.legend(figure, title, handles.values(), handles.keys())
        note = f"Accuracy against the {panel.rate_name} for {len(real)} estimators; {panel.better} is better."
        return plotting.finish(figure, folder, f"{panel.slug}-curves", f"Accuracy curves: {panel.title}", note)


def _curve_limits(axis: Axes, panel: Panel, drops: list[float], baselines: bool) -> None:
    cells = [c for key, c in panel.cells.items() if key.drop in drops and (not baselines or key.estimator in BASELINES)]
    values = [c.accuracy().mean for c in cells]
    if not math.isnan(panel.base.mean):
        values.append(panel.base.mean)
    axis.set_ylim(*plotting.y_limits(values))
    shown = sorted({*drops, panel.whole} if panel.base_cell.trials else drops)
    axis.set_xlim(shown[0] - 0.04, shown[-1] + 0.04)
    axis.set_xticks(shown if len(shown) <= 5 else shown[:: (len(shown) - 1) // 2])
    plotting.percent_axis(axis.yaxis)


def _curve(axis: Axes, panel: Panel, estimator: str, k: str, i: int) -> None:
    found = panel.curve(estimator, k)
    if not found:
        return
    colour, marker, line = plotting.K_STYLES[i % len(plotting.K_STYLES)]
    shift = 0.02 * (i - (len(panel.postprocesses) - 1) / 2) * max(0.2, panel.main_drops[-1] - panel.main_drops[0])
    # Side by side, so that no bar hides another; nothing removed is the same for all.
    x = [t if t == panel.whole else t + shift for t, _ in found]
    y = [a.mean for _, a in found]
    half = [0.0 if math.isnan(a.half_width) else a.half_width for _, a in found]
    axis.errorbar(
        x,
        y,
        half if any(half) else None,
        color=colour,
        marker=marker,
        linestyle=line,
        markersize=4,
        linewidth=1.3,
        elinewidth=0.9,
        capsize=2,
        label=k,
        zorder=3 + i,
    )


def _baselines(axis: Axes, panel: Panel, with_intervals: bool) -> None:
    for name, words in BASELINES.items():
        found = panel.curve(name, PLAIN)
        if not found:
            continue
        colour, dashes = plotting.BASELINE_STYLES[name]
        x, y = [t for t, _ in found], [a.mean for _, a in found]
        axis.plot(x, y, color=colour, linestyle=dashes, linewidth=1.3, label=words, zorder=2)
        half = [a.half_width for _, a in found]
        if with_intervals and not any(math.isnan(h) for h in half):
            axis.errorbar(x, y, half, color=colour, linestyle="none", elinewidth=0.8, capsize=1.5, zorder=2)


MOST_COLOURS = 8


def overview(panels: Sequence[Panel], folder: Path, name: str = "accuracy", shift: float = 0.0) -> Figure:
    """All plain maps over each other, one axes per protocol; the best are coloured and named, the others grey.

    Args:
        panels: The protocols.
        folder: Where the files go.
        name: The field of the records: `accuracy` or `true_class_probability`; or one of `grid.BITS`.
        shift: Added to all values: the bits that there are to know.
    """
    words = {
        "accuracy": "accuracy (%)",
        "true_class_probability": "mean probability of the true class (%)",
        "bits": "bits left",
        "scaled_bits": "bits left, temperature scaled",
    }[name]
    with plotting.style() as new_figure:
        figure, axes = plotting.two_columns(new_figure, len(panels), 3.3)
        ranked = _best_first(panels[0], name)
        for axis, panel in zip(axes, panels):
            _overlay(axis, panel, name, shift, [*ranked, *(e for e in _best_first(panel, name) if e not in ranked)])
            axis.set_title("\n".join(wrap(f"{panel.title} ({panel.better} is better)", 46)), loc="left", fontsize=9)
            axis.set_xlabel(panel.rate_name)
            if name not in BITS:
                plotting.percent_axis(axis.yaxis)
            axis.legend(fontsize=7.5, handlelength=2.2, ncols=2 if len(axis.lines) > 6 else 1)
        for axis in axes[::2]:
            axis.set_ylabel(words)
        note = f"{words} against the drop rate, all plain maps over each other, for {len(panels)} protocols."
        return plotting.finish(figure, folder, f"overview-{name.replace('_', '-')}", f"All plain maps, {words}", note)


def _best_first(panel: Panel, name: str) -> list[str]:
    """Estimators by the mean of their curve; the first protocol decides which are coloured, and how, in all."""
    k = panel.postprocesses[0]
    curves = {e: panel.curve(e, k, name) for e in panel.estimators if e not in BASELINES}
    heights = {e: sum(a.mean for _, a in curve) / len(curve) for e, curve in curves.items() if curve}
    return sorted(heights, key=heights.__getitem__, reverse=panel.better == "higher")


def _overlay(axis: Axes, panel: Panel, name: str, shift: float, order: list[str]) -> None:
    for i, estimator in enumerate(order):
        curve = panel.curve(estimator, panel.postprocesses[0], name)
        x, y = [t for t, _ in curve], [a.mean + shift for _, a in curve]
        if i >= MOST_COLOURS:
            axis.plot(x, y, color="#B8BDC2", linewidth=0.8, zorder=2, label="others" if i == MOST_COLOURS else None)
            continue
        colour, marker = plotting.MAP_STYLES[i]
        axis.plot(x, y, color=colour, marker=marker, markersize=4, linewidth=1.4, zorder=4, label=pretty(estimator))
        half = [a.half_width for _, a in curve]
        if len(order) <= MOST_COLOURS and not any(math.isnan(h) for h in half):
            axis.errorbar(x, y, half, color=colour, linestyle="none", elinewidth=0.7, capsize=1.5, zorder=3)
    for baseline, words in BASELINES.items():
        curve = [(t, a) for t, a in panel.curve(baseline, PLAIN, name) if t in (*panel.main_drops, panel.whole)]
        if curve:
            colour, dashes = plotting.BASELINE_STYLES[baseline]
            axis.plot(
                *zip(*((t, a.mean + shift) for t, a in curve)),
                color=colour,
                linestyle=dashes,
                linewidth=1.6,
                label=words,
            )
    # Of the curves alone: bars of two trials would flatten all of them.
    values = [
        v
        for line in axis.lines
        if np.size(line.get_xdata()) > 1 and line.get_linestyle() != "None"
        for v in np.asarray(line.get_ydata(), np.float64).tolist()
    ]
    if values and name not in BITS:
        axis.set_ylim(*plotting.y_limits(values))
