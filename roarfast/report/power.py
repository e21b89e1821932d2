"""What a study can find: the smallest difference that it would have shown, and how many trials a difference needs."""

from __future__ import annotations

import math
from collections.abc import Iterable

from roarfast.report.stats import t_power
from roarfast.report.text import counted

POWER = 0.8
"""The chance of finding a difference that is there, which is usually asked for."""
TYPICAL_SPREAD = 0.01
"""Standard deviation of differences between trials, before a study has any: 0.7 points for ROAR and 2.1 for ROAD on a
CIFAR-10 subset (docs/results/cifar10-subset)."""
MOST_TRIALS = 10_000


def chance_to_find(difference: float, sd: float, trials: int, level: float = 0.95) -> float:
    """The power of a two-sided paired t-test over trials.

    Example:
        >>> round(chance_to_find(0.01, 0.01, 5), 2)
        0.4
    """
    return t_power(abs(difference) / sd * math.sqrt(trials), trials - 1, level)


def detectable(sd: float, trials: int, power: float = POWER) -> float:
    """The smallest true difference that so many trials show with that chance; NaN for one trial or no spread."""
    if trials < 2 or math.isnan(sd) or sd <= 0:
        return math.nan
    low, high = 0.0, sd
    while chance_to_find(high, sd, trials) < power:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if chance_to_find(middle, sd, trials) >= power else (middle, high)
    return high


def trials_needed(sd: float, difference: float = 0.01, power: float = POWER) -> int:
    """How many trials show a difference with that chance; `MOST_TRIALS` if not even so many do.

    Example:
        >>> trials_needed(0.01, 0.01)
        10
    """
    low, high = 1, 2
    while high < MOST_TRIALS and chance_to_find(difference, sd, high) < power:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if chance_to_find(difference, sd, middle) >= power else (middle, high)
    return min(high, MOST_TRIALS)


def power_sentence(sd: float, trials: int) -> str:
    """What a finished study could have found, given the spread between its trials."""
    if trials < 2:
        return (
            "One trial: no difference can be told from chance. If differences vary by 1 point between trials, showing one of 1 point "
            f"takes {trials_needed(TYPICAL_SPREAD)} trials."
        )
    if math.isnan(sd) or sd <= 0:
        return ""
    return (
        f"Power: differences to random pixels vary by {100 * sd:.1f} points between trials, so {counted(trials, 'trial')} would have shown a "
        f"true difference of {100 * detectable(sd, trials):.1f} points ({100 * POWER:.0f} % chance, 5 % level, one test); showing one of 1 "
        f"point takes {counted(trials_needed(sd), 'trial')}."
    )


def forecast(trials: int, spreads: Iterable[float] = (TYPICAL_SPREAD, 2 * TYPICAL_SPREAD)) -> str:
    """What a study with so many trials will be able to show, before it runs: for `roarfast run --dry-run`."""
    if trials < 2:
        return power_sentence(math.nan, trials)
    parts = [
        f"{100 * detectable(sd, trials):.1f} points if they vary by {100 * sd:.0f} between trials (one of 1 point: {trials_needed(sd)} trials)"
        for sd in spreads
    ]
    return f"{counted(trials, 'trial')} can show a difference between two maps of " + ", or ".join(parts)
