"""Sobel: `scipy.ndimage.sobel`, smoothing only along the other image axis, in float64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import ndimage


def sobel(a: np.ndarray, axis: int = -1, mode: str | Sequence[str] = "reflect", cval: float = 0.0) -> np.ndarray:
    """[-1 0 1] along `axis`, then [1 2 1] along the other of the last two axes, of `[..., H, W]`.

    `scipy.ndimage.sobel` smooths along every other axis, so a batch needs the two steps it is made of. In
    `mode="constant"` each step sees `cval` beyond the border, the second one too.
    """
    a = np.asarray(a, np.float64)
    along = axis % a.ndim
    other = a.ndim - 1 if along == a.ndim - 2 else a.ndim - 2
    modes = dict(zip((a.ndim - 2, a.ndim - 1), (mode, mode) if isinstance(mode, str) else mode))
    derivative = ndimage.correlate1d(a, [-1, 0, 1], along, mode=modes[along], cval=cval)
    return ndimage.correlate1d(derivative, [1, 2, 1], other, mode=modes[other], cval=cval)
