"""pixel_random: keyed by sample, against generators that are not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from _common import Case

import roarfast as rf


def cases(quick: bool) -> Iterator[Case]:
    shape = (8, 64, 64) if quick else (256, 224, 224)
    rng = np.random.default_rng(0)
    yield Case(
        op="pixel_random",
        case="x".join(map(str, shape)),
        ours=lambda: rf.pixel_random(shape),
        rivals={"numpy": lambda: rng.random(shape, dtype=np.float32), "torch": lambda: torch.rand(shape)},
        incomparable=("numpy", "torch"),
    )
