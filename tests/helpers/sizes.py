"""Image sizes for which launches once failed, a sample of others, and what must hold for each of them."""

from __future__ import annotations

import numpy as np

import roarfast as rf
from roarfast import _backend

# Dynamic and static shared memory of impute_linear added up to a little more than 48 KB here, or still do.
GAP = [(42, 44), (36, 50), (32, 57), (4, 441), (93, 93), (94, 94), (65, 66)]


def sample_of_sizes(rng: np.random.Generator, count: int = 500) -> list[tuple[int, int]]:
    """The gap, a few large ones, the others spread evenly over the logarithms of the sides up to 181."""
    sizes = [*GAP, (129, 132), (185, 188), (188, 188), (375, 375)]
    while len(sizes) < count:
        h, w = (2 ** rng.uniform(0, 7.5, 2)).astype(int).tolist()
        sizes.append((h, w))
    return sizes


def check_size(rng: np.random.Generator, backend: str, h: int, w: int, dtype: str, where: str = "") -> None:
    """One size on a host backend against the CPU: imputation to its tolerance, ranks and masks to the bit."""
    x = rng.random((1, 1, h, w)).astype(dtype)
    mask = rng.random((1, h, w)) < 0.4
    with _backend.use_host_backend(backend):
        out = rf.impute_linear(x, mask, noise=0)
        codes = rf.rank_codes(x[:, 0], [0.1, 0.5, 0.9])
        removed = rf.removal_mask(x[:, 0], drop=0.3)
    np.testing.assert_allclose(
        out, rf.impute_linear(x, mask, noise=0), rtol=0, atol=2e-3, err_msg=f"{where} {h} x {w} {dtype}"
    )
    np.testing.assert_array_equal(codes, rf.rank_codes(x[:, 0], [0.1, 0.5, 0.9]))
    np.testing.assert_array_equal(removed, rf.removal_mask(x[:, 0], drop=0.3))
