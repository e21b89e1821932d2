"""Maximum filter: `scipy.ndimage.maximum_filter` on the last two axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import ndimage


def maximum_filter(
    a: np.ndarray,
    size: int | Sequence[int],
    mode: str | Sequence[str] = "reflect",
    cval: float = 0.0,
    origin: int | Sequence[int] = 0,
) -> np.ndarray:
    """The filtered maps `[..., H, W]`, of the dtype of `a`; float16, which SciPy does not know, goes through float32.

    `cval` is rounded to that dtype first, as if the border were part of the image.
    """
    a = np.asarray(a)
    known = a.astype(np.float32) if a.dtype == np.float16 else a
    filtered = ndimage.maximum_filter(
        known, size, mode=mode, cval=float(np.asarray(cval, a.dtype)), origin=origin, axes=(a.ndim - 2, a.ndim - 1)
    )
    return filtered.astype(a.dtype)
