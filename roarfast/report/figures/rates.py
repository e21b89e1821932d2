"""One image at every drop rate, a row per plain map, the accuracy of the cell above it (Hooker et al., Figures 2, 7, 8)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from roarfast.report.examples import Examples
from roarfast.report.figures.plotting import Figure
from roarfast.report.figures.strips import IMAGE_FILES, picture, rgb
from roarfast.report.grid import PLAIN, Panel, pretty, rate
from roarfast.report.text import percent

MOST_RATES = 9  # columns that are wide enough to see something
IMAGE = 0


def rate_strips(panels: Sequence[Panel], found: Sequence[Examples], folder: Path) -> list[Figure]:
    """A picture per protocol that fills removed pixels, most relevant first: that is what examples are of."""
    shown = (p for p in panels if p.order == "morf" and not p.record.imputes)
    return [figure for panel in shown if (figure := rate_strip(panel, found, folder)) is not None]


def rate_strip(panel: Panel, found: Sequence[Examples], folder: Path) -> Figure | None:
    """The picture of one protocol; None if no example has one of its rates."""
    common = sorted({rate(t) for one in found for t in one.drops if panel.get(one.estimator, PLAIN, rate(t))})
    last = len(common) - 1
    drops = common if last < MOST_RATES else [common[round(i * last / (MOST_RATES - 1))] for i in range(MOST_RATES)]
    rows, labels = [], []
    for one in found:
        if one.estimator not in panel.estimators or PLAIN not in one.postprocesses or not len(one.images):
            continue
        cells = [_cell(panel, one, t) for t in drops]
        if any(pixels is not None for pixels, _ in cells):
            blank = np.full_like(rgb(one.images[IMAGE]), 255)
            rows.append([rgb(one.images[IMAGE]), *(blank if p is None else rgb(p) for p, _ in cells)])
            labels.append([pretty(one.estimator), *(text for _, text in cells)])
    if not rows:
        return None
    title = f"{panel.title}: an image at every rate"
    words = (
        f"The first example image as {panel.record.title} shows it to models, plain maps, with the accuracy of the cell above it (mean over "
        f"trials). The rate is the {panel.rate_name}."
    )
    headings = ["input", *(f"t = {t:g}" for t in drops)]
    return picture(rows, headings, folder, f"{IMAGE_FILES}rates-{panel.slug}", title, words, labels)


def _cell(panel: Panel, one: Examples, drop: float) -> tuple[npt.NDArray[np.uint8] | None, str]:
    """The modified image and the accuracy above it; None where the examples do not tell what removed pixels become."""
    cell, rates = panel.get(one.estimator, PLAIN, drop), [rate(t) for t in one.drops]
    if cell is None or drop not in rates:
        return None, ""
    k, d = one.postprocesses.index(PLAIN), rates.index(drop)
    mask, modified = one.masks[k, d, IMAGE], one.modified[k, d, IMAGE]
    text = f"{percent(cell.accuracy().mean)} %"
    if not panel.record.keeps:
        return modified, text
    fills = modified[mask]
    if not len(fills) or (fills != fills[0]).any():  # it depends on the pixel, and is known for the top ones alone
        return None, text
    return np.where(mask[..., None], one.images[IMAGE], fills[0]), text
