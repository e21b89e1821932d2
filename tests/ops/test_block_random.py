"""block_random: one rectangle of the right area, inside the image, uniform in position."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import roarfast as rf
from roarfast.reference.block_random import block_random as reference


def rectangle(mask):
    """(top, left, height, width) of a mask that must be one full rectangle."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    top, left, height, width = rows[0], columns[0], len(rows), len(columns)
    assert mask[top : top + height, left : left + width].all() and mask.sum() == height * width
    return top, left, height, width


@pytest.mark.parametrize("shape", [(5, 1, 1), (5, 1, 9), (5, 7, 5), (5, 32, 32), (3, 20, 60)])
@pytest.mark.parametrize("drop", [0.0, 0.01, 0.1, 0.5, 0.77, 0.9, 1.0])
def test_equals_reference(backend, shape, drop) -> None:
    index = [3, 1, 2**35, 4, 7][: shape[0]]
    kwargs = {"device": "cuda"} if backend.name == "cuda" else {}
    got = backend(rf.block_random, shape, drop, seed=5, index=index, **kwargs)
    assert got.dtype == bool
    np.testing.assert_array_equal(got, reference(shape, drop, 5, index))


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.floats(0, 1), st.integers(0, 1000))
def test_one_rectangle_of_about_the_area(h, w, drop, seed) -> None:
    mask = rf.block_random((1, h, w), drop, seed=seed)[0]
    area = drop * h * w
    if area < 0.5:
        assert not mask.any()
        return
    _, _, height, width = rectangle(mask)
    assert height <= h and width <= w
    assert abs(height * width - area) <= max(height, width) / 2 + 1e-9  # half a row or column at most


def test_area_position_and_shape_on_large_images() -> None:
    masks = rf.block_random((2000, 64, 64), 0.25, seed=3)
    tops, lefts, heights, widths = np.array([rectangle(m) for m in masks]).T
    assert abs(masks.mean(axis=(1, 2)) - 0.25).max() < 0.004
    ratios = heights / widths
    assert 0.4 < ratios.min() < 0.6 and 1.7 < ratios.max() < 2.4  # 1/2 to 2, up to whole pixels
    u, v = tops / (64 - heights), lefts / (64 - widths)
    for position in (u, v):
        assert abs(position.mean() - 0.5) < 0.03 and abs(position.std() - 1 / np.sqrt(12)) < 0.03
    assert abs(np.corrcoef(u, v)[0, 1]) < 0.08


def test_batches_torch_and_errors() -> None:
    torch = pytest.importorskip("torch")
    masks = rf.block_random((2, 3, 8, 8), 0.3, device="cpu")
    assert isinstance(masks, torch.Tensor) and masks.shape == (2, 3, 8, 8)
    np.testing.assert_array_equal(masks.reshape(6, 8, 8).numpy(), rf.block_random((6, 8, 8), 0.3))
    np.testing.assert_array_equal(rf.block_random((1, 8, 8), 0.3, index=[4])[0], rf.block_random((6, 8, 8), 0.3)[4])
    with pytest.raises(ValueError, match=r"rates are fractions, so 30 % is 0.3"):
        rf.block_random((2, 8, 8), 30)
    with pytest.raises(ValueError, match=r"shape must be \[..., H, W\]"):
        rf.block_random((8,), 0.3)
