"""Removal as its two steps."""

from __future__ import annotations

import numpy.typing as npt

from roarfast._types import Numpy
from roarfast.reference.fill import FillValue
from roarfast.reference.fill import fill as fill_masked
from roarfast.reference.removal_mask import removal_mask


def remove(
    x: Numpy,
    a: Numpy,
    drop: float,
    fill: FillValue = "image_mean",
    rule: str = "exact",
    order: str = "morf",
    keep: bool = False,
    seed: int = 0,
    index: npt.ArrayLike | None = None,
    sigma: float = 10.0,
    noise_mean: float = 0.0,
    noise_std: float = 1.0,
) -> Numpy:
    """`[N, C, ...]` images with maps `[N, ...]` or like x."""
    mask = removal_mask(a, drop, rule, order, keep, seed, index, ndim=a.ndim - 1)
    return fill_masked(x, mask, fill, sigma, noise_mean, noise_std, seed, index)
