"""Parts of the damage and equal damage: arithmetic by hand, worlds with a known answer, coverage of intervals."""

import numpy as np
import pytest

import roarfast as rf
from roarfast.metrics.damage_curve import common_low, equal_damage, excess
from roarfast.metrics.damage_parts import join, split, summarise
from roarfast.metrics.damage_plot import plot_parts
from roarfast.metrics.nulls import null_maps
from roarfast.metrics.worlds import LinearModels

RATES = (0.15, 0.3, 0.5)


def arms_of(world, x, y, noise=0.0, own=0, other=1, seed=0):
    """base [N], own, shape_null, image_null [R, N] of the contributions of a model, in the linear world."""
    a = world.maps(x, own, noise, seed)
    codes = {
        "own": a,
        "shape_null": null_maps(a, "swap", seed=seed),
        "image_null": world.maps(x, other, noise, seed + 1 if noise else 0),
    }
    values = {name: world.correct(x, y, own, rf.rank_codes(m, RATES, ndim=1), len(RATES)) for name, m in codes.items()}
    return (x @ world.weights[own] > 0) == (y == 1), values


def parts_of(world, x, y, **options):
    base, values = arms_of(world, x, y, **options)
    return split(base, **values)


def test_parts_add_up():
    world = LinearModels.sharing(0.5)
    s = parts_of(world, *world.draw(500, 1))
    total = sum(s.part(name) for name in ("shape", "image", "model"))
    np.testing.assert_allclose(total, s.part("damage"), atol=1e-15)


def test_the_model_part_grows_with_what_is_not_shared():
    """0 to the bit for shared weights; then rising."""
    found = []
    for shared in (1.0, 0.9, 0.6, 0.2):
        world = LinearModels.sharing(shared, seed=3)
        s = parts_of(world, *world.draw(40_000, 1))
        found.append(float(s.part("model").mean()))
        if shared == 1:
            assert (s.part("model") == 0).all()
    assert found == sorted(found) and found[-1] > 0.05, found


def test_noise_on_maps_lowers_image_and_model_parts():
    world = LinearModels.sharing(0.3, seed=3)
    x, y = world.draw(40_000, 1)
    sums = [
        tuple(float(parts_of(world, x, y, noise=noise).part(p).mean()) for p in ("image", "model"))
        for noise in (0, 1, 4, 1000)
    ]
    images, models = zip(*sums)
    assert list(images) == sorted(images, reverse=True) and list(models) == sorted(models, reverse=True), sums
    assert abs(images[-1]) < 0.01 and abs(models[-1]) < 0.01  # pure noise knows nothing: only shape is left


def test_model_free_maps_have_no_model_part_and_random_ones_no_image_part():
    world = LinearModels.sharing(0.3, seed=3)
    x, y = world.draw(4000, 1)
    random = np.random.default_rng(0).random(x.shape).astype(np.float32)
    codes = rf.rank_codes(random, RATES, ndim=1)
    own = world.correct(x, y, 0, codes, 3)
    swapped = world.correct(x, y, 0, null_maps(codes, "swap"), 3)
    base = (x @ world.weights[0] > 0) == (y == 1)
    table = summarise({"rand": split(base, own, swapped, own)}, rates=RATES)
    assert table["rand"].model.value == table["rand"].model.low == table["rand"].model.high == 0
    assert table["rand"].p == table["rand"].p_holm == 1
    assert abs(table["rand"].image.value) < 2 * table["rand"].image.error


@pytest.mark.slow
def test_intervals_cover():
    """95 % intervals of each part hold the truth (400,000 samples) in 92 to 98 % of 300 draws of 400 images."""
    world = LinearModels.sharing(0.4, seed=3)
    truth = {p: float(parts_of(world, *world.draw(400_000, 99)).part(p).mean()) for p in ("shape", "image", "model")}
    hits = dict.fromkeys(truth, 0)
    for draw in range(300):
        row = summarise({"gi": parts_of(world, *world.draw(400, 1000 + draw))}, resamples=600, seed=draw)["gi"]
        for name, value in truth.items():
            estimate = getattr(row, name)
            hits[name] += estimate.low <= value <= estimate.high
    coverage = {name: count / 300 for name, count in hits.items()}
    assert all(0.92 <= c <= 0.98 for c in coverage.values()), coverage


def test_area_has_both_ends():
    s = split([1.0], [[0.5]], [[0.5]], [[0.5]], rates=[0.5], empty=[0.0], average="area")
    assert s.own[0, 0] == pytest.approx(0.5)  # (1 + .5) / 2 * .5 + (.5 + 0) / 2 * .5
    with pytest.raises(ValueError, match="needs rates and empty"):
        split([1.0], [[0.5]], [[0.5]], [[0.5]], average="area")


def test_trials_are_another_source_of_variation():
    world = LinearModels.sharing(0.3, models=3, seed=4)
    x, y = world.draw(2000, 1)
    tables = [summarise({"gi": parts_of(world, x, y, own=z, other=(z + 1) % 3)}) for z in range(3)]
    joined = join(tables)
    assert joined.trials == 3 and joined.images == 2000
    means = [t["gi"].model.value for t in tables]
    assert joined["gi"].model.value == pytest.approx(np.mean(means))
    over = joined["gi"].over_trials["model"]
    assert over.error == pytest.approx(np.std(means, ddof=1) / np.sqrt(3))
    assert np.isnan(tables[0]["gi"].over_trials["model"].low)  # one trial gives no interval


def test_powers_of_maps_change_nothing():
    world = LinearModels.sharing(0.3, seed=3)
    x, _ = world.draw(300, 1)
    a = np.abs(world.maps(x, 0)).astype(np.float64)
    one, two = (rf.rank_codes(m, RATES, ndim=1) for m in (a, a**2))
    np.testing.assert_array_equal(one, two)


def test_table_and_figure():
    world = LinearModels.sharing(0.3, seed=3)
    x, y = world.draw(300, 1)
    table = summarise({"gi": parts_of(world, x, y), "noisy": parts_of(world, x, y, noise=2)}, rates=RATES)
    text = str(table)
    assert "gi" in text and "noisy" in text and "300 images" in text
    assert list(table.to_dataframe().index) == ["gi", "noisy"]
    assert "<pre>" in table._repr_html_()
    figure = plot_parts(table)
    bars = figure.axes[0].patches
    heights = np.array([bar.get_height() for bar in bars]).reshape(3, 2)
    np.testing.assert_allclose(heights.sum(0), [100 * table[n].damage.value for n in ("gi", "noisy")], atol=1e-9)
    with pytest.raises(KeyError, match="no estimator 'ig'; there are gi, noisy"):
        table["ig"]


def test_equal_damage_by_hand():
    own = np.array([[1, 0, 0, 0], [0, 0, 0, 0]])
    null = np.array([[1, 1, 1, 0], [1, 0, 0, 0]])
    curve = equal_damage(own, null, np.ones(4), resamples=0)
    assert curve.score.value == pytest.approx((0.5 * (0.25 + 0.5) / 2 + 0.25 * 0.5 / 2) / 0.75)
    assert equal_damage(own, null, np.ones(4), low=0.5, resamples=0).score.value == pytest.approx(
        ((0.375 + 0.5) / 2 * 0.25 + 0.25 * 0.5 / 2) / 0.5
    )
    assert np.isnan(equal_damage(own, null, np.ones(4), low=0.1, resamples=0).score.value)  # never reached


def test_equal_damage_of_a_null_is_zero():
    rng = np.random.default_rng(0)
    null = rng.random((5, 300)) < np.linspace(0.8, 0.2, 5)[:, None]
    assert equal_damage(null, null, np.ones(300)).score.value == pytest.approx(0, abs=1e-12)


def test_moving_along_the_curve_does_not_change_the_score():
    """Other rates of the same curve: equal damage stays, raw accuracy does not."""
    t = np.linspace(0.02, 0.98, 49)
    own, null = (1 - t) ** 2, 1 - t
    stretched = t**0.5
    a = equal_damage(own[:, None], null[:, None], [1.0], low=0.2, resamples=0).score.value
    b = equal_damage(((1 - stretched) ** 2)[:, None], (1 - stretched)[:, None], [1.0], low=0.2, resamples=0).score.value
    assert a == pytest.approx(b, abs=2e-3)
    assert a == pytest.approx(np.mean([x - x**2 for x in np.linspace(0.2, 1, 2001)]), abs=2e-3)


def test_null_accuracy_that_rises_is_pooled():
    own, null = np.array([[0.6], [0.5], [0.1]]), np.array([[0.7], [0.8], [0.3]])
    curve = equal_damage(own, null, [1.0], resamples=0)
    np.testing.assert_allclose(curve.null, [0.3, 0.75, 1.0])
    np.testing.assert_allclose(curve.own, [0.1, 0.55, 1.0])


def test_tensors_of_answers_work_as_arrays_do():
    torch = pytest.importorskip("torch")
    own, null = np.array([[1.0, 0, 0, 0], [0, 0, 0, 0]]), np.array([[1.0, 1, 1, 0], [1, 0, 0, 0]])
    tensors = [torch.from_numpy(a) for a in (own, null, np.ones(4))]
    expected = equal_damage(own, null, np.ones(4), resamples=0).score.value
    assert equal_damage(*tensors, resamples=0).score.value == expected
    assert common_low([tensors[1]], tensors[2]) == common_low([null], np.ones(4))
    assert np.array_equal(excess(*tensors[:2]), excess(own, null))


def test_common_range():
    nulls = [np.array([[0.8], [0.4]]), np.array([[0.6], [0.1]])]
    assert common_low(nulls, [1.0]) == pytest.approx(0.4)


def test_excess_is_signed():
    own, null = np.array([[0.2, 0.4]]), np.array([[0.5, 0.5]])
    assert excess(own, null)[0] == pytest.approx(0.2)
    assert excess(own, null, better="higher")[0] == pytest.approx(-0.2)
    with pytest.raises(ValueError, match="better must be 'lower' or 'higher', got 'up'"):
        excess(own, null, better="up")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: split([1, 1], [[1, 1]], [[1, 1, 1]], [[1, 1]]), r"shape_null must be \[R, N\] or \[T, R, N\]"),
        (lambda: split([1, 1], [[1, 1]], [[1, 1]], [[1, 1], [0, 0]]), "same rates"),
        (lambda: split([1], [[1]], [[1]], [[1]], average="max"), "average must be one of mean, area, got 'max'"),
        (lambda: summarise({}), "at least one estimator"),
        (lambda: summarise({"a": split([1], [[1]], [[1]], [[1]])}), "at least two images, got 1"),
        (lambda: equal_damage([[1.0]], [[1.0]]), "base must be given"),
        (lambda: equal_damage([1.0], [1.0], [1.0]), r"null must be Responses or values \[R, N\]"),
    ],
)
def test_bad_inputs(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_no_common_range_is_said():
    from roarfast.metrics.damage import equal_damages

    own = {"a": np.array([[0.6], [0.1]]), "harmless": np.array([[0.9], [0.8]])}
    null = {"a": np.array([[0.7], [0.3]]), "harmless": np.array([[1.0], [1.0]])}
    with pytest.warns(UserWarning, match="the null of 'harmless' does no damage, so equal damage is undefined"):
        curves = equal_damages(own, null, [1.0], resamples=0)
    assert np.isnan(curves["a"].score.value)
    assert equal_damages({"a": own["a"]}, {"a": null["a"]}, [1.0], resamples=0)["a"].score.value > 0
