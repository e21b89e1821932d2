"""Every op on nvcc's PTX beside the CPU kernels, bit for bit: over sizes, dtypes, layouts, ties, infinities, signed zeros.

Slow (nightly): 10,000 comparisons. `impute_linear` is compared to its tolerance, everything else to the bit (all NaN
alike) but for what `excused` says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
from helpers.ptx import ptx_missing
from helpers.ptx_calls import PARTS, difference
from helpers.sizes import check_size, sample_of_sizes

if ptx_missing():
    pytest.skip(ptx_missing(), allow_module_level=True)
pytestmark = pytest.mark.slow

SIZES = [(1, 1), (1, 40), (7, 5), (16, 64), (32, 32), (33, 47), (64, 64), (130, 97)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("part", PARTS)
def test_ptx_equals_cpu(part: str, size: tuple[int, int], record_property: Any) -> None:
    rng = np.random.default_rng(7)
    count, different, excuses = 0, [], 0
    for call in PARTS[part](size, rng):
        count += 1
        wrong = difference(call)
        excuses += wrong == "excused"
        if wrong not in ("", "excused"):
            op, args, kwargs, _ = call
            words = [str(a) if np.ndim(a) < 2 else f"{a.dtype}{tuple(a.shape)}" for a in args]
            different.append(f"{op.__name__}({', '.join(words)}, {kwargs}): {wrong}")
    record_property("comparisons", count)
    print(f"{part} {size}: {count} comparisons, {len(different)} different, {excuses} excused")
    assert not different, "\n".join(different[:20])


def test_500_sizes_run_and_equal_the_cpu() -> None:
    rng = np.random.default_rng(0)
    for i, (h, w) in enumerate(sample_of_sizes(rng)):
        check_size(rng, "ptx", h, w, "float32" if i % 3 else "float64")
