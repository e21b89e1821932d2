"""How much of the class the masks alone give away: networks that were trained and tested on masks (`mask-only`)."""

from __future__ import annotations

from dataclasses import dataclass

from roarfast.report.grid import (
    Cell,
    CellKey,
    baselines_last,
    drops_in,
    mask_only,
    most_trials,
    order_words,
    postprocesses_in,
    pretty,
    slug,
)
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
        return f"Masks alone{order_words(self.order)}, {self.dataset}"

    @property
    def slug(self) -> str:
        """Part of file names."""
        return slug(f"{self.dataset}-mask-only-{self.order}")

    @property
    def estimators(self) -> list[str]:
        """In the order of the study, baselines last."""
        return baselines_last(k.estimator for k in self.cells)

    @property
    def postprocesses(self) -> list[str]:
        """Plain first."""
        return postprocesses_in(self.cells)

    @property
    def drops(self) -> list[float]:
        """Ascending."""
        return drops_in(self.cells)

    @property
    def n_trials(self) -> int:
        """The largest number of finished trials of any cell."""
        return most_trials(self.cells.values())


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
