"""sobel along columns: SciPy, OpenCV, numba."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numba
import numpy as np
from _common import COPY, Case, random_maps, size_name
from scipy import ndimage

import roarfast as rf


@numba.njit(parallel=True, fastmath=True)
def numba_sobel(a, out):  # pragma: no cover
    n, height, width = a.shape
    for i in numba.prange(n):
        for y in range(height):
            above, below = max(y - 1, 0), min(y + 1, height - 1)
            for x in range(width):
                left, right = max(x - 1, 0), min(x + 1, width - 1)
                top = a[i, above, right] - a[i, above, left]
                middle = a[i, y, right] - a[i, y, left]
                bottom = a[i, below, right] - a[i, below, left]
                out[i, y, x] = top + 2 * middle + bottom
    return out


def case(n: int, size: int, floors: dict[str, float]) -> Case:
    """A batch of n maps of size x size."""
    a = random_maps(n, size, size)
    out, out_scipy, out_cv, out_numba = (np.empty_like(a) for _ in range(4))

    def scipy_per_image():
        for image, result in zip(a, out_scipy):
            ndimage.sobel(image, 1, output=result)
        return out_scipy

    def opencv():
        for image, result in zip(a, out_cv):
            cv2.Sobel(image, -1, 1, 0, dst=result, ksize=3, borderType=cv2.BORDER_REFLECT)
        return out_cv

    return Case(
        "sobel",
        f"{size_name(a)}, axis -1",
        lambda: rf.sobel(a, -1, out=out),
        {"scipy per image": scipy_per_image, "opencv": opencv, "numba": lambda: numba_sobel(a, out_numba)},
        floors,
        copy_bytes=a.nbytes,
    )


def cases(quick: bool) -> Iterator[Case]:
    """ImageNet-sized and CIFAR-sized batches."""
    if quick:
        yield case(16, 224, {})
        return
    yield case(256, 224, {COPY: 0.25})
    yield case(256, 32, {})
