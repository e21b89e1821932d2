"""rank_codes: nine drop rates from one selection, against one mask, nine masks, and NumPy's nine percentiles."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
import torch
from _common import COPY, Case, size_name
from bench_removal_mask import maps

import roarfast as rf

DROPS = tuple(round(0.1 * j, 1) for j in range(1, 10))
ONE_MASK = "ours, one mask"


def case(n: int, size: int, name: str) -> Case:
    a = maps(name, n, size)
    rows = a.reshape(n, -1)
    out, mask = np.empty(a.shape, np.uint8), np.empty(a.shape, bool)

    def nine_masks():
        codes = np.full(a.shape, len(DROPS), np.uint8)
        for j in reversed(range(len(DROPS))):
            codes[rf.removal_mask(a, DROPS[j], out=mask)] = j
        return codes

    def numpy():
        thresholds = np.percentile(rows, [100 * (1 - t) for t in DROPS], axis=1)
        return (rows[None] < thresholds[:, :, None]).sum(axis=0, dtype=np.uint8).reshape(a.shape)

    return Case(
        op="rank_codes",
        case=f"{size_name(a)}, {name}, 9 rates",
        ours=lambda: rf.rank_codes(a, DROPS, out=out),
        rivals={ONE_MASK: lambda: rf.removal_mask(a, 0.5, out=mask), "nine masks": nine_masks, "numpy": numpy},
        floors={ONE_MASK: 0.5},  # at most twice the cost of one mask
        rtol=0.0,
        incomparable=(ONE_MASK, "numpy"),
    )


@numba.njit(parallel=True)
def numba_value_codes(a, factors):  # pragma: no cover
    n, f = a.shape
    codes = np.empty((n, f), np.uint8)
    for i in numba.prange(n):
        top = a[i].max()
        for k in range(f):
            stays = 0
            for j in range(len(factors)):
                stays += not a[i, k] > top * factors[j]
            codes[i, k] = stays
    return codes


def value_case(n: int, size: int, floors: dict[str, float]) -> Case:
    """Thresholds of each map's maximum, nine of them."""
    a = maps("uniform", n, size)
    out = np.empty(a.shape, np.uint8)
    factors = np.array([1 - t for t in DROPS], np.float32)
    t = torch.from_numpy(a)

    def torch_loop():
        codes = torch.zeros(t.shape, dtype=torch.uint8)
        for i in range(n):
            top = t[i].max()
            for drop in DROPS:
                codes[i] += ~(t[i] > top * (1 - drop))
        return codes

    return Case(
        op="rank_codes",
        case=f"{size_name(a)}, rule value, 9 rates",
        ours=lambda: rf.rank_codes(a, DROPS, "value", out=out),
        rivals={
            "torch, per image": torch_loop,
            "numba": lambda: numba_value_codes(a.reshape(n, -1), factors).reshape(a.shape),
        },
        floors=floors,
        copy_bytes=a.nbytes,
        rtol=0.0,
    )


def cases(quick: bool) -> Iterator[Case]:
    if quick:
        yield case(8, 224, "uniform")
        return
    for name in ("uniform", "signed", "heavy-tailed", "smooth"):
        yield case(256, 224, name)
        yield case(256, 32, name)
    yield value_case(256, 224, {"torch, per image": 10.0, COPY: 0.5})
