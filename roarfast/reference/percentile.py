"""Percentiles by `np.percentile`, sample by sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roarfast._types import Numpy


def percentile(a: Numpy, q: float | Sequence[float], ndim: int = 2) -> Numpy:
    """`np.percentile(a, q)` of each sample; `[...]` for a number q, `[..., Q]` for a sequence."""
    leading = a.shape[: a.ndim - ndim]
    rows = a.reshape(*leading, -1)
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf is NaN, as documented
        if np.ndim(q) == 0:
            return np.asarray(np.percentile(rows, float(q), axis=-1))  # type: ignore[arg-type]
        return np.moveaxis(np.percentile(rows, np.asarray(q, np.float64), axis=-1), 0, -1)
