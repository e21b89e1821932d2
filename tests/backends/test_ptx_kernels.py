"""Every kernel that nvcc makes is launched, and equals the CPU: a kernel that no call reaches is tested by nobody, or useless."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from helpers.ptx import ptx_missing  # noqa: E402
from helpers.ptx_calls import FLOATS, PARTS, Call, difference, like, values  # noqa: E402

import roarfast as rf  # noqa: E402
from roarfast import _backend  # noqa: E402

if ptx_missing():
    pytest.skip(ptx_missing(), allow_module_level=True)


def rare_calls(rng: np.random.Generator) -> Iterator[Call]:
    """What takes a kernel of its own and is not among the calls of `PARTS` at two tiny sizes."""
    for dtype in (*FLOATS, "uint8"):
        # Larger than a tile may be, also of bytes in the 227 KB of sm_90: an axis at a time, through the workspace.
        side = 180 if dtype == "uint8" else 130
        x = values((1, side, side + 1), dtype, rng)
        yield rf.maximum_filter, (x, (2 * side - 1, 2 * side + 1), "wrap"), {}, None
        x = values((1, 3, 2, 4), dtype, rng)
        x = x if isinstance(x, torch.Tensor) else torch.from_numpy(x)
        yield rf.remove, (x, values((1, 2, 4), "bfloat16", rng), 0.4, 1.0), {}, None
    for dtype in FLOATS:
        x = values((1, 3, 5), dtype, rng)
        yield rf.gaussian_filter, (x, 2.0), {"order": 1}, None  # odd: weights of both signs
        yield rf.gaussian_filter, (x, 12.0), {"order": (0, 2)}, None
    yield rf.removed_fraction, (rng.integers(0, 10, (2, 4, 16), dtype=np.uint8), 4), {}, None
    for dtype in ("float32", "float64", "uint8"):
        for size in ((3, 40), (3, 70)):  # in registers, and beyond that
            x = values((1, 2, *size), dtype, rng)
            spread = 255.0 if dtype == "uint8" else 10.0
            for share in (0.5, 1.0):
                mask = like(x, rng.random((1, *size)) < share)
                yield rf.impute_linear, (x, mask, 0.01, 1), {}, 1e-4 * spread + (dtype == "uint8")
    for dtype, channels in ((d, c) for d in ("float32", "float16", "bfloat16") for c in (2, 4)):
        images = torch.from_numpy(rng.integers(0, 256, (3, 4, 8, channels), dtype=np.uint8))
        yield (
            rf.gather_batch,
            (images, torch.tensor([2, 0])),
            {"layout": "NHWC", "out_layout": "NHWC", "dtype": dtype},
            None,
        )


def calls() -> Iterator[Call]:
    rng = np.random.default_rng(7)
    for size in ((8, 4), (7, 5)):  # rows of whole fours, and not
        for part in PARTS.values():
            yield from part(size, rng)
    yield from rare_calls(rng)


def test_every_kernel_is_launched_on_ptx_and_equals_the_cpu() -> None:
    before = {kernel["symbol"]: kernel["launches"] for kernel in _backend.ptx().ptx_kernels()}
    for call in calls():
        wrong = difference(call)
        assert wrong in ("", "excused"), f"{call[0].__name__} {call[1:]}: {wrong}"
    never = [
        kernel["kernel"]
        for kernel in _backend.ptx().ptx_kernels()
        if kernel["launches"] == before[kernel["symbol"]] and not kernel["instructions"][0][0].startswith("selftest")
    ]
    assert not never, f"no call launches {', '.join(sorted(never))}"
