"""Rank codes from one removal mask per rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from roarfast._types import Numpy
from roarfast.reference.removal_mask import removal_mask


class Ranking(TypedDict, total=False):
    """The options of `removal_mask`."""

    rule: str
    order: str
    keep: bool
    seed: int
    index: npt.ArrayLike | None
    ndim: int


def rank_codes(a: Numpy, drops: Sequence[float], **ranking: Unpack[Ranking]) -> Numpy:
    """The first j whose mask removes the feature, `len(drops)` if none does."""
    codes = np.full(a.shape, len(drops), np.uint8)
    for j in reversed(range(len(drops))):
        codes[removal_mask(a, drops[j], **ranking)] = j
    return codes
