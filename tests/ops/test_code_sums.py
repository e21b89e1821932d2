"""code_sums: fsum to the last bit or so, one result for all threads, batches and backends."""

from __future__ import annotations

import numpy as np
import pytest

import roarfast as rf
from roarfast.reference.code_sums import code_sums as reference


def close(got: np.ndarray, a: np.ndarray, codes: np.ndarray, count: int) -> None:
    mass = np.abs(a.astype(np.float64)).reshape(len(a), -1).sum(1)
    error = np.abs(got - reference(a, codes, count)).max(-1)
    assert (error <= 1e-15 * mass).all(), error / mass


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8"])
@pytest.mark.parametrize("shape", [(3, 1, 1), (2, 7, 9), (1, 61, 67)])
def test_equals_fsum(backend, dtype, shape, rng) -> None:
    a = rng.integers(0, 256, shape) if dtype == "uint8" else rng.standard_normal(shape) * 100
    a = a.astype(dtype)
    codes = rng.integers(0, 12, shape, dtype=np.uint8)
    got = backend(rf.code_sums, a, codes, 10)
    assert got.dtype == np.float64 and got.shape == (shape[0], 10)
    close(got, a, codes, 10)


@pytest.mark.parametrize(
    "values",
    [[1e300, 1e-300, -1e300], [5e-324, 1e-320], [0.0, -0.0], [1.0, 2.0**-60, 2.0**-80], [1.7e308] * 3 + [-1.7e308] * 3],
)
def test_extreme_values(backend, values) -> None:
    a = np.array(values).reshape(1, 1, -1)
    codes = np.zeros(a.shape, np.uint8)
    got = float(backend(rf.code_sums, a, codes, 1)[0, 0])
    expected = float(np.longdouble(0) + sum(np.longdouble(v) for v in values))
    assert got == pytest.approx(expected, rel=1e-15, abs=5e-324)


def test_same_bits_on_every_backend_and_thread_count(backend, rng) -> None:
    a = np.exp(3 * rng.standard_normal((9, 50, 51))).astype(np.float32)
    codes = rng.integers(0, 98, a.shape, dtype=np.uint8)
    rf.set_num_threads(1)
    one = rf.code_sums(a, codes, 98)
    for threads in (2, 8):
        rf.set_num_threads(threads)
        np.testing.assert_array_equal(rf.code_sums(a, codes, 98), one)
    np.testing.assert_array_equal(backend(rf.code_sums, a, codes, 98), one)
    mixed = rng.permutation(50 * 51)
    shuffled = rf.code_sums(a.reshape(9, -1)[:, mixed], codes.reshape(9, -1)[:, mixed], 98, ndim=1)
    np.testing.assert_array_equal(shuffled, one)


@pytest.mark.parametrize("side", [9, 40])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_rows_do_not_depend_on_the_rows_before(backend, dtype, side, rng) -> None:
    """Kernels may guess a row's largest exponent from its neighbours: every way to be wrong about it."""
    scales = [1, 1, 1, 4, 4, 0.25, 0.25, 0.25, 1e-3, 1e-3, 1000, 1, 0, 1, 1, np.nan, 1, 1, np.inf, 1]
    a = (rng.uniform(0.6, 0.9, (2, len(scales), side, side)) * np.array(scales)[:, None, None]).astype(dtype)
    a[1].reshape(len(scales), -1)[:, ::7] *= np.array(2e-6, dtype)  # too small for the short way
    a[:, :, ::2, 1] *= -1
    codes = rng.integers(0, 6, a.shape, dtype=np.uint8)
    got = backend(rf.code_sums, a, codes, 5, check_result=False)
    for part, row in np.ndindex(a.shape[:2]):
        alone = rf.code_sums(a[part, row], codes[part, row], 5, check_result=False)
        np.testing.assert_array_equal(got[part, row], alone, err_msg=f"row {row} of part {part}")
    finite = np.isfinite(scales)
    close(got[0][finite], a[0][finite], codes[0][finite], 5)
    close(got[1][finite], a[1][finite], codes[1][finite], 5)
    assert np.isnan(got[:, ~finite]).all()


def test_bfloat16_and_torch(backend) -> None:
    torch = pytest.importorskip("torch")
    a = torch.randn(2, 5, 5).to(torch.bfloat16)
    codes = torch.randint(0, 4, (2, 5, 5), dtype=torch.uint8)
    got = np.asarray(backend(rf.code_sums, a, codes, 4))
    close(got, a.float().numpy(), codes.numpy(), 4)


def test_layouts_and_empty(backend, rng) -> None:
    a = rng.random((5, 4, 6)).transpose(2, 0, 1)
    codes = rng.integers(0, 3, (6, 5, 4), dtype=np.uint8)
    close(backend(rf.code_sums, a, codes, 3), a, codes, 3)
    assert backend(rf.code_sums, a[:0], codes[:0], 3).shape == (0, 3)
    assert backend(rf.code_sums, np.zeros((2, 0, 3)), np.zeros((2, 0, 3), np.uint8), 2).tolist() == [[0, 0], [0, 0]]


def test_bad_input(backend) -> None:
    a, codes = np.zeros((3, 4, 4)), np.zeros((3, 4, 4), np.uint8)
    bad = a.copy()
    bad[1, 2, 2] = np.nan
    with pytest.raises(ValueError, match="a must be finite, got NaN or infinity in sample 1"):
        backend(rf.code_sums, bad, codes, 2)
    bad[1, 2, 2] = -np.inf
    with pytest.raises(ValueError, match="a must be finite"):
        backend(rf.code_sums, bad, codes, 2)
    unchecked = backend(rf.code_sums, bad, codes, 2, check_result=False)
    assert np.isnan(unchecked[1]).all() and not np.isnan(unchecked[[0, 2]]).any()
    for count in (0, 257):
        with pytest.raises(ValueError, match=r"count must be an integer in \[1, 256\]"):
            rf.code_sums(a, codes, count)
    with pytest.raises(ValueError, match="codes must be shaped like a"):
        rf.code_sums(a, codes[:2], 2)
    with pytest.raises(TypeError, match="codes must have dtype uint8"):
        rf.code_sums(a, a, 2)
