"""The definition of `gather_batch`, one sample at a time, in NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from roarfast import _philox as philox
from roarfast._types import Numpy


def placement(seed: int, epoch: int, sample: int, range_y: int, range_x: int) -> tuple[int, int, bool]:
    """First row and column of the crop in the padded image, and whether it is flipped.

    The words of Philox block `epoch` of the sample: word 0 picks the row out of `range_y + 1`, word 1 the column, the top
    bit of word 2 the flip.
    """
    words = philox.blocks(seed, sample, epoch, philox.AUGMENT)
    row, column = ((int(word) * (extent + 1)) >> 32 for word, extent in zip(words, (range_y, range_x)))
    return row, column, bool(words[2] >> 31)


def _exp(t: float) -> float:
    """e^t by additions, products and divisions alone, which every backend rounds alike."""
    x, p = t / 64.0, 1.0
    for k in range(11, 0, -1):
        p = p * x / k + 1.0
    for _ in range(6):
        p = p * p
    return p


def resized_box(
    seed: int, epoch: int, sample: int, size: tuple[int, int], scale: Sequence[float], ratio: Sequence[float]
) -> tuple[int, int, int, int]:
    """First row and column, height and width of a random crop, chosen as torchvision's `RandomResizedCrop` does.

    Attempt k draws from Philox block `16 * epoch + k`: words 0 and 1 give area and shape, 2 and 3 the place. After ten that
    do not fit it is the largest crop in the middle whose ratio is allowed.
    """
    h, w = size
    log_ratio = math.log(ratio[1] / ratio[0])
    for attempt in range(10):
        words = [int(word) for word in philox.blocks(seed, sample, 16 * epoch + attempt, philox.RESIZED_CROP)]
        area = float(h) * w * (scale[0] + (scale[1] - scale[0]) * (words[0] * 2.0**-32))
        shape = ratio[0] * _exp(log_ratio * (words[1] * 2.0**-32))
        box_h, box_w = math.floor(math.sqrt(area / shape) + 0.5), math.floor(math.sqrt(area * shape) + 0.5)
        if 1 <= box_w <= w and 1 <= box_h <= h:
            return (words[2] * (h - box_h + 1)) >> 32, (words[3] * (w - box_w + 1)) >> 32, box_h, box_w
    box_h, box_w = h, w
    if w / h < ratio[0]:
        box_h = min(max(math.floor(w / ratio[0] + 0.5), 1), h)
    elif w / h > ratio[1]:
        box_w = min(max(math.floor(h * ratio[1] + 0.5), 1), w)
    return (h - box_h) // 2, (w - box_w) // 2, box_h, box_w


def resize_weights(size: int, out: int) -> Numpy:
    """`[out, size]`: how much each pixel counts, float32.

    A triangle around the middle of each output pixel, one pixel wide to each side, or size / out where that is more: bilinear
    and antialiased. Its heights are integers in units of 1 / (2 out) of a pixel.
    """
    distance = np.abs((2 * np.arange(size) + 1) * out - ((2 * np.arange(out) + 1) * size)[:, None])
    heights = np.maximum(2 * max(size, out) - distance, 0)
    weights: Numpy = heights.astype(np.float32) * (np.float32(1) / heights.sum(1, keepdims=True).astype(np.float32))
    return weights


def _mix(x: Numpy, weights: Numpy) -> Numpy:
    """Rows of `x` `[C, H, W]` mixed, from the first to the last, each product and sum rounded to float32."""
    out = np.zeros((x.shape[0], len(weights), x.shape[2]), np.float32)
    for row in range(x.shape[1]):
        used = np.flatnonzero(weights[:, row])
        out[:, used] += weights[used, row][:, None] * x[:, row][:, None]
    return out


def resized_crop(x: Numpy, box: tuple[int, int, int, int], size: tuple[int, int]) -> Numpy:
    """A part of float32 `[C, H, W]`, resampled: rows first, then columns."""
    row, column, h, w = box
    part = x[:, row : row + h, column : column + w]
    rows = _mix(part, resize_weights(h, size[0]))
    return _mix(rows.transpose(0, 2, 1), resize_weights(w, size[1])).transpose(0, 2, 1)


def gather_batch(
    images: Numpy,
    index: Sequence[int],
    codes: Numpy | None = None,
    rate_index: int = -1,
    fill: float | Sequence[float] | None = None,
    *,
    keep: bool = False,
    imputed: Numpy | None = None,
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
    scale: Sequence[float] | None = None,
    ratio: Sequence[float] = (3 / 4, 4 / 3),
) -> Numpy:
    """What `roarfast.gather_batch` computes, as float32 `[B, C, out_h, out_w]`."""
    if layout == "NHWC":
        images = images.transpose(0, 3, 1, 2)
        imputed = None if imputed is None else imputed.transpose(0, 3, 1, 2)
    channels, h, w = images.shape[1:]
    out_h, out_w = crop or (h, w)
    range_y, range_x = h + 2 * pad - out_h, w + 2 * pad - out_w

    per_channel = np.ones((channels, 1, 1))
    factor = (1.0 / (255.0 * np.reshape(std, (-1, 1, 1)) * per_channel)).astype(np.float32)
    bias = (-np.reshape(mean, (-1, 1, 1)) / np.reshape(std, (-1, 1, 1)) * per_channel).astype(np.float32)

    def normalise(level: Numpy) -> Numpy:
        scaled: Numpy = np.asarray(level, np.float32) * factor  # rounded, and again after the sum
        return scaled + bias

    fill_level = 255.0 * np.asarray(mean, np.float64) if fill is None else np.asarray(fill, np.float64)
    fill_value = normalise(fill_level.reshape(-1, 1, 1))
    outside = normalise(np.reshape(pad_value, (-1, 1, 1)))

    out = np.empty((len(index), channels, out_h, out_w), np.float32)
    for position, i in enumerate(index):
        sample = int(ids[position] if ids is not None else i)
        if scale is not None:
            level = images[i].astype(np.float32)
            if codes is not None:
                removed = codes[i] > rate_index if keep else codes[i] <= rate_index
                other = fill_level.reshape(-1, 1, 1) if imputed is None else imputed[i]
                level = np.where(removed, other.astype(np.float32), level)
            x = normalise(resized_crop(level, resized_box(seed, epoch, sample, (h, w), scale, ratio), (out_h, out_w)))
            out[position] = x[:, :, ::-1] if flip and placement(seed, epoch, sample, 0, 0)[2] else x
            continue
        x = normalise(images[i])
        if codes is not None:
            removed = codes[i] > rate_index if keep else codes[i] <= rate_index
            x = np.where(removed, fill_value if imputed is None else normalise(imputed[i]), x)
        padded = np.broadcast_to(outside, (channels, h + 2 * pad, w + 2 * pad)).copy()
        padded[:, pad : pad + h, pad : pad + w] = x
        row, column, flipped = placement(seed, epoch, sample, range_y, range_x)
        if not random_crop:
            row, column = range_y // 2, range_x // 2
        cropped = padded[:, row : row + out_h, column : column + out_w]
        out[position] = cropped[:, :, ::-1] if flip and flipped else cropped
    return out
