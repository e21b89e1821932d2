"""Closed forms: linear and quadratic models, where every estimator is known."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.explain_nets import Linear, Quadratic, images, one_thread, seeded, torch  # noqa: F401

import roarfast as rf
from roarfast.explain import Aggregation, Explainer, Options, explain
from roarfast.explain.moments import Moments
from roarfast.explain.quadrature import METHODS, quadrature

RAW = "none(raw)"
X = images(5, size=4, dtype=torch.float64)
EXACT = {"rtol": 1e-6, "atol": 1e-9}  # noise is float32, everything else float64


def close(a, b):
    torch.testing.assert_close(a, b, **EXACT)


def noise(x, options, seed=0):
    """The noise of every copy, `[copies, N, C, H, W]`, by the definition of the reference."""
    from roarfast.reference.philox_normal import philox_normal

    ids = np.arange(len(x))
    draws = [philox_normal(ids, x.shape[1:], seed, j) for j in range(options.noise_samples)]
    level = 1.0 if options.noise_absolute else (x.flatten(1).amax(1) - x.flatten(1).amin(1)).reshape(-1, 1, 1, 1)
    return torch.from_numpy(np.stack(draws)).to(x.dtype) * options.noise * level


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_linear_model(batch_size):
    model = seeded(Linear)
    w = model.weight.detach()[model(X).argmax(1)]
    options = Options(ig_baseline=(0.1, 0.2, 0.3), ig_steps=5, noise_samples=4)
    names = ["grad", "grad^2", "gi", "ig", "gb", "sg", "sg^2", "sg-sq", "vg", "sg(gi)", "vg(gi)", "sg(ig)", "vg(gb)"]
    maps = explain(model, X, names, options=options, aggregate=RAW, batch_size=batch_size)
    baseline = torch.tensor([0.1, 0.2, 0.3], dtype=X.dtype).reshape(3, 1, 1)
    e = noise(X, options)
    for name in ("grad", "gb", "sg"):
        close(maps[name], w)
    for name in ("grad^2", "sg^2", "sg-sq"):
        close(maps[name], w**2)
    close(maps["gi"], w * X)
    close(maps["ig"], w * (X - baseline))
    close(maps["vg"], torch.zeros_like(w))
    close(maps["vg(gb)"], torch.zeros_like(w))
    close(maps["sg(gi)"], w * (X + e.mean(0)))
    close(maps["vg(gi)"], w**2 * e.var(0, unbiased=False))
    close(maps["sg(ig)"], w * (X + e.mean(0) - baseline))


def test_quadratic_model():
    model = seeded(Quadratic)
    w = model.weight.detach()[model(X).argmax(1)]
    options = Options(noise=0.3, noise_absolute=True, noise_samples=7)
    names = ["grad", "gi", "ig", "sg", "sg-sq", "vg", "vg^2", "sg-sq(ig)"]
    maps = explain(model, X, names, options=options, aggregate=RAW, batch_size=8)
    points = X + noise(X, options)
    close(maps["grad"], w * X)
    close(maps["gi"], w * X**2)
    close(maps["ig"], w * X**2 / 2)
    close(maps["sg"], w * points.mean(0))
    close(maps["sg-sq"], (w * points).square().mean(0))
    close(maps["vg"], (w * points).var(0, unbiased=False))
    close(maps["vg^2"], (w * points).var(0, unbiased=False) ** 2)
    close(maps["sg-sq(ig)"], (w * points**2 / 2).square().mean(0))


def test_paper_preset_takes_absolute_values_before_averaging():
    model = seeded(Quadratic)
    x = X - 0.5
    options = Options.paper(noise_samples=6, ig_steps=4)
    maps = explain(model, x, ["ig", "sg", "sg-sq", "vg"], options=options, aggregate=RAW)
    w = model.weight.detach()[model(x).argmax(1)]
    points = x + noise(x, options)
    close(maps["sg"], (w * points).abs().mean(0))
    close(maps["sg-sq"], (w * points).square().mean(0))
    close(maps["vg"], (w * points).abs().var(0, unbiased=True))
    close(maps["ig"], x * (w * x).abs() * (0 + 1 / 4 + 2 / 4 + 3 / 4) / 4)


@pytest.mark.parametrize("method", METHODS)
def test_quadrature_weights_and_exactness(method):
    nodes, weights = quadrature(method, 6)
    assert weights.sum() == pytest.approx(1)
    assert ((nodes >= 0) & (nodes <= 1)).all()
    degree = {"left": 0, "right": 0, "middle": 1, "trapezoid": 1, "gausslegendre": 11}[method]
    for power in range(degree + 1):
        assert weights @ nodes**power == pytest.approx(1 / (power + 1))


@pytest.mark.parametrize("target, labels", [(2, None), ("label", [0, 1, 2, 0, 1]), ("predicted", None)])
def test_targets(target, labels):
    model = seeded(Linear)
    classes = {2: torch.full((5,), 2), "predicted": model(X).argmax(1)}.get(target)
    classes = torch.tensor(labels) if labels else classes
    for names in (["grad"], ["sg"], ["ig"]):  # alone, each must find the target by itself
        maps = explain(model, X, names, target=target, labels=labels, aggregate=RAW)
        a = maps[names[0]]
        close(a, model.weight.detach()[classes] * (X if names == ["ig"] else 1))


@pytest.mark.parametrize("target, labels", [(3, None), (-1, None), ("label", [0, 1, 2, 3, 0])])
def test_a_class_that_does_not_exist(target, labels):
    with pytest.raises(ValueError, match=r"target must be in \[0, 2\], got (3|-1)"):
        explain(seeded(Linear), X, "grad", target=target, labels=labels)


@pytest.mark.parametrize("reduce, expected", [("mean", 4 / 3), ("sum", 4), ("max", 3), ("l2", 10**0.5)])
def test_aggregation(reduce, expected):
    a = torch.tensor([1.0, -3.0, 0.0]).reshape(1, 3, 1, 1)
    assert Aggregation.parse(f"{reduce}(abs)")(a).item() == pytest.approx(expected)
    assert str(Aggregation.parse(reduce)) == f"{reduce}(abs)"


def test_aggregation_of_raw_squared_and_positive_values():
    a = torch.tensor([1.0, -3.0]).reshape(1, 2, 1, 1)
    assert Aggregation.parse("sum(raw)")(a).item() == -2
    assert Aggregation.parse("max(raw)")(a).item() == 1
    assert Aggregation.parse("mean(squared)")(a).item() == 5
    assert Aggregation.parse("none(squared)")(a).flatten().tolist() == [1, 9]
    assert Aggregation.parse("sum(positive)")(a).item() == 1
    assert rf.aggregate_channels(a.numpy(), "none(positive)").flatten().tolist() == [1, 0]
    assert np.isnan(Aggregation.parse("sum(positive)")(torch.full((1, 1, 1, 1), np.nan)).item())
    for bad in ("median", "mean(cubed)", "mean abs", ""):
        with pytest.raises(ValueError, match="aggregate must"):
            Aggregation.parse(bad)


def test_squares_are_taken_before_channels_are_aggregated():
    model = seeded(Linear)
    w = model.weight.detach()[model(X).argmax(1)]
    maps = explain(model, X, ["grad", "grad^2"])
    close(maps["grad"], w.abs().mean(1))
    close(maps["grad^2"], w.square().mean(1))


def test_small_variance_keeps_its_digits():
    moments = Moments(second=True)
    values = [torch.tensor([1e4 + d], dtype=torch.float32) for d in (0.0, 0.5, 1.0)]
    for value in values:
        moments.add(value)
    assert moments.variance().item() == pytest.approx(1 / 6, rel=1e-3)
    assert moments.variance(unbiased=True).item() == pytest.approx(1 / 4, rel=1e-3)


def test_sobel_is_scipys_of_the_channel_mean():
    ndimage = pytest.importorskip("scipy.ndimage")
    model = seeded(Linear)
    grey = X.mean(1).numpy()
    dy, dx = (np.stack([ndimage.sobel(a, axis) for a in grey]) for axis in (0, 1))
    for axis, expected in ((-1, dx), (-2, dy), ("magnitude", np.hypot(dx, dy))):
        maps = explain(model, X, ["sobel", "sobel^2"], options=Options(sobel_axis=axis))
        np.testing.assert_allclose(maps["sobel"], np.abs(expected), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(maps["sobel^2"], expected**2, rtol=1e-9, atol=1e-12)


def test_random_maps_depend_on_seed_and_sample_only():
    model = seeded(Linear)
    first = explain(model, X, ["rand", "nested_block"], seed=3)
    again = explain(model, X[2:4] * 0, ["rand", "nested_block"], seed=3, index=[2, 3], batch_size=1)
    other = explain(model, X, ["rand", "nested_block"], seed=4)
    for name in ("rand", "nested_block"):
        assert torch.equal(first[name][2:4], again[name])
        assert not torch.equal(first[name], other[name])
        assert first[name].min() >= 0 and first[name].max() <= 1


def test_block_map_is_a_rectangle_at_every_level():
    maps = explain(seeded(Linear), torch.zeros(20, 3, 16, 12), "nested_block")["nested_block"]
    for a in maps.numpy():
        for level in np.unique(a):
            rows, columns = np.nonzero(a >= level)
            height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
            assert height * width == len(rows)
            assert abs(height / 16 - width / 12) <= 1 / 12 + 1 / 16 + 1e-6  # the aspect ratio of the image
    # Uniform position: the mean over many images of a small rectangle's centre is the image's centre.
    many = explain(seeded(Linear), torch.zeros(4000, 3, 8, 8), "nested_block", batch_size=4000)["nested_block"]
    peak = many.flatten(1).argmax(1)
    assert abs((peak // 8).double().mean() - 3.5) < 5 * 2.3 / 4000**0.5


def test_block_at_one_rate():
    maps = explain(seeded(Linear), torch.zeros(3, 3, 16, 16), "nested_block", options=Options(block_drop=0.25), seed=5)
    expected = rf.block_random((3, 16, 16), 0.25, seed=5)
    np.testing.assert_array_equal(maps["nested_block"].numpy() > 0, np.asarray(expected))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"ig_steps": 0}, "ig_steps must be at least 1, got 0"),
        ({"ig_steps": 1, "ig_method": "trapezoid"}, "ig_steps must be at least 2"),
        ({"ig_method": "simpson"}, "ig_method must be one of 'left'"),
        ({"ig_baseline": "black"}, "ig_baseline must be one of"),
        ({"noise": -1}, "noise must be >= 0"),
        ({"noise_samples": 1, "vg_unbiased": True}, "noise_samples must be at least 2"),
        ({"input_range": (1, 0)}, "input_range must be"),
        ({"sobel_axis": 0}, "sobel_axis must be one of -1, -2, 'magnitude'"),
        ({"block_drop": 30}, "block_drop must be in \\[0, 1\\], got 30"),
    ],
)
def test_bad_options(settings, message):
    with pytest.raises(ValueError, match=message):
        Options(**settings)


@pytest.mark.parametrize(
    "x, settings, error, message",
    [
        (X.numpy(), {}, TypeError, "x must be a torch tensor"),
        (X[0], {}, ValueError, r"x must be images \[N, C, H, W\]"),
        (torch.zeros(1, 3, 4, 4, dtype=torch.uint8), {}, TypeError, "floating-point"),
        (X, {"index": [1, 2]}, ValueError, "one sample id per image"),
        (X, {"index": [0.5] * 5}, TypeError, "index must be integers"),
        (X, {"target": "label"}, ValueError, "labels must be given"),
        (X, {"target": "truth"}, ValueError, "target must be 'predicted'"),
        (X, {"batch_size": 0}, ValueError, "batch_size must be"),
        (X, {"seed": -1}, ValueError, "seed must be"),
        (X, {"aggregation": "sum(abs)"}, TypeError, "no argument 'aggregation': write aggregate="),
        (X, {"aggregate": "sum(abc)"}, ValueError, "aggregate must look like"),
    ],
)
def test_bad_arguments(x, settings, error, message):
    with pytest.raises(error, match=message):
        explain(seeded(Linear), x, "grad", **settings)


def test_models_that_do_not_return_logits():
    with pytest.raises(ValueError, match=r"must return logits \[5, classes\], got \(5, 3, 4, 4\)"):
        explain(torch.nn.Identity(), X, "grad")
    with pytest.raises(TypeError, match=r"model must be a torch\.nn\.Module"):
        Explainer(lambda x: x, "grad")


def test_no_images():
    maps = explain(seeded(Linear), X[:0], ["grad", "rand"])
    assert maps["grad"].shape == (0, 4, 4)
