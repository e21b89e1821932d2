"""Sums by code with `math.fsum`, which rounds once."""

from __future__ import annotations

import math

import numpy as np

from roarfast._types import Numpy


def code_sums(a: Numpy, codes: Numpy, count: int, ndim: int = 2) -> Numpy:
    """float64 `[..., count]`; see `roarfast.code_sums`."""
    leading = a.shape[: a.ndim - ndim]
    rows, tags = (v.reshape(int(np.prod(leading, dtype=int)), -1) for v in (a, codes))
    sums = [[math.fsum(row[tag == c].astype(np.float64)) for c in range(count)] for row, tag in zip(rows, tags)]
    return np.array(sums, np.float64).reshape(*leading, count)
