"""Agreement of scores: Kendall's tau, its interval, and how often chance is flagged."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("scipy")

from roarfast.metrics.agreement import agreement, interval


def table(values: np.ndarray) -> dict[str, list[float]]:
    """`[maps, trials]` by map."""
    return {f"map {i}": row.tolist() for i, row in enumerate(values)}


def kendall(a: np.ndarray, b: np.ndarray) -> float:
    """Of numbers without ties, by its definition."""
    pairs = [(i, j) for i in range(len(a)) for j in range(i)]
    return sum(np.sign((a[i] - a[j]) * (b[i] - b[j])) for i, j in pairs) / len(pairs)


def test_tau_is_that_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((9, 2)), rng.random((9, 2))
    found = agreement({"x": table(x), "y": table(y), "minus x": table(-x)})
    assert found.tau[0, 1] == found.tau[1, 0] == pytest.approx(kendall(x.mean(1), y.mean(1)))
    assert found.tau[0, 2] == -1 and found.flagged[0, 2] and not found.flagged.diagonal().any()
    assert found.between_trials[0] == pytest.approx(kendall(x[:, 0], x[:, 1]))
    assert (found.maps == 9).all()
    low, high = found.low[0, 1], found.high[0, 1]
    assert -1 < low < found.tau[0, 1] < high < 1


def test_random_maps_are_flagged_in_at_most_seven_percent_of_pairs() -> None:
    rng = np.random.default_rng(1)
    flags = [agreement({n: table(rng.random((14, 2))) for n in "ab"}).flagged[0, 1] for _ in range(1000)]
    assert 0.02 <= np.mean(flags) <= 0.07


def test_the_interval_covers() -> None:
    """Gaussian pairs with correlation r have tau = 2 / pi * asin(r)."""
    rng = np.random.default_rng(2)
    truth, hits = 2 / np.pi * np.arcsin(0.6), 0
    for _ in range(400):
        a = rng.standard_normal(20)
        b = 0.6 * a + 0.8 * rng.standard_normal(20)
        found = agreement({"a": table(a[:, None]), "b": table(b[:, None])})
        hits += found.low[0, 1] <= truth <= found.high[0, 1]
    assert 0.90 <= hits / 400 <= 0.99


def test_few_maps_and_missing_values() -> None:
    a = agreement({"x": {"m": [1.0], "n": [2.0]}, "y": {"m": [1.0], "n": [float("nan")]}, "z": {}})
    assert np.isnan(a.tau[0, 1]) and a.maps[0, 1] == 1 and not a.flagged.any()
    assert np.isnan(a.between_trials).all()
    assert np.isnan(interval(0.5, 4)).all() and np.isnan(interval(1.0, 20)).all()
