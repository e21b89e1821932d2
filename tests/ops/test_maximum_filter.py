"""maximum_filter against `scipy.ndimage.maximum_filter`, exactly, on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.backends import Backend
from helpers.image_cases import FLOATS, LAYOUTS, MODES, SHAPES, exact, make_images
from hypothesis import given, settings
from hypothesis import strategies as st

import roarfast as rf
from roarfast.reference import maximum_filter as reference

DTYPES = [*FLOATS, "uint8", "bool"]


def assert_exact(backend: Backend, a: Any, size: Any, mode: str = "reflect", cval: float = 0.0) -> None:
    got = backend(rf.maximum_filter, a, size, mode=mode, cval=cval)
    assert got.dtype == a.dtype
    # bfloat16 is exact in float32, which SciPy knows.
    known = a if isinstance(a, np.ndarray) else a.float().numpy()
    np.testing.assert_array_equal(exact(got), exact(reference.maximum_filter(known, size, mode, cval)))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_equals_scipy(backend: Backend, rng, dtype, mode, shape, layout):
    assert_exact(backend, make_images(rng, (2, *shape), dtype, layout), 3, mode, cval=1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "size", [1, 2, 4, 5, 6, 7, 8, 9, 16, 17, 31, (3, 1), (1, 4), (10, 3), (2, 33), (65, 66), 200, 10**9], ids=str
)
def test_sizes(backend: Backend, rng, size, mode):
    for dtype in ("float32", "uint8"):
        assert_exact_or_huge(backend, make_images(rng, (2, 19, 70), dtype), size, mode)


def assert_exact_or_huge(backend: Backend, a: np.ndarray, size: Any, mode: str) -> None:
    """SciPy needs memory and time for huge windows; they cover all of the image and its border."""
    if size != 10**9:
        assert_exact(backend, a, size, mode, cval=2)
        return
    got = backend(rf.maximum_filter, a, size, mode=mode, cval=2)
    highest = a.max(axis=(-2, -1), keepdims=True)
    np.testing.assert_array_equal(
        got, np.broadcast_to(np.maximum(highest, 2) if mode == "constant" else highest, a.shape)
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_windows_of_every_dtype(backend: Backend, rng, dtype):
    a = make_images(rng, (45, 150), dtype)
    assert_exact(backend, a, (33, 70), "mirror")
    assert_exact(backend, a, (301, 150), "wrap")


@pytest.mark.parametrize("shape", [(5, 9), (2, 3, 4, 5), (0, 5, 9), (3, 0, 9), (3, 5, 0)], ids=str)
def test_any_batch(backend: Backend, rng, shape):
    a = rng.standard_normal(shape)
    if a.size:
        assert_exact(backend, a, 3)
    else:
        assert backend(rf.maximum_filter, a, 3).shape == shape


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [3, 40])
def test_infinities_and_the_smallest_numbers(backend: Backend, rng, dtype, size):
    a = make_images(rng, (30, 41), dtype)
    a[a > 1] = float("inf")
    a[a < -1] = -float("inf")
    a[3] = 0.0
    a[4] = -0.0
    a[5] = 6e-8  # subnormal in float16
    assert_exact(backend, a, size, "constant", cval=-float("inf"))
    assert_exact(backend, -abs(a), size, "constant", cval=-float("inf"))


def test_constant_is_rounded_to_the_dtype(backend: Backend):
    a = np.full((4, 4), -1, np.float16)
    got = backend(rf.maximum_filter, a, 3, mode="constant", cval=0.1)
    assert got[0, 0] == np.float16(0.1) and got[1, 1] == -1


@pytest.mark.parametrize("size", [3, 31])
def test_any_thread_count(rng, size):
    a = make_images(rng, (3, 300, 200), "float32")
    expected = reference.maximum_filter(a, size)
    for threads in (1, 2, 5):
        rf.set_num_threads(threads)
        np.testing.assert_array_equal(rf.maximum_filter(a, size), expected)


def test_out_and_input_untouched(backend: Backend, rng):
    a = rng.standard_normal((2, 9, 11))
    before = a.copy()
    expected = reference.maximum_filter(a, 3)
    if backend.name != "cuda":
        for out in (np.empty_like(a), np.empty((2, 9, 22))[..., ::2]):
            assert backend(rf.maximum_filter, a, 3, out=out) is out
            np.testing.assert_array_equal(out, expected)
    backend(rf.maximum_filter, a, 3)
    np.testing.assert_array_equal(a, before)


images = st.tuples(st.integers(1, 14), st.integers(1, 14), st.integers(0, 2**32 - 1))
sizes = st.tuples(st.integers(1, 40), st.integers(1, 40))


@settings(max_examples=100, deadline=None)
@given(images, sizes, st.sampled_from(MODES), st.floats(-2, 2, width=32), st.sampled_from(["f2", "f4", "f8"]))
def test_any_image_any_size(image, size, mode, cval, dtype):
    h, w, seed = image
    a = np.random.default_rng(seed).standard_normal((2, h, w)).astype(dtype)
    np.testing.assert_array_equal(rf.maximum_filter(a, size, mode, cval), reference.maximum_filter(a, size, mode, cval))


@settings(max_examples=50, deadline=None)
@given(images, sizes, st.sampled_from(MODES))
def test_of_masks_is_the_mask_of_the_filtered(image, size, mode):
    h, w, seed = image
    a = np.random.default_rng(seed).standard_normal((h, w))
    filtered = rf.maximum_filter(a, size, mode, cval=-9)
    np.testing.assert_array_equal(rf.maximum_filter(a >= 0.5, size, mode), filtered >= 0.5)


@settings(max_examples=50, deadline=None)
@given(images, st.integers(1, 20), st.integers(1, 20))
def test_two_windows_in_a_row_are_one_larger_window(image, first, second):
    h, w, seed = image
    a = np.random.default_rng(seed).standard_normal((h, w))
    odd_first, odd_second = 2 * first - 1, 2 * second - 1
    twice = rf.maximum_filter(rf.maximum_filter(a, odd_first, "nearest"), odd_second, "nearest")
    np.testing.assert_array_equal(twice, rf.maximum_filter(a, odd_first + odd_second - 1, "nearest"))


@pytest.mark.parametrize(
    ("a", "kwargs", "error", "message"),
    [
        (np.zeros((3, 3), np.int64), {"size": 3}, TypeError, "a must have dtype .*uint8.*, got int64"),
        (np.zeros(3), {"size": 3}, ValueError, r"a must be \[..., H, W\], got shape \(3,\)"),
        (np.zeros((3, 3)), {"size": 0}, ValueError, r"size must be an integer in \[1, 2147483648\], got 0"),
        (np.zeros((3, 3)), {"size": 2.5}, TypeError, "size must be an integer, got 2.5"),
        (np.zeros((3, 3)), {"size": (3, 3, 3)}, ValueError, "size must be one value or a .*pair, got 3 values"),
        (np.zeros((3, 3)), {"size": 3, "mode": "valid"}, ValueError, "mode must be one of 'reflect'.*, got 'valid'"),
        (np.zeros((3, 3)), {"size": 3, "cval": float("nan")}, ValueError, "cval must be a number, not NaN, got nan"),
        (np.zeros((3, 3), np.uint8), {"size": 3, "cval": 300}, ValueError, r"cval must be .*\[0, 255\].*, got 300"),
        (np.zeros((3, 3), bool), {"size": 3, "cval": 2}, ValueError, r"cval must be .*\[0, 1\] for dtype bool, got 2"),
    ],
)
def test_bad_arguments(a, kwargs, error, message):
    with pytest.raises(error, match=message):
        rf.maximum_filter(a, **kwargs)


@pytest.mark.parametrize("size", [2, 3, (4, 9), (1, 40), 90], ids=str)
def test_origins(backend: Backend, rng, size):
    a = make_images(rng, (2, 19, 23), "float32")
    sizes = (size, size) if isinstance(size, int) else size
    lows, highs = [-(s // 2) for s in sizes], [(s - 1) // 2 for s in sizes]
    for origin in (lows, highs, (lows[0], highs[1]), (highs[0], 0)):
        for mode in MODES:
            got = backend(rf.maximum_filter, a, size, mode=mode, cval=0.5, origin=tuple(origin))
            np.testing.assert_array_equal(got, reference.maximum_filter(a, size, mode, 0.5, origin))


@pytest.mark.parametrize("modes", [(y, x) for y in MODES for x in MODES if y != x], ids="-".join)
def test_a_mode_per_axis(backend: Backend, rng, modes):
    for dtype, size in (("float32", 3), ("uint8", (7, 4)), ("float16", 45)):
        a = make_images(rng, (2, 19, 32), dtype)
        got = backend(rf.maximum_filter, a, size, mode=modes, cval=1)
        np.testing.assert_array_equal(got, reference.maximum_filter(a, size, modes, 1))


def test_bad_origins():
    with pytest.raises(ValueError, match=r"origin must be an integer in \[-1, 1\], got 2"):
        rf.maximum_filter(np.zeros((3, 3)), 3, origin=2)
    with pytest.raises(ValueError, match=r"origin must be an integer in \[-2, 1\], got -3"):
        rf.maximum_filter(np.zeros((3, 3)), (3, 4), origin=(0, -3))
