"""Watermarked data: images whose class is written into them, so that it is known where an explanation must point.

After 002, appendix D, and Zhou et al. 2022: labels are dealt anew at random, and then tell nothing of the picture but
through the watermark.

| kind | watermark | effective region |
|---|---|---|
| `number` | a black rectangle with the class number in white, at a random place | the rectangle |
| `stripes` | the label's bits: band k of equal height, from the top, is white where bit k (least significant first) is 1 | the white bands |

Image i depends on (seed, split, i) only. Class 0 has no stripe: its region is empty.
"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np

from roarfast import _philox as philox
from roarfast._files import write_atomic
from roarfast._types import Numpy
from roarfast.data.dataset import DataError, Dataset

KINDS = ("number", "stripes")
CANVASES = ("image", "blank")
LABELS = ("random", "keep")

BLANK = 128  # grey: black rectangles and white bands are both seen on it
_STREAMS = {"train": 0, "test": 1}
_CHUNK = 4096
# Digits 0 to 9, five rows of three bits.
_GLYPHS = (0o75557, 0o26227, 0o71747, 0o71717, 0o55711, 0o74717, 0o74757, 0o71122, 0o75757, 0o75717)


def watermark(data: Dataset, kind: str, *, canvas: str = "image", labels: str = "random", seed: int = 0) -> Dataset:
    """A dataset with its labels written into its images.

    Args:
        data: Any dataset; it is not modified.
        kind: `"number"` or `"stripes"`.
        canvas: `"image"`: on the pictures; `"blank"`: on grey.
        labels: `"random"`: deal the labels anew; `"keep"` them (then the picture tells of the class too).
        seed: Of labels and places.

    Returns:
        A dataset with `masks`: True on the effective region.

    Raises:
        DataError: The images are too small for the watermark.

    Example:
        >>> from roarfast.data import load
        >>> marked = watermark(load("shapes", "test", n=20), "stripes")
        >>> marked.masks.shape, marked.num_classes
        ((20, 32, 32), 10)
    """
    for name, value, allowed in (("kind", kind, KINDS), ("canvas", canvas, CANVASES), ("labels", labels, LABELS)):
        if value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")
    height, width, _ = data.image_shape
    stamps = number_stamps(data.num_classes, height) if kind == "number" else None
    if stamps is not None and (stamps.shape[1] > height or stamps.shape[2] > width):
        raise DataError(
            f"{data.name}: images of {height}x{width} are smaller than the rectangle of {stamps.shape[1]}x{stamps.shape[2]} "
            f"that the numbers of {data.num_classes} classes need"
        )
    bands = max(1, (data.num_classes - 1).bit_length())
    if kind == "stripes" and bands > height:
        raise DataError(f"{data.name}: {data.num_classes} classes need {bands} bands, images have {height} rows")
    images = np.full(data.images.shape, BLANK, np.uint8) if canvas == "blank" else np.array(data.images)
    masks = np.zeros(data.images.shape[:3], bool)
    dealt = np.array(data.labels)
    stream = _STREAMS.get(data.split, 2)
    for start in range(0, len(data), _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, len(data)))
        words = philox.blocks(seed, rows.astype(np.uint64), np.full(len(rows), stream), philox.WATERMARK).astype(
            np.uint64
        )
        if labels == "random":
            dealt[rows] = ((words[:, 0] * np.uint64(data.num_classes)) >> np.uint64(32)).astype(np.int64)
        if stamps is not None:
            top = (words[:, 1] * np.uint64(height - stamps.shape[1] + 1)) >> np.uint64(32)
            left = (words[:, 2] * np.uint64(width - stamps.shape[2] + 1)) >> np.uint64(32)
            _stamp(images[start:], masks[start:], stamps[dealt[rows]], top.astype(np.int64), left.astype(np.int64))
        else:
            on = stripes(dealt[rows], height, bands)
            masks[rows] = on[:, :, None]
            images[rows] = np.where(on[:, :, None, None], np.uint8(255), images[rows])
    return replace(
        data,
        images=images,
        labels=dealt,
        masks=masks,
        boxes=None,
        checksums=None,
        known_stats=None,
        name=f"{data.name} + {kind}" + (" on blank" if canvas == "blank" else ""),
    )


def number_stamps(classes: int, height: int) -> Numpy:
    """White numbers on black rectangles, all of one size: bool `[classes, h, w]`, True = white.

    Digits are 3x5 bitmaps, enlarged with the image (1 at 32 pixels, 7 at 224).
    """
    scale = max(1, height // 32)
    digits = len(str(classes - 1))
    stamps = np.zeros((classes, 7, 4 * digits + 1), bool)
    for label in range(classes):
        for place, digit in enumerate(str(label).zfill(digits)):
            bits = np.array([(_GLYPHS[int(digit)] >> (14 - b)) & 1 for b in range(15)], bool).reshape(5, 3)
            stamps[label, 1:6, 4 * place + 1 : 4 * place + 4] = bits
    return stamps.repeat(scale, 1).repeat(scale, 2)


def stripes(labels: Numpy, height: int, bands: int) -> Numpy:
    """Which rows are white: bool `[N, height]`; band k, from the top, where bit k of the label is 1.

    Example:
        >>> stripes(np.array([5]), height=6, bands=3).astype(int).tolist()  # 101: the first and the third band
        [[1, 1, 0, 0, 1, 1]]
    """
    edges = np.round(np.arange(1, bands) * height / bands).astype(np.int64)
    band = np.searchsorted(edges, np.arange(height), side="right")
    return np.asarray((labels[:, None] >> band) & 1, bool)


def save(data: Dataset, path: str | Path) -> None:
    """Writes a dataset with its masks as an `.npz` file that `load` reads, atomically."""
    arrays: dict[str, Numpy] = {"images": data.images, "labels": data.labels, "class_names": np.array(data.class_names)}
    if data.masks is not None:
        arrays["masks"] = data.masks
    if data.boxes is not None:
        arrays["bbox_xyxy"] = data.boxes
    if data.split in _STREAMS:
        arrays["is_train"] = np.full(len(data), data.split == "train")
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    write_atomic(path, buffer.getvalue())


def _stamp(images: Numpy, masks: Numpy, stamps: Numpy, top: Numpy, left: Numpy) -> None:
    n, h, w = stamps.shape
    sample = np.arange(n)[:, None, None]
    rows = top[:, None, None] + np.arange(h)[:, None]
    columns = left[:, None, None] + np.arange(w)
    images[sample, rows, columns] = np.where(stamps, np.uint8(255), np.uint8(0))[..., None]
    masks[sample, rows, columns] = True
