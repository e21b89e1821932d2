"""Planted truth: quality of planted maps is what it is said to be."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from roarfast.data import load
from roarfast.metrics.planted import SHARES, overlap, planted_maps, rank_correlation

DROPS = (0.05, 0.1, 0.2)


@pytest.fixture(scope="module")
def data():
    return load("shapes", "test", n=100)


def test_overlap_falls_with_the_noise(data):
    maps = planted_maps(data.images, data.masks, seed=1)
    mean = {name: float(np.nanmean(overlap(a, data.masks, DROPS))) for name, a in maps.items()}
    graded = [v for name, v in mean.items() if name.startswith("truth")]
    assert len(graded) == len(SHARES) and graded == sorted(graded, reverse=True)
    assert graded[0] == 1
    area = data.masks.mean((1, 2))
    by_chance = np.mean([np.maximum(area, t) for t in DROPS])  # t * area of the pixels, of the smaller of the two
    assert mean["rand"] == pytest.approx(by_chance, abs=0.03) and graded[-1] == pytest.approx(by_chance, abs=0.03)
    assert mean["shifted"] < mean["blur"] and mean["edge"] > mean["sobel"] > mean["rand"]


def test_noise_is_nested_and_keyed_by_sample(data):
    maps = planted_maps(data.images, data.masks, seed=1)
    part = planted_maps(data.images[7:9], data.masks[7:9], seed=1, index=[7, 8])
    for name, a in maps.items():
        np.testing.assert_array_equal(part[name], a[7:9])
    changed = [maps[f"truth {p} % noise"] != maps["truth"] for p in (10, 25, 50)]
    assert not (changed[0] & ~changed[1]).any() and not (changed[1] & ~changed[2]).any()
    assert changed[2].mean() == pytest.approx(0.25, abs=0.02)  # half of the coins agree with the truth


def test_overlap_by_hand():
    mask = np.zeros((2, 2, 4), bool)
    mask[0, 0] = True
    a = np.arange(8, dtype=np.float32).reshape(1, 2, 4).repeat(2, 0)  # highest in the last row
    got = overlap(a, mask, (0.25, 0.5, 0.75))
    np.testing.assert_allclose(got[:, 0], [0, 0, 0.5])
    assert np.isnan(got[:, 1]).all()  # no object


def test_correlation_is_scipys():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, y = rng.integers(0, 5, 12), rng.random(12)
        assert rank_correlation(x, y) == pytest.approx(spearmanr(x, y).statistic)
    assert np.isnan(rank_correlation([1, 1], [1, 2]))
