"""Steps of post-processings beside the filters: each against a loop over pixels, or its definition."""

import numpy as np
import pytest
import torch

import roarfast as rf
from roarfast.explain import PostProcess
from roarfast.explain.steps import KINDS, band_of_row


def maps_of(shape=(3, 8, 9), seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def k(text):
    return PostProcess.parse(text)


def test_scaling():
    a = maps_of()
    np.testing.assert_array_equal(k("positive")(a), np.where(a > 0, a, 0))
    np.testing.assert_allclose(np.abs(k("unit")(a)).max((1, 2)), 1)
    scaled = k("minmax")(a)
    np.testing.assert_allclose(scaled.min((1, 2)), 0)
    np.testing.assert_allclose(scaled.max((1, 2)), 1)
    assert not k("unit")(np.zeros((1, 2, 2))).any() and not k("minmax")(np.full((1, 2, 2), 7.0)).any()


def test_power_keeps_the_order_and_the_sign():
    a = np.round(maps_of(dtype=np.float64) * 1000) / 1000
    for p in ("0.5", "2", "4"):
        powered = k(f"power({p})")(a)
        np.testing.assert_allclose(powered, np.sign(a) * np.abs(a) ** float(p))
        for drop in (0.1, 0.5):
            np.testing.assert_array_equal(rf.removal_mask(powered, drop), rf.removal_mask(a, drop))


def test_clip_shift():
    a = np.random.default_rng(0).random((2, 5, 5))
    clipped = k("clip(0.8)")(a)
    for before, after in zip(a, clipped):
        np.testing.assert_allclose(after, np.minimum(before, np.quantile(before, 0.8)))
    np.testing.assert_allclose(k("shift(-0.6)")(a), np.clip(a - 0.6, 0, 1))


def test_lower_and_raise_by_rank():
    a = np.random.default_rng(0).random((2, 5, 4))
    lowered, raised = k("lower(0.6,0.8)")(a), k("raise(0.4,0.8)")(a)
    for i in range(2):
        order = np.argsort(a[i].ravel())
        expected = a[i].ravel().copy()
        expected[order[12:16]] = 0
        np.testing.assert_array_equal(lowered[i].ravel(), expected)
        expected = a[i].ravel().copy()
        expected[order[:8]] = np.quantile(a[i], 0.8)
        np.testing.assert_allclose(raised[i].ravel(), expected)


@pytest.mark.parametrize("side", [1, 2, 3, 5, 8])
def test_rect_by_hand(side):
    a = maps_of((40, 8, 9))
    result = k(f"rect({side})")(a)
    for before, after in zip(a, result):
        weight = np.maximum(before.astype(np.float64), 0)
        rows, columns = np.mgrid[:8, :9]
        corner = []
        for at, extent in ((rows, 8), (columns, 9)):
            centre = (weight * at).sum() / weight.sum()
            best = min(range(extent - side + 1), key=lambda first, c=centre: (abs(first + (side - 1) / 2 - c), first))
            corner.append(best)
        expected = np.zeros((8, 9))
        expected[corner[0] : corner[0] + side, corner[1] : corner[1] + side] = 1
        np.testing.assert_array_equal(after, expected)


def test_rect_of_nothing_is_in_the_middle_and_near_the_border_inside():
    assert k("rect(2)")(np.zeros((1, 4, 4)))[0, 1:3, 1:3].all()
    corner = np.zeros((1, 6, 6))
    corner[0, 5, 0] = 1
    assert k("rect(3)")(corner)[0, 3:, :3].all()


@pytest.mark.parametrize(("height", "bands"), [(32, 4), (32, 7), (224, 7), (9, 2), (5, 5)])
def test_rows_are_means_over_bands(height, bands):
    a = maps_of((2, height, 6))
    band = band_of_row(height, bands)
    sizes = np.bincount(band)
    assert len(sizes) == bands and sizes.max() - sizes.min() <= 1 and (np.diff(band) >= 0).all()
    result = k(f"rows({bands})")(a)
    for b in range(bands):
        expected = np.broadcast_to(a[:, band == b].mean((1, 2), keepdims=True, dtype=np.float64), (2, sizes[b], 6))
        np.testing.assert_allclose(result[:, band == b], expected, rtol=1e-5, atol=1e-6)


def test_jitter_is_keyed_by_sample():
    a = np.full((4, 6, 6), 0.5)
    step = k("jitter(0,0.4)")
    assert step.is_random and not k("max(3)").is_random
    together = step(a, seed=1, index=np.array([3, 9, 4, 7]))
    assert together.min() >= 0.5 and together.max() < 0.9 and together.std() > 0.05
    np.testing.assert_array_equal(step(a[:1], seed=1, index=np.array([9]))[0], together[1])
    assert (step(a, seed=2, index=np.array([3, 9, 4, 7])) != together).any()
    # Independent of a random map with the same seed and id.
    rand = rf.pixel_random((4, 6, 6), seed=1, index=np.array([3, 9, 4, 7]))
    assert abs(np.corrcoef(rand.ravel(), together.ravel())[0, 1]) < 0.3
    with pytest.raises(ValueError, match="'jitter' is random: it needs the sample ids"):
        step(a)


@pytest.mark.parametrize("name", KINDS)
def test_torch_is_numpy(name):
    numbers = {
        "inside": "(0.3)",
        "power": "(2)",
        "clip": "(0.9)",
        "shift": "(0.1)",
        "jitter": "(0,0.1)",
        "lower": "(0.2,0.4)",
        "raise": "(0.2,0.4)",
        "rect": "(3)",
        "rows": "(2)",
    }
    chain, a, ids = k(name + numbers.get(name, "")), np.abs(maps_of()), np.arange(3)
    expected = chain(a, index=ids)
    before = torch.from_numpy(a.copy())
    got = chain(before, index=torch.arange(3))
    assert got.dtype == torch.float32 and expected.dtype == np.float32
    np.testing.assert_array_equal(got.numpy(), expected)
    np.testing.assert_array_equal(before.numpy(), a)  # inputs are never modified
    assert PostProcess.parse(str(chain)) == chain


def test_inside_is_random_in_the_top_and_keyed_by_sample():
    """004's reference pixel flipping as a randomised k(A, U): at n = N the mask of the map itself, before that random in it."""
    a, ids = maps_of((4, 8, 9)), np.array([7, 3, 9, 1])
    found = k("inside(0.25)")(a, seed=5, index=ids)
    top = rf.removal_mask(a, 0.25, seed=5, index=ids)
    np.testing.assert_array_equal(found >= 0, top)
    np.testing.assert_array_equal(rf.removal_mask(found, 0.25, seed=5, index=ids), top)
    some = rf.removal_mask(found, 0.1, seed=5, index=ids)
    assert (some <= top).all() and not np.array_equal(some, rf.removal_mask(a, 0.1, seed=5, index=ids))
    np.testing.assert_array_equal(k("inside(0.25)")(a[[2]], seed=5, index=ids[[2]]), found[[2]])
    assert not np.array_equal(k("inside(0.25)")(a, seed=6, index=ids), found)
    with pytest.raises(ValueError, match="it needs the sample ids"):
        k("inside(0.25)")(a)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("inside(0)", "t is above 0 and at most 1, got 0"),
        ("powr(2)", r"there is no post-processing 'powr' \(did you mean 'power'\?\)"),
        ("power", "'power' needs its numbers"),
        ("power(0)", "p is > 0, got 0"),
        ("power(1,2)", "it takes 1 number, got 2"),
        ("rect(2.5)", "the side is an integer >= 1"),
        ("lower(0.8,0.2)", "two rising fractions"),
        ("unit(3)", "it takes no numbers"),
        ("clip(2)", r"q is in \[0, 1\]"),
        ("shift(nan)", "finite numbers"),
    ],
)
def test_bad_chains(text, message):
    with pytest.raises(ValueError, match=message):
        k(text)


def test_bad_maps():
    with pytest.raises(ValueError, match=r"rect\(9\) does not fit into maps of 8x9"):
        k("rect(9)")(maps_of())
    with pytest.raises(ValueError, match=r"rows\(10\) cuts maps of 8 rows"):
        k("rows(10)")(maps_of())
    with pytest.raises(TypeError, match="must be floating point"):
        k("positive")(np.zeros((1, 2, 2), np.uint8))
