"""sobel against `scipy.ndimage.sobel` in float64, on every backend."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.backends import Backend
from helpers.image_cases import FLOATS, LAYOUTS, MODES, SHAPES, assert_close, exact, make_images, same_bits
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

import roarfast as rf
from roarfast.reference import sobel as reference


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [-2, -1])
def test_equals_scipy(backend: Backend, rng, axis, dtype, mode, shape, layout):
    a = make_images(rng, (2, *shape), dtype, layout)
    got = backend(rf.sobel, a, axis, mode=mode, cval=0.75)
    assert_close(got, reference.sobel(exact(a), axis, mode=mode, cval=0.75), dtype)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axis", [0, 1])
def test_reference_is_scipys_sobel(rng, axis, mode):
    a = rng.standard_normal((9, 12))
    np.testing.assert_array_equal(reference.sobel(a, axis, mode, 0.5), ndimage.sobel(a, axis, mode=mode, cval=0.5))


@pytest.mark.parametrize("shape", [(5, 9), (2, 3, 4, 5), (0, 5, 9), (3, 0, 9), (3, 5, 0)], ids=str)
def test_any_batch(backend: Backend, rng, shape):
    a = rng.standard_normal(shape)
    got = backend(rf.sobel, a)
    assert got.shape == a.shape
    if a.size:
        assert_close(got, reference.sobel(a), "float64")


@pytest.mark.parametrize("axis", [-2, -1])
def test_images_wider_than_a_strip(backend: Backend, rng, axis):
    for w in (1023, 1024, 1025, 2100):
        a = make_images(rng, (4, w), "float64")
        for mode in ("wrap", "constant"):
            assert_close(backend(rf.sobel, a, axis, mode, 0.5), reference.sobel(a, axis, mode, 0.5), "float64")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [-2, -1])
def test_same_bits_on_every_backend_and_for_any_thread_count(backend: Backend, rng, dtype, axis):
    a = make_images(rng, (3, 70, 45), dtype)
    expected = rf.sobel(a, axis)
    for threads in (1, 2, 5):
        rf.set_num_threads(threads)
        assert same_bits(backend(rf.sobel, a, axis), expected)


def test_positive_axis_numbers(rng):
    a = rng.standard_normal((2, 6, 7))
    np.testing.assert_array_equal(rf.sobel(a, 1), rf.sobel(a, -2))
    np.testing.assert_array_equal(rf.sobel(a, 2), rf.sobel(a, -1))


images = st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32 - 1))


@settings(max_examples=50, deadline=None)
@given(images, st.sampled_from(MODES), st.floats(-3, 3))
def test_axes_are_transposes_of_each_other(image, mode, cval):
    h, w, seed = image
    a = np.random.default_rng(seed).standard_normal((h, w))
    np.testing.assert_array_equal(rf.sobel(a.T, -2, mode, cval), rf.sobel(a, -1, mode, cval).T)


@settings(max_examples=50, deadline=None)
@given(images, st.floats(-5, 5), st.floats(-5, 5), st.floats(-5, 5))
def test_of_a_plane_is_its_slope(image, slope_y, slope_x, offset):
    h, w, _ = image
    y, x = np.mgrid[:h, :w]
    got = rf.sobel(slope_y * y + slope_x * x + offset, -1)
    np.testing.assert_allclose(got[:, 1:-1], 8 * slope_x, atol=1e-9)


@pytest.mark.parametrize(
    ("a", "kwargs", "error", "message"),
    [
        (np.zeros((3, 3), np.uint8), {}, TypeError, "a must have dtype .*float32.*, got uint8"),
        (np.zeros(3), {}, ValueError, r"a must be \[..., H, W\], got shape \(3,\)"),
        (np.zeros((2, 3, 3)), {"axis": 0}, ValueError, r"axis must be one of the last two axes \(-2 or -1\), got 0"),
        (np.zeros((3, 3)), {"axis": 1.5}, TypeError, "axis must be an integer, got 1.5"),
        (np.zeros((3, 3)), {"mode": "pad"}, ValueError, "mode must be one of 'reflect'.*, got 'pad'"),
    ],
)
def test_bad_arguments(a, kwargs, error, message):
    with pytest.raises(error, match=message):
        rf.sobel(a, **kwargs)


@pytest.mark.parametrize("modes", [(y, x) for y in MODES for x in MODES if y != x], ids="-".join)
@pytest.mark.parametrize("axis", [-2, -1])
def test_a_mode_per_axis(backend: Backend, rng, modes, axis):
    for dtype in ("float32", "float64"):
        a = make_images(rng, (2, 40, 70), dtype)
        assert_close(backend(rf.sobel, a, axis, modes, 0.75), reference.sobel(exact(a), axis, modes, 0.75), dtype)
