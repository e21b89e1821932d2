"""How much of the class the masks alone give away: networks that were trained and tested on masks (`mask-only`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roarfast.report import plotting
from roarfast.report.grid import BASELINES, Cell, CellKey, mask_only, postprocess_position, pretty, slug
from roarfast.report.plotting import Figure
from roarfast.study.records import StudyResults


@dataclass(frozen=True)
class Leakage:
    """The mask-only cells of one dataset and order. `chance` is 1 / classes, None if their number is not recorded."""

    dataset: str
    order: str
    cells: dict[CellKey, Cell]
    chance: float | None

    @property
    def title(self) -> str:
        """As in "Masks alone, cifar10"."""
        return f"Masks alone{' (least relevant first)' if self.order == 'lerf' else ''}, {self.dataset}"

    @property
    def estimators(self) -> list[str]:
        """In the order of the study, baselines last."""
        return sorted(dict.fromkeys(k.estimator for k in self.cells), key=lambda e: e in BASELINES)

    @property
    def postprocesses(self) -> list[str]:
        """Plain first."""
        return sorted(dict.fromkeys(k.postprocess for k in self.cells), key=postprocess_position)

    @property
    def drops(self) -> list[float]:
        """Ascending."""
        return sorted({k.drop for k in self.cells})

    @property
    def n_trials(self) -> int:
        """The largest number of finished trials of any cell."""
        return max(len(c.trials) for c in self.cells.values())


def leakages(results: StudyResults) -> list[Leakage]:
    """One for each dataset and order that has finished mask-only cells."""
    groups = dict.fromkeys((r.dataset, r.order) for r in results.records if r.protocol == "mask-only")
    classes = results.meta.get("classes")
    found = (Leakage(d, o, mask_only(results, d, o), 1 / classes if classes else None) for d, o in groups)
    return [leakage for leakage in found if leakage.cells]


def leakage_line(leakage: Leakage) -> str:
    """The finding in one sentence."""
    key, cell = max(leakage.cells.items(), key=lambda item: item[1].accuracy().mean)
    text = (
        f"{leakage.title}: a network that sees no image, only the masks, reaches {100 * cell.accuracy().mean:.1f} % "
        f"({pretty(key.estimator)}, {key.postprocess}, t = {key.drop:g})"
    )
    rand = [c.accuracy().mean for k, c in leakage.cells.items() if k.estimator == "rand"]
    if rand:
        text += f"; with random masks {100 * max(rand):.1f} %"
    return text + (f"; chance is {100 * leakage.chance:.1f} %" if leakage.chance else "")


def leakage_figure(leakage: Leakage, folder: Path) -> Figure:
    """Bars of accuracy from the masks alone, for each estimator and post-processing; one axes per rate."""
    names, ks, drops = leakage.estimators, leakage.postprocesses, leakage.drops
    height = 0.8 / len(ks)
    with plotting.style() as new_figure:
        figure = new_figure(plotting.WIDTH, 1.35 + len(names) * (0.12 + 0.17 * len(ks)))
        axes = figure.subplots(1, len(drops), sharex=True, squeeze=False)[0]
        handles: dict[str, Any] = {}
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
        name = f"{slug(leakage.dataset)}-mask-only-{leakage.order}-leakage"
        return plotting.finish(figure, folder, name, f"Leakage: {leakage.title}", note)


_HATCHES = ("", "//", "..", "xx")
