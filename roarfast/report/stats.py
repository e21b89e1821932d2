"""The statistics of the report. Trials are the independent unit: every interval and test is over trials.

A number that the data cannot give (an interval from one trial, a p from one pair) is NaN, never a made-up value.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

import numpy as np
import numpy.typing as npt

from roarfast.metrics.resampling import holm

Floats = npt.NDArray[np.float64]
Values = Sequence[float] | Floats
Better = Literal["lower", "higher"]

__all__ = [
    "Better",
    "Fit",
    "Interval",
    "PairedTest",
    "holm",
    "kendall_tau",
    "linear_fit",
    "mean_interval",
    "paired_test",
    "ranks",
    "spearman",
    "t_p",
    "t_power",
    "t_quantile",
]

EXACT_SPEARMAN_UP_TO = 8  # 8! = 40,320 orders are quick; above, the t approximation is close enough
_ROUNDING = 1e-12  # spreads below this, relative to the values, are rounding and not variation


@dataclass(frozen=True)
class Interval:
    """Mean of `n` values with the bounds of its t-interval (NaN for fewer than two values)."""

    mean: float
    low: float
    high: float
    sd: float
    n: int

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class PairedTest:
    """Two-sided paired t-test: mean difference, its 95 % interval, t and p (NaN where there is nothing to test)."""

    difference: Interval
    t: float
    p: float

    @property
    def n(self) -> int:
        """Number of pairs."""
        return self.difference.n


@dataclass(frozen=True)
class Fit:
    """Least-squares line y = intercept + slope x over `n` points, and the rank correlation of the same points."""

    slope: float
    intercept: float
    r2: float
    p: float
    spearman: float
    spearman_p: float
    n: int
    x_mean: float
    x_spread: float  # sum of squared deviations of x
    residual_sd: float

    def line(self, x: Values) -> Floats:
        """The fitted y at x."""
        return self.intercept + self.slope * np.asarray(x, np.float64)

    def band(self, x: Values, level: float = 0.95) -> Floats:
        """Half the width of the confidence band of the line at x; NaN for fewer than three points."""
        if self.n < 3:
            return np.full(len(x), math.nan)
        distance = (np.asarray(x, np.float64) - self.x_mean) ** 2 / self.x_spread
        return t_quantile(self.n - 2, level) * self.residual_sd * np.sqrt(1 / self.n + distance)


@functools.cache
def _scipy() -> ModuleType:
    """scipy.stats, imported when it is first needed: it takes half a second, and every command imports this package."""
    from scipy import stats

    return stats


def t_quantile(df: int, level: float = 0.95) -> float:
    """The t below which |T| stays with probability `level`: 12.71 for one degree of freedom, 2.78 for four."""
    return float(_scipy().t.ppf(0.5 + level / 2, df))


def t_p(t: float, df: int) -> float:
    """Two-sided p of a t value.

    Example:
        >>> round(t_p(2.776445, 4), 4)
        0.05
    """
    return float(2 * _scipy().t.sf(abs(t), df))


def t_power(shift: float, df: int, level: float = 0.95) -> float:
    """The chance that a two-sided t-test finds a shift of so many standard errors.

    The mean over the estimated standard error, by the midpoint rule: `scipy.stats.nct` has no value for one degree of freedom and a large shift.
    """
    scipy = _scipy()
    error = np.sqrt(scipy.chi2.ppf((np.arange(2000) + 0.5) / 2000, df) / df)
    border = t_quantile(df, level) * error
    return float((scipy.norm.sf(border - shift) + scipy.norm.cdf(-border - shift)).mean())


def mean_interval(values: Values, level: float = 0.95) -> Interval:
    """Mean and t-interval.

    Example:
        >>> i = mean_interval([0.50, 0.54, 0.52])
        >>> f"{i.mean:.2f} [{i.low:.3f}, {i.high:.3f}]"
        '0.52 [0.470, 0.570]'
        >>> mean_interval([0.5]).low
        nan
    """
    x = np.asarray(values, np.float64)
    if x.size == 0:
        return Interval(math.nan, math.nan, math.nan, math.nan, 0)
    mean = float(x.mean())
    if x.size == 1:
        return Interval(mean, math.nan, math.nan, math.nan, 1)
    sd = float(x.std(ddof=1))
    half = t_quantile(x.size - 1, level) * sd / math.sqrt(x.size)
    return Interval(mean, mean - half, mean + half, sd, int(x.size))


def paired_test(before: Values, after: Values) -> PairedTest:
    """Paired t-test of `after - before` against zero; the values of one trial stand at the same place in both.

    Differences that are all equal leave no spread to judge by: p is 1 if they are zero, else NaN. (The formula would
    give p = 0, and with two trials on a test set of a few thousand images equal differences are not even rare.)
    """
    a, b = np.asarray(before, np.float64), np.asarray(after, np.float64)
    if a.shape != b.shape:
        raise ValueError(f"before and after must have one value per trial each, got {a.size} and {b.size}")
    difference = mean_interval(b - a)
    if difference.n < 2:
        return PairedTest(difference, math.nan, math.nan)
    scale = max(float(np.abs(a).max()), float(np.abs(b).max()), 1e-300)
    if difference.sd <= _ROUNDING * scale:
        p = 1.0 if abs(difference.mean) <= _ROUNDING * scale else math.nan
        return PairedTest(difference, math.nan, p)
    found = _scipy().ttest_rel(b, a)
    return PairedTest(difference, float(found.statistic), float(found.pvalue))


def ranks(values: Values, better: Better = "lower") -> Floats:
    """Ranks from 1 (best); equal values share the mean of their ranks."""
    return np.asarray(_scipy().rankdata(np.asarray(values, np.float64) * (1 if better == "lower" else -1)), np.float64)


def spearman(x: Values, y: Values) -> tuple[float, float]:
    """Rank correlation and its two-sided p: exact over all orders for small n, by the t approximation above that."""
    a, b = ranks(x), ranks(y)
    n = a.size
    if n < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan, math.nan
    if n > EXACT_SPEARMAN_UP_TO:
        found = _scipy().spearmanr(a, b)
        return float(found.statistic), float(found.pvalue)
    a, b = a - a.mean(), b - b.mean()
    scale = math.sqrt(float((a @ a) * (b @ b)))
    rho = float(a @ b) / scale
    orders = np.array(list(itertools.permutations(range(n))))
    return rho, float((np.abs(b[orders] @ a) / scale >= abs(rho) - 1e-9).mean())


def kendall_tau(x: Values, y: Values) -> float:
    """Kendall's τ-b: agreement of two orders, 1 the same, -1 reversed, with ties accounted for; NaN for one value."""
    return float(_scipy().kendalltau(x, y).statistic) if len(x) > 1 else math.nan


def linear_fit(x: Values, y: Values) -> Fit:
    """Least-squares line with R² and the p of its slope; Spearman beside it. NaN where n or the spread is too small."""
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    n, nan = int(a.size), math.nan
    x_mean = float(a.mean()) if n else nan
    x_spread = float(((a - x_mean) ** 2).sum())
    if n < 2 or np.ptp(a) <= _ROUNDING * float(np.abs(a).max()):
        return Fit(nan, nan, nan, nan, nan, nan, n, x_mean, x_spread, nan)
    line = _scipy().linregress(a, b)
    varies = np.ptp(b) > 0
    error = float(line.stderr) * math.sqrt(x_spread) if n > 2 else nan
    p = float(line.pvalue) if n > 2 and varies else nan
    return Fit(
        float(line.slope),
        float(line.intercept),
        float(line.rvalue) ** 2 if varies else nan,
        p,
        *spearman(a, b),
        n,
        x_mean,
        x_spread,
        error,
    )
