"""What the curve scores share: rates, and lines of an indicator against the removed fraction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roarfast.metrics.record import Line
from roarfast.metrics.responses import INDICATORS, Responses

TENTHS = tuple(j / 10 for j in range(1, 10))
# Dense at the start, where deletion curves fall: Wang and Wang look at the first 18 % only.
EARLY = (0.005, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_UNITS = {
    "accuracy": "accuracy",
    "probability": "probability of the class",
    "logit": "logit of the class",
    "margin": "margin of the class",
    "log-ratio": "log probability ratio to the whole image",
}


def check_indicator(indicator: str) -> str:
    """An indicator by name."""
    if indicator not in INDICATORS:
        raise ValueError(f"indicator must be one of {', '.join(INDICATORS)}, got {indicator!r}")
    return indicator


def line(responses: Responses, indicator: str, x: str = "removed fraction") -> Line:
    """An indicator against the fraction really removed (or kept), both ends included."""
    whole, empty = responses.ends(indicator)
    fraction = responses.removed.mean(1) if len(responses) else np.asarray(responses.rates)
    values = responses.values(indicator)
    first, last = (empty, whole) if responses.perturbation.keep else (whole, empty)
    shown = 1 - fraction if responses.perturbation.keep else fraction
    ends = np.concatenate([[0.0], shown, [1.0]])
    return Line(ends, np.concatenate([first[None], values, last[None]]), x, _UNITS[indicator], responses)


def as_rates(rates: Sequence[float]) -> tuple[float, ...]:
    """Rates as a tuple of floats."""
    return tuple(float(r) for r in rates)
