"""remove: fused, against its two steps and what a user would write with NumPy and torch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from _common import Case, size_name
from bench_removal_mask import maps

import roarfast as rf

DROP = 0.3


def case(n: int, size: int) -> Case:
    rng = np.random.default_rng(0)
    x = rng.random((n, 3, size, size), dtype=np.float32)
    a = maps("heavy-tailed", n, size)
    rows = a.reshape(n, -1)
    tensor, images = torch.from_numpy(rows), torch.from_numpy(x)
    zero = torch.zeros(())
    k = rows.shape[1] - int(DROP * rows.shape[1])
    out = np.empty_like(x)

    def numpy():
        mask = rows >= np.percentile(rows, 100 * (1 - DROP), axis=1, keepdims=True)
        return np.where(mask.reshape(n, 1, size, size), np.float32(0), x)

    def with_torch():
        mask = tensor >= torch.kthvalue(tensor, k, dim=1, keepdim=True).values
        return torch.where(mask.view(n, 1, size, size), zero, images).numpy()

    return Case(
        op="remove",
        case=f"{size_name(x)}, heavy-tailed, zero",
        ours=lambda: rf.remove(x, a, DROP, "zero", out=out),
        rivals={
            "two steps": lambda: rf.fill(x, rf.removal_mask(a, DROP), "zero"),
            "numpy": numpy,
            "torch": with_torch,
        },
        rtol=0.0,
        incomparable=("numpy", "torch"),  # one pixel more or less
    )


def cases(quick: bool) -> Iterator[Case]:
    yield case(8, 64) if quick else case(64, 224)
    if not quick:
        yield case(256, 32)
