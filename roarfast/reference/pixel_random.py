"""Uniform random maps from Philox."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from roarfast import _philox as philox
from roarfast._types import Numpy


def pixel_random(shape: Sequence[int], seed: int = 0, index: npt.ArrayLike | None = None) -> Numpy:
    """float32 `[N, ...]`, one uniform number per feature."""
    ids = range(shape[0]) if index is None else [int(i) for i in np.ravel(index)]
    f = int(np.prod(shape[1:]))
    maps = [philox.uniforms(seed, sample, f, philox.PIXEL_RANDOM) for sample in ids]
    return np.array(maps, np.float32).reshape(tuple(shape))
