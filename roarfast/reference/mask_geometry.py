"""Counts of a mask, pixel by pixel."""

from __future__ import annotations

import numpy as np

from roarfast._types import Numpy


def mask_geometry(mask: Numpy) -> list[int]:
    """Counts of one mask `[H, W]`; see `roarfast.mask_geometry`."""
    h, w = mask.shape
    m = mask.astype(bool)
    four = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    eight = [*four, (-1, -1), (-1, 1), (1, -1), (1, 1)]

    def alone(y: int, x: int, around: list[tuple[int, int]]) -> bool:
        near = ((y + dy, x + dx) for dy, dx in around)
        return not any(m[q] for q in near if 0 <= q[0] < h and 0 <= q[1] < w)

    removed = [(int(y), int(x)) for y, x in np.argwhere(m)]
    pairs = int((m[1:] != m[:-1]).sum() + (m[:, 1:] != m[:, :-1]).sum())
    border = sum(y in (0, h - 1) or x in (0, w - 1) for y, x in removed)
    return [len(removed), sum(alone(*p, four) for p in removed), sum(alone(*p, eight) for p in removed), pairs, border]
