"""Rank codes from one removal mask per rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from roarfast.reference.removal_mask import removal_mask


def rank_codes(a: np.ndarray[Any, Any], drops: Sequence[float], **kwargs: Any) -> np.ndarray[Any, Any]:
    """The first j whose mask removes the feature, `len(drops)` if none does."""
    codes = np.full(a.shape, len(drops), np.uint8)
    for j in reversed(range(len(drops))):
        codes[removal_mask(a, drops[j], **kwargs)] = j
    return codes
