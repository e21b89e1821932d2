"""The fraction of features that rank codes remove."""

from __future__ import annotations

from typing import Any

import numpy as np


def removed_fraction(codes: np.ndarray[Any, Any], j: int, ndim: int = 2) -> np.ndarray[Any, Any]:
    """Mean of `codes <= j` over each sample."""
    return np.asarray((codes <= j).mean(axis=tuple(range(-ndim, 0))))
