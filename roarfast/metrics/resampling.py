"""Resampling of images: intervals of scores, and of differences between them on the same images."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
_BLOCK = 1 << 22  # counts held at a time


def resamples(n: int, count: int, seed: int = 0) -> Iterator[Floats]:
    """How often each of n images is drawn in each of `count` resamples: blocks `[b, n]`, the same for a given seed."""
    rng = np.random.default_rng(seed)
    step = max(1, _BLOCK // max(n, 1))
    for start in range(0, count, step):
        rows = min(step, count - start)
        drawn = rng.integers(0, max(n, 1), (rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(drawn.reshape(-1), minlength=rows * n).reshape(rows, n).astype(np.float64)


def bootstrap(statistic: Statistic, n: int, count: int = 1000, seed: int = 0) -> Floats:
    """A statistic of resampled images.

    Args:
        statistic: Takes weights `[b, n]` of the images, returns `[b]` or `[b, k]`.
        n: Number of images.
        count: Number of resamples.
        seed: Equal seeds give equal resamples: differences of two statistics are then paired.

    Returns:
        float64 `[count]` or `[count, k]`.

    Example:
        >>> values = np.array([0.0, 1.0, 2.0, 3.0])
        >>> bootstrap(weighted_mean(values), 4, 1000).mean().round(1)
        np.float64(1.5)
    """
    parts = [statistic(block) for block in resamples(n, count, seed)] if n else []
    return np.concatenate(parts) if parts else np.zeros(0)


def weighted_mean(values: Floats) -> Statistic:
    """The statistic "mean of values `[n]` or `[k, n]`", NaN left out."""
    known = np.isfinite(values)
    filled = np.where(known, values, 0.0)

    def mean(weights: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((weights @ filled.T) / (weights @ known.T.astype(np.float64)))

    return mean


def interval(draws: Floats, level: float = 0.95) -> tuple[Any, Any]:
    """Percentile interval of resampled statistics `[B]` or `[B, k]`; NaN where there is none."""
    if draws.shape[0] == 0 or np.isnan(draws).all():
        empty = np.full(draws.shape[1:], np.nan)
        return (float("nan"), float("nan")) if draws.ndim == 1 else (empty, empty)
    tail = 50 * (1 - level)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)  # a point where no resample has a value
        low, high = np.nanpercentile(draws, [tail, 100 - tail], axis=0)
    return (float(low), float(high)) if draws.ndim == 1 else (low, high)


def two_sided(difference: float, draws: Floats) -> float:
    """p-value of "the difference is 0", by the normal law with the spread of its resamples."""
    spread = float(np.nanstd(draws)) if len(draws) else float("nan")
    if not np.isfinite(difference) or not np.isfinite(spread):
        return float("nan")
    if spread == 0:
        return 1.0 if difference == 0 else 0.0
    return math.erfc(abs(difference) / spread / math.sqrt(2))


def holm(p: Floats) -> Floats:
    """Holm's correction of p-values for asking several questions; NaN stays NaN and is not counted."""
    result = np.array(p, np.float64)
    known = np.flatnonzero(np.isfinite(result))
    order = known[np.argsort(result[known], kind="stable")]
    largest = 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, float((len(order) - rank) * result[i])))
        result[i] = largest
    return result
