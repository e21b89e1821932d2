"""CUDA kernels read and write four values at a time where memory allows: here it does not, or only for part of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import roarfast as rf
from roarfast import _backend

try:
    _backend.simt()
except _backend.BackendError as error:
    pytest.skip(str(error), allow_module_level=True)

RATES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]


def shifted(a: np.ndarray, by: int) -> np.ndarray:
    """The same numbers, `by` elements after where an allocation begins."""
    memory = np.empty(a.size + 16, a.dtype)
    view = memory[by : by + a.size].reshape(a.shape)
    view[...] = a
    return view


def both(call: Callable[[], Any]) -> None:
    expected = call()
    with _backend.use_host_backend("simt"):
        got = call()
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("shift", range(5))
@pytest.mark.parametrize(("h", "w"), [(4, 4), (5, 7), (8, 33), (3, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8"])
def test_every_start(rng: np.random.Generator, shift: int, h: int, w: int, dtype: str) -> None:
    a = shifted((rng.integers(0, 9, (3, h, w)) * 0.5).astype(dtype), shift)
    both(lambda: rf.rank_codes(a, RATES))
    both(lambda: rf.removal_mask(a, 0.3))
    both(lambda: rf.percentile(a, [10, 30, 50, 90]))
    mask = shifted(rng.random((3, h, w)) < 0.5, shift)
    codes = shifted(rng.integers(0, 10, (3, h, w), dtype=np.uint8), shift)
    both(lambda: rf.removed_fraction(codes, 4))
    for layout, shape in (
        ("NCHW", (3, 2, h, w)),
        ("NHWC", (3, h, w, 2)),
        ("NCHW", (3, 3, h, w)),
        ("NHWC", (3, h, w, 3)),
    ):
        x = shifted(rng.integers(0, 200, shape).astype(dtype), shift)
        out = shifted(np.zeros(shape, dtype), (shift + 1) % 5)
        for value in (7, "noise", "blur"):
            both(lambda x=x, value=value, layout=layout: rf.fill(x, mask, value, layout=layout))
        both(lambda x=x, layout=layout, out=out: rf.fill(x, mask, 3, layout=layout, out=out).copy())
        images = shifted(rng.integers(0, 256, shape, dtype=np.uint8), shift)
        for out_layout in ("NCHW", "NHWC"):
            both(
                lambda images=images, layout=layout, out_layout=out_layout: rf.gather_batch(
                    images, [2, 0], codes, 4, layout=layout, out_layout=out_layout, pad=1, random_crop=True, flip=True
                )
            )


@pytest.mark.parametrize("features", [1, 3, 4, 7, 16, 1021, 1024])
def test_random_numbers_of_every_length(features: int) -> None:
    both(lambda: rf.pixel_random((3, features), ndim=1, seed=4))
    both(lambda: rf.philox_normal(np.arange(3), (features,)))
    both(lambda: rf.block_random((3, 2, features), 0.3))
    for shift in range(4):
        both(
            lambda shift=shift: rf.pixel_random(
                (3, features), ndim=1, out=shifted(np.zeros((3, features), np.float32), shift)
            )
        )
        both(
            lambda shift=shift: rf.block_random(
                (3, 2, features), 0.3, out=shifted(np.zeros((3, 2, features), bool), shift)
            )
        )


def test_codes_per_channel_and_imputed_images(rng: np.random.Generator) -> None:
    images = rng.integers(0, 256, (4, 3, 8, 8), dtype=np.uint8)
    codes = rng.integers(0, 10, (4, 3, 8, 8), dtype=np.uint8)
    for dtype in (np.uint8, np.float16):
        imputed = rng.integers(0, 256, images.shape).astype(dtype)
        for out_layout in ("NCHW", "NHWC"):
            for keep in (False, True):
                both(
                    lambda imputed=imputed, out_layout=out_layout, keep=keep: rf.gather_batch(
                        images, [3, 1, 1], codes, 4, imputed=imputed, out_layout=out_layout, keep=keep, pad=2, crop=8
                    )
                )
