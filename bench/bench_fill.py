"""fill: np.where, torch.where, and a memory copy as the limit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from _common import COPY, Case, size_name

import roarfast as rf


def case(n: int, size: int, dtype: str, layout: str = "NCHW") -> Case:
    rng = np.random.default_rng(0)
    x = (rng.random((n, 3, size, size), dtype=np.float32) * 255).astype(dtype)
    mask = rng.random((n, size, size), dtype=np.float32) < 0.3
    wide, axis = mask[:, None], 1
    if layout == "NHWC":
        x, wide, axis = np.ascontiguousarray(np.moveaxis(x, 1, -1)), mask[..., None], -1
    value = np.array([3, 1, 2], dtype)
    shaped = value.reshape([3 if k == axis % 4 else 1 for k in range(4)])
    out = np.empty_like(x)
    tensors = torch.from_numpy(wide), torch.from_numpy(shaped), torch.from_numpy(x)
    return Case(
        op="fill",
        case=f"{size_name(x)}, {layout}, channel values",
        ours=lambda: rf.fill(x, mask, value, layout=layout, out=out),
        rivals={
            "numpy": lambda: np.where(wide, shaped, x),
            "torch": lambda: torch.where(*tensors).numpy(),
        },
        floors={COPY: 1 / 3},
        copy_bytes=x.nbytes,
        rtol=0.0,
    )


def cases(quick: bool) -> Iterator[Case]:
    if quick:
        yield case(16, 64, "float32")
        return
    yield case(64, 224, "float32")
    yield case(256, 224, "uint8")
    yield case(256, 224, "uint8", "NHWC")
