"""gaussian_filter, sigma 1: SciPy (batched and image by image), OpenCV, torch, numba."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numba
import numpy as np
import torch
from _common import COPY, Case, random_maps, size_name
from scipy import ndimage

import roarfast as rf

SIGMA, RADIUS = 1.0, 4
# Floors of the project: at the size of ImageNet and of CIFAR maps.
LARGE_FLOORS = {"scipy": 10.0, "opencv": 2.0, COPY: 0.25}
SMALL_FLOORS = {"scipy": 20.0}


def weights() -> np.ndarray:
    """What SciPy uses, in float32."""
    x = np.arange(-RADIUS, RADIUS + 1)
    w = np.exp(-0.5 * x**2 / SIGMA**2)
    return (w / w.sum()).astype(np.float32)


@numba.njit(parallel=True, fastmath=True)
def numba_gaussian(a, w, out):  # pragma: no cover
    n, height, width = a.shape
    r = len(w) // 2
    for i in numba.prange(n):
        between = np.empty((height, width + 2 * r), np.float32)
        for y in range(height):
            for x in range(width):
                total = np.float32(0)
                for k in range(-r, r + 1):
                    row = y + k
                    if row < 0:
                        row = -1 - row
                    elif row >= height:
                        row = 2 * height - 1 - row
                    total += w[k + r] * a[i, row, x]
                between[y, x + r] = total
            for k in range(r):
                between[y, r - 1 - k] = between[y, r + k]
                between[y, r + width + k] = between[y, r + width - 1 - k]
            for x in range(width):
                total = np.float32(0)
                for k in range(2 * r + 1):
                    total += w[k] * between[y, x + k]
                out[i, y, x] = total
    return out


def case(n: int, size: int, floors: dict[str, float]) -> Case:
    """A batch of n maps of size x size."""
    a, w = random_maps(n, size, size), weights()
    out, out_scipy, out_cv, out_numba = (np.empty_like(a) for _ in range(4))
    tensor, tensor_weights = torch.from_numpy(a)[:, None], torch.from_numpy(w)

    def scipy_per_image():
        for image, result in zip(a, out_scipy):
            ndimage.gaussian_filter(image, SIGMA, output=result)
        return out_scipy

    def opencv():
        for image, result in zip(a, out_cv):
            cv2.sepFilter2D(image, -1, w, w, dst=result, borderType=cv2.BORDER_REFLECT)
        return out_cv

    def torch_convolutions():
        # torch has no half-sample reflection: pad by hand, as its users do.
        padded = torch.cat([tensor[..., :RADIUS, :].flip(-2), tensor, tensor[..., -RADIUS:, :].flip(-2)], -2)
        padded = torch.cat([padded[..., :RADIUS].flip(-1), padded, padded[..., -RADIUS:].flip(-1)], -1)
        rows = torch.nn.functional.conv2d(padded, tensor_weights.view(1, 1, -1, 1))
        return torch.nn.functional.conv2d(rows, tensor_weights.view(1, 1, 1, -1))[:, 0]

    return Case(
        "gaussian_filter",
        f"{size_name(a)}, sigma 1",
        lambda: rf.gaussian_filter(a, SIGMA, out=out),
        {
            "scipy": lambda: ndimage.gaussian_filter(a, SIGMA, axes=(1, 2), output=out_scipy),
            "scipy per image": scipy_per_image,
            "opencv": opencv,
            "torch": torch_convolutions,
            "numba": lambda: numba_gaussian(a, w, out_numba),
        },
        floors,
        copy_bytes=a.nbytes,
    )


def cases(quick: bool) -> Iterator[Case]:
    """ImageNet-sized and CIFAR-sized batches."""
    if quick:
        yield case(16, 224, {})
        yield case(64, 32, {})
        return
    yield case(256, 224, LARGE_FLOORS)
    yield case(256, 32, SMALL_FLOORS)
