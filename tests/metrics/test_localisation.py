"""Pointing game and mass inside, by hand; faults of peers as tests of ours."""

import numpy as np
import pytest
import torch

from roarfast.metrics.localisation import box_regions, mass_inside, pointing_game


def cases(n=60, size=9, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, size, size)), rng.random((n, size, size)) < 0.08


def test_mass_by_loop():
    a, inside = cases()
    for values, take in (("abs", np.abs), ("positive", lambda v: np.maximum(v, 0))):
        expected = [take(m)[r].sum() / take(m).sum() if r.any() else np.nan for m, r in zip(a, inside)]
        np.testing.assert_allclose(mass_inside(a, inside, values=values), expected)
    np.testing.assert_allclose(mass_inside(torch.from_numpy(a), torch.from_numpy(inside)), mass_inside(a, inside))


def test_no_region_and_no_mass_are_nan():
    """Quantus divides by a mass of zero without a word."""
    a, inside = np.zeros((2, 3, 3)), np.ones((2, 3, 3), bool)
    a[1] = 1
    inside[1] = False
    assert np.isnan(mass_inside(a, inside)).all()


@pytest.mark.parametrize("tolerance", [0, 1, 1.5, 3])
def test_pointing_by_search(tolerance):
    a, inside = cases()
    game = pointing_game(a, inside, tolerance=tolerance)
    for i in range(len(a)):
        y, x = np.unravel_index(a[i].argmax(), a[i].shape)
        assert tuple(game.point[i]) == (y, x)
        places = np.argwhere(inside[i])
        if len(places):
            nearest = np.sqrt(((places - [y, x]) ** 2).sum(1)).min()
            assert game.distance[i] == pytest.approx(nearest)
            assert game.hit[i] == (nearest <= tolerance)
    assert game.skipped == sum(not r.any() for r in inside)


def test_an_image_without_object_is_no_hit():
    """Quantus writes NaN into a bool array, which makes it a hit."""
    a = np.random.default_rng(0).random((3, 4, 4))
    game = pointing_game(a, np.zeros((3, 4, 4), bool))
    assert not game.hit.any() and game.skipped == 3 and np.isnan(game.ratio) and np.isnan(game.distance).all()


def test_ties():
    """A constant map: chance by hash, always with any, never with all."""
    a, inside = np.ones((3000, 4, 4)), np.zeros((3000, 4, 4), bool)
    inside[:, 0] = True
    assert pointing_game(a, inside).ratio == pytest.approx(0.25, abs=0.03)
    assert pointing_game(a, inside, ties="any").ratio == 1
    assert pointing_game(a, inside, ties="all").ratio == 0
    alone = pointing_game(a[5:6], inside[5:6], index=np.array([5]))
    np.testing.assert_array_equal(alone.point[0], pointing_game(a, inside).point[5])


def test_boxes():
    regions = box_regions([[1, 0, 3, 2], [0, 0, 0, 0], [0.4, 0.6, 2.5, 3]], (3, 3, 3))
    assert regions[0].tolist() == [[False, True, True], [False, True, True], [False, False, False]]
    assert not regions[1].any()
    assert regions[2].tolist() == [[False] * 3, [True, True, False], [True, True, False]]
    a = np.zeros((3, 3, 3))
    a[:, 0, 2] = 1
    assert pointing_game(a, boxes=[[1, 0, 3, 2], [0, 0, 0, 0], [0, 0, 3, 3]]).hit.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda a, r: mass_inside(a, r, values="raw"), ValueError, "maps must be >= 0 for values='raw'"),
        (lambda a, r: mass_inside(a, r, values="square"), ValueError, "values must be one of abs, positive, raw"),
        (lambda a, r: mass_inside(a, r[:, :4]), ValueError, "same shape"),
        (lambda a, r: mass_inside(a, r.astype(int)), TypeError, "regions must be bool, got int64"),
        (lambda a, r: mass_inside(a * np.nan, r), ValueError, "maps must be finite"),
        (lambda a, r: pointing_game(a, r, tolerance=-1), ValueError, "tolerance must be >= 0 pixels, got -1"),
        (lambda a, r: pointing_game(a, r, ties="first"), ValueError, "ties must be one of hash, any, all"),
        (lambda a, r: pointing_game(a), ValueError, "give either regions or boxes"),
        (lambda a, r: pointing_game(a, boxes=[[0, 0, 1, 1]]), ValueError, r"boxes must be \[60, 4\]"),
        (lambda a, r: pointing_game(a[:2], boxes=[[0, 0, 1, 1], [3, 0, 1, 1]]), ValueError, "box 1 is"),
        (lambda a, r: pointing_game(a[:1], boxes=[[0, 0, 1, 10]]), ValueError, "inside 9x9 pixels, box 0"),
    ],
)
def test_bad_inputs(call, error, message):
    with pytest.raises(error, match=message):
        call(*cases())


def test_a_tolerance_in_fractions_is_doubtful():
    with pytest.warns(UserWarning, match=r"tolerance=0\.07 is less than one pixel"):
        pointing_game(*cases(), tolerance=0.07)
