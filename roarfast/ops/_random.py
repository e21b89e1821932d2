"""Where random arrays are made: NumPy by default, torch on a device if one is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from roarfast._types import Array
from roarfast.ops import _check as check
from roarfast.ops import _selection as selection
from roarfast.ops._arrays import SampleIds

if TYPE_CHECKING:
    import torch

Device: TypeAlias = "str | int | torch.device"
"""What torch takes for a device."""


def shape_of(shape: Sequence[int], ndim: int, axes: str) -> tuple[int, ...]:
    """A shape with at least `ndim` axes."""
    given = check.entries("shape", shape, f"a sequence of sizes {axes}")
    sizes = tuple(check.integer("shape", s, 0) for s in given)
    if len(sizes) < ndim:
        raise ValueError(f"shape must be {axes}, got {sizes}")
    return sizes


def sample_ids(index: SampleIds | None, n: int, device: Device | None) -> Array:
    """Sample ids int64 `[n]`, by default 0, 1, 2, …: NumPy if `device` is None, else a torch tensor on that device.

    An op that is given no other array finds its library and device by them.
    """
    ids: Array = np.arange(n, dtype=np.int64)
    if device is not None:
        import torch

        try:
            place = torch.device(device)
            ids = torch.arange(n, device=place)
        except (RuntimeError, TypeError, ValueError, AssertionError, NotImplementedError) as error:
            reason = str(error).splitlines()[0] if str(error) else "it is none"
            raise ValueError(f"device must be one that torch has here, got {device!r}: {reason}") from None
    return ids if index is None else selection.sample_index(index, n, ids)
