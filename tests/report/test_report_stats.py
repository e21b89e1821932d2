"""Statistics of the report against SciPy and closed forms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roarfast.report import stats

scipy_stats = pytest.importorskip("scipy.stats")
floats = st.floats(-1e3, 1e3, allow_nan=False).map(lambda v: round(v, 6))


@pytest.mark.parametrize("n", [2, 3, 5, 20])
def test_mean_interval_is_scipys(n: int, rng: np.random.Generator) -> None:
    x = rng.normal(0.6, 0.02, n)
    ours = stats.mean_interval(x)
    low, high = scipy_stats.t.interval(0.95, n - 1, loc=x.mean(), scale=scipy_stats.sem(x))
    assert (ours.mean, ours.low, ours.high) == pytest.approx((x.mean(), low, high), abs=1e-12)


def test_interval_of_two_values_in_closed_form() -> None:
    """Student's t with one degree of freedom is Cauchy: its quantile is a tangent."""
    ours = stats.mean_interval([0.50, 0.54])
    assert ours.half_width == pytest.approx(math.tan(math.pi * 0.475) * 0.02)


def test_one_value_has_no_interval_and_none_has_no_mean() -> None:
    one, none = stats.mean_interval([0.7]), stats.mean_interval([])
    assert one.mean == 0.7 and math.isnan(one.low) and math.isnan(one.high) and math.isnan(one.sd)
    assert none.n == 0 and math.isnan(none.mean)


def test_95_percent_of_intervals_hold_the_mean(rng: np.random.Generator) -> None:
    found = [stats.mean_interval(row) for row in rng.normal(0, 1, (2000, 4))]
    assert np.mean([i.low <= 0 <= i.high for i in found]) == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("n", [2, 3, 5, 12])
def test_paired_test_is_scipys(n: int, rng: np.random.Generator) -> None:
    a, b = rng.normal(0.6, 0.02, n), rng.normal(0.58, 0.02, n)
    ours, theirs = stats.paired_test(a, b), scipy_stats.ttest_rel(b, a)
    assert (ours.t, ours.p) == pytest.approx((theirs.statistic, theirs.pvalue))
    interval = theirs.confidence_interval()
    assert (ours.difference.low, ours.difference.high) == pytest.approx((interval.low, interval.high))


def test_paired_test_of_two_trials_in_closed_form() -> None:
    ours = stats.paired_test([0.5, 0.5], [0.4, 0.3])
    assert ours.t == pytest.approx(-3)
    assert ours.p == pytest.approx(1 - 2 / math.pi * math.atan(3))


def test_paired_test_removes_what_trials_share(rng: np.random.Generator) -> None:
    hard = rng.normal(0, 1, 5)
    assert stats.paired_test(hard, hard - 0.01 + rng.normal(0, 1e-4, 5)).p < 1e-4


def test_equal_differences_are_not_called_significant() -> None:
    assert math.isnan(stats.paired_test([0.5, 0.6], [0.4, 0.5]).p)
    assert stats.paired_test([0.5, 0.6], [0.5, 0.6]).p == 1
    assert math.isnan(stats.paired_test([0.5], [0.4]).p)
    assert stats.paired_test([], []).n == 0


def test_paired_test_wants_pairs() -> None:
    with pytest.raises(ValueError, match="one value per trial each, got 2 and 1"):
        stats.paired_test([1, 2], [1])


def test_holm_by_hand() -> None:
    """Holm's own procedure: the smallest times m, the next times m - 1, … never falling, at most 1."""
    assert stats.holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert stats.holm(np.array([0.5, 0.9])) == pytest.approx([1, 1])
    assert stats.holm(np.array([0.03])) == pytest.approx([0.03])
    assert stats.holm(np.array([])).size == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_holm_is_the_closed_test_of_bonferroni(p: list[float]) -> None:
    """Adjusted p = the largest Bonferroni p of any intersection of hypotheses that holds this one."""
    subsets = [s for r in range(1, len(p) + 1) for s in itertools.combinations(range(len(p)), r)]
    expected = [max(min(1, len(s) * min(p[j] for j in s)) for s in subsets if i in s) for i in range(len(p))]
    assert stats.holm(np.array(p)) == pytest.approx(expected)


def test_holm_leaves_out_tests_that_could_not_be_made() -> None:
    adjusted = stats.holm(np.array([0.01, math.nan, 0.02]))
    assert adjusted[[0, 2]] == pytest.approx([0.02, 0.02])
    assert math.isnan(adjusted[1])


@given(st.lists(st.integers(0, 6), min_size=1, max_size=12))
def test_ranks_are_scipys(values: list[int]) -> None:
    assert stats.ranks(values).tolist() == scipy_stats.rankdata(values).tolist()
    assert stats.ranks(values, "higher").tolist() == scipy_stats.rankdata([-v for v in values]).tolist()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_kendall_tau_is_scipys(pairs: list[tuple[int, int]]) -> None:
    x, y = zip(*pairs)
    assert stats.kendall_tau(x, y) == pytest.approx(scipy_stats.kendalltau(x, y).statistic, nan_ok=True)


def test_kendall_tau_in_closed_form() -> None:
    """One swap of neighbours among n: 1 - 4 / (n (n - 1))."""
    assert stats.kendall_tau([1, 2, 3, 4, 5], [1, 2, 4, 3, 5]) == pytest.approx(1 - 4 / 20)
    assert stats.kendall_tau([1, 2, 3], [3, 2, 1]) == -1
    assert math.isnan(stats.kendall_tau([1, 1], [1, 2]))
    assert math.isnan(stats.kendall_tau([1], [1]))


@pytest.mark.parametrize("n", [9, 11, 30])
def test_spearman_is_scipys(n: int, rng: np.random.Generator) -> None:
    x = rng.integers(0, 20, n)
    y = x + rng.integers(0, 15, n)
    theirs = scipy_stats.spearmanr(x, y)
    assert stats.spearman(x, y) == pytest.approx((theirs.statistic, theirs.pvalue))


def test_spearman_of_few_points_is_exact() -> None:
    """Three points in order: 2 of the 6 orders are as extreme. The usual approximation would say p = 0."""
    assert stats.spearman([1, 2, 3], [2, 5, 9]) == pytest.approx((1, 2 / 6))
    rho, p = stats.spearman([1, 2, 3, 4], [1, 3, 2, 4])
    as_extreme = sum(
        abs(scipy_stats.spearmanr([1, 2, 3, 4], order).statistic) >= 0.8 - 1e-9
        for order in itertools.permutations([1, 2, 3, 4])
    )
    assert (rho, p) == pytest.approx((0.8, as_extreme / 24))
    assert all(map(math.isnan, stats.spearman([1, 1, 1], [1, 2, 3])))


@pytest.mark.parametrize("n", [3, 8, 15])
def test_linear_fit_is_scipys(n: int, rng: np.random.Generator) -> None:
    x = rng.uniform(0, 1, n)
    y = 0.3 + 0.5 * x + rng.normal(0, 0.05, n)
    ours, theirs = stats.linear_fit(x, y), scipy_stats.linregress(x, y)
    assert (ours.slope, ours.intercept, ours.r2, ours.p) == pytest.approx(
        (theirs.slope, theirs.intercept, theirs.rvalue**2, theirs.pvalue)
    )
    at_zero = scipy_stats.t.ppf(0.975, n - 2) * theirs.intercept_stderr
    assert ours.band([0.0])[0] == pytest.approx(at_zero)


def test_linear_fit_says_nan_where_nothing_can_be_said() -> None:
    two = stats.linear_fit([0, 1], [1, 3])
    assert (two.slope, two.intercept) == (2, 1) and math.isnan(two.p) and np.isnan(two.band([0.5])).all()
    assert math.isnan(stats.linear_fit([1, 1, 1], [1, 2, 3]).slope)
    assert math.isnan(stats.linear_fit([1], [1]).slope) and math.isnan(stats.linear_fit([], []).slope)
    assert math.isnan(stats.linear_fit([1, 2, 3], [5, 5, 5]).r2)


@given(st.lists(st.tuples(floats, floats), min_size=0, max_size=6))
def test_linear_fit_never_fails(pairs: list[tuple[float, float]]) -> None:
    fit = stats.linear_fit([x for x, _ in pairs], [y for _, y in pairs])
    assert fit.n == len(pairs)
    assert math.isnan(fit.r2) or -1e-6 <= fit.r2 <= 1 + 1e-9
    assert math.isnan(fit.p) or 0 <= fit.p <= 1
