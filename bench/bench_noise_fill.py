"""noise_fill and blur_fill: half of the pixels replaced, against NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from _common import Case, random_maps
from scipy import ndimage

import roarfast as rf


def cases(quick: bool) -> Iterator[Case]:
    n, size = (4, 64) if quick else (64, 224)
    x = random_maps(n * 3, size, size).reshape(n, 3, size, size)
    mask = rf.removal_mask(x[:, 0], 0.5)
    rng = np.random.default_rng(0)

    def numpy_noise():
        return np.where(mask[:, None], rng.standard_normal(x.shape, dtype=np.float32), x)

    def scipy_blur():
        blurred = np.stack([[ndimage.gaussian_filter(channel, 2.0) for channel in image] for image in x])
        return np.where(mask[:, None], blurred, x)

    name = f"{n}x3x{size}x{size}, 50 %"
    yield Case("noise_fill", name, lambda: rf.noise_fill(x, mask), {"numpy": numpy_noise}, {}, incomparable=("numpy",))
    yield Case("noise_fill", f"{name}, blur_fill", lambda: rf.blur_fill(x, mask, 2.0), {"scipy": scipy_blur})
