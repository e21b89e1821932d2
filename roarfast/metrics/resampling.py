"""Intervals over images and over trials, and Holm's correction.

Images are resampled together for everything that is compared, so that differences are paired. Intervals are BCa
(Efron: corrected for the bias and for the skewness of the resampled statistic), with quantiles widened as the t law asks
(Hesterberg): plain percentiles are too narrow, and off to one side where values are skewed. Trials (trained models) are
another source of variation, with t-intervals of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
_BLOCK = 1 << 22  # counts held at a time
_GROUPS = 500  # of images left out together: the skewness of a mean of more than this many is known well enough
_NORMAL = NormalDist()


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


@dataclass(frozen=True)
class Resampled:
    """One or k statistics of n images, under resamples of the images.

    Attributes:
        value: float64 `[]` or `[k]`: of the images as they are.
        draws: float64 `[B]` or `[B, k]`: of each resample; NaN where one has nothing to measure.
        influence: float64 `[G]` or `[G, k]`: by how much the value falls when a group of images is left out.
        n: How many images.
    """

    value: Floats
    draws: Floats = field(repr=False)
    influence: Floats = field(repr=False)
    n: int

    def __sub__(self, other: Resampled) -> Resampled:
        """The difference, paired: both must come from the same images, count and seed."""
        if self.draws.shape != other.draws.shape or self.n != other.n:
            raise ValueError(f"differences need the same resamples, got {self.draws.shape} and {other.draws.shape}")
        return Resampled(self.value - other.value, self.draws - other.draws, self.influence - other.influence, self.n)

    def __neg__(self) -> Resampled:
        return replace(self, value=-self.value, draws=-self.draws, influence=-self.influence)

    def __getitem__(self, j: int) -> Resampled:
        """One of k statistics."""
        return Resampled(self.value[j], self.draws[:, j], self.influence[:, j], self.n)

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """Lower and upper bounds, floats or `[k]`; NaN where there is nothing to measure, or all resamples lie to one side."""
        if not 0 < level < 1:
            raise ValueError(f"level must be in (0, 1), got {level}")
        if self.draws.ndim == 1:
            return _bca(float(self.value), self.draws, self.influence, self.n, level)
        pairs = [self[j].interval(level) for j in range(self.draws.shape[1])]
        table = np.array(pairs, np.float64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def estimate(self, level: float = 0.95) -> Estimate:
        """A single statistic with its interval and standard error."""
        known = self.draws[~np.isnan(self.draws)]
        error = float(known.std(ddof=1)) if known.size > 1 else math.nan
        return Estimate(float(self.value), *self.interval(level), error)

    def p(self) -> float:
        """Two-sided p of "the value is 0", by the t law with the spread of the resamples; NaN if it cannot be tested."""
        value, spread = float(self.value), float(np.nanstd(self.draws)) if np.isfinite(self.draws).any() else math.nan
        if not math.isfinite(value) or not math.isfinite(spread) or self.n < 2:
            return math.nan
        if spread == 0:
            return 1.0 if value == 0 else 0.0
        from scipy.special import stdtr

        return float(2 * stdtr(self.n - 1, -abs(value) / (spread * math.sqrt(self.n / (self.n - 1)))))


def resamples(n: int, count: int, seed: int = 0) -> Iterator[Floats]:
    """How often each of n images is drawn in each of `count` resamples: blocks `[b, n]`, the same for a given seed."""
    rng = np.random.default_rng(seed)
    step = max(1, _BLOCK // max(n, 1))
    for start in range(0, count, step):
        rows = min(step, count - start)
        drawn = rng.integers(0, max(n, 1), (rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(drawn.reshape(-1), minlength=rows * n).reshape(rows, n).astype(np.float64)


def check_resamples(count: int) -> None:
    """Raises a ValueError if it is no number of resamples."""
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 0:
        raise ValueError(f"resamples must be an integer >= 0, got {count!r}")


def bootstrap(
    statistic: Statistic, n: int, count: int = 1000, seed: int = 0, value: float | Floats | None = None
) -> Resampled:
    """A statistic of resampled images.

    Args:
        statistic: Takes weights `[b, n]` of the images, returns `[b]` or `[b, k]`.
        n: Number of images.
        count: Number of resamples; 0: no intervals.
        seed: Equal seeds give equal resamples: differences of two statistics are then paired.
        value: The statistic of the images as they are, where it is not `statistic` of equal weights.

    Example:
        >>> found = bootstrap(weighted_mean(np.arange(100.0)), 100)
        >>> low, high = found.interval()
        >>> float(found.value), bool(low < 49.5 < high)
        (49.5, True)
    """
    check_resamples(count)
    if n == 0:
        shape = np.shape(statistic(np.ones((1, 0))))[1:]
        return Resampled(np.full(shape, np.nan), np.zeros((0, *shape)), np.zeros((0, *shape)), 0)
    whole = np.asarray(statistic(np.ones((1, n)))[0], np.float64)
    shape = whole.shape
    draws = [statistic(block) for block in resamples(n, count, seed)]
    left = [statistic(block) for block in _without_groups(n, seed)] if count else []
    return Resampled(
        whole if value is None else np.asarray(value, np.float64),
        np.concatenate(draws) if draws else np.zeros((0, *shape)),
        whole - np.concatenate(left) if left else np.zeros((0, *shape)),
        n,
    )


def _without_groups(n: int, seed: int) -> Iterator[Floats]:
    """Weights `[b, n]` that leave out each image, or each of 500 random groups of them."""
    groups = min(n, _GROUPS)
    member = np.random.default_rng([seed, n]).permutation(np.arange(n) % groups) if n > groups else np.arange(n)
    step = max(1, _BLOCK // n)
    for start in range(0, groups, step):
        yield (member[None] != np.arange(start, min(start + step, groups))[:, None]).astype(np.float64)


def _bca(value: float, draws: Floats, influence: Floats, n: int, level: float) -> tuple[float, float]:
    draws = draws[~np.isnan(draws)]
    if draws.size < 2 or math.isnan(value) or n < 2:
        return math.nan, math.nan
    if draws.min() == draws.max():
        return float(draws[0]), float(draws[0])
    from scipy.special import stdtrit

    below = float((draws < value).mean() + (draws == value).mean() / 2)
    bias = _NORMAL.inv_cdf(min(max(below, 0.5 / draws.size), 1 - 0.5 / draws.size))
    u = influence[np.isfinite(influence)] - (influence[np.isfinite(influence)].mean() if influence.size else 0.0)
    power = float((u * u).sum())
    skew = float((u**3).sum()) / (6 * power**1.5) if power > 0 else 0.0
    reach = math.sqrt(n / (n - 1)) * float(stdtrit(n - 1, 0.5 + level / 2))
    ranks = []
    for z in (bias - reach, bias + reach):
        below_pole = 1 - skew * z
        # Beyond the pole of the transformation there is no quantile: the outermost resample it is.
        ranks.append(_NORMAL.cdf(bias + z / below_pole) if below_pole > 0 else float(z > 0))
    low, high = np.quantile(draws, ranks, method="weibull")
    slack = 1e-9 * (abs(value) + float(np.ptp(draws)))
    if (
        not low - slack <= value <= high + slack
    ):  # (nearly) all resamples to one side: they cannot say how far it is off
        return math.nan, math.nan
    return float(low), float(high)


def weighted_mean(values: Floats) -> Statistic:
    """The statistic "mean of values `[n]` or `[k, n]`", NaN left out."""
    known = np.isfinite(values)
    filled = np.where(known, values, 0.0)

    def mean(weights: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((weights @ filled.T) / (weights @ known.T.astype(np.float64)))

    return mean


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


def holm(p: Sequence[float] | Floats) -> Floats:
    """Holm's adjusted p-values; NaN (a test that could not be made) stays NaN and does not count in the family.

    Example:
        >>> [round(float(q), 3) for q in holm([0.01, 0.04, 0.03])]
        [0.03, 0.06, 0.06]
    """
    raw = np.asarray(p, np.float64)
    adjusted = np.full(raw.shape, math.nan)
    tested = np.flatnonzero(~np.isnan(raw))
    order = tested[np.argsort(raw[tested], kind="stable")]
    factors = np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(raw[order] * factors))
    return adjusted
