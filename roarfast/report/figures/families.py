"""Figures 4, 5 and 6 of Hooker et al.: protocols beside each other; methods as they are, averaged, squared, and both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from roarfast.report.families import methods
from roarfast.report.figures import plotting
from roarfast.report.figures.plotting import Figure, Handle
from roarfast.report.grid import PLAIN, Panel, pretty, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINES = {
    "raw": ("-", "o"),
    "SG": ((0, (1, 1.2)), "v"),
    "SQ": ((0, (5, 1.5)), "s"),
    "SG-SQ": ((0, (5, 1.5, 1, 1.5)), "D"),
}
_NAMES = {"raw": "{}", "SG": "SG-{}", "SQ": "SQ-{}", "SG-SQ": "SG-SQ-{}"}


@dataclass(frozen=True)
class Curves:
    """Some families of a panel in one plot."""

    panel: Panel
    families: Sequence[str]
    suffix: str = ""
    faint: bool = False


def family_figures(panels: Sequence[Panel], folder: Path) -> list[Figure]:
    """The figures that the protocols of a study allow, for each data set whose ROAR has two methods in two families each or more."""
    found = []
    for roar in (p for p in panels if (p.protocol, p.order) == ("roar", "morf") and len(methods(p)) > 1):
        by = {p.protocol: p for p in panels if (p.dataset, p.order) == (roar.dataset, "morf")}
        has = {name for members in methods(roar).values() for name in members}
        stem = slug(roar.dataset)
        if "no-retrain" in by and "raw" in has:
            axes = [
                (
                    "retrained, and not",
                    [Curves(roar, ("raw",)), Curves(by["no-retrain"], ("raw",), ", not retrained", True)],
                )
            ]
            title = f"ROAR and no retraining, {roar.dataset}: accuracy of the raw estimators"
            found.append(_figure(axes, folder, f"{stem}-families-retrained", title))
        if "SG-SQ" in has:
            axes = [("ROAR (lower is better)", [Curves(roar, ("raw", "SG-SQ"))])]
            if "kar" in by:
                axes.append(("KAR (higher is better)", [Curves(by["kar"], ("raw", "SG-SQ"))]))
            title = f"{' and '.join(name.split(' (')[0] for name, _ in axes)}, {roar.dataset}: raw and SG-SQ"
            found.append(_figure(axes, folder, f"{stem}-families-sg-sq", title))
        others = [name for name in ("SG", "SQ") if name in has]
        if others:
            axes = [(f"ROAR: raw and {name}", [Curves(roar, ("raw", name))]) for name in others]
            title = f"ROAR, {roar.dataset}: averaging alone, and squaring alone (lower is better)"
            found.append(_figure(axes, folder, f"{stem}-families-parts", title))
    return found


def _figure(axes: Sequence[tuple[str, list[Curves]]], folder: Path, name: str, title: str) -> Figure:
    with plotting.style() as new_figure:
        figure = new_figure(plotting.WIDTH if len(axes) > 1 else 0.75 * plotting.WIDTH, 3.9)
        shown = figure.subplots(1, len(axes), sharey=True, squeeze=False)[0]
        handles: dict[str, Handle] = {}
        for axis, (words, curves) in zip(shown, axes):
            for one in curves:
                _draw(axis, one)
            axis.set_title(words, loc="left")
            axis.set_xlabel(curves[0].panel.rate_name)
            for handle, label in zip(*axis.get_legend_handles_labels()):
                handles.setdefault(label, handle)
        shown[0].set_ylabel("accuracy (%)")
        plotting.percent_axis(shown[0].yaxis)
        plotting.legend(figure, title, handles.values(), handles.keys())
        note = f"Accuracy against the rate in {len(axes)} plots: {', '.join(handles)}."
        return plotting.finish(figure, folder, name, title, note)


def _draw(axis: Axes, one: Curves) -> None:
    panel = one.panel
    for i, (method, members) in enumerate(methods(panel).items()):
        colour, _ = plotting.MAP_STYLES[i % len(plotting.MAP_STYLES)]
        for family in (f for f in one.families if f in members):
            line, marker = _LINES[family]
            curve = panel.curve(members[family], PLAIN)
            label = _NAMES[family].format(pretty(method)) + one.suffix
            style = {"linestyle": (0, (1, 1)), "alpha": 0.75} if one.faint else {"linestyle": line}
            axis.plot(
                [t for t, _ in curve],
                [a.mean for _, a in curve],
                color=colour,
                marker=marker,
                markersize=4,
                linewidth=1.4,
                label=label,
                **style,
            )
    random = panel.curve("rand", PLAIN)
    if random:
        colour, dashes = plotting.BASELINE_STYLES["rand"]
        axis.plot(
            [t for t, _ in random],
            [a.mean for _, a in random],
            color=colour,
            linestyle=dashes,
            linewidth=1.8,
            zorder=2,
            label="random pixels" + one.suffix,
            alpha=0.5 if one.faint else None,
        )
