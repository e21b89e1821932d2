"""gaussian_filter against `scipy.ndimage.gaussian_filter` in float64, on every backend."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.backends import Backend
from helpers.image_cases import FLOATS, LAYOUTS, MODES, SHAPES, assert_close, exact, make_images, same_bits
from hypothesis import given, settings
from hypothesis import strategies as st

import roarfast as rf
from roarfast.reference import gaussian_filter as reference


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_equals_scipy(backend: Backend, rng, dtype, mode, shape, layout):
    a = make_images(rng, (2, *shape), dtype, layout)
    got = backend(rf.gaussian_filter, a, 1, mode=mode, cval=0.75)
    assert_close(got, reference.gaussian_filter(exact(a), 1, mode=mode, cval=0.75), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_positive_maps_agree_pixel_by_pixel(backend: Backend, rng, dtype):
    a = make_images(rng, (3, 50, 61), dtype, signed=False)
    rtol = {"float32": 1e-5, "float64": 1e-12}[dtype]
    for sigma in (0.4, 1, 3, 12):
        expected = reference.gaussian_filter(a, sigma)
        np.testing.assert_allclose(backend(rf.gaussian_filter, a, sigma), expected, rtol=rtol)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "kwargs",
    [
        {"sigma": (0, 2)},
        {"sigma": (2, 0)},
        {"sigma": (0.6, 2.5)},
        {"sigma": 0.01},
        {"sigma": 1.5, "truncate": 2.5},
        {"sigma": 1.5, "radius": 3},
        {"sigma": 1.5, "radius": (0, 5)},
        {"sigma": 6},  # more than once over the image
        {"sigma": (40, 7)},  # on CUDA: through the workspace
        {"sigma": 2, "radius": 300},
    ],
    ids=str,
)
def test_parameters(backend: Backend, rng, kwargs, mode):
    a = make_images(rng, (2, 19, 23), "float64")
    got = backend(rf.gaussian_filter, a, mode=mode, cval=-1.5, **kwargs)
    assert_close(got, reference.gaussian_filter(a, mode=mode, cval=-1.5, **kwargs), "float64")


@pytest.mark.parametrize("shape", [(5, 9), (2, 3, 4, 5), (0, 5, 9), (3, 0, 9), (3, 5, 0)], ids=str)
def test_any_batch(backend: Backend, rng, shape):
    a = rng.standard_normal(shape)
    got = backend(rf.gaussian_filter, a, 1)
    assert got.shape == a.shape
    if a.size:
        assert_close(got, reference.gaussian_filter(a, 1), "float64")


@pytest.mark.parametrize("shape", [(1, 8), (2, 16), (3, 24), (33, 32), (17, 64)], ids=str)
@pytest.mark.parametrize("sigma", [0.5, 1, 1.5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_whole_vectors(backend: Backend, rng, dtype, sigma, shape):
    # The CPU has a way of its own for these; one more column, and it takes the general one.
    a = make_images(rng, (3, shape[0], shape[1] + 1), dtype)
    got = backend(rf.gaussian_filter, np.ascontiguousarray(a[..., :-1]), sigma)
    assert_close(got, reference.gaussian_filter(a[..., :-1], sigma), dtype)
    inside = shape[1] - 6
    np.testing.assert_array_equal(got[..., :inside], backend(rf.gaussian_filter, a, sigma)[..., :inside])


def test_wide_and_tall_images_are_cut_into_bands(backend: Backend, rng):
    for shape in ((3, 2100), (1300, 3)):
        a = make_images(rng, shape, "float16")
        assert_close(
            backend(rf.gaussian_filter, a, 3, mode="wrap"), reference.gaussian_filter(exact(a), 3, "wrap"), "float16"
        )


@pytest.mark.parametrize("dtype", FLOATS)
def test_same_bits_on_every_backend_and_for_any_thread_count(backend: Backend, rng, dtype):
    a = make_images(rng, (3, 70, 45), dtype)
    expected = rf.gaussian_filter(a, 1)
    for threads in (1, 2, 5):
        rf.set_num_threads(threads)
        assert same_bits(backend(rf.gaussian_filter, a, 1), expected)


def test_infinities_stay_local(backend: Backend):
    a = np.zeros((20, 20))
    a[3, 4] = np.inf
    got = backend(rf.gaussian_filter, a, 1)
    reached = np.zeros_like(a, bool)
    reached[:8, :9] = True  # radius 4
    np.testing.assert_array_equal(~np.isfinite(got), reached)


def test_out_and_input_untouched(backend: Backend, rng):
    a = rng.standard_normal((2, 9, 11))
    before = a.copy()
    expected = reference.gaussian_filter(a, 1)
    if backend.name != "cuda":
        for out in (np.empty_like(a), np.empty((2, 9, 22))[..., ::2]):
            assert backend(rf.gaussian_filter, a, 1, out=out) is out
            assert_close(out, expected, "float64")
    backend(rf.gaussian_filter, a, 1)
    np.testing.assert_array_equal(a, before)


images = st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32 - 1))


@settings(max_examples=50, deadline=None)
@given(images, st.floats(0, 8), st.floats(0, 8), st.sampled_from(MODES), st.floats(-3, 3))
def test_any_image_any_sigma(image, sigma_y, sigma_x, mode, cval):
    h, w, seed = image
    a = np.random.default_rng(seed).standard_normal((h, w))
    expected = reference.gaussian_filter(a, (sigma_y, sigma_x), mode=mode, cval=cval)
    np.testing.assert_allclose(rf.gaussian_filter(a, (sigma_y, sigma_x), mode, cval), expected, rtol=1e-12, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(images, st.floats(0.1, 5), st.integers(-20, 20), st.integers(-20, 20))
def test_wrapped_images_can_be_shifted_before_or_after(image, sigma, dy, dx):
    h, w, seed = image
    a = np.random.default_rng(seed).standard_normal((h, w))
    shifted = np.roll(a, (dy, dx), (0, 1))
    after = np.roll(rf.gaussian_filter(a, sigma, "wrap"), (dy, dx), (0, 1))
    np.testing.assert_array_equal(rf.gaussian_filter(shifted, sigma, "wrap"), after)


@settings(max_examples=50, deadline=None)
@given(images, st.floats(0.1, 20), st.sampled_from(["reflect", "mirror", "nearest", "wrap"]))
def test_never_leaves_the_range_of_the_image(image, sigma, mode):
    h, w, seed = image
    a = np.random.default_rng(seed).standard_normal((h, w)).astype(np.float32)
    got = rf.gaussian_filter(a, sigma, mode)
    slack = 1e-5 * np.abs(a).max()
    assert got.min() >= a.min() - slack and got.max() <= a.max() + slack


@pytest.mark.parametrize(
    ("a", "kwargs", "error", "message"),
    [
        (np.zeros((3, 3), np.int32), {"sigma": 1}, TypeError, "a must have dtype .*float32.*, got int32"),
        (np.zeros(3), {"sigma": 1}, ValueError, r"a must be \[..., H, W\], got shape \(3,\)"),
        ([[1.0]], {"sigma": 1}, TypeError, "a must be a NumPy array or a torch tensor, got list"),
        (np.zeros((3, 3)), {"sigma": -1}, ValueError, "sigma must be >= 0, got -1"),
        (np.zeros((3, 3)), {"sigma": float("nan")}, ValueError, "sigma must be >= 0, got nan"),
        (np.zeros((3, 3)), {"sigma": (1, 2, 3)}, ValueError, "sigma must be one value or a .*pair, got 3 values"),
        (np.zeros((3, 3)), {"sigma": "1"}, TypeError, "sigma must be a number"),
        (np.zeros((3, 3)), {"sigma": 1, "mode": "same"}, ValueError, "mode must be one of 'reflect'.*, got 'same'"),
        (
            np.zeros((3, 3)),
            {"sigma": 1, "radius": -1},
            ValueError,
            r"radius must be an integer in \[0, 1048576\], got -1",
        ),
        (np.zeros((3, 3)), {"sigma": 1, "radius": 1.5}, TypeError, "radius must be an integer, got 1.5"),
        (np.zeros((3, 3)), {"sigma": 1, "truncate": -2}, ValueError, "truncate must be >= 0, got -2"),
        (np.zeros((3, 3)), {"sigma": 1, "out": np.zeros((3, 4))}, ValueError, r"out must have shape \(3, 3\)"),
        (np.zeros((3, 3)), {"sigma": 1, "out": np.zeros((3, 3), "f4")}, TypeError, "out must have dtype float64"),
    ],
)
def test_bad_arguments(a, kwargs, error, message):
    with pytest.raises(error, match=message):
        rf.gaussian_filter(a, **kwargs)


def test_parameters_that_change_or_cannot_be_hashed(rng):
    torch = pytest.importorskip("torch")
    a = make_images(rng, (9, 11), "float64")
    sigma = torch.tensor(1.0)
    np.testing.assert_array_equal(rf.gaussian_filter(a, sigma), rf.gaussian_filter(a, 1))
    sigma.fill_(2.0)
    np.testing.assert_array_equal(rf.gaussian_filter(a, sigma), rf.gaussian_filter(a, 2))
    with pytest.raises(TypeError, match="sigma must be a number, got \\[1\\]"):
        rf.gaussian_filter(a, ([1], 2))
    with pytest.raises(TypeError, match="sigma must be a number, got True"):  # equal to 1, which was accepted above
        rf.gaussian_filter(a, True)


@pytest.mark.parametrize("order", [1, 2, 3, (0, 1), (2, 0), (1, 4), (0, 7)], ids=str)
@pytest.mark.parametrize(
    "kwargs", [{"sigma": 1}, {"sigma": (0.7, 3)}, {"sigma": (0, 2)}, {"sigma": 2, "radius": (0, 40)}], ids=str
)
def test_derivatives(backend: Backend, rng, order, kwargs):
    a = make_images(rng, (2, 19, 23), "float64")
    for mode in ("reflect", "constant"):
        got = backend(rf.gaussian_filter, a, mode=mode, cval=0.5, order=order, **kwargs)
        assert_close(got, reference.gaussian_filter(a, mode=mode, cval=0.5, order=order, **kwargs), "float64")


@pytest.mark.parametrize("modes", [(y, x) for y in MODES for x in MODES if y != x], ids="-".join)
@pytest.mark.parametrize("sigma", [1, (40, 7)], ids=str)
def test_a_mode_per_axis(backend: Backend, rng, modes, sigma):
    for dtype in ("float32", "float64"):
        a = make_images(rng, (2, 19, 32), dtype)
        got = backend(rf.gaussian_filter, a, sigma, mode=modes, cval=-1.5)
        assert_close(got, reference.gaussian_filter(exact(a), sigma, mode=modes, cval=-1.5), dtype)


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"order": -1}, ValueError, "order must be an integer in \\[0, 64\\], got -1"),
        ({"order": 0.5}, TypeError, "order must be an integer, got 0.5"),
        ({"order": (1, 2, 3)}, ValueError, r"order must be one value or a \(rows, columns\) pair, got 3 values"),
        ({"mode": ("wrap",)}, ValueError, r"mode must be one border mode or a \(rows, columns\) pair, got \('wrap',\)"),
        ({"mode": ("wrap", "pad")}, ValueError, "mode must be one of 'reflect'.*, got 'pad'"),
    ],
)
def test_bad_orders_and_modes(kwargs, error, message):
    with pytest.raises(error, match=message):
        rf.gaussian_filter(np.zeros((3, 3)), 1, **kwargs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("border", ["reflect", "mirror", "nearest", "wrap", "constant"])
def test_cuda_sources_give_the_bits_of_the_cpu(rng, dtype, border):
    """Every route (tile in shared memory, one axis at a time, plain loop), also where weights or the border round."""
    backend = pytest.importorskip("roarfast._backend")
    try:
        backend.simt()
    except rf.BackendError as error:
        pytest.skip(str(error))
    for (h, w), sigma in (((15, 37), 3.3), ((40, 70), 1.0), ((70, 40), (7.0, 11.0)), ((37, 150), 10.0), ((5, 9), 90.0)):
        a = rng.standard_normal((1, h, w)).astype(dtype)
        expected = rf.gaussian_filter(a, sigma, mode=border, cval=-2.5)
        with backend.use_host_backend("simt"):
            np.testing.assert_array_equal(
                rf.gaussian_filter(a, sigma, mode=border, cval=-2.5), expected, f"{h} x {w}, {sigma}"
            )
