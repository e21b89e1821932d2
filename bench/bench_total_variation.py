"""total_variation: the expression in torch and in NumPy, numba; plain, scaled to [0, 1], isotropic."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
import torch
from _common import COPY, Case, random_maps, size_name

import roarfast as rf
from roarfast.reference import total_variation as reference


@numba.njit(parallel=True, fastmath=True)
def numba_total_variation(a):  # pragma: no cover
    n, height, width = a.shape
    out = np.empty(n)
    for i in numba.prange(n):
        total = 0.0
        for y in range(height):
            for x in range(width):
                if x + 1 < width:
                    total += abs(a[i, y, x + 1] - a[i, y, x])
                if y + 1 < height:
                    total += abs(a[i, y + 1, x] - a[i, y, x])
        out[i] = total
    return out


def plain(n: int, size: int, floors: dict[str, float]) -> Case:
    """Anisotropic, not normalised."""
    a = random_maps(n, size, size)
    t = torch.from_numpy(a)

    def torch_expression():
        return (t[:, 1:] - t[:, :-1]).abs().sum((1, 2)) + (t[:, :, 1:] - t[:, :, :-1]).abs().sum((1, 2))

    return Case(
        "total_variation",
        size_name(a),
        lambda: rf.total_variation(a),
        {
            "torch": torch_expression,
            "numpy": lambda: reference.total_variation(a),
            "numba": lambda: numba_total_variation(a),
        },
        floors,
        copy_bytes=a.nbytes,
    )


def normalised(n: int, size: int, floors: dict[str, float]) -> Case:
    """Of the map scaled to [0, 1]."""
    a = random_maps(n, size, size)
    t = torch.from_numpy(a)

    def torch_expression():
        low, high = t.amin((1, 2), keepdim=True), t.amax((1, 2), keepdim=True)
        s = (t - low) / (high - low)
        return (s[:, 1:] - s[:, :-1]).abs().sum((1, 2)) + (s[:, :, 1:] - s[:, :, :-1]).abs().sum((1, 2))

    return Case(
        "total_variation",
        f"{size_name(a)}, minmax",
        lambda: rf.total_variation(a, normalize="minmax"),
        {"torch": torch_expression},
        floors,
        copy_bytes=a.nbytes,
    )


def isotropic(n: int, size: int) -> Case:
    """The length of the gradient."""
    a = random_maps(n, size, size)
    t = torch.from_numpy(a)

    def torch_expression():
        dx = torch.nn.functional.pad(t[:, :, 1:] - t[:, :, :-1], (0, 1))
        dy = torch.nn.functional.pad(t[:, 1:] - t[:, :-1], (0, 0, 0, 1))
        return torch.sqrt(dx * dx + dy * dy).sum((1, 2))

    return Case(
        "total_variation",
        f"{size_name(a)}, isotropic",
        lambda: rf.total_variation(a, "isotropic"),
        {"torch": torch_expression},
        copy_bytes=a.nbytes,
    )


def cases(quick: bool) -> Iterator[Case]:
    """ImageNet-sized and CIFAR-sized batches."""
    if quick:
        yield plain(16, 224, {})
        return
    yield plain(256, 224, {"torch": 8.0, COPY: 0.25})
    yield normalised(256, 224, {"torch": 8.0})
    yield isotropic(256, 224)
    yield plain(256, 32, {})
