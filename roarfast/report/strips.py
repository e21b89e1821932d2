"""Strips of example images: input, map, and for each post-processing k(map), mask and modified image."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from roarfast.report import plotting
from roarfast.report.grid import pretty
from roarfast.report.plotting import Figure

Pixels = npt.NDArray[np.uint8]
MAX_IMAGES = 2
GAP = 0.08  # between panels, as a fraction of an image's width
_K_NAMES = ("postprocesses", "postprocess", "k", "names")
_DROP_NAMES = ("drops", "drop")


def strips(examples: Path, estimators: Sequence[str], folder: Path) -> list[Figure]:
    """One picture per estimator that has a file in `examples`; files that cannot be read are left out.

    Files are `<slug>.npz` as a study writes them: images `[M, H, W, 3]` uint8, map `[M, H, W]`, processed
    `[K, M, H, W]`, mask `[K, D, M, H, W]` (True = removed), modified `[K, D, M, H, W, 3]`, and the names of K and D.
    """
    found = []
    for estimator in estimators:
        path = examples / f"{file_stem(estimator)}.npz"
        if not path.exists():
            continue
        try:
            with np.load(path, allow_pickle=False) as arrays:
                found.append(strip(dict(arrays), estimator, folder))
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            continue
    return found


def file_stem(estimator: str) -> str:
    """The estimator's name in file names: `sg-sq(ig)^2` is `sg-sq.ig.2`."""
    return estimator.replace("(", ".").replace(")", "").replace("^", ".")


def strip(arrays: dict[str, npt.NDArray[Any]], estimator: str, folder: Path) -> Figure:
    """The strip of one estimator at the middle drop rate, written as PNG."""
    ks = _names(arrays, _K_NAMES, arrays["processed"].shape[0])
    drops = _names(arrays, _DROP_NAMES, arrays["mask"].shape[1])
    middle = len(drops) // 2
    headings = ["input"]
    for k in ks:
        headings += [f"{k} map", "mask", "modified"]
    rows = [_row(arrays, m, len(ks), middle) for m in range(min(arrays["images"].shape[0], MAX_IMAGES))]
    title = f"{pretty(estimator)} at t = {float(drops[middle]):g}" if drops[middle] else pretty(estimator)
    words = f"Example images for {title}: input, then for {', '.join(ks)} the map, the mask (removed pixels are dark) and the modified image."
    return _picture(rows, headings, folder, f"examples-{file_stem(estimator)}", title, words)


def _names(arrays: dict[str, npt.NDArray[Any]], keys: Sequence[str], count: int) -> list[str]:
    values = next((arrays[key] for key in keys if key in arrays), None)
    return [str(v) for v in values.tolist()] if values is not None and values.size == count else [""] * count


def _row(arrays: dict[str, npt.NDArray[Any]], m: int, n_k: int, d: int) -> list[Pixels]:
    row = [np.asarray(arrays["images"][m], np.uint8)]
    for k in range(n_k):
        mask = arrays["mask"][k, d, m].astype(bool)
        shades = np.where(mask, 40, 235).astype(np.uint8)
        row += [_coloured(arrays["processed"][k, m]), np.repeat(shades[..., None], 3, 2), arrays["modified"][k, d, m]]
    return row


def _coloured(values: npt.NDArray[Any]) -> Pixels:
    """A map in viridis, from its minimum to its 99th percentile: single outliers would leave the rest dark."""
    from matplotlib import colormaps

    v = np.nan_to_num(values.astype(np.float64))
    low, high = float(v.min()), float(np.percentile(v, 99))
    scaled = np.clip((v - low) / max(high - low, 1e-30), 0, 1)
    return np.asarray(colormaps["viridis"](scaled, bytes=True))[..., :3]


def _picture(
    rows: list[list[Pixels]], headings: list[str], folder: Path, name: str, title: str, words: str
) -> Figure:
    height, width = rows[0][0].shape[:2]
    step = 1 + GAP
    aspect = height / width
    inches = 1.02
    with plotting.style() as new_figure:
        figure = new_figure(inches * step * len(headings), inches * (len(rows) * (aspect + GAP) + 0.28))
        figure.set_layout_engine("none")
        axis = figure.add_axes((0, 0, 1, 1))
        axis.set_xlim(0, step * len(headings))
        axis.set_ylim(len(rows) * (aspect + GAP), -0.28)
        axis.axis("off")
        for j, heading in enumerate(headings):
            axis.text(j * step + 0.5, -0.1, heading, ha="center", va="center", fontsize=8)
        for i, row in enumerate(rows):
            top = i * (aspect + GAP)
            for j, pixels in enumerate(row):
                extent = (j * step, j * step + 1, top + aspect, top)
                axis.imshow(pixels, extent=extent, interpolation="nearest" if width < 96 else "antialiased", aspect="auto")
        axis.set_xlim(0, step * len(headings))
        axis.set_ylim(len(rows) * (aspect + GAP), -0.28)
        folder.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=130, metadata={"Software": None})
    (folder / f"{name}.png").write_bytes(buffer.getvalue())
    return Figure(name, title, words, png=buffer.getvalue())
