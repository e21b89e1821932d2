"""Strips of example images: input, map, and for each post-processing k(map), mask and modified image."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from roarfast._files import write_atomic
from roarfast.report.examples import Examples
from roarfast.report.figures import plotting
from roarfast.report.figures.plotting import Figure
from roarfast.report.grid import pretty

Pixels = npt.NDArray[np.uint8]
MAX_IMAGES = 2
IMAGE_FILES = "examples-"
"""How the names of all files begin that show images of the data set; `export` leaves these out."""
GAP = 0.08  # between panels, as a fraction of an image's width


def strips(found: Sequence[Examples], folder: Path) -> list[Figure]:
    """One picture per estimator at one drop rate, the middle one, written as PNG."""
    return [strip(one, folder) for one in found]


def strip(one: Examples, folder: Path) -> Figure:
    """The strip of one estimator."""
    # A random block is drawn anew for every rate, and its stored map is that of the last one.
    middle = len(one.drops) // 2 if one.nested(0) else len(one.drops) - 1
    headings = ["input"]
    for k in one.postprocesses:
        headings += [f"{k} map", "mask", "modified"]
    rows = [_row(one, m, middle) for m in range(min(len(one.images), MAX_IMAGES))]
    title = f"{pretty(one.estimator)} at t = {one.drops[middle]:g}"
    words = (
        f"Example images for {title}: input, then for {', '.join(one.postprocesses)} the map, the mask (removed pixels are dark) and the "
        "modified image."
    )
    return picture(rows, headings, folder, f"{IMAGE_FILES}{one.file}", title, words)


def _row(one: Examples, m: int, d: int) -> list[Pixels]:
    row = [rgb(one.images[m])]
    for k in range(len(one.postprocesses)):
        shades = np.where(one.masks[k, d, m], 40, 235).astype(np.uint8)[..., None]
        row += [_coloured(one.processed[k, m]), rgb(shades), rgb(one.modified[k, d, m])]
    return row


def rgb(pixels: Pixels) -> Pixels:
    """Pixels `[H, W, 1]` or `[H, W, 3]` as three channels."""
    return np.broadcast_to(pixels, (*pixels.shape[:2], 3)).astype(np.uint8)


def _coloured(values: npt.NDArray[np.float32]) -> Pixels:
    """A map in viridis, from its minimum to its 99th percentile: single outliers would leave the rest dark."""
    from matplotlib import colormaps

    v = np.nan_to_num(values.astype(np.float64))
    low, high = float(v.min()), float(np.percentile(v, 99))
    scaled = np.clip((v - low) / max(high - low, 1e-30), 0, 1)
    return np.asarray(colormaps["viridis"](scaled, bytes=True))[..., :3]


def picture(
    rows: list[list[Pixels]],
    headings: list[str],
    folder: Path,
    name: str,
    title: str,
    words: str,
    labels: Sequence[Sequence[str]] = (),
) -> Figure:
    """Rows of images as a PNG file, headings above the columns and, where there are `labels`, one above each image.

    The name begins with `IMAGE_FILES`, as the pictures show images of the data set.
    """
    height, width = rows[0][0].shape[:2]
    step, above = 1 + GAP, 0.2 if labels else 0.0
    aspect = height / width
    inches, high = 1.02, aspect + GAP + above
    with plotting.style() as new_figure:
        figure = new_figure(inches * step * len(headings), inches * (len(rows) * high + 0.28))
        figure.set_layout_engine(None)
        axis = figure.add_axes((0, 0, 1, 1))
        axis.set_xlim(0, step * len(headings))
        axis.set_ylim(len(rows) * high, -0.28)
        axis.axis("off")
        for j, heading in enumerate(headings):
            axis.text(j * step + 0.5, -0.1, heading, ha="center", va="center", fontsize=8)
        for i, row in enumerate(rows):
            top = i * high + above
            for j, pixels in enumerate(row):
                extent = (j * step, j * step + 1, top + aspect, top)
                axis.imshow(
                    pixels, extent=extent, interpolation="nearest" if width < 96 else "antialiased", aspect="auto"
                )
                if labels:
                    axis.text(j * step + 0.5, top - above / 2, labels[i][j], ha="center", va="center", fontsize=7)
        axis.set_xlim(0, step * len(headings))
        axis.set_ylim(len(rows) * high, -0.28)
        folder.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=130, metadata={"Software": None})
    write_atomic(folder / f"{name}.png", buffer.getvalue())
    return Figure(name, title, words, png=buffer.getvalue())
