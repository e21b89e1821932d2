"""Temperature scaling: logits divided by one number, which is fitted on half of the samples and tried on the others.

What a model knows of the class is at least H(Y) less its cross entropy, whatever its confidence; dividing logits by a
temperature mends the confidence and nothing else. The temperature is chosen from a list, so that sums over batches are all
that is kept, and the result is the loss of a model that exists: still a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from roarfast import _philox as philox

if TYPE_CHECKING:  # reports read what was fitted without torch
    from torch import Tensor

TEMPERATURES = tuple(2 ** (k / 4) for k in range(-8, 25))
"""1/4 … 64. Neighbours differ by a fifth: what the best of them loses to the best of all is a few thousandths of a nat."""
UNSCALED = TEMPERATURES.index(1.0)
_VALUES = 1 << 22  # numbers at a time: a thousand classes at all temperatures are many


@dataclass(frozen=True)
class Scaled:
    """The temperature that fits the first half best, and the mean cross entropy of the other half at it, in nats."""

    temperature: float
    cross_entropy: float


def split_halves(n: int, seed: int) -> npt.NDArray[np.bool_]:
    """A bool `[n]`, True for the n // 2 samples that a temperature is fitted on; which, the seed alone decides.

    Example:
        >>> int(split_halves(11, seed=3).sum())
        5
    """
    fitted = np.zeros(n, bool)
    fitted[np.argsort(philox.words(seed, 0, n, philox.HALVES), kind="stable")[: n // 2]] = True
    return fitted


def losses_at(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy of every sample at every temperature, float32 `[B, temperatures]`, of logits `[B, classes]`."""
    logits = logits.float()
    scales = logits.new_tensor(TEMPERATURES)[:, None]
    chosen = labels.to(logits.device)[:, None, None].expand(-1, len(TEMPERATURES), 1)
    found = logits.new_empty(len(logits), len(TEMPERATURES))
    step = max(1, _VALUES // (len(TEMPERATURES) * max(1, logits.shape[1])))
    for some, classes, out in zip(logits.split(step), chosen.split(step), found.split(step)):
        scaled = some[:, None] / scales
        out.copy_(scaled.logsumexp(2) - scaled.gather(2, classes)[..., 0])
    return found


def fit(losses: npt.NDArray[np.float64]) -> Scaled | None:
    """The best temperature of the first half, and the loss of the other.

    Args:
        losses: float64 `[2, temperatures]`: the mean of `losses_at` over the half that is fitted, and over the other one.

    Returns:
        None if a half has no samples, or losses that are no numbers.
    """
    if not np.isfinite(losses).all():
        return None
    best = int(losses[0].argmin())
    return Scaled(TEMPERATURES[best], float(losses[1, best]))
