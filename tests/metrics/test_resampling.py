"""Intervals over images: SciPy's BCa, coverage where percentiles fail, pairs, Holm."""

import math

import numpy as np
import pytest

from roarfast.metrics import bootstrap, holm
from roarfast.metrics.resampling import Resampled, resamples, trial_interval, weighted_mean


def test_resamples_are_multinomial() -> None:
    w = np.concatenate(list(resamples(50, 4000, seed=1)))
    assert (w.sum(1) == 50).all() and w.mean() == 1
    assert w.var() == pytest.approx(1 - 1 / 50, rel=0.05)


@pytest.mark.parametrize("n", [60, 900])  # each image left out, and groups of them
def test_interval_is_scipys_bca(n) -> None:
    """A skewed law, many resamples: what is left is the widening by the t law."""
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(3).lognormal(0, 1, n)
    expected = stats.bootstrap((values,), np.mean, n_resamples=40_000, rng=np.random.default_rng(0)).confidence_interval
    low, high = bootstrap(weighted_mean(values), n, 40_000).interval()
    wider = math.sqrt(n / (n - 1)) * stats.t.ppf(0.975, n - 1) / stats.norm.ppf(0.975)
    middle = values.mean()
    assert (middle - low) / (middle - expected.low) == pytest.approx(wider, abs=0.03)
    assert (high - middle) / (expected.high - middle) == pytest.approx(wider, abs=0.03)
    assert high - middle > 1.1 * (middle - low)  # the long tail is on that side


def test_coverage_of_a_skewed_mean() -> None:
    """1,000 draws of 40 exponential values: 93 to 97 %, and about as often too low as too high."""
    rng = np.random.default_rng(0)
    below = above = 0
    for draw in range(1000):
        low, high = bootstrap(weighted_mean(rng.exponential(1, 40)), 40, 300, draw).interval()
        below += high < 1
        above += low > 1
    assert 30 <= below + above <= 75, (below, above)


def test_differences_are_paired() -> None:
    rng = np.random.default_rng(1)
    a = rng.normal(0, 5, 300)
    b = a + rng.normal(0.2, 0.1, 300)
    one, two = (bootstrap(weighted_mean(v), 300, 500, 7) for v in (a, b))
    difference = two - one
    direct = bootstrap(weighted_mean(b - a), 300, 500, 7)
    np.testing.assert_allclose(difference.interval(), direct.interval(), atol=1e-12)
    assert difference.p() < 1e-9 and one.p() > 1e-3
    low, high = (-difference).interval()
    assert low == pytest.approx(-difference.interval()[1], abs=0.003) and high < 0
    with pytest.raises(ValueError, match="differences need the same resamples"):
        one - bootstrap(weighted_mean(a), 300, 400, 7)


def test_curves_have_the_intervals_of_their_points() -> None:
    values = np.random.default_rng(2).random((3, 80))
    low, high = bootstrap(weighted_mean(values), 80, 200, 5).interval()
    for k in range(3):
        expected = bootstrap(weighted_mean(values[k]), 80, 200, 5).interval()
        np.testing.assert_allclose((low[k], high[k]), expected, atol=1e-12)


def test_where_there_is_nothing_to_resample() -> None:
    for n, count in ((0, 100), (1, 100), (5, 0)):
        found = bootstrap(weighted_mean(np.arange(float(n))), n, count)
        assert np.isnan(found.interval()).all() and np.isnan(found.p() if n < 2 or not count else math.nan)
    constant = bootstrap(weighted_mean(np.full(9, 0.25)), 9, 50)
    assert constant.interval() == (0.25, 0.25) and constant.p() == 0
    assert bootstrap(weighted_mean(np.zeros(9)), 9, 50).p() == 1
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\), got 95"):
        constant.interval(95)
    assert np.isnan(trial_interval(np.array([0.3])).low)


def test_holm() -> None:
    np.testing.assert_allclose(holm([0.01, 0.04, np.nan, 0.03]), [0.03, 0.06, np.nan, 0.06])
    from roarfast.report import stats

    assert stats.holm is holm


def test_no_interval_where_all_resamples_lie_to_one_side() -> None:
    """How many different images a resample has is always less than how many there are: BCa would be sure of a wrong number."""
    found = bootstrap(lambda weights: (weights > 0).sum(1).astype(np.float64), 200, 300)
    assert found.value == 200 > found.draws.max()
    assert np.isnan(found.interval()).all() and str(found.estimate()) == "200.0000"
    # Rounding is no side: all but a few resamples have this value but for the last bit.
    value, draws = 0.1 + 0.2, np.r_[np.full(298, 0.3), 0.3 - 1e-12, 0.3 - 1e-12]
    low, high = Resampled(np.float64(value), draws, np.zeros(0), 200).interval()
    assert low == pytest.approx(0.3, abs=1e-11) and high == pytest.approx(0.3, abs=1e-11)
