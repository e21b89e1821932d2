"""philox_normal: keyed by sample, against generators that are not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from _common import Case

import roarfast as rf


def cases(quick: bool) -> Iterator[Case]:
    n, shape = (8, (3, 32, 32)) if quick else (64, (3, 224, 224))
    ids, rng = np.arange(n), np.random.default_rng(0)
    yield Case(
        "philox_normal",
        f"{n} samples of {'x'.join(map(str, shape))}",
        lambda: rf.philox_normal(ids, shape),
        {
            "numpy": lambda: rng.standard_normal((n, *shape), dtype=np.float32),
            "torch": lambda: torch.randn(n, *shape),
        },
        incomparable=("numpy", "torch"),
    )
