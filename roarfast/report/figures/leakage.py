"""Accuracy from the masks alone."""

from __future__ import annotations

from pathlib import Path

from roarfast.report.figures import plotting
from roarfast.report.figures.plotting import Figure, Handle
from roarfast.report.grid import CellKey, postprocess_position, pretty
from roarfast.report.leakage import Leakage

_HATCHES = ("", "//", "..", "xx")


def leakage_figure(leakage: Leakage, folder: Path) -> Figure:
    """Bars of accuracy from the masks alone, for each estimator and post-processing; one axes per rate."""
    names, ks, drops = leakage.estimators, leakage.postprocesses, leakage.drops
    height = 0.8 / len(ks)
    with plotting.style() as new_figure:
        figure = new_figure(plotting.WIDTH, 1.35 + len(names) * (0.12 + 0.17 * len(ks)))
        axes = figure.subplots(1, len(drops), sharex=True, squeeze=False)[0]
        handles: dict[str, Handle] = {}
        for position, (axis, drop) in enumerate(zip(axes, drops)):
            for i, k in enumerate(ks):
                rows = [(r, c) for r, e in enumerate(names) if (c := leakage.cells.get(CellKey(e, k, drop)))]
                y = [r + (i - (len(ks) - 1) / 2) * height for r, _ in rows]
                values = [c.accuracy().mean for _, c in rows]
                style = postprocess_position(k) % len(_HATCHES)  # the colour that it has in the other figures
                colour = plotting.K_STYLES[style][0]
                handles[k] = axis.barh(y, values, 0.9 * height, color=colour, hatch=_HATCHES[style], edgecolor="white")
                for at, value in zip(y, values):
                    axis.text(value, at, f" {100 * value:.1f}", va="center", fontsize=7.5)
            if leakage.chance:
                handles["chance"] = axis.axvline(
                    leakage.chance, color=plotting.BLACK, linestyle=(0, (4, 2)), linewidth=1
                )
            axis.set_yticks(range(len(names)), [pretty(e) for e in names] if position == 0 else [])
            axis.set_ylim(len(names) - 0.5, -0.5)
            axis.set_xlim(0, 1.12 * max(c.accuracy().mean for c in leakage.cells.values()))
            axis.set_title(f"t = {drop:g}", loc="left")
            axis.grid(visible=False, axis="y")
            plotting.percent_axis(axis.xaxis)
        figure.supxlabel("accuracy (%) of a network trained and tested on the masks alone", fontsize=9)
        title = f"{leakage.title}: what the shape of the masks gives away of the class"
        plotting.legend(figure, title, handles.values(), handles.keys())
        note = (
            f"Accuracy of networks that see only masks, for {len(names)} estimators; chance is what no leakage gives."
        )
        name = f"{leakage.slug}-leakage"
        return plotting.finish(figure, folder, name, f"Leakage: {leakage.title}", note)
