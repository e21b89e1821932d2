"""Where random arrays are made: NumPy by default, torch on a device if one is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from roarfast import _backend
from roarfast.ops import _check as check
from roarfast.ops._arrays import NUMPY, Arrays
from roarfast.ops._op import _torch_arrays, register_torch


def shape_of(shape: Any, ndim: int, axes: str) -> tuple[int, ...]:
    """A shape with at least `ndim` axes."""
    if isinstance(shape, (str, bytes)) or not isinstance(shape, (Sequence, np.ndarray)):
        raise TypeError(f"shape must be a sequence of sizes {axes}, got {shape!r}")
    sizes = tuple(check.integer("shape", s, 0) for s in shape)
    if len(sizes) < ndim:
        raise ValueError(f"shape must be {axes}, got {sizes}")
    return sizes


def empty(shape: Sequence[int], dtype: str, device: Any) -> tuple[Arrays, Any]:
    """An adapter and an uninitialised array: NumPy if `device` is None, else a torch tensor on that device.

    Also tells the kernels the number of threads, as `Op.run` does for ops that are given arrays.
    """
    _backend.apply_num_threads()
    if device is None:
        return NUMPY, np.empty(tuple(shape), dtype)
    import torch

    register_torch()
    return _torch_arrays(), torch.empty(tuple(shape), dtype=getattr(torch, dtype), device=device)
