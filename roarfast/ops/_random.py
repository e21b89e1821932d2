"""Where random arrays are made: NumPy by default, torch on a device if one is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from roarfast.ops import _check as check
from roarfast.ops import _selection as selection


def shape_of(shape: Any, ndim: int, axes: str) -> tuple[int, ...]:
    """A shape with at least `ndim` axes."""
    if isinstance(shape, (str, bytes)) or not isinstance(shape, (Sequence, np.ndarray)):
        raise TypeError(f"shape must be a sequence of sizes {axes}, got {shape!r}")
    sizes = tuple(check.integer("shape", s, 0) for s in shape)
    if len(sizes) < ndim:
        raise ValueError(f"shape must be {axes}, got {sizes}")
    return sizes


def sample_ids(index: Any, n: int, device: Any) -> Any:
    """Sample ids int64 `[n]`, by default 0, 1, 2, …: NumPy if `device` is None, else a torch tensor on that device.

    An op that is given no other array finds its library and device by them.
    """
    ids: Any = np.arange(n, dtype=np.int64)
    if device is not None:
        import torch

        ids = torch.arange(n, device=device)
    return ids if index is None else selection.sample_index(index, n, ids)
