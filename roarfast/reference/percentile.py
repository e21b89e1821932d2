"""Percentiles by `np.percentile`, sample by sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def percentile(a: np.ndarray[Any, Any], q: float | Sequence[float], ndim: int = 2) -> np.ndarray[Any, Any]:
    """`np.percentile(a, q)` of each sample; `[...]` for a number q, `[..., Q]` for a sequence."""
    leading = a.shape[: a.ndim - ndim]
    rows = a.reshape(*leading, -1)
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf is NaN, as documented
        if np.ndim(q) == 0:
            return np.asarray(np.percentile(rows, float(q), axis=-1))  # type: ignore[arg-type]
        return np.moveaxis(np.percentile(rows, np.asarray(q, np.float64), axis=-1), 0, -1)
