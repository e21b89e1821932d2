"""remove: removal_mask and fill in one go."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import selection_maps

import roarfast as rf
from roarfast.reference.remove import remove as reference


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("fill", [0.0, [3, 1, 2], "kept_mean", "image_mean", "noise", "blur"], ids=str)
@pytest.mark.parametrize("name", ["random", "relu"])
def test_equals_its_two_steps(backend, rng, name, fill, dtype) -> None:
    x = (rng.random((2, 3, 8, 9)) * 255).astype(dtype)
    a = selection_maps.make(name, (2, 8, 9))
    for options in ({}, {"order": "lerf"}, {"keep": True}, {"rule": "percentile"}):
        both = {"seed": 3, "index": [7, 1]}
        mask = backend(rf.removal_mask, a, 0.3, **both, **options)
        steps = backend(rf.fill, x, mask, fill, sigma=2.0, noise_mean=100, noise_std=20, **both)
        fused = backend(rf.remove, x, a, 0.3, fill, sigma=2.0, noise_mean=100, noise_std=20, **both, **options)
        np.testing.assert_array_equal(fused, steps)
        if fill != "blur":
            expected = reference(x, a, 0.3, fill, noise_mean=100, noise_std=20, **both, **options)
            np.testing.assert_array_equal(fused, expected)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_per_feature(backend, rng, layout) -> None:
    shape = (2, 3, 6, 5) if layout == "NCHW" else (2, 6, 5, 3)
    x, a = rng.random(shape).astype(np.float32), rng.standard_normal(shape)
    mask = backend(rf.removal_mask, a, 0.4, ndim=3)
    expected = backend(rf.fill, x, mask, "kept_mean", layout=layout)
    np.testing.assert_array_equal(backend(rf.remove, x, a, 0.4, "kept_mean", layout=layout), expected)


@pytest.mark.parametrize("dtype", ["float16", "float64", "uint8"])
def test_map_dtypes(backend, rng, dtype) -> None:
    x = rng.random((2, 3, 7, 7)).astype(np.float32)
    a = selection_maps.make("quantised", (2, 7, 7), dtype)
    np.testing.assert_array_equal(backend(rf.remove, x, a, 0.5, 0.0), reference(x, a, 0.5, 0.0))


def test_features(backend, rng) -> None:
    x, a = rng.random((5, 12)), rng.random((5, 12))
    got = backend(rf.remove, x, a, 0.25, "zero", layout="NF")
    assert ((got == 0).sum(axis=1) == 3).all()
    np.testing.assert_array_equal(got == 0, rf.removal_mask(a, 0.25, ndim=1))


def test_torch(rng) -> None:
    torch = pytest.importorskip("torch")
    x, a = rng.random((2, 3, 8, 8)).astype(np.float32), rng.random((2, 8, 8)).astype(np.float32)
    got = rf.remove(torch.from_numpy(x), torch.from_numpy(a), 0.5, "kept_mean")
    np.testing.assert_array_equal(got.numpy(), rf.remove(x, a, 0.5, "kept_mean"))


def test_errors() -> None:
    x = np.zeros((2, 3, 4, 5), np.float32)
    with pytest.raises(ValueError, match=r"a must have shape \(2, 4, 5\) \(per pixel\)"):
        rf.remove(x, np.zeros((2, 5, 4), np.float32), 0.5)
    with pytest.raises(ValueError, match=r"rates are fractions, so 50 % is 0.5"):
        rf.remove(x, np.zeros((2, 4, 5), np.float32), 50)
    with pytest.raises(ValueError, match="a must not hold NaN"):
        rf.remove(x, np.full((2, 4, 5), np.nan, np.float32), 0.5)
