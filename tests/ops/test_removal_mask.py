"""removal_mask: exact counts, NumPy's thresholds bit for bit, ties without bias, complements."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import selection_maps
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import roarfast as rf
from roarfast.reference.removal_mask import exact_count
from roarfast.reference.removal_mask import removal_mask as reference

RATES = (0.0, 0.05, 0.1, 0.29, 0.3, 0.5, 0.75, 0.9, 1.0)
tied_rows = hnp.arrays(
    np.float32, st.integers(1, 80), elements=st.sampled_from([-1.0, -0.0, 0.0, 0.5, 2.0]) | st.floats(-3, 3, width=32)
)


@pytest.mark.parametrize("order", ["morf", "lerf"])
@pytest.mark.parametrize("rule", ["exact", "percentile", "strict"])
@pytest.mark.parametrize("name", selection_maps.NAMES)
def test_equals_reference(backend, name, rule, order) -> None:
    a = selection_maps.make(name, (2, 11, 13))
    for drop in RATES:
        got = backend(rf.removal_mask, a, drop, rule, order, seed=3, index=[5, 9])
        np.testing.assert_array_equal(got, reference(a, drop, rule, order, seed=3, index=[5, 9]), err_msg=f"{drop}")


@pytest.mark.parametrize("dtype", ["float16", "float64", "uint8"])
@pytest.mark.parametrize("rule", ["exact", "percentile", "strict"])
@pytest.mark.parametrize("name", ["signed", "quantised", "heavy", "infinite", "denormal"])
def test_dtypes(backend, name, rule, dtype) -> None:
    a = selection_maps.make(name, (2, 10, 7), dtype)
    for order in ("morf", "lerf"):
        for drop in (0.0, 0.13, 0.5, 1.0):
            got = backend(rf.removal_mask, a, drop, rule, order)
            np.testing.assert_array_equal(got, reference(a, drop, rule, order), err_msg=f"{order} {drop}")


@pytest.mark.parametrize("rule", ["exact", "percentile", "strict"])
@pytest.mark.parametrize("name", selection_maps.NAMES)
@pytest.mark.parametrize("size", [(1, 1), (7, 9), (8, 8), (32, 32), (90, 91), (120, 130)])
def test_sizes(name, rule, size) -> None:
    """Around the sizes where the CPU kernel changes its method."""
    a = selection_maps.make(name, (2, *size))
    for drop in (0.1, 0.5, 0.97):
        np.testing.assert_array_equal(rf.removal_mask(a, drop, rule), reference(a, drop, rule), err_msg=f"{drop}")


@pytest.mark.parametrize("rule", ["exact", "percentile", "strict"])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.6, 0.69, 0.71, 0.95])
@pytest.mark.parametrize("side", ["low", "high", "both", "next"])
def test_wanted_rank_near_a_common_value(side, share, rule) -> None:
    """The common value is below the wanted rank, above it, on both sides, or just beside another one."""
    rng = np.random.default_rng(4)
    common = rng.random((8, 600)) < share
    a = np.abs(rng.standard_normal(common.shape)).astype(np.float32)
    low = np.where(common, np.float32(0), a)
    a = {
        "low": low,
        "high": -low,
        "both": np.where(common, np.where(rng.random(common.shape) < 0.5, 0, 9), a),
        "next": np.where(common, 0, np.finfo(np.float32).smallest_subnormal),
    }[side].astype(np.float32)
    for drop in (0.1, 0.3, 0.5, 0.7):
        got = rf.removal_mask(a, drop, rule, ndim=1)
        np.testing.assert_array_equal(got, reference(a, drop, rule, ndim=1), err_msg=f"{drop}")


def test_bfloat16_ranks_like_its_float32_values(backend) -> None:
    torch = pytest.importorskip("torch")
    a = torch.randn(2, 9, 9).to(torch.bfloat16)
    expected = reference(a.float().numpy(), 0.4)
    got = backend(rf.removal_mask, a, 0.4)
    np.testing.assert_array_equal(np.asarray(got), expected)


@pytest.mark.parametrize(
    ("drop", "f", "k"), [(0.29, 100, 29), (0.3, 10, 3), (0.7, 10, 7), (0.1, 9, 0), (1 - 0.7, 10, 3)]
)
def test_counts_do_not_lose_a_pixel_to_rounding(backend, drop, f, k) -> None:
    a = np.arange(f, dtype=np.float32).reshape(1, f)
    assert backend(rf.removal_mask, a, drop, ndim=1).sum() == k


@pytest.mark.parametrize("f", [1, 3, 7, 100, 1024, 50176, 150528])
def test_counts_equal_decimal_arithmetic(f) -> None:
    a = np.zeros((1, f), np.uint8)
    for percent in range(0, 101, 3):
        assert rf.removal_mask(a, percent / 100, ndim=1).sum() == exact_count(percent / 100, f) == percent * f // 100


@settings(max_examples=200, deadline=None)
@given(
    tied_rows, st.floats(0, 1), st.sampled_from(["exact", "percentile", "strict"]), st.sampled_from(["morf", "lerf"])
)
def test_any_row(a, drop, rule, order) -> None:
    np.testing.assert_array_equal(
        rf.removal_mask(a, drop, rule, order, ndim=1), reference(a, drop, rule, order, ndim=1)
    )


@settings(max_examples=100, deadline=None)
@given(tied_rows, st.integers(0, 20), st.integers(0, 20), st.integers(0, 5))
def test_nested_and_complementary(a, i, j, seed) -> None:
    small, large = min(i, j) / 20, max(i, j) / 20
    mask = rf.removal_mask(a, small, ndim=1, seed=seed)
    larger = rf.removal_mask(a, large, ndim=1, seed=seed)
    assert not (mask & ~larger).any()
    assert (rf.removal_mask(a, small, keep=True, ndim=1, seed=seed) == ~mask).all()
    if mask.sum() + exact_count(1 - small, len(a)) == len(a):
        assert (rf.removal_mask(a, 1 - small, order="lerf", ndim=1, seed=seed) == ~mask).all()


@pytest.mark.parametrize("rule", ["exact", "percentile", "strict"])
def test_keep_is_the_complement(backend, rule) -> None:
    a = selection_maps.make("relu", (2, 8, 8))
    for order in ("morf", "lerf"):
        mask = backend(rf.removal_mask, a, 0.4, rule, order)
        np.testing.assert_array_equal(backend(rf.removal_mask, a, 0.4, rule, order, keep=True), ~mask)


def test_ties_are_broken_without_bias() -> None:
    """Over many samples of a constant map each pixel goes equally often: chi-squared with 63 degrees of freedom."""
    n, f = 4000, 64
    counts = rf.removal_mask(np.zeros((n, f), np.float32), 0.25, ndim=1, seed=1).sum(axis=0)
    expected = n / 4
    chi2 = ((counts - expected) ** 2).sum() / (expected * 0.75)
    assert 30 < chi2 < 110  # 0.9999 of the distribution
    pair = rf.removal_mask(np.zeros((n, f), np.float32), 0.5, ndim=1, seed=2)
    assert abs(np.corrcoef(pair[:, 0], pair[:, 1])[0, 1] + 1 / 63) < 0.07


def test_ties_with_equal_hashes() -> None:
    """200,000 ties share some hashes; the count is exact nevertheless, and equal to the reference."""
    a = np.zeros((1, 200_000), np.uint8)
    for drop in (0.2, 0.5):
        np.testing.assert_array_equal(rf.removal_mask(a, drop, ndim=1), reference(a, drop, ndim=1))


@pytest.mark.parametrize("order", ["morf", "lerf"])
def test_the_boundary_between_two_equal_hashes(backend, order) -> None:
    """Features 100 and 10651 of this constant row have the same hash, and one of them goes: the position decides."""
    a = np.zeros((1, 20_000), np.float32)
    drop = 11_051 / 20_000 if order == "morf" else 8_949 / 20_000
    got = backend(rf.removal_mask, a, drop, "exact", order, ndim=1, seed=12)
    np.testing.assert_array_equal(got, reference(a, drop, "exact", order, ndim=1, seed=12))
    assert got[0, 100] != got[0, 10_651]


def test_samples_do_not_depend_on_the_batch(backend) -> None:
    a = selection_maps.make("relu", (4, 8, 8))
    whole = backend(rf.removal_mask, a, 0.5, index=[3, 1, 4, 15], seed=7)
    one = backend(rf.removal_mask, a[2:3], 0.5, index=[4], seed=7)
    np.testing.assert_array_equal(whole[2:3], one)
    assert (backend(rf.removal_mask, a, 0.5, index=[3, 1, 4, 15], seed=8) != whole).any()


def test_threads_do_not_matter() -> None:
    a = selection_maps.make("relu", (50, 40, 40))
    rf.set_num_threads(1)
    one = rf.removal_mask(a, 0.5)
    rf.set_num_threads(4)
    np.testing.assert_array_equal(rf.removal_mask(a, 0.5), one)


def test_per_channel_ranks_all_channels_together(backend) -> None:
    a = selection_maps.make("signed", (2, 3, 6, 5))
    mask = backend(rf.removal_mask, a, 0.3, ndim=3)
    np.testing.assert_array_equal(mask, reference(a, 0.3, ndim=3))
    assert (mask.sum(axis=(1, 2, 3)) == 27).all()
    assert (mask.any(axis=1) & ~mask.all(axis=1)).sum() > 0  # some pixel's channels split
    np.testing.assert_array_equal(
        backend(rf.removal_mask, a, 0.3, ndim=2), reference(a, 0.3)
    )  # else each map by itself


def test_layouts_and_empty(backend) -> None:
    a = selection_maps.make("random", (6, 5, 4)).transpose(2, 0, 1)
    np.testing.assert_array_equal(backend(rf.removal_mask, a, 0.5), reference(a, 0.5))
    assert backend(rf.removal_mask, np.zeros((0, 3, 3), np.float32), 0.5).shape == (0, 3, 3)
    out = np.empty((4, 6, 5), bool)
    rf.removal_mask(a, 0.5, out=out)
    np.testing.assert_array_equal(out, reference(a, 0.5))


def test_relu_maps_lose_everything_under_percentile(backend) -> None:
    """What the documentation warns of."""
    a = np.zeros((1, 10, 10), np.float32)
    a[0, :4] = np.random.default_rng(0).random((4, 10)) + 0.1
    assert backend(rf.removal_mask, a, 0.5, "percentile").all()
    assert backend(rf.removal_mask, a, 0.5, "strict").sum() == 40
    assert backend(rf.removal_mask, a, 0.5).sum() == 50


def test_nan(backend) -> None:
    a = np.arange(8, dtype=np.float32).reshape(2, 4)
    a[1, 0] = np.nan
    with pytest.raises(ValueError, match="a must not hold NaN"):
        backend(rf.removal_mask, a, 0.5, ndim=1)
    got = backend(rf.removal_mask, a, 0.25, ndim=1, nan="ignore")
    assert got.tolist() == [[False, False, False, True], [True, False, False, False]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"drop": 30}, r"drop must be in \[0, 1\], got 30: rates are fractions, so 30 % is 0.3"),
        ({"drop": -0.1}, r"drop must be in \[0, 1\], got -0.1"),
        ({"drop": float("nan")}, r"drop must be in \[0, 1\], got nan"),
        ({"drop": 0.5, "rule": "top"}, "rule must be one of 'exact', 'percentile', 'strict' or 'value', got 'top'"),
        ({"drop": 0.5, "order": "MoRF"}, "order must be one of 'morf' or 'lerf', got 'MoRF'"),
        ({"drop": 0.5, "index": [1, 2, 3]}, "index must have one id per sample, 1, got 3"),
        ({"drop": 0.5, "seed": -1}, "seed must be"),
        ({"drop": 0.5, "nan": "omit"}, "nan must be one of 'raise' or 'ignore'"),
        ({"drop": 0.5, "ndim": 3}, r"a must be \[..., C, H, W\], got shape \(4, 4\)"),
        ({"drop": 0.5, "ndim": 4}, "ndim must be"),
    ],
)
def test_bad_arguments(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        rf.removal_mask(np.zeros((4, 4), np.float32), **arguments)


def test_bad_types() -> None:
    with pytest.raises(TypeError, match="a must be a NumPy array or a torch tensor, got list"):
        rf.removal_mask([[1.0, 2.0]], 0.5)
    with pytest.raises(TypeError, match=r"a must have dtype .*, got int32"):
        rf.removal_mask(np.zeros((2, 2), np.int32), 0.5)
    with pytest.raises(TypeError, match="drop must be a number"):
        rf.removal_mask(np.zeros((2, 2), np.float32), "0.5")
    with pytest.raises(TypeError, match="index must hold integers"):
        rf.removal_mask(np.zeros((2, 2, 2), np.float32), 0.5, index=[0.5, 1.5])


def test_a_row_beyond_the_limit_of_torch_quantile() -> None:
    """torch.quantile refuses more than 16M elements per row."""
    f = 2**24 + 4099
    a = np.random.default_rng(0).random((1, f), dtype=np.float32)
    mask = rf.removal_mask(a, 0.25, ndim=1)
    assert mask.sum() == f // 4
    assert a[mask].min() >= a[~mask].max()


@pytest.mark.slow
def test_more_than_2_31_elements() -> None:
    """6.5 GB: the last rows of a batch of more than 2^31 float16 elements are right."""
    n, f = 2**21 + 8, 1024
    pattern = np.random.default_rng(0).permutation(f).astype(np.float16)
    a = np.broadcast_to(pattern, (n, f)).copy()
    mask = rf.removal_mask(a, 0.25, ndim=1)
    assert (mask[-8:] == (pattern >= f - f // 4)).all()
    assert (mask[:8] == mask[-8:]).all()
