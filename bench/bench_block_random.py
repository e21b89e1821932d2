"""block_random, against a loop over images."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from _common import Case

import roarfast as rf
from roarfast.reference.block_random import block_random as reference


def cases(quick: bool) -> Iterator[Case]:
    shape = (16, 32, 32) if quick else (2048, 32, 32)
    yield Case(
        op="block_random",
        case=f"{'x'.join(map(str, shape))}, 0.3",
        ours=lambda: rf.block_random(shape, 0.3).view(np.uint8),
        rivals={"numpy loop": lambda: reference(shape, 0.3).view(np.uint8)},
        rtol=0.0,
    )
