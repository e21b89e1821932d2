"""Completeness with thresholds of the maps' own values, of their maximum, and of their 99th percentile."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from roarfast import metrics  # noqa: E402

RATES = tuple(k / 10 for k in range(1, 10))


def problem(n: int = 40, features: int = 300):
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    return nn.Linear(features, 3), rng.standard_normal((n, features)), rng.random((n, features)), rng.integers(0, 3, n)


def complete(maps, scale, given=None, **options):
    net, x, _, y = given or problem()
    score = metrics.get_score("completeness", scale=scale, fill=0.0)
    return metrics.evaluate(net, x, maps, labels=y, metrics=[score], resamples=20, **options)[score.name].only


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_a_number_is_a_threshold_of_values(dtype) -> None:
    """Li et al.: attribution above t goes, t = 0.9 … 0.1."""
    net, x, a, y = problem()
    a = (a * np.linspace(0.2, 1.5, 40)[:, None]).astype(dtype)
    for top in (1.0, 0.5):
        result = complete(a, top)
        for j, rate in enumerate(RATES):
            gone = a.astype(np.float64) > (1 - rate) * top
            with torch.no_grad():
                right = net(torch.from_numpy(np.where(gone, 0, x)).float()).argmax(1).numpy() == y
                whole = net(torch.from_numpy(x).float()).argmax(1).numpy() == y
            assert result.details["removed"][j] == pytest.approx(gone.mean())
            assert result.curve.value[j] == pytest.approx(whole.mean() - right.mean())
        assert result.curve.x_label == f"threshold (of {top})"


def test_maps_that_are_scaled_score_alike() -> None:
    """Relative thresholds do not see the scale of a map; for maps in [0, 1] that reach 1 both are one."""
    _, _, a, _ = problem()
    a = np.round(a / a.max(1, keepdims=True) * 256) / 256
    top = complete(a, "max")
    np.testing.assert_array_equal(complete(a, 1.0).per_image, top.per_image)
    for scale in ("max", "p99"):
        np.testing.assert_array_equal(complete(4 * a, scale).per_image, complete(a, scale).per_image)
    assert (complete(4 * a, 1.0).details["removed"] > top.details["removed"]).all()


def test_percentile_is_of_each_map_and_mends_the_outlier() -> None:
    _, _, a, _ = problem()
    a = a.astype(np.float64)
    result = complete(a, "p99")
    top = np.percentile(a, 99, axis=1, keepdims=True)
    for j, rate in enumerate(RATES):
        assert result.details["removed"][j] == pytest.approx((a > (1 - rate) * top).mean())
    spiked = a.copy()
    spiked[:, 0] = 1000
    assert complete(spiked, "max").details["removed"].max() < 0.01
    changed = np.abs(complete(spiked, "p99").details["removed"] - result.details["removed"])
    assert changed.max() < 0.01


def test_segments_and_maps_of_zeros() -> None:
    net, x, a, y = problem()
    parts = np.arange(300) // 3
    means = a.reshape(40, 100, 3).mean(2).repeat(3, 1)
    for scale in (0.7, "p99"):
        np.testing.assert_array_equal(complete(a, scale, segments=parts).per_image, complete(means, scale).per_image)
    result = complete(np.zeros_like(a), 1.0)
    assert result.value == 0 and (result.details["removed"] == 0).all()
    assert "40 maps are 0 everywhere: nothing of them is removed" in result.notes
    assert "40 maps are constant: all or nothing of them is removed" in complete(np.full_like(a, 0.5), 1.0).notes
    empty = complete(a[:0], "p99", (net, x[:0], a, y[:0]))
    assert np.isnan(empty.value)


def test_bad_input() -> None:
    _, _, a, _ = problem()
    for scale in ("mean", 0.0, -1, True, float("nan")):
        with pytest.raises(ValueError, match="scale must be 'max', 'p99' or a number > 0, got"):
            complete(a, scale)
