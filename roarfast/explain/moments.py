"""Running mean and spread of maps."""

from __future__ import annotations

import torch
from torch import Tensor


class Moments:
    """Mean and, if asked for, squared deviations of a stream of tensors (Welford), so that no copy is kept.

    Subtracting a squared mean from a mean of squares would lose all digits of a small variance in float32.
    """

    def __init__(self, second: bool) -> None:
        self.second = second
        self.count = 0
        self._mean: Tensor | None = None
        self._deviations: Tensor | None = None

    def add(self, value: Tensor) -> None:
        """Takes one more tensor in."""
        self.count += 1
        if self._mean is None:
            self._mean = value.clone()
            if self.second:
                self._deviations = torch.zeros_like(value)
            return
        delta = value - self._mean
        self._mean.add_(delta, alpha=1 / self.count)
        if self._deviations is not None:
            self._deviations.addcmul_(delta, value - self._mean)

    def mean(self) -> Tensor:
        """The mean."""
        if self._mean is None:
            raise RuntimeError("no values yet")
        return self._mean

    def variance(self, unbiased: bool = False) -> Tensor:
        """The variance: divided by n, or by n - 1 if `unbiased`."""
        if self._deviations is None:
            raise RuntimeError("the second moment was not asked for")
        return self._deviations / (self.count - 1 if unbiased else self.count)

    def mean_square(self) -> Tensor:
        """The mean of the squares."""
        return self.variance() + self.mean().square()
