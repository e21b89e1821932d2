"""The definition of `roarfast.philox_normal`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from roarfast import _philox as philox


def philox_normal(
    index: npt.NDArray[np.int64],
    shape: Sequence[int],
    seed: int = 0,
    draw: int = 0,
    domain: int = philox.EXPLAIN_NOISE,
) -> npt.NDArray[np.float32]:
    """Normals `[n, *shape]`: sample i's sequence of normals, cut into draws of whole blocks of four."""
    features = math.prod(shape)
    whole = 4 * ((features + 3) // 4)
    rows = [
        philox.normals(seed, int(i), (draw + 1) * whole, domain)[draw * whole :][:features] for i in index.reshape(-1)
    ]
    return np.array(rows, np.float32).reshape(index.shape + tuple(shape))
