"""Equal damage: own accuracy as a function of null accuracy. Blur moves a method along this curve, not off it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

from roarfast.metrics.resampling import Estimate, Resampled, Statistic, bootstrap
from roarfast.metrics.responses import Responses

Floats = npt.NDArray[np.float64]
Answers: TypeAlias = Responses | npt.ArrayLike
"""What was answered: `Responses`, or values `[R, N]`."""


@dataclass(frozen=True)
class EqualDamage:
    """How far own responses are below null responses at the same damage.

    Attributes:
        score: Mean over the range of null accuracy of (null - own); larger is better, 0 is a map that knows nothing.
        low: Lower end of the range of null accuracy.
        high: Upper end: the accuracy with nothing removed.
        null: Null accuracy, ascending: the knots of the curve.
        own: Own accuracy there.
    """

    score: Estimate
    low: float
    high: float
    null: Floats
    own: Floats


class EqualDamageOptions(TypedDict, total=False):
    """What `equal_damages` hands on to `equal_damage`."""

    of: str
    resamples: int
    level: float
    seed: int


def equal_damage(
    own: Answers,
    null: Answers,
    base: npt.ArrayLike | None = None,
    *,
    low: float | None = None,
    of: str = "accuracy",
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> EqualDamage:
    """The mean distance of own(null) below the diagonal.

    The points (null(t), own(t)) of all rates, and (base, base), are joined by lines; where null accuracy does not fall
    with the rate, neighbours are pooled until it does.

    Args:
        own: `Responses` of the maps, or values `[R, N]` (1 correct, 0 not; or probabilities).
        null: The same for the null, same rates and images.
        base: Values with nothing removed `[N]`; taken from `own` if that is `Responses`.
        low: Lower end of the range, to compare several methods: `common_low` gives one; by default the null's lowest.
        of: The indicator, where `Responses` are given.
        resamples: Of the images, for the interval; 0: none.
        level: Of the interval.
        seed: Of the resamples.

    Returns:
        The score with its interval, and the curve.

    Example:
        >>> own, null = np.array([[1, 0, 0, 0], [0, 0, 0, 0]]), np.array([[1, 1, 1, 0], [1, 0, 0, 0]])
        >>> result = equal_damage(own, null, np.ones(4))
        >>> round(result.score.value, 4), result.low, result.high
        (0.3333, 0.25, 1.0)
    """
    x, y, whole = _values("null", null, of), _values("own", own, of), _base(own, base, of)
    if x.shape != y.shape or whole.shape != x.shape[1:]:
        raise ValueError(
            f"own, null and base must be [R, N], [R, N] and [N], got {y.shape}, {x.shape} and {whole.shape}"
        )
    if x.shape[1] == 0:
        nothing = np.zeros(0)
        return EqualDamage(Estimate(float("nan")), float("nan"), float("nan"), nothing, nothing)
    high = float(whole.mean())
    knots_x, knots_y = _curve(x.mean(1), y.mean(1), high)
    bottom = float(knots_x[0]) if low is None else float(low)
    value = _below_diagonal(knots_x, knots_y, bottom)
    score = Estimate(value)
    if resamples and not np.isnan(value):
        score = bootstrap(_statistic(y, x, whole, low), x.shape[1], resamples, seed, value).estimate(level)
    return EqualDamage(score, bottom, float(knots_x[-1]), knots_x, knots_y)


def equal_damage_draws(
    own: Answers,
    null: Answers,
    base: npt.ArrayLike | None = None,
    *,
    low: float | None = None,
    of: str = "accuracy",
    resamples: int = 1000,
    seed: int = 0,
) -> Resampled:
    """The score of `equal_damage` with its resamples, so that differences of two methods on the same images are paired.

    Args:
        own: As in `equal_damage`.
        null: As in `equal_damage`.
        base: As in `equal_damage`.
        low: As in `equal_damage`; give both methods the same.
        of: The indicator, where `Responses` are given.
        resamples: Of the images.
        seed: Equal seeds give equal resamples.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> plain, blurred, null = (rng.random((2, 200)) < p for p in (0.4, 0.3, 0.6))
        >>> one, other = (equal_damage_draws(own, null, np.ones(200), low=0.6) for own in (plain, blurred))
        >>> bool((other - one).estimate().value > 0)
        True
    """
    found = equal_damage(own, null, base, low=low, of=of, resamples=0)
    x, y, whole = _values("null", null, of), _values("own", own, of), _base(own, base, of)
    return bootstrap(_statistic(y, x, whole, low), x.shape[1], resamples, seed, found.score.value)


def common_low(nulls: Iterable[Answers], base: npt.ArrayLike | None = None, of: str = "accuracy") -> float:
    """The lower end of the range of null accuracy that all of several nulls reach.

    Args:
        nulls: `Responses`, or values `[R, N]`, of each method's null.
        base: Values with nothing removed `[N]`, unless `Responses` are given.
        of: The indicator, where `Responses` are given.

    Example:
        >>> sharp, blurred = np.array([[1, 1, 1, 0]]), np.array([[1, 0, 0, 0]])  # of four images, one rate
        >>> common_low([sharp, blurred], np.ones(4))
        0.75
    """
    lowest = []
    for null in nulls:
        x = _values("null", null, of).mean(1)
        lowest.append(float(_curve(x, x, float(_base(null, base, of).mean()))[0][0]))
    return max(lowest)


def excess(own: Answers, null: Answers, *, better: str = "lower", of: str = "accuracy") -> Floats:
    """Null minus own at each rate, `[R]`, signed so that more is better.

    Args:
        own: `Responses`, or values `[R, N]`.
        null: Likewise.
        better: `"lower"` where a good map gives a low accuracy (MoRF removal), `"higher"` where it gives a high one
            (LeRF, KAR, insertion).
        of: The indicator, where `Responses` are given.

    Example:
        >>> excess(np.array([[1, 0, 0, 0]]), np.array([[1, 1, 1, 0]])).tolist()
        [0.5]
    """
    if better not in ("lower", "higher"):
        raise ValueError(f"better must be 'lower' or 'higher', got {better!r}")
    difference = _values("null", null, of).mean(1) - _values("own", own, of).mean(1)
    return np.asarray(difference if better == "lower" else -difference, np.float64)


def _statistic(own: Floats, null: Floats, whole: Floats, low: float | None) -> Statistic:
    """The score under weights `[b, N]` of the images."""

    def statistic(weights: Floats) -> Floats:
        share = weights / weights.sum(1, keepdims=True)
        curves = zip(share @ null.T, share @ own.T, share @ whole)
        # The range is the resample's own too, unless it is given: its lower end is an estimate as well.
        return np.array([_below_diagonal(*_curve(a, b, float(c)), low, reach=False) for a, b, c in curves])

    return statistic


def _curve(x: Floats, y: Floats, base: float) -> tuple[Floats, Floats]:
    """Knots with ascending x: (base, base) and the rates, neighbours pooled where x does not fall with the rate."""
    blocks: list[list[float]] = [[base, base, 1.0]]  # sums of x and y, and how many
    for a, b in zip(x, y):
        blocks.append([float(a), float(b), 1.0])
        while len(blocks) > 1 and blocks[-1][0] * blocks[-2][2] >= blocks[-2][0] * blocks[-1][2]:
            last = blocks.pop()
            blocks[-1] = [p + q for p, q in zip(blocks[-1], last)]
    knots = np.array(blocks[::-1])
    return knots[:, 0] / knots[:, 2], knots[:, 1] / knots[:, 2]


def _below_diagonal(x: Floats, y: Floats, low: float | None = None, reach: bool = True) -> float:
    """Mean of x - y(x) over [low, highest x]; NaN if there is no range, or if it must reach low and does not."""
    if low is not None and reach and low < x[0] - 1e-12:
        return float("nan")
    bottom = float(x[0]) if low is None else max(low, float(x[0]))
    if not bottom < x[-1]:
        return float("nan")
    at = np.concatenate([[bottom], x[x > bottom]])
    gap = at - np.interp(at, x, y)
    return float((np.diff(at) * (gap[1:] + gap[:-1]) / 2).sum() / (at[-1] - at[0]))


def _values(name: str, given: Answers, of: str) -> Floats:
    values = given.values(of) if isinstance(given, Responses) else np.asarray(given, np.float64)
    if values.ndim != 2 or values.shape[0] == 0:
        raise ValueError(f"{name} must be Responses or values [R, N] with at least one rate, got shape {values.shape}")
    return np.asarray(values, np.float64)


def _base(own: Answers, base: npt.ArrayLike | None, of: str) -> Floats:
    if base is not None:
        return np.asarray(base, np.float64)
    if not isinstance(own, Responses):
        raise ValueError("base must be given: the values [N] with nothing removed")
    return np.asarray(own.ends(of)[0], np.float64)
