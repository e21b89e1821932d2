"""Channel aggregation: attribution values `[N, C, H, W]` to one map `[N, H, W]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roarfast.ops.aggregate_channels import REDUCTIONS, VALUES, aggregate_channels, parse_aggregation

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Aggregation:
    """How the channels of a pixel become one value: a reduction of raw, absolute, squared or positive values.

    Attributes:
        reduce: `"mean"`, `"sum"`, `"max"`, `"l2"` (root of the sum of squares), or `"none"` for per-channel maps.
        values: `"abs"`, `"raw"`, `"squared"` or `"positive"` (negative ones become 0): what is done to each value first.

    Example:
        >>> import torch
        >>> Aggregation.parse("max(abs)")(torch.tensor([[[[1.0]], [[-3.0]]]])).tolist()
        [[[3.0]]]
    """

    reduce: str = "mean"
    values: str = "abs"

    def __post_init__(self) -> None:
        if self.reduce not in REDUCTIONS:
            raise ValueError(f"reduce must be one of {', '.join(REDUCTIONS)}, got {self.reduce!r}")
        if self.values not in VALUES:
            raise ValueError(f"values must be one of {', '.join(VALUES)}, got {self.values!r}")

    @classmethod
    def parse(cls, text: str | Aggregation) -> Aggregation:
        """Reads `"mean(abs)"`, `"sum(raw)"`, `"l2(raw)"`, …; without brackets, of absolute values."""
        if isinstance(text, Aggregation):
            return text
        return cls(*parse_aggregation(text))

    def __str__(self) -> str:
        return f"{self.reduce}({self.values})"

    def __call__(self, a: Tensor) -> Tensor:
        """`[N, C, H, W]` to `[N, H, W]`; `"none"` keeps the channels."""
        return aggregate_channels(a, str(self))
