"""Accuracy against the drop rate."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from roarfast.report.figures import plotting
from roarfast.report.figures.plotting import Figure
from roarfast.report.grid import BASELINES, PLAIN, Panel, pretty


def accuracy_curves(panel: Panel, folder: Path) -> Figure:
    """Small multiples, one per estimator: mean and 95 % interval for each k, baselines and the base model in each.

    Baselines often run at more rates than estimators. The axes of estimators then show their own rates, and one more
    shows the baselines at all of theirs.
    """
    real = [e for e in panel.estimators if e not in BASELINES]
    wider = bool(real) and panel.drops != panel.main_drops
    names = [*real, None] if wider or not real else real
    with plotting.style() as new_figure:
        figure, axes = plotting.grid_of_axes(new_figure, len(names))
        handles: dict[str, Any] = {}
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


def _curve_limits(axis: Any, panel: Panel, drops: list[float], baselines: bool) -> None:
    cells = [c for key, c in panel.cells.items() if key.drop in drops and (not baselines or key.estimator in BASELINES)]
    values = [c.accuracy().mean for c in cells]
    if not math.isnan(panel.base.mean):
        values.append(panel.base.mean)
    axis.set_ylim(*plotting.y_limits(values))
    margin = max(0.04, 0.2 * (max(drops) - min(drops))) if len(drops) <= 5 else 0.04
    axis.set_xlim(min(drops) - margin, max(drops) + margin)
    axis.set_xticks(drops if len(drops) <= 5 else drops[:: (len(drops) - 1) // 2])
    plotting.percent_axis(axis.yaxis)


def _curve(axis: Any, panel: Panel, estimator: str, k: str, i: int) -> None:
    found = [(t, c.accuracy()) for t in panel.drops if (c := panel.get(estimator, k, t))]
    if not found:
        return
    colour, marker, line = plotting.K_STYLES[i % len(plotting.K_STYLES)]
    shift = 0.02 * (i - (len(panel.postprocesses) - 1) / 2) * max(0.2, panel.main_drops[-1] - panel.main_drops[0])
    x, y = [t + shift for t, _ in found], [a.mean for _, a in found]  # side by side, so that no bar hides another
    half = [0.0 if math.isnan(a.half_width) else a.half_width for _, a in found]
    axis.errorbar(
        x, y, half if any(half) else None, color=colour, marker=marker, linestyle=line, markersize=4, linewidth=1.3,
        elinewidth=0.9, capsize=2, label=k, zorder=3 + i,
    )  # fmt: skip


def _baselines(axis: Any, panel: Panel, with_intervals: bool) -> None:
    for name, words in BASELINES.items():
        found = [(t, c.accuracy()) for t in panel.drops if (c := panel.get(name, PLAIN, t))]
        if not found:
            continue
        colour, dashes = plotting.BASELINE_STYLES[name]
        x, y = [t for t, _ in found], [a.mean for _, a in found]
        axis.plot(x, y, color=colour, linestyle=dashes, linewidth=1.3, label=words, zorder=2)
        half = [a.half_width for _, a in found]
        if with_intervals and not any(math.isnan(h) for h in half):
            axis.errorbar(x, y, half, color=colour, linestyle="none", elinewidth=0.8, capsize=1.5, zorder=2)
    if not math.isnan(panel.base.mean):
        axis.axhline(panel.base.mean, color=plotting.PURPLE, linewidth=1.1, label="nothing removed", zorder=1)
