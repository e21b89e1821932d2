"""Channel aggregation: attribution values `[N, C, H, W]` to one map `[N, H, W]`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

REDUCTIONS = ("mean", "sum", "max", "l2", "none")
VALUES = ("abs", "raw", "squared")
_FORM = re.compile(r"(?P<reduce>[a-z0-9]+)(\((?P<values>[a-z]+)\))?")


@dataclass(frozen=True)
class Aggregation:
    """How the channels of a pixel become one value: a reduction of raw, absolute or squared values.

    Attributes:
        reduce: `"mean"`, `"sum"`, `"max"`, `"l2"` (root of the sum of squares), or `"none"` for per-channel maps.
        values: `"abs"`, `"raw"` or `"squared"`: what is done to each value first.

    Example:
        >>> import torch
        >>> Aggregation.parse("max(abs)")(torch.tensor([[[[1.0]], [[-3.0]]]])).tolist()
        [[[3.0]]]
    """

    reduce: str = "mean"
    values: str = "abs"

    def __post_init__(self) -> None:
        if self.reduce not in REDUCTIONS:
            raise ValueError(f"aggregation must reduce by {', '.join(REDUCTIONS)}, got {self.reduce!r}")
        if self.values not in VALUES:
            raise ValueError(f"aggregation must be of {', '.join(VALUES)} values, got {self.values!r}")

    @classmethod
    def parse(cls, text: str | Aggregation) -> Aggregation:
        """Reads `"mean(abs)"`, `"sum(raw)"`, `"l2(raw)"`, …; without brackets, of absolute values."""
        if isinstance(text, Aggregation):
            return text
        match = _FORM.fullmatch(text.replace(" ", "").lower())
        if match is None:
            raise ValueError(
                f"aggregation must look like 'mean(abs)': one of {', '.join(REDUCTIONS)} "
                f"of {', '.join(VALUES)} values; got {text!r}"
            )
        return cls(match["reduce"], match["values"] or "abs")

    def __str__(self) -> str:
        return f"{self.reduce}({self.values})"

    def __call__(self, a: Tensor) -> Tensor:
        """`[N, C, H, W]` to `[N, H, W]`; `"none"` keeps the channels."""
        if self.values == "abs":
            a = a.abs()
        elif self.values == "squared":
            a = a.square()
        if self.reduce == "none":
            return a
        if self.reduce == "mean":
            return a.mean(1)
        if self.reduce == "sum":
            return a.sum(1)
        if self.reduce == "max":
            return a.amax(1)
        return a.square().sum(1).sqrt()
