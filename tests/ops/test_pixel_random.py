"""pixel_random: uniform maps that depend on (seed, sample id) only."""

from __future__ import annotations

import numpy as np
import pytest

import roarfast as rf
from roarfast.reference.pixel_random import pixel_random as reference


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (2, 16, 16), (0, 4, 4)])
def test_equals_reference(backend, shape) -> None:
    index = [11, 2**40, 3][: shape[0]]
    kwargs = {"device": "cuda"} if backend.name == "cuda" else {}
    got = backend(rf.pixel_random, shape, seed=9, index=index, **kwargs)
    assert got.dtype == np.float32 and got.shape == shape
    np.testing.assert_array_equal(got, reference(shape, 9, index))


@pytest.mark.parametrize("shape", [(4, 70, 71), (2, 130, 127), (3, 128, 132)])
@pytest.mark.parametrize("named", [False, True])
def test_rows_of_several_launches(backend, shape, named) -> None:
    """The emulator cuts what is made into slices, as a GPU does for gigabytes: of rows, and within a row."""
    index = [11, 2**40, 3, 0][: shape[0]] if named else None
    kwargs = {"device": "cuda"} if backend.name == "cuda" else {}
    got = backend(rf.pixel_random, shape, seed=3, index=index, **kwargs)
    np.testing.assert_array_equal(got, reference(shape, 3, index))


def test_is_uniform() -> None:
    values = rf.pixel_random((4, 100, 100), seed=1)
    assert values.min() >= 0 and values.max() < 1
    counts = np.histogram(values, 20, (0, 1))[0]
    assert abs(counts - 2000).max() < 200
    assert abs(np.corrcoef(values[0].ravel(), values[1].ravel())[0, 1]) < 0.05


def test_features_and_torch() -> None:
    torch = pytest.importorskip("torch")
    flat = rf.pixel_random((3, 10), seed=4, ndim=1)
    tensor = rf.pixel_random((3, 10), seed=4, ndim=1, device="cpu")
    assert isinstance(tensor, torch.Tensor)
    np.testing.assert_array_equal(tensor.numpy(), flat)


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"shape must be \[..., H, W\], got \(3,\)"):
        rf.pixel_random((3,))
    with pytest.raises(TypeError, match="shape must be a sequence"):
        rf.pixel_random(3)
    with pytest.raises(ValueError, match="index must have one id per sample, 2, got 1"):
        rf.pixel_random((2, 3, 3), index=[1])
