"""rank_codes and removed_fraction: every rate's mask from one byte per pixel."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import selection_maps
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import roarfast as rf
from roarfast.reference.rank_codes import rank_codes as reference
from roarfast.reference.removal_mask import removal_mask
from roarfast.reference.removed_fraction import removed_fraction

DROPS = (0.0, 0.1, 0.3, 0.31, 0.5, 0.7, 0.9, 0.99, 1.0)


@pytest.mark.parametrize("order", ["morf", "lerf"])
@pytest.mark.parametrize("rule", ["exact", "percentile", "strict"])
@pytest.mark.parametrize("name", selection_maps.NAMES)
def test_equals_reference(backend, name, rule, order) -> None:
    a = selection_maps.make(name, (2, 11, 13))
    got = backend(rf.rank_codes, a, DROPS, rule, order, seed=3, index=[5, 9])
    np.testing.assert_array_equal(got, reference(a, DROPS, rule=rule, order=order, seed=3, index=[5, 9]))


@pytest.mark.parametrize("order", ["morf", "lerf"])
@pytest.mark.parametrize("rule", ["exact", "percentile", "strict"])
@pytest.mark.parametrize("name", [n for n in selection_maps.NAMES if n != "infinite"])
def test_codes_are_the_masks(backend, name, rule, order) -> None:
    """Infinite maps are left out: where NumPy's threshold is NaN its masks are not nested (docs/selection.md)."""
    a = selection_maps.make(name, (2, 7, 9))
    codes = backend(rf.rank_codes, a, DROPS, rule, order)
    for j, drop in enumerate(DROPS):
        np.testing.assert_array_equal(codes <= j, backend(rf.removal_mask, a, drop, rule, order), err_msg=f"{drop}")
        kar = backend(rf.removal_mask, a, drop, rule, order, keep=True)
        np.testing.assert_array_equal(codes > j, kar, err_msg=f"{drop}")


@settings(max_examples=150, deadline=None)
@given(
    hnp.arrays(
        np.float32, st.integers(1, 80), elements=st.sampled_from([-1.0, -0.0, 0.0, 2.0]) | st.floats(-3, 3, width=32)
    ),
    st.sets(st.floats(0, 1), min_size=1, max_size=12),
    st.sampled_from(["exact", "percentile", "strict"]),
    st.sampled_from(["morf", "lerf"]),
    st.integers(0, 3),
)
def test_any_row(a, drops, rule, order, seed) -> None:
    drops = sorted(drops)
    codes = rf.rank_codes(a, drops, rule, order, ndim=1, seed=seed)
    for j, drop in enumerate(drops):
        expected = removal_mask(a, drop, rule, order, ndim=1, seed=seed)
        np.testing.assert_array_equal(codes <= j, expected)


@pytest.mark.parametrize("dtype", ["float16", "float64", "uint8"])
def test_dtypes(backend, dtype) -> None:
    a = selection_maps.make("quantised", (2, 9, 8), dtype)
    for rule in ("exact", "percentile", "strict"):
        got = backend(rf.rank_codes, a, DROPS, rule)
        np.testing.assert_array_equal(got, reference(a, DROPS, rule=rule))


@pytest.mark.parametrize("name", ["random", "relu", "heavy"])
def test_as_many_rates_as_fit(backend, name) -> None:
    drops = np.linspace(0, 1, 254)
    a = selection_maps.make(name, (1, 20, 21))
    np.testing.assert_array_equal(backend(rf.rank_codes, a, drops), reference(a, drops))


@pytest.mark.parametrize("name", selection_maps.NAMES)
def test_large_maps(name) -> None:
    a = selection_maps.make(name, (2, 100, 101))
    np.testing.assert_array_equal(rf.rank_codes(a, DROPS), reference(a, DROPS))


def clusters(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Values that crowd in a few places, and some far away."""
    a = rng.integers(0, 4, shape) * 100.0 + rng.standard_normal(shape) * 1e-3
    return np.where(rng.random(shape) < 0.02, a * 1e6, a)


ROWS = {
    "even": lambda rng, shape: rng.random(shape),
    "signed": lambda rng, shape: rng.standard_normal(shape),
    "heavy": lambda rng, shape: np.exp(4 * rng.standard_normal(shape)),
    "clusters": clusters,
    "few values": lambda rng, shape: rng.integers(0, 7, shape) / 7,
    "huge": lambda rng, shape: (rng.random(shape) - 0.5) * 3e38,
    "infinite ends": lambda rng, shape: np.clip(rng.standard_normal(shape), -1.5, 1.5) / (rng.random(shape) > 0.05),
}


@pytest.mark.parametrize("order", ["morf", "lerf"])
@pytest.mark.parametrize(
    "drops",
    [
        np.linspace(0.1, 0.9, 9),
        np.linspace(0, 1, 5),
        np.linspace(0.3, 0.5, 9),
        np.linspace(0.4, 0.42, 8),
        np.linspace(0, 1, 25),
    ],
    ids=["nine", "none and all", "close", "very close", "many"],
)
@pytest.mark.parametrize("kind", ROWS)
def test_rows_of_any_length(kind, drops, order) -> None:
    """Ranks may share buckets or have many values to a bucket; rows may end within a vector or a batch of them."""
    rng, drops = np.random.default_rng(1), drops.tolist()
    for f in (5, 31, 33, 63, 64, 65, 127, 300, 1024, 4999):
        with np.errstate(divide="ignore"):
            a = ROWS[kind](rng, (2, f)).astype("float32" if f % 2 else "float64")
        for rule in ("exact", "percentile"):
            got = rf.rank_codes(a, drops, rule, order, ndim=1, seed=2)
            np.testing.assert_array_equal(
                got, reference(a, drops, rule=rule, order=order, ndim=1, seed=2), err_msg=f"{f}"
            )


def test_per_channel_and_features(backend) -> None:
    a = selection_maps.make("signed", (2, 3, 5, 6))
    np.testing.assert_array_equal(backend(rf.rank_codes, a, DROPS, ndim=3), reference(a, DROPS, ndim=3))
    np.testing.assert_array_equal(backend(rf.rank_codes, a, DROPS, ndim=1), reference(a, DROPS, ndim=1))


def test_removed_fraction(backend) -> None:
    codes = np.random.default_rng(0).integers(0, 10, (3, 17, 19), dtype=np.uint8)
    for j in (0, 4, 9, 254):
        np.testing.assert_array_equal(backend(rf.removed_fraction, codes, j), removed_fraction(codes, j))
    np.testing.assert_array_equal(backend(rf.removed_fraction, codes, 4, ndim=1), removed_fraction(codes, 4, ndim=1))


def test_torch_equals_numpy() -> None:
    torch = pytest.importorskip("torch")
    a = selection_maps.make("relu", (2, 8, 8))
    codes = rf.rank_codes(torch.from_numpy(a), DROPS, index=torch.tensor([4, 2]))
    np.testing.assert_array_equal(codes.numpy(), rf.rank_codes(a, DROPS, index=[4, 2]))
    assert torch.equal(rf.removed_fraction(codes, 3), torch.from_numpy(rf.removed_fraction(codes.numpy(), 3)))


@pytest.mark.parametrize(
    ("drops", "message"),
    [
        ((10, 30), r"drops\[0\] must be in \[0, 1\], got 10: rates are fractions, so 10 % is 0.1"),
        ((0.1, -0.5), r"drops\[1\] must be in \[0, 1\], got -0.5"),
        ((0.5, 0.1), "drops must ascend without repeats, got 0.1 after 0.5: sort them first"),
        ((0.1, 0.1), "drops must ascend without repeats, got 0.1 twice"),
        ((), "drops must have at least one rate"),
        (np.linspace(0, 1, 255), "drops must have at most 254 rates, since a code is one byte, got 255"),
    ],
)
def test_bad_drops(drops, message) -> None:
    with pytest.raises(ValueError, match=message):
        rf.rank_codes(np.zeros((3, 3)), drops)


def test_bad_types() -> None:
    with pytest.raises(TypeError, match="drops must be a sequence of rates"):
        rf.rank_codes(np.zeros((3, 3)), 0.5)
    with pytest.raises(TypeError, match="codes must have dtype uint8, got float64"):
        rf.removed_fraction(np.zeros((3, 3)), 0)
    with pytest.raises(ValueError, match="rate_index must be an integer in"):
        rf.removed_fraction(np.zeros((3, 3), np.uint8), 255)
