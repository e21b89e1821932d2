"""Masks of one random rectangle."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from roarfast import _philox as philox
from roarfast._types import Numpy


def _side(length: float, longest: int) -> int:
    return min(max(math.floor(length + 0.5), 1), longest)


def rectangle(h: int, w: int, drop: float, seed: int, sample: int) -> tuple[int, int, int, int]:
    """(top, left, height, width)."""
    area = drop * h * w
    if area < 0.5:
        return 0, 0, 0, 0
    words = [int(v) for v in philox.blocks(seed, sample, np.zeros(1, np.int64), philox.BLOCK_RANDOM)[0]]
    stretch = 1.0 + (words[0] >> 8) * 2.0**-24
    ratio = stretch if words[3] & 1 else 1.0 / stretch
    drawn = max(min(h * math.sqrt(drop * ratio), float(h), area), area / w, 1.0)
    options = []
    for rounded in (math.floor, math.ceil):
        tall = _side(rounded(drawn), h)
        options.append((tall, _side(area / tall, w)))
        wide = _side(rounded(area / drawn), w)
        options.append((_side(area / wide, h), wide))
    height, width = min(options, key=lambda o: (abs(o[0] * o[1] - area), abs(o[0] - drawn), o[0]))
    return (words[1] * (h - height + 1)) >> 32, (words[2] * (w - width + 1)) >> 32, height, width


def block_random(shape: Sequence[int], drop: float, seed: int = 0, index: npt.ArrayLike | None = None) -> Numpy:
    """Bool `[N, H, W]`, True inside the rectangle."""
    n, h, w = shape
    mask = np.zeros((n, h, w), bool)
    for i, sample in enumerate(range(n) if index is None else [int(v) for v in np.ravel(index)]):
        top, left, height, width = rectangle(h, w, drop, seed, sample)
        mask[i, top : top + height, left : left + width] = True
    return mask
