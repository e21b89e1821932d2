"""The paper's table figure: what post-processing adds to plain accuracy."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap

from roarfast.report.audit import Audit
from roarfast.report.figures import plotting
from roarfast.report.figures.plotting import Figure
from roarfast.report.grid import PLAIN, pretty
from roarfast.report.text import signed

DIFFERENCE_COLOURS = {"lower": ("#CFE3F3", "#9CC6E6"), "higher": ("#FCE0C2", "#F5BE85"), "zero": ("#F1F3F4",) * 2}
"""Backgrounds of differences: lighter, and stronger where significant. Blue is minus, orange is plus."""


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


def difference_colour(difference: float, significant: bool) -> str:
    """Background for a difference: by the sign of the rounded number."""
    text = signed(difference)
    kind = "lower" if text.startswith("−") else "higher" if text.startswith("+") else "zero"
    return DIFFERENCE_COLOURS[kind][significant]
