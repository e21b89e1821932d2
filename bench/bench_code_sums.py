"""code_sums: sums of map values by code, against torch's scatter_add, np.bincount and numba."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
import torch
from _common import Case, random_maps, size_name

import roarfast as rf


@numba.njit(parallel=True)
def numba_code_sums(a, codes, count):  # pragma: no cover
    n, f = a.shape
    out = np.zeros((n, count))
    for i in numba.prange(n):
        for k in range(f):
            out[i, codes[i, k]] += a[i, k]
    return out


def case(n: int, size: int, count: int, floors: dict[str, float]) -> Case:
    a = random_maps(n, size, size)
    codes = rf.rank_codes(a, tuple((j + 1) / count for j in range(count - 1)))
    rows, tags = a.reshape(n, -1), codes.reshape(n, -1)
    t, index = torch.from_numpy(rows).double(), torch.from_numpy(tags).long()

    def bincount():
        return np.stack([np.bincount(tags[i], rows[i], count) for i in range(n)])

    return Case(
        "code_sums",
        f"{size_name(a)}, {count} codes",
        lambda: rf.code_sums(a, codes, count),
        {
            "torch scatter_add": lambda: torch.zeros((n, count), dtype=torch.float64).scatter_add_(1, index, t),
            "np.bincount": bincount,
            "numba": lambda: numba_code_sums(rows, tags, count),
        },
        floors,
        copy_bytes=a.nbytes,
    )


def cases(quick: bool) -> Iterator[Case]:
    """The 98 codes of a soundness curve, and ten."""
    if quick:
        yield case(16, 64, 98, {})
        return
    yield case(256, 224, 98, {"np.bincount": 3.0, "torch scatter_add": 1.5, "numba": 1.0})
    yield case(256, 32, 10, {"np.bincount": 3.0, "torch scatter_add": 1.2, "numba": 1.0})
