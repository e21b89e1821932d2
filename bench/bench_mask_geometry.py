"""mask_geometry: counts of a mask's shape, against the expression in torch and numba."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
import torch
from _common import COPY, Case

import roarfast as rf


@numba.njit(parallel=True)
def numba_geometry(mask):  # pragma: no cover
    n, h, w = mask.shape
    out = np.zeros((n, 5), np.int64)
    for i in numba.prange(n):
        for y in range(h):
            for x in range(w):
                m = mask[i, y, x]
                right = x + 1 < w and mask[i, y, x + 1]
                down = y + 1 < h and mask[i, y + 1, x]
                if x + 1 < w and right != m:
                    out[i, 3] += 1
                if y + 1 < h and down != m:
                    out[i, 3] += 1
                if not m:
                    continue
                out[i, 0] += 1
                four = right or down or (x > 0 and mask[i, y, x - 1]) or (y > 0 and mask[i, y - 1, x])
                eight = four
                for dy in (-1, 1):
                    for dx in (-1, 1):
                        if 0 <= y + dy < h and 0 <= x + dx < w and mask[i, y + dy, x + dx]:
                            eight = True
                out[i, 1] += not four
                out[i, 2] += not eight
                out[i, 4] += y == 0 or x == 0 or y == h - 1 or x == w - 1
    return out


def case(n: int, size: int, floors: dict[str, float]) -> Case:
    mask = rf.removal_mask(np.random.default_rng(0).random((n, size, size), dtype=np.float32), 0.3)
    t = torch.from_numpy(mask)

    def torch_expression():
        p = torch.nn.functional.pad(t, (1, 1, 1, 1))
        four = p[:, :-2, 1:-1] | p[:, 2:, 1:-1] | p[:, 1:-1, :-2] | p[:, 1:-1, 2:]
        eight = four | p[:, :-2, :-2] | p[:, :-2, 2:] | p[:, 2:, :-2] | p[:, 2:, 2:]
        pairs = (t[:, 1:] ^ t[:, :-1]).sum((1, 2)) + (t[:, :, 1:] ^ t[:, :, :-1]).sum((1, 2))
        inner = t[:, 1:-1, 1:-1].sum((1, 2))
        removed = t.sum((1, 2))
        return torch.stack([removed, (t & ~four).sum((1, 2)), (t & ~eight).sum((1, 2)), pairs, removed - inner], 1)

    return Case(
        "mask_geometry",
        f"{n}x{size}x{size}, 30 % at random",
        lambda: rf.mask_geometry(mask),
        {"torch": torch_expression, "numba": lambda: numba_geometry(mask)},
        floors,
        copy_bytes=mask.size,
    )


def cases(quick: bool) -> Iterator[Case]:
    if quick:
        yield case(8, 64, {})
        return
    yield case(256, 224, {"torch": 5.0, COPY: 0.5})
    yield case(256, 32, {})
