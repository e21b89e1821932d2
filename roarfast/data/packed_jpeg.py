"""Encoded images one after the other in a single array, as some `.npz` files hold them (`jpeg`, `offsets`)."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from roarfast._types import Numpy
from roarfast.data.dataset import DataError
from roarfast.data.decode import decode_image, map_parallel, stack_images, transform_box


def check_offsets(path: Path, data: Numpy, offsets: Numpy, count: int) -> None:
    """Raise unless `offsets` cut the bytes of `data` into `count` images.

    Args:
        path: The file, for messages.
        data: The encoded images one after the other.
        offsets: Where each begins, and where the last one ends.
        count: How many images there are labels for.

    Raises:
        DataError: Of another dtype or shape, not ascending, or beyond the bytes; the message names the first wrong image.
    """
    if data.dtype != np.uint8 or data.ndim != 1:
        raise DataError(f"{path}: jpeg must be uint8 [bytes], got {data.dtype} of shape {data.shape}")
    if offsets.dtype.kind not in "iu" or offsets.ndim != 1:
        raise DataError(f"{path}: offsets must be integers [N + 1], got {offsets.dtype} of shape {offsets.shape}")
    if len(offsets) != count + 1:
        raise DataError(
            f"{path}: offsets must be one more than the labels, {count + 1} for {count} images, got {len(offsets)}"
        )
    back = np.flatnonzero(offsets[1:] <= offsets[:-1])  # not np.diff: unsigned differences wrap around
    if back.size:
        k = int(back[0])
        raise DataError(
            f"{path}: offsets must ascend, but image {k} would be the bytes {offsets[k]} to {offsets[k + 1]}; "
            f"{back.size} such images"
        )
    if offsets[0] != 0 or offsets[-1] != len(data):
        raise DataError(
            f"{path}: offsets do not fit the {len(data)} bytes of jpeg: they go from {offsets[0]} to {offsets[-1]}"
        )


def decode_packed(path: Path, data: Numpy, offsets: Numpy, rows: Numpy, size: int | None) -> Numpy:
    """Decode some of the images.

    Args:
        path: The file, for messages.
        data: The encoded images one after the other.
        offsets: Checked by `check_offsets`.
        rows: Which images, in the order of the result.
        size: Scale the short side to this and cut out the centre square; None: as they are.

    Returns:
        uint8 `[len(rows), H, W, 3]`.

    Raises:
        DataError: An image cannot be decoded or is of another size than the first; the message gives its number.
    """

    def decode(k: int) -> Numpy:
        try:
            return decode_image(_bytes(data, offsets, k), size)
        except DataError as error:
            raise DataError(f"{path}: image {k}: {error}") from error

    if not len(rows):
        raise DataError(f"{path}: no image is in this split")
    return stack_images(list(map_parallel(decode, map(int, rows))), [f"image {k} of {path}" for k in rows])


def moved_boxes(data: Numpy, offsets: Numpy, rows: Numpy, boxes: Numpy, size: int) -> Numpy:
    """The boxes of images that decode, moved along when they are scaled and cropped to `size`."""
    from PIL import Image

    moved = []
    for k, box in zip(map(int, rows), boxes):
        with Image.open(io.BytesIO(_bytes(data, offsets, k))) as image:
            moved.append(transform_box(box, image.size, size))
    return np.stack(moved)


def _bytes(data: Numpy, offsets: Numpy, k: int) -> bytes:
    return data[int(offsets[k]) : int(offsets[k + 1])].tobytes()
