"""The definition of `gather_batch`, one sample at a time, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from roarfast import _philox as philox


def placement(seed: int, epoch: int, sample: int, range_y: int, range_x: int) -> tuple[int, int, bool]:
    """First row and column of the crop in the padded image, and whether it is flipped.

    The words of Philox block `epoch` of the sample: word 0 picks the row out of `range_y + 1`, word 1 the column, the top
    bit of word 2 the flip.
    """
    words = philox.blocks(seed, sample, epoch, philox.AUGMENT)
    row, column = ((int(word) * (extent + 1)) >> 32 for word, extent in zip(words, (range_y, range_x)))
    return row, column, bool(words[2] >> 31)


def gather_batch(
    images: np.ndarray[Any, Any],
    index: Sequence[int],
    codes: np.ndarray[Any, Any] | None = None,
    rate_index: int = -1,
    fill: float | Sequence[float] | None = None,
    *,
    keep: bool = False,
    imputed: np.ndarray[Any, Any] | None = None,
    layout: str = "NCHW",
    pad: int = 0,
    pad_value: float | Sequence[float] = 0.0,
    crop: tuple[int, int] | None = None,
    random_crop: bool = False,
    flip: bool = False,
    mean: float | Sequence[float] = 0.0,
    std: float | Sequence[float] = 1.0,
    seed: int = 0,
    epoch: int = 0,
    ids: Sequence[int] | None = None,
) -> np.ndarray[Any, Any]:
    """What `roarfast.gather_batch` computes, as float32 `[B, C, out_h, out_w]`."""
    if layout == "NHWC":
        images = images.transpose(0, 3, 1, 2)
        imputed = None if imputed is None else imputed.transpose(0, 3, 1, 2)
    channels, h, w = images.shape[1:]
    out_h, out_w = crop or (h, w)
    range_y, range_x = h + 2 * pad - out_h, w + 2 * pad - out_w

    per_channel = np.ones((channels, 1, 1))
    scale = (1.0 / (255.0 * np.reshape(std, (-1, 1, 1)) * per_channel)).astype(np.float32)
    bias = (-np.reshape(mean, (-1, 1, 1)) / np.reshape(std, (-1, 1, 1)) * per_channel).astype(np.float32)

    def normalise(level: Any) -> np.ndarray[Any, Any]:
        scaled: np.ndarray[Any, Any] = np.asarray(level, np.float32) * scale  # rounded, and again after the sum
        return scaled + bias

    fill_level = 255.0 * np.asarray(mean, np.float64) if fill is None else np.asarray(fill, np.float64)
    fill_value = normalise(fill_level.reshape(-1, 1, 1))
    outside = normalise(np.reshape(pad_value, (-1, 1, 1)))

    out = np.empty((len(index), channels, out_h, out_w), np.float32)
    for position, i in enumerate(index):
        x = normalise(images[i])
        if codes is not None:
            removed = codes[i] > rate_index if keep else codes[i] <= rate_index
            x = np.where(removed, fill_value if imputed is None else normalise(imputed[i]), x)
        padded = np.broadcast_to(outside, (channels, h + 2 * pad, w + 2 * pad)).copy()
        padded[:, pad : pad + h, pad : pad + w] = x
        row, column, flipped = placement(seed, epoch, int(ids[position] if ids is not None else i), range_y, range_x)
        if not random_crop:
            row, column = range_y // 2, range_x // 2
        cropped = padded[:, row : row + out_h, column : column + out_w]
        out[position] = cropped[:, :, ::-1] if flip and flipped else cropped
    return out
