"""maximum_filter: SciPy (batched and image by image), OpenCV, torch, numba; and how the cost grows with the size."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numba
import numpy as np
import torch
from _common import COPY, Case, random_maps, size_name
from scipy import ndimage

import roarfast as rf

LARGE_FLOORS = {"scipy": 20.0, "opencv": 1.5, COPY: 0.25}
SMALL_FLOORS = {"scipy": 20.0}
OURS_SIZE_3, OURS_SIZE_9 = "ours, size 3", "ours, size 9"
WINDOW_FLOORS = {"scipy": 20.0, "opencv": 1.5, OURS_SIZE_9: 1 / 1.5}


@numba.njit(parallel=True, fastmath=True)
def numba_maximum(a, size, out):  # pragma: no cover
    n, height, width = a.shape
    r = size // 2
    for i in numba.prange(n):
        for y in range(height):
            for x in range(width):
                best = a[i, y, x]
                # With a reflecting border the clipped window has the same maximum.
                for v in range(max(0, y - r), min(height, y + r + 1)):
                    for u in range(max(0, x - r), min(width, x + r + 1)):
                        best = max(best, a[i, v, u])
                out[i, y, x] = best
    return out


def case(n: int, size: int, floors: dict[str, float]) -> Case:
    """A batch of n maps of size x size, window 3 x 3."""
    a = random_maps(n, size, size)
    out, out_scipy, out_cv, out_numba = (np.empty_like(a) for _ in range(4))
    window = np.ones((3, 3), np.uint8)
    tensor = torch.from_numpy(a)[:, None]

    def scipy_per_image():
        for image, result in zip(a, out_scipy):
            ndimage.maximum_filter(image, 3, output=result)
        return out_scipy

    def opencv():
        for image, result in zip(a, out_cv):
            cv2.dilate(image, window, dst=result, borderType=cv2.BORDER_REFLECT)
        return out_cv

    return Case(
        "maximum_filter",
        f"{size_name(a)}, size 3",
        lambda: rf.maximum_filter(a, 3, out=out),
        {
            "scipy": lambda: ndimage.maximum_filter(a, 3, axes=(1, 2), output=out_scipy),
            "scipy per image": scipy_per_image,
            "opencv": opencv,
            # Padding with -inf, as max_pool2d does, has the same maxima as a reflecting border.
            "torch": lambda: torch.nn.functional.max_pool2d(tensor, 3, 1, 1)[:, 0],
            "numba": lambda: numba_maximum(a, 3, out_numba),
        },
        floors,
        copy_bytes=a.nbytes,
        rtol=0.0,
    )


def large_window(n: int, size: int, floors: dict[str, float]) -> Case:
    """Window 31 x 31: the cost must not grow with the size. 3 x 3, as fast as memory, has a way of its own."""
    a = random_maps(n, size, size)
    out, out_small, out_scipy, out_cv = (np.empty_like(a) for _ in range(4))
    window = np.ones((31, 31), np.uint8)

    def opencv():
        for image, result in zip(a, out_cv):
            cv2.dilate(image, window, dst=result, borderType=cv2.BORDER_REFLECT)
        return out_cv

    return Case(
        "maximum_filter",
        f"{size_name(a)}, size 31",
        lambda: rf.maximum_filter(a, 31, out=out),
        {
            "scipy": lambda: ndimage.maximum_filter(a, 31, axes=(1, 2), output=out_scipy),
            "opencv": opencv,
            OURS_SIZE_3: lambda: rf.maximum_filter(a, 3, out=out_small),
            OURS_SIZE_9: lambda: rf.maximum_filter(a, 9, out=out_small),
        },
        floors,
        incomparable=(OURS_SIZE_3, OURS_SIZE_9),
        rtol=0.0,
    )


def cases(quick: bool) -> Iterator[Case]:
    """ImageNet-sized and CIFAR-sized batches."""
    if quick:
        yield case(16, 224, {})
        yield case(64, 32, {})
        yield large_window(16, 224, {})
        return
    yield case(256, 224, LARGE_FLOORS)
    yield case(256, 32, SMALL_FLOORS)
    yield large_window(256, 224, WINDOW_FLOORS)
