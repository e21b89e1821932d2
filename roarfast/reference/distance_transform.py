"""Squared distances by comparing every pixel with every False pixel."""

from __future__ import annotations

import numpy as np

from roarfast._types import Numpy


def distance_transform(mask: Numpy) -> Numpy:
    """int32 squared distances of one image `[H, W]`; see `roarfast.distance_transform`."""
    pixels = np.argwhere(np.ones_like(mask, bool))
    false = np.argwhere(~mask.astype(bool))
    if not len(false):
        return np.full(mask.shape, np.iinfo(np.int32).max, np.int32)
    squares = ((pixels[:, None] - false[None]) ** 2).sum(-1).min(1)
    return squares.reshape(mask.shape).astype(np.int32)
