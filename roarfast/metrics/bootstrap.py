"""Intervals over images and over trials. Images: the same resampled images for everything that is compared, so that differences are paired."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roarfast.metrics import resampling

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A number with its interval; the bounds are NaN where the data cannot give one.

    Attributes:
        value: The estimate on the images at hand.
        low: Lower bound.
        high: Upper bound.
        error: Standard error.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    error: float = math.nan

    def __str__(self) -> str:
        return f"{self.value:.4f}" if math.isnan(self.low) else f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


def resample(n: int, count: int = 1000, seed: int = 0) -> Floats:
    """The share of each of n images in each of `count` resamples: float64 `[count, n]`; rows sum to 1.

    Example:
        >>> w = resample(5, count=3)
        >>> w.shape, bool(np.allclose(w.sum(1), 1))
        ((3, 5), True)
    """
    if n < 1 or count < 1:
        raise ValueError(f"n and count must be at least 1, got {n} and {count}")
    return np.concatenate(list(resampling.resamples(n, count, seed))) / n


def interval(value: float, draws: Floats, level: float = 0.95) -> Estimate:
    """The percentile interval of resampled values around an estimate; NaN draws (nothing to measure) are left out."""
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level}")
    finite = draws[~np.isnan(draws)]
    if finite.size < 2 or math.isnan(value):
        return Estimate(value)
    low, high = resampling.interval(finite, level)
    return Estimate(value, low, high, float(finite.std(ddof=1)))


def mean_interval(values: Floats, weights: Floats, level: float = 0.95) -> Estimate:
    """Mean over images `[N]` and its interval from `resample` weights `[B, N]`.

    Example:
        >>> e = mean_interval(np.arange(100.0), resample(100))
        >>> e.value, bool(e.low < 49.5 < e.high)
        (49.5, True)
    """
    return interval(float(values.mean()), weights @ values, level)


def above_zero(values: Floats) -> float:
    """One-sided p of "the mean over images is > 0", by the t-test; 1 if every value is 0, NaN if it cannot be tested."""
    from scipy.special import stdtr

    n = values.size
    if not values.any():
        return 1.0
    spread = float(values.std(ddof=1)) if n > 1 else 0.0
    if spread == 0:
        return math.nan
    return float(stdtr(n - 1, -float(values.mean()) / (spread / math.sqrt(n))))


def trial_interval(values: Floats, level: float = 0.95) -> Estimate:
    """Mean over trials and its t-interval; no bounds for one trial."""
    from scipy.special import stdtrit

    n = values.size
    if n < 2:
        return Estimate(float(values.mean()))
    error = float(values.std(ddof=1)) / math.sqrt(n)
    half = float(stdtrit(n - 1, 0.5 + level / 2)) * error
    return Estimate(float(values.mean()), float(values.mean()) - half, float(values.mean()) + half, error)
