"""Removal masks by sorting, sample by sample: the definition of rules, orders, counts and ties."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from roarfast import _philox as philox
from roarfast._types import Numpy


def exact_count(drop: float, f: int) -> int:
    """floor(drop * f), but 0.29 of 100 is 29: a product that misses an integer by rounding only counts as that integer."""
    return min(f, math.floor(drop * f * (1 + 8.9e-16)))


def removal_mask(
    a: Numpy,
    drop: float,
    rule: str = "exact",
    order: str = "morf",
    keep: bool = False,
    seed: int = 0,
    index: npt.ArrayLike | None = None,
    ndim: int = 2,
) -> Numpy:
    """True = removed; see `roarfast.removal_mask`."""
    leading = a.shape[: a.ndim - ndim]
    rows = a.reshape(int(np.prod(leading, dtype=int)), -1)
    ids = range(len(rows)) if index is None else [int(i) for i in np.ravel(index)]
    masks = [_row(row, drop, rule, order, seed, sample) != keep for row, sample in zip(rows, ids)]
    return np.array(masks, bool).reshape(a.shape)


def _row(row: Numpy, drop: float, rule: str, order: str, seed: int, sample: int) -> npt.NDArray[np.bool_]:
    if rule == "value":
        values = row.astype(np.float64 if row.dtype == np.float64 else np.float32)
        limit = values.max() * values.dtype.type(1 - drop if order == "morf" else drop)
        return values > limit if order == "morf" else values < limit
    if rule != "exact":
        with np.errstate(invalid="ignore", over="ignore"):
            threshold = np.percentile(row, 100 * (1 - drop) if order == "morf" else 100 * drop)
        if order == "morf":
            return row > threshold if rule == "strict" else row >= threshold
        return row < threshold if rule == "strict" else row <= threshold
    f = len(row)
    k = exact_count(drop, f)
    hashes = philox.words(seed, sample, f, philox.TIE_BREAK)
    # One total order: by value, then hash, then feature. MoRF takes from its end, LeRF from its beginning.
    ascending = np.lexsort((np.arange(f), hashes, row))
    mask = np.zeros(f, bool)
    mask[ascending[f - k :] if order == "morf" else ascending[:k]] = True
    return mask
