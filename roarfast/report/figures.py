"""The figures of one panel: accuracy curves and the table of differences; `tv_figures` has the others."""

from __future__ import annotations

import math
from pathlib import Path
from textwrap import wrap
from typing import Any

from roarfast.report import plotting
from roarfast.report.audit import Audit
from roarfast.report.grid import BASELINES, PLAIN, Panel, pretty
from roarfast.report.plotting import Figure

DIFFERENCE_COLOURS = {"lower": ("#CFE3F3", "#9CC6E6"), "higher": ("#FCE0C2", "#F5BE85"), "zero": ("#F1F3F4",) * 2}
"""Backgrounds of differences: lighter, and stronger where significant. Blue is minus, orange is plus."""


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


def table_figure(audit: Audit, folder: Path) -> Figure:
    """The paper's table figure: plain accuracies, and differences from plain coloured by sign, for every rate."""
    panel = audit.panel
    rows, ks, drops = panel.estimators, panel.postprocesses, panel.main_drops
    rows = [e for e in rows if any(panel.get(e, k, t) for k in ks for t in drops)]
    columns = [(t, k) for t in drops for k in ks]
    from matplotlib.patches import Rectangle

    with plotting.style() as new_figure:
        height, left = 0.27, 0.95
        width = max(0.74, (plotting.WIDTH - left - 0.1) / max(len(columns), 8))
        title = (
            f"{panel.title}: plain accuracy (%), and what post-processing adds to it (points); {panel.better} is better"
        )
        figure = new_figure(
            max(left + width * len(columns) + 0.1, 0.8 * plotting.WIDTH), height * (len(rows) + 3.4) + 0.1
        )
        figure.set_layout_engine(None)
        axis = figure.add_axes((0, 0, 1, 1))
        axis.set_xlim(-left / width, (figure.get_figwidth() - left) / width)
        axis.set_ylim(len(rows) + 0.2, -3.55)
        axis.axis("off")
        lines = "\n".join(wrap(title, int(figure.get_figwidth() * 11.4), break_on_hyphens=False))
        axis.text((0.12 - left) / width, -2.75, lines, va="center", fontweight="bold", fontsize=9.5)
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


def p_text(p: float) -> str:
    """A p-value in words: "p = 0.03", "p < 0.001", "no p"."""
    if math.isnan(p):
        return "no p"
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}" if p < 0.1 else f"p = {p:.2f}"
