"""rule="value": thresholds of each map's maximum, in torch's arithmetic, nested, on every backend."""

from __future__ import annotations

import numpy as np
import pytest

import roarfast as rf
from roarfast.reference.rank_codes import rank_codes as reference

DROPS = tuple(j / 10 for j in range(11))


def maps(name: str, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    a = {
        "uniform": rng.random(shape),
        "relu": np.maximum(rng.standard_normal(shape), 0),
        "levels": rng.integers(0, 11, shape) / 10,  # values that lie on the thresholds
        "outlier": rng.random(shape) ** 8 + (np.arange(shape[-1]) == 1) * 50,
        "zero": np.zeros(shape),
        "constant": np.full(shape, 0.3),
        "tiny": rng.integers(0, 9, shape) * np.finfo(np.float32).smallest_subnormal,
    }[name]
    return np.rint(a / max(a.max(), 1e-30) * 255).astype(np.uint8) if dtype == "uint8" else a.astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8"])
@pytest.mark.parametrize("name", ["uniform", "relu", "levels", "outlier", "zero", "constant", "tiny"])
def test_equals_reference(backend, name, dtype) -> None:
    a = maps(name, (3, 11, 13), dtype)
    for order in ("morf", "lerf"):
        codes = backend(rf.rank_codes, a, DROPS, "value", order)
        np.testing.assert_array_equal(codes, reference(a, DROPS, rule="value", order=order))
        for j, drop in enumerate(DROPS):
            mask = backend(rf.removal_mask, a, drop, "value", order)
            np.testing.assert_array_equal(mask, codes <= j)
            np.testing.assert_array_equal(backend(rf.removal_mask, a, drop, "value", order, keep=True), ~mask)


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "bfloat16"])
def test_is_what_torch_computes(backend, dtype) -> None:
    torch = pytest.importorskip("torch")
    a = torch.rand(4, 40, 41, generator=torch.Generator().manual_seed(1))
    a = (a * 255).to(torch.uint8) if dtype == "uint8" else a.to(getattr(torch, dtype))
    wide = a.double() if dtype == "float64" else a.float()
    for drop in (0.1, 0.35, 0.9):
        expected = wide > wide.amax((1, 2), keepdim=True) * (1 - drop)
        got = backend(rf.removal_mask, a if dtype == "bfloat16" else a.numpy(), drop, "value")
        np.testing.assert_array_equal(np.asarray(got), expected.numpy())


def test_as_many_rates_as_fit(backend) -> None:
    a = maps("uniform", (2, 20, 21), "float32")
    drops = np.linspace(0, 1, 254)
    np.testing.assert_array_equal(backend(rf.rank_codes, a, drops, "value"), reference(a, drops, rule="value"))


@pytest.mark.parametrize("f", [1, 31, 32, 33, 63, 65, 1000, 50176])
def test_rows_of_any_length(f) -> None:
    a = maps("relu", (3, f), "float32")
    np.testing.assert_array_equal(rf.rank_codes(a, DROPS, "value", ndim=1), reference(a, DROPS, rule="value", ndim=1))


def test_remove_and_other_rules_after_it(backend) -> None:
    """A row ranked by value leaves nothing behind for the next call."""
    a = maps("relu", (2, 8, 8), "float32")
    x = np.ones((2, 3, 8, 8), np.float32)
    mask = backend(rf.removal_mask, a, 0.6, "value")
    np.testing.assert_array_equal(backend(rf.remove, x, a, 0.6, fill=0, rule="value"), np.where(mask[:, None], 0, x))
    np.testing.assert_array_equal(backend(rf.rank_codes, a, DROPS), reference(a, DROPS))


def test_bad_maps(backend) -> None:
    a = maps("uniform", (3, 4, 4), "float32")
    for value, message in (
        (
            -0.5,
            r"a must hold finite values >= 0 for rule='value', got 1 of 3 samples \(first: sample 1\) with negative",
        ),
        (np.inf, r"first: sample 1\) with infinity"),
        (np.nan, "a must not hold NaN"),
    ):
        bad = a.copy()
        bad[1, 2, 3] = value
        with pytest.raises(ValueError, match=message):
            backend(rf.rank_codes, bad, DROPS, "value")
        with pytest.raises(ValueError, match=message):
            backend(rf.removal_mask, bad, 0.5, "value")
    with pytest.raises(ValueError, match="nan must be 'raise' for rule='value', got 'ignore'"):
        rf.rank_codes(a, DROPS, "value", nan="ignore")
    assert (backend(rf.rank_codes, np.where(a > 0.5, a, -0.0), DROPS, "value") == 11).any()  # -0.0 is no negative value
