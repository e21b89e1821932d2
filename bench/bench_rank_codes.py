"""rank_codes: nine drop rates from one selection, against one mask, nine masks, and NumPy's nine percentiles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from _common import Case, size_name
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


def cases(quick: bool) -> Iterator[Case]:
    if quick:
        yield case(8, 224, "uniform")
        return
    for name in ("uniform", "signed", "heavy-tailed", "smooth"):
        yield case(256, 224, name)
        yield case(256, 32, name)
