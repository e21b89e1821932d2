"""distance_transform: exact distances, against SciPy, OpenCV's precise mode and numba, on scattered and on thick masks."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numba
import numpy as np
from _common import Case
from scipy import ndimage

import roarfast as rf


@numba.njit(parallel=True)
def numba_distances(mask):  # pragma: no cover
    n, h, w = mask.shape
    out = np.empty((n, h, w), np.float32)
    for i in numba.prange(n):
        column = np.empty((h, w), np.int64)
        for x in range(w):
            d = 1 << 20
            for y in range(h):
                d = 0 if not mask[i, y, x] else d + 1
                column[y, x] = d
            d = 1 << 20
            for y in range(h - 1, -1, -1):
                d = min(column[y, x], d + 1)
                column[y, x] = d
        for y in range(h):
            for x in range(w):
                best = column[y, x] ** 2
                d = 1
                while d * d < best and d < w:
                    if x - d >= 0:
                        best = min(best, column[y, x - d] ** 2 + d * d)
                    if x + d < w:
                        best = min(best, column[y, x + d] ** 2 + d * d)
                    d += 1
                out[i, y, x] = np.sqrt(best)
    return out


def masks(kind: str, n: int, size: int) -> np.ndarray:
    a = np.random.default_rng(0).random((n, size, size), dtype=np.float32)
    if kind == "smooth":
        a = rf.gaussian_filter(a, size / 28)
    return rf.removal_mask(a, 0.5)


def case(kind: str, n: int, size: int, floors: dict[str, float]) -> Case:
    mask = masks(kind, n, size)
    few = max(1, n // 16)
    as_bytes = mask.astype(np.uint8)

    def opencv():
        return np.stack([cv2.distanceTransform(m, cv2.DIST_L2, cv2.DIST_MASK_PRECISE) for m in as_bytes])

    return Case(
        "distance_transform",
        f"{n}x{size}x{size}, {kind} mask",
        lambda: rf.distance_transform(mask),
        {
            "scipy": lambda: np.stack([ndimage.distance_transform_edt(m) for m in mask[:few]]),
            "opencv precise": opencv,
            "numba": lambda: numba_distances(mask),
        },
        floors,
        copy_bytes=4 * mask.size,
        scaled={"scipy": n / few},
    )


def cases(quick: bool) -> Iterator[Case]:
    if quick:
        yield case("random", 8, 64, {})
        return
    yield case("random", 256, 224, {"scipy": 10.0, "opencv precise": 2.0})
    yield case("smooth", 256, 224, {"scipy": 10.0, "opencv precise": 2.0})
    yield case("random", 256, 32, {})
