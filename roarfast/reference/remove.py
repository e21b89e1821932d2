"""Removal as its two steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from roarfast.reference.fill import fill as fill_masked
from roarfast.reference.removal_mask import removal_mask


def remove(
    x: np.ndarray[Any, Any],
    a: np.ndarray[Any, Any],
    drop: float,
    fill: Any = "image_mean",
    rule: str = "exact",
    order: str = "morf",
    keep: bool = False,
    seed: int = 0,
    index: Any = None,
    **fill_kwargs: Any,
) -> np.ndarray[Any, Any]:
    """`[N, C, ...]` images with maps `[N, ...]` or like x."""
    mask = removal_mask(a, drop, rule, order, keep, seed, index, ndim=a.ndim - 1)
    return fill_masked(x, mask, fill, seed=seed, index=index, **fill_kwargs)
