"""The attribution of the pixels that go at each rate."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


def code_mass(a: Tensor, codes: Tensor, count: int) -> npt.NDArray[np.float64]:
    """float64 `[N, count]`: the sum of the map values of each code."""
    n = len(a)
    total = torch.zeros((n, count), dtype=torch.float64)
    if a.numel():
        total.scatter_add_(1, codes.reshape(n, -1).long(), a.reshape(n, -1).double())
    return np.asarray(total.numpy())
