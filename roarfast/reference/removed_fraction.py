"""The fraction of features that rank codes remove."""

from __future__ import annotations

import numpy as np

from roarfast._types import Numpy


def removed_fraction(codes: Numpy, j: int, ndim: int = 2) -> Numpy:
    """Mean of `codes <= j` over each sample."""
    return np.asarray((codes <= j).mean(axis=tuple(range(-ndim, 0))))
