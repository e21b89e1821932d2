"""Total variation in plain NumPy."""

from __future__ import annotations

import numpy as np


def total_variation(a: np.ndarray, kind: str = "anisotropic", normalize: str = "none") -> np.ndarray:
    """float64 `[...]` of maps or masks `[..., H, W]`.

    anisotropic: the sum of |a[y, x + 1] - a[y, x]| and of |a[y + 1, x] - a[y, x]| over all pairs of neighbours.
    isotropic: the sum over pixels of sqrt(dx^2 + dy^2), dx and dy being the same differences, 0 beyond the last
    column and row.
    normalize: `"minmax"` divides by max - min of the map, which is the total variation of the map scaled to
    [0, 1], and 0 for a constant map; `"mean"` divides by the number of pairs of neighbours (anisotropic) or of pixels
    (isotropic), and is 0 where there are none.
    """
    a = np.asarray(a).astype(np.float64)
    h, w = a.shape[-2:]
    dx = np.zeros_like(a)
    dy = np.zeros_like(a)
    dx[..., :, :-1] = a[..., :, 1:] - a[..., :, :-1]
    dy[..., :-1, :] = a[..., 1:, :] - a[..., :-1, :]
    if kind == "anisotropic":
        total = (np.abs(dx) + np.abs(dy)).sum(axis=(-2, -1))
        terms = h * (w - 1) + (h - 1) * w
    elif kind == "isotropic":
        total = np.sqrt(dx * dx + dy * dy).sum(axis=(-2, -1))
        terms = h * w
    else:
        raise ValueError(f"kind must be 'anisotropic' or 'isotropic', got {kind!r}")
    if normalize == "minmax":
        span = a.max(axis=(-2, -1)) - a.min(axis=(-2, -1))
        return np.where(span > 0, total / np.where(span > 0, span, 1), 0.0)
    if normalize == "mean":
        return total / terms if terms > 0 else np.zeros_like(total)
    return total
