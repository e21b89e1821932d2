"""What the base models answered to every test image, where a study kept it: parts and intervals over images, classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roarfast.metrics.resampling import Estimate, bootstrap, weighted_mean
from roarfast.metrics.responses import Responses, ResponsesCorrupt
from roarfast.report.grid import BASELINES, PLAIN, Panel, pretty, rate
from roarfast.report.table import Table, Td, table
from roarfast.report.text import percent
from roarfast.study.records import Curve, StudyResults
from roarfast.study.runfolder import RunFolder

Floats = npt.NDArray[np.float64]
MOST_CLASSES = 25  # columns of a table


@dataclass(frozen=True)
class Answers:
    """The file of one curve."""

    curve: Curve
    responses: Responses

    @property
    def rates(self) -> list[float]:
        """As the panels have them."""
        return [rate(t) for t in self.responses.rates.tolist()]


def stored_answers(results: StudyResults, files: RunFolder, wanted: Callable[[Curve], bool]) -> list[Answers]:
    """The answers of some curves; those without a file, or with a damaged one, are left out."""
    found = []
    for curve in results.curves:
        if wanted(curve):
            try:
                found.append(Answers(curve, Responses.load(files.responses(curve.key))))
            except (OSError, ResponsesCorrupt):
                continue
    return found


def of_panel(found: Sequence[Answers], panel: Panel) -> dict[tuple[str, str], list[Answers]]:
    """(estimator, post-processing) → its answers by trial, with its own masks, all at the rates of the panel."""
    mine: dict[tuple[str, str], list[Answers]] = {}
    for one in found:
        c = one.curve
        if (c.protocol, c.order, c.null) == (panel.protocol, panel.order, "own") and set(panel.main_drops) <= set(
            one.rates
        ):
            mine.setdefault((c.estimator, c.postprocess), []).append(one)
    return mine


def image_areas(answers: Sequence[Answers], panel: Panel) -> Floats:
    """Mean over t of each image's accuracy, as `scores.areas` has it for all images; mean over trials, `[N]`."""
    rows = []
    for one in answers:
        x = [panel.whole, *panel.main_drops]
        y = [
            one.responses.whole.of("accuracy"),
            *(one.responses.values()[one.rates.index(t)] for t in panel.main_drops),
        ]
        order = np.argsort(x)
        rows.append(np.trapezoid(np.array(y)[order], np.array(x)[order], axis=0) / (max(x) - min(x)))
    return np.asarray(np.mean(rows, 0))


def random_over_images(found: Sequence[Answers], panel: Panel) -> dict[tuple[str, str], Estimate]:
    """(estimator, post-processing) → its area less that of random pixels, with a 95 % interval over images."""
    mine = of_panel(found, panel)
    random = mine.get(("rand", PLAIN))
    if not random:
        return {}
    baseline = image_areas(random, panel)
    keys = [key for key in mine if key[0] != "rand" and len(mine[key][0].responses) == len(baseline)]
    if not keys:
        return {}
    differences = np.array([image_areas(mine[key], panel) - baseline for key in keys])
    drawn = bootstrap(weighted_mean(differences), differences.shape[1])
    return {key: drawn[i].estimate() for i, key in enumerate(keys)}


def class_table(found: Sequence[Answers], panel: Panel, names: Sequence[str]) -> Table | None:
    """Accuracy per class, mean over rates and trials, of the plain maps; None where the answers were not kept."""
    mine = {key: one for key, one in of_panel(found, panel).items() if key[1] == PLAIN}
    if not mine:
        return None
    first = next(iter(mine.values()))[0].responses
    classes = max(len(names), int(first.labels.max()) + 1)
    if classes > MOST_CLASSES:
        return None
    shown = [names[c] if c < len(names) else f"class {c}" for c in range(classes)]
    rows = [
        [Td("nothing removed"), *_class_cells(np.array([_by_class(first.whole.of("accuracy"), first.labels, classes)]))]
    ]
    for estimator in sorted({e for e, _ in mine}, key=lambda e: (e in BASELINES, panel.estimators.index(e))):
        answers = mine[estimator, PLAIN]
        rates = np.array(
            [
                one.responses.per_class(classes=classes)[[one.rates.index(t) for t in panel.main_drops]]
                for one in answers
            ]
        )
        rows.append([Td(pretty(estimator)), *_class_cells(rates.mean(1))])
    caption = (
        f"{panel.title}: accuracy (%) of the plain maps for the images of each class, mean over the rates and trials."
    )
    return table(f"{panel.slug}-classes", caption, ["Estimator", *shown], rows)


def _by_class(values: Floats, labels: npt.NDArray[np.int64], classes: int) -> Floats:
    counts = np.bincount(labels, minlength=classes)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.bincount(labels, values, minlength=classes) / counts)


def _class_cells(values: Floats) -> list[Td]:
    return [Td(percent(v), v) for v in map(float, values.mean(0))]
