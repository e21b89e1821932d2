"""Accuracy with masks that see the label: bars per test, one for each oracle."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap

from roarfast.explain.oracles import ORACLES
from roarfast.report.figures import plotting
from roarfast.report.figures.plotting import Figure, Handle
from roarfast.report.oracles import OracleCells

_STYLES = dict(zip(ORACLES, ((plotting.BLUE, ""), (plotting.GREEN, ".."), (plotting.VERMILION, "//"))))
_WIDTH = 0.38
MEANINGS = {
    "center": "center: one disk",
    "edge": "edge: a patch, its place tells the class",
    "center+edge": "center+edge: both",
}


def oracle_figure(one: OracleCells, folder: Path) -> Figure:
    """As Figure 1 of Li et al.: accuracy with each oracle's masks, one group of bars per test, the base model dashed."""
    with plotting.style() as new_figure:
        figure = new_figure(plotting.WIDTH, 3.4)
        axis = figure.subplots()
        handles: dict[str, Handle] = {}
        # In the order of the legend, whichever a test has.
        for name in one.names:
            colour, hatch = _STYLES[name]
            handles[MEANINGS[name]] = axis.bar(0, 0, color=colour, hatch=hatch, edgecolor="white")
        for i, cells in enumerate(one.tests.values()):
            names = [name for name in ORACLES if name in cells]
            for j, name in enumerate(names):
                accuracy, x = cells[name].accuracy(), i + (j - (len(names) - 1) / 2) * _WIDTH
                colour, hatch = _STYLES[name]
                axis.bar(x, accuracy.mean, 0.92 * _WIDTH, color=colour, hatch=hatch, edgecolor="white")
                single = cells[name].values("accuracy")
                axis.plot([x] * len(single), single, "o", color=plotting.BLACK, markersize=3, markerfacecolor="white")
                shown = f"{100 * accuracy.mean:.1f}"
                axis.annotate(shown, (x, max(single)), (0, 4), textcoords="offset points", ha="center", fontsize=8)
        base = one.base.accuracy()
        if base.n:
            handles["base model, whole images"] = axis.axhline(
                base.mean, color=plotting.BLACK, linestyle=(0, (4, 2)), linewidth=1
            )
        axis.set_xticks(range(len(one.tests)), ["\n".join(wrap(test.title, 24)) for test in one.tests])
        axis.set_ylim(0, 1.12)
        axis.set_ylabel("test accuracy (%)")
        axis.grid(visible=False, axis="x")
        plotting.percent_axis(axis.yaxis)
        title = f"{one.title}: center and center+edge remove as many pixels of every image"
        plotting.legend(figure, title, handles.values(), handles.keys())
        note = "; ".join(
            f"{test.title}: " + ", ".join(f"{name} {100 * cell.accuracy().mean:.1f} %" for name, cell in cells.items())
            for test, cells in one.tests.items()
        )
        return plotting.finish(figure, folder, one.slug, one.title, f"Bars of test accuracy. {note}.")
