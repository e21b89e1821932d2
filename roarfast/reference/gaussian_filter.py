"""Gaussian filter: `scipy.ndimage.gaussian_filter` on the last two axes, in float64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import ndimage


def gaussian_filter(
    a: np.ndarray,
    sigma: float | Sequence[float],
    mode: str | Sequence[str] = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    radius: int | Sequence[int] | None = None,
    order: int | Sequence[int] = 0,
) -> np.ndarray:
    """The filtered maps `[..., H, W]` in float64."""
    a = np.asarray(a, np.float64)
    return ndimage.gaussian_filter(
        a, sigma, order, mode=mode, cval=cval, truncate=truncate, radius=radius, axes=(a.ndim - 2, a.ndim - 1)
    )
