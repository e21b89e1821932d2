"""Do scores agree? Kendall's tau between the rankings of maps by several scores, with tau between trials as yardstick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]
ALPHA = 0.05


@dataclass(frozen=True)
class Agreement:
    """How scores rank the same maps.

    Attributes:
        names: Of the P scores.
        tau: float64 `[P, P]`, Kendall's tau-b between two scores; 1 on the diagonal, NaN with fewer than 3 maps in common.
        low: float64 `[P, P]`, lower end of its 95 % interval over maps; NaN with fewer than 5.
        high: Likewise.
        p: float64 `[P, P]`, two-sided, that scores without any relation have so large a tau.
        maps: int64 `[P, P]`, maps in common.
        between_trials: float64 `[P]`, mean tau of a score with itself between trials: more cannot be asked of two scores.
    """

    names: tuple[str, ...]
    tau: Floats
    low: Floats
    high: Floats
    p: Floats
    maps: npt.NDArray[np.int64]
    between_trials: Floats

    @property
    def flagged(self) -> npt.NDArray[np.bool_]:
        """Bool `[P, P]`: pairs that agree (or disagree) more than chance, each at 5 %; False on the diagonal."""
        return np.asarray((self.p < ALPHA) & ~np.eye(len(self.names), dtype=bool))


def agreement(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> Agreement:
    """Kendall's tau between scores of the same maps.

    Args:
        scores: Score → map → its value in each trial, signed so that more is better; NaN where it has none.

    Returns:
        Tau of the means over trials. The interval is that of Fieller, Hartley and Pearson: atanh(tau) has the standard
        error sqrt(0.437 / (maps - 4)).

    Example:
        >>> a = agreement({"x": {"m1": [1.0], "m2": [2.0], "m3": [3.0]}, "y": {"m1": [2.0], "m2": [4.0], "m3": [9.0]}})
        >>> float(a.tau[0, 1])
        1.0
    """
    names = tuple(scores)
    count = len(names)
    means = [{name: float(np.mean(values)) for name, values in one.items() if len(values)} for one in scores.values()]
    tau, p = np.eye(count), np.full((count, count), np.nan)
    low, high = np.full((count, count), np.nan), np.full((count, count), np.nan)
    maps = np.zeros((count, count), np.int64)
    for i in range(count):
        maps[i, i] = sum(np.isfinite(v) for v in means[i].values())
    for i, j in combinations(range(count), 2):
        common = [m for m in means[i] if m in means[j] and np.isfinite(means[i][m]) and np.isfinite(means[j][m])]
        found = _tau([means[i][m] for m in common], [means[j][m] for m in common])
        bounds = interval(found[0], len(common))
        for a, b in ((i, j), (j, i)):
            maps[a, b], (tau[a, b], p[a, b]), (low[a, b], high[a, b]) = len(common), found, bounds
    own = np.array([_between_trials(one) for one in scores.values()])
    return Agreement(names, tau, low, high, p, maps, own)


def interval(tau: float, maps: int) -> tuple[float, float]:
    """The 95 % interval of a tau over so many maps; NaN where there are too few or tau is 1 or -1."""
    if maps < 5 or not abs(tau) < 1:
        return float("nan"), float("nan")
    reach = 1.959964 * np.sqrt(0.437 / (maps - 4))
    return float(np.tanh(np.arctanh(tau) - reach)), float(np.tanh(np.arctanh(tau) + reach))


def _tau(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    if len(a) < 3:
        return float("nan"), float("nan")
    found = stats.kendalltau(a, b)
    return float(found.statistic), float(found.pvalue)


def _between_trials(values: Mapping[str, Sequence[float]]) -> float:
    """Mean tau over pairs of trials; NaN with fewer than two."""
    trials = min((len(v) for v in values.values()), default=0)
    table = np.array([list(v)[:trials] for v in values.values()], np.float64).reshape(len(values), trials)
    table = table[np.isfinite(table).all(1)]
    found = [_tau(table[:, i].tolist(), table[:, j].tolist())[0] for i, j in combinations(range(trials), 2)]
    return float(np.mean(found)) if found else float("nan")
