"""mask_geometry: counts against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import roarfast as rf
from roarfast.reference.mask_geometry import mask_geometry as reference


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 2), (9, 11), (33, 70), (130, 5), (260, 3)])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_equals_brute_force(backend, shape, share, rng) -> None:
    mask = rng.random((3, *shape)) < share
    got = backend(rf.mask_geometry, mask)
    assert got.dtype == np.int64
    np.testing.assert_array_equal(got, [reference(m) for m in mask])


@settings(max_examples=80, deadline=None)
@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 40)), elements=st.sampled_from([0, 1, 2, 255])))
def test_any_mask(mask) -> None:
    assert rf.mask_geometry(mask).tolist() == reference(mask)


def test_whole_and_empty_images(backend) -> None:
    assert backend(rf.mask_geometry, np.ones((2, 300, 4), bool)).tolist() == [[1200, 0, 0, 0, 604]] * 2
    assert backend(rf.mask_geometry, np.ones((1, 130, 640), bool)).tolist() == [[83200, 0, 0, 0, 1536]]
    board = (np.arange(130)[:, None] + np.arange(640)) % 2 == 0  # every word counts as much as it can
    assert backend(rf.mask_geometry, board[None]).tolist() == [[41600, 41600, 0, 130 * 639 + 129 * 640, 768]]
    assert backend(rf.mask_geometry, np.zeros((1, 5, 5), bool)).tolist() == [[0] * 5]
    assert backend(rf.mask_geometry, np.zeros((0, 5, 5), bool)).shape == (0, 5)
    assert backend(rf.mask_geometry, np.zeros((2, 0, 5), bool)).tolist() == [[0] * 5] * 2


def test_isolation_of_random_pixels_and_blocks() -> None:
    """Random pixels at 10 %: a removed one has no removed neighbour with probability 0.9^4 (0.9^8)."""
    mask = rf.removal_mask(rf.pixel_random((20, 224, 224), seed=1), 0.1)
    removed, alone4, alone8, *_ = rf.mask_geometry(mask).sum(0)
    assert alone4 / removed == pytest.approx(0.9**4, abs=0.01) and alone8 / removed == pytest.approx(0.9**8, abs=0.01)
    block = rf.block_random((5, 64, 64), 0.2)
    assert (rf.mask_geometry(block)[:, 1] == 0).all()


def test_bad_input() -> None:
    with pytest.raises(TypeError, match="mask must have dtype bool or uint8"):
        rf.mask_geometry(np.zeros((3, 3)))
