"""Fills with `np.where`, image by image."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from roarfast import _philox as philox
from roarfast._types import Numpy

FillValue: TypeAlias = "str | npt.ArrayLike"
"""The name of a fill, or its numbers."""

_LANES = 256


def fill(
    x: Numpy,
    mask: Numpy,
    value: FillValue = "image_mean",
    sigma: float = 10.0,
    noise_mean: float = 0.0,
    noise_std: float = 1.0,
    seed: int = 0,
    index: npt.ArrayLike | None = None,
) -> Numpy:
    """`[N, C, ...]` images with masks `[N, ...]` (per pixel) or like x (per feature); see `roarfast.fill`."""
    n, c = x.shape[:2]
    removed = (mask if mask.shape == x.shape else np.broadcast_to(mask[:, None], x.shape)).astype(bool)
    out = x.copy()
    ids = range(n) if index is None else [int(i) for i in np.ravel(index)]
    for i, sample in enumerate(ids):
        for channel in range(c):
            image, gone = x[i, channel], removed[i, channel]
            if isinstance(value, str) and value in ("kept_mean", "image_mean"):
                replacement: npt.ArrayLike = mean(image, ~gone if value == "kept_mean" else np.ones_like(gone))
            elif isinstance(value, str) and value == "blur":
                wide = image.astype(np.float64 if x.dtype == np.float64 else np.float32)
                replacement = ndimage.gaussian_filter(wide, sigma)
            elif isinstance(value, str) and value == "noise":
                compute = np.float64 if x.dtype == np.float64 else np.float32
                z = philox.normals(seed, sample, x[i].size, philox.NOISE_FILL).reshape(x[i].shape)[channel]
                replacement = compute(noise_mean) + compute(noise_std) * z.astype(compute)
            else:
                values = np.broadcast_to(np.asarray(0 if isinstance(value, str) else value, np.float64), (n, c))
                replacement = values[i, channel]
            if x.dtype.kind == "u":
                replacement = np.clip(np.rint(replacement), 0, 255)
            out[i, channel] = np.where(gone, replacement, image).astype(x.dtype)
    return out


def mean(image: Numpy, kept: Numpy) -> float:
    """The mean of the kept pixels (of all, if none is) in float64.

    Summed in the kernels' order: interleaved lanes, then a binary tree.
    """
    if not kept.any():
        kept = np.ones_like(kept)
    values = np.where(kept, image.astype(np.float64), 0.0).ravel()
    lanes = np.zeros(_LANES)
    for begin in range(0, values.size, _LANES):
        chunk = values[begin : begin + _LANES]
        lanes[: chunk.size] += chunk
    while lanes.size > 1:
        lanes = lanes[: lanes.size // 2] + lanes[lanes.size // 2 :]
    return float(lanes[0] / kept.sum())
