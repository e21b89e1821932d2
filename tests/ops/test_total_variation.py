"""total_variation against plain NumPy in float64; the same bits on every backend and for any thread count."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.backends import Backend
from helpers.image_cases import FLOATS, LAYOUTS, SHAPES, exact, make_images
from hypothesis import given, settings
from hypothesis import strategies as st

import roarfast as rf
from roarfast.reference import total_variation as reference

DTYPES = [*FLOATS, "uint8", "bool"]
KINDS = ["anisotropic", "isotropic"]
NORMALIZE = ["none", "minmax", "mean"]
# Differences are rounded to float32 for the short dtypes; sums are in float64.
RTOL = {"float64": 1e-12, "uint8": 1e-12, "bool": 1e-12}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("normalize", NORMALIZE)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_equals_reference(backend: Backend, rng, dtype, kind, normalize, shape, layout):
    a = make_images(rng, (3, *shape), dtype, layout)
    got = backend(rf.total_variation, a, kind, normalize)
    assert str(got.dtype).removeprefix("torch.") == "float64" and tuple(got.shape) == (3,)
    expected = reference.total_variation(exact(a), kind, normalize)
    np.testing.assert_allclose(np.asarray(got), expected, rtol=RTOL.get(dtype, 1e-6))


@pytest.mark.parametrize("shape", [(31, 32), (32, 31), (33, 33), (8, 65), (9, 64), (1, 1), (200, 3), (3, 200)], ids=str)
@pytest.mark.parametrize("normalize", NORMALIZE)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_same_bits_on_every_backend_and_for_any_thread_count(backend: Backend, rng, dtype, kind, normalize, shape):
    a = make_images(rng, (3, *shape), dtype)
    rf.set_num_threads(1)
    expected = rf.total_variation(a, kind, normalize)
    for threads in (1, 2, 5):
        rf.set_num_threads(threads)
        np.testing.assert_array_equal(np.asarray(backend(rf.total_variation, a, kind, normalize)), np.asarray(expected))


@pytest.mark.parametrize("kind", KINDS)
def test_does_not_depend_on_the_batch(backend: Backend, rng, kind):
    a = make_images(rng, (4, 6, 40, 50), "float32")
    whole = backend(rf.total_variation, a, kind, "minmax")
    assert whole.shape == (4, 6)
    assert backend(rf.total_variation, a[2, 3], kind, "minmax") == whole[2, 3]


@pytest.mark.parametrize("normalize", NORMALIZE)
@pytest.mark.parametrize("shape", [(0, 4, 4), (3, 0, 4), (3, 4, 0)], ids=str)
def test_empty(backend: Backend, shape, normalize):
    got = backend(rf.total_variation, np.zeros(shape, np.float32), normalize=normalize)
    np.testing.assert_array_equal(got, np.zeros(shape[:1]))


def test_by_hand(backend: Backend):
    a = np.array([[0.0, 3.0], [4.0, 0.0]])
    assert backend(rf.total_variation, a) == 3 + 4 + 3 + 4
    assert backend(rf.total_variation, a, normalize="minmax") == 14 / 4
    assert backend(rf.total_variation, a, normalize="mean") == 14 / 4  # four pairs
    assert backend(rf.total_variation, a, "isotropic") == 5 + 3 + 4
    assert backend(rf.total_variation, a, "isotropic", "mean") == 12 / 4  # four pixels


@pytest.mark.parametrize("normalize", NORMALIZE)
@pytest.mark.parametrize("kind", KINDS)
def test_constant_maps_have_none(backend: Backend, kind, normalize):
    assert backend(rf.total_variation, np.full((40, 70), 0.1, np.float32), kind, normalize) == 0


def test_tiny_attributions_do_not_vanish(backend: Backend, rng):
    a = (rng.random((20, 20)) * 1e-30).astype(np.float32)  # whose squares are 0 in float32
    expected = reference.total_variation(a, "isotropic")
    np.testing.assert_allclose(backend(rf.total_variation, a, "isotropic"), expected, rtol=1e-6)


def test_nan_is_not_hidden(backend: Backend, rng):
    for kind in KINDS:
        for normalize in NORMALIZE:
            a = rng.random((20, 40))
            a[7, 31] = np.nan
            assert np.isnan(backend(rf.total_variation, a, kind, normalize))


images = st.tuples(st.integers(1, 70), st.integers(1, 70), st.integers(0, 2**32 - 1))


@settings(max_examples=50, deadline=None)
@given(images, st.floats(0.001, 1000), st.floats(-10, 10), st.sampled_from(KINDS))
def test_minmax_ignores_scale_and_offset(image, scale, offset, kind):
    h, w, seed = image
    a = np.random.default_rng(seed).standard_normal((h, w))
    got = rf.total_variation(scale * a + offset, kind, "minmax")
    np.testing.assert_allclose(got, rf.total_variation(a, kind, "minmax"), rtol=1e-8)


@settings(max_examples=50, deadline=None)
@given(images)
def test_kinds_bound_each_other(image):
    h, w, seed = image
    a = np.random.default_rng(seed).standard_normal((h, w))
    anisotropic, isotropic = rf.total_variation(a), rf.total_variation(a, "isotropic")
    assert isotropic <= anisotropic * (1 + 1e-12)
    assert anisotropic <= np.sqrt(2) * isotropic * (1 + 1e-12)


@settings(max_examples=50, deadline=None)
@given(images, st.integers(1, 5))
def test_of_a_mask_is_the_length_of_its_outline(image, size):
    h, w, seed = image
    mask = np.random.default_rng(seed).random((h, w)) < 0.5
    steps = np.count_nonzero(mask[1:] != mask[:-1]) + np.count_nonzero(mask[:, 1:] != mask[:, :-1])
    assert rf.total_variation(mask) == steps


@pytest.mark.parametrize(
    ("a", "kwargs", "error", "message"),
    [
        (np.zeros((3, 3), np.int32), {}, TypeError, "a must have dtype .*uint8.*, got int32"),
        (np.zeros(3), {}, ValueError, r"a must be \[..., H, W\], got shape \(3,\)"),
        (np.zeros((3, 3)), {"kind": "l2"}, ValueError, "kind must be one of 'anisotropic' or 'isotropic', got 'l2'"),
        (np.zeros((3, 3)), {"normalize": "max"}, ValueError, "normalize must be one of 'none', .* got 'max'"),
        (np.zeros((2, 3, 3)), {"out": np.zeros(3)}, ValueError, r"out must have shape \(2,\), got \(3,\)"),
    ],
)
def test_bad_arguments(a, kwargs, error, message):
    with pytest.raises(error, match=message):
        rf.total_variation(a, **kwargs)
