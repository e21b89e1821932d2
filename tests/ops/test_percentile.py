"""percentile: NumPy's, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import selection_maps
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import roarfast as rf
from roarfast.reference.percentile import percentile as reference

QS = [0.0, 100.0, 50.0, 12.5, 33.3, 99.9, 70.0, 30.000000000000004]


def same_bits(got: np.ndarray, expected: np.ndarray) -> bool:
    return got.dtype == expected.dtype and got.shape == expected.shape and got.tobytes() == expected.tobytes()


def same(got: np.ndarray, expected: np.ndarray) -> bool:
    """Bit for bit, but for the sign of zero and of NaN."""
    return got.dtype == expected.dtype and np.array_equal(got, expected, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8"])
@pytest.mark.parametrize("name", selection_maps.NAMES)
def test_equals_numpy(backend, name, dtype) -> None:
    a = selection_maps.make(name, (2, 9, 13), dtype)
    for q in QS:
        assert same(backend(rf.percentile, a, q), reference(a, q)), q
    assert same(backend(rf.percentile, a, QS), reference(a, QS))


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 1, 2), (2, 33, 65)])
def test_shapes(backend, shape, rng) -> None:
    a = rng.standard_normal(shape).astype(np.float32)
    assert same_bits(backend(rf.percentile, a, 40.0), reference(a, 40.0))


@pytest.mark.parametrize("f", [63, 64, 65, 255, 1000, 8191, 8192, 20000])
@pytest.mark.parametrize("name", ["random", "heavy", "relu", "signed"])
def test_row_sizes(name, f) -> None:
    a = selection_maps.make(name, (3, f))
    assert same_bits(rf.percentile(a, QS, ndim=1), reference(a, QS, ndim=1))


def test_ndim(backend, rng) -> None:
    a = rng.random((2, 3, 4, 5))
    for ndim in (1, 2, 3):
        assert same_bits(backend(rf.percentile, a, 30, ndim=ndim), reference(a, 30, ndim=ndim))


def test_more_q_than_one_call_takes(backend, rng) -> None:
    a = rng.random((2, 6, 7)).astype(np.float32)
    q = rng.random(600) * 100
    assert same_bits(backend(rf.percentile, a, q), reference(a, q))


def test_not_contiguous_and_out(backend, rng) -> None:
    a = rng.random((5, 8, 6)).transpose(2, 1, 0)
    out = np.empty((6, 2))
    assert backend(rf.percentile, a, [10, 90], out=out) is out or backend.name == "cuda"
    assert same_bits(backend(rf.percentile, a, [10, 90]), reference(a, [10, 90]))


@settings(max_examples=150, deadline=None)
@given(
    hnp.arrays(np.float32, st.integers(1, 90), elements=st.floats(-10, 10, width=32) | st.sampled_from([0.0, 1.0])),
    st.floats(0, 100),
)
def test_any_row(a, q) -> None:
    assert same(rf.percentile(a, q, ndim=1), reference(a, q, ndim=1))


def test_bfloat16_is_float16_arithmetic_in_bfloat16() -> None:
    torch = pytest.importorskip("torch")
    a = torch.randn(2, 8, 8).to(torch.bfloat16)
    got = rf.percentile(a, 50.0)
    ordered = a.float().flatten(1).sort().values
    low, high = ordered[:, 31].to(torch.bfloat16), ordered[:, 32].to(torch.bfloat16)
    assert got.dtype == torch.bfloat16
    assert torch.equal(got, high - (high - low) * 0.5)


def test_nan(backend) -> None:
    a = np.zeros((3, 4, 4), np.float32)
    a[1, 2, 3] = np.nan
    with pytest.raises(ValueError, match=r"a must not hold NaN, got some in 1 of 3 samples \(first: sample 1\)"):
        backend(rf.percentile, a, 50)
    assert backend(rf.percentile, a, 100.0, nan="ignore").shape == (3,)


@pytest.mark.parametrize(
    ("a", "q", "message"),
    [
        (np.zeros((2, 2)), 101, r"q must be in \[0, 100\], got 101"),
        (np.zeros((2, 2)), -1, r"q must be in \[0, 100\]"),
        (np.zeros((2, 2)), float("nan"), r"q must be in \[0, 100\]"),
        (np.zeros((2, 2)), [], "at least one percentile"),
        (np.zeros(4), 50, r"a must be \[..., H, W\], got shape \(4,\); for features \[N, F\] pass ndim=1"),
        (np.zeros((2, 0, 3)), 50, "at least one feature"),
    ],
)
def test_bad_arguments(a, q, message) -> None:
    with pytest.raises(ValueError, match=message):
        rf.percentile(a, q)


def test_bad_dtype() -> None:
    with pytest.raises(TypeError, match="a must have dtype"):
        rf.percentile(np.zeros((2, 2), np.int64), 50)
