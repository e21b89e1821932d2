"""The four lines of the README with every score: models that are wrong, inputs that are no images, nothing at all."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from roarfast import metrics  # noqa: E402
from roarfast.metrics.record import _BUILTIN  # noqa: E402

QUICK = {
    "road": "road",
    "deletion": "deletion",
    "insertion": "insertion",
    "pixel_flipping": "pixel_flipping",
    "reference_flipping": "reference_flipping",
    "completeness": "completeness",
    "soundness": "soundness(step=0.1)",
    "sensitivity_n": "sensitivity_n(draws=4)",
    "faithfulness_correlation": "faithfulness_correlation(draws=4)",
    "infidelity": "infidelity(draws=2)",
    "f_fidelity": "f_fidelity(draws=1, sizes=(0.3, 0.6))",
    "average_drop": "average_drop",
}


def problem(n: int = 9, size: int = 8):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (n, 3, size, size), dtype=np.uint8)
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Dropout(0.5), nn.Linear(4 * (size - 2) ** 2, 3)
    )
    return net, images, rng.random((n, size, size)).astype(np.float32), rng.integers(0, 3, n)


def test_every_score_is_here() -> None:
    assert set(QUICK) == set(_BUILTIN)


@pytest.mark.parametrize("name", QUICK.values())
def test_a_model_in_training_mode_is_put_back(name) -> None:
    """Neither dropout nor the statistics of batch normalisation move, and a model that fails is put back, too."""
    net, images, maps, y = problem()
    net.train()
    net[1].eval()
    before = {key: value.clone() for key, value in net.state_dict().items()}
    values = [next(iter(metrics.evaluate(net, images, maps, labels=y, metrics=[name]).values())).value for _ in "ab"]
    assert values[0] == values[1] and np.isfinite(values[0])
    net.add_module("broken", Broken())
    with pytest.raises(KeyError, match="broken"):
        metrics.evaluate(net, images, maps, labels=y, metrics=[name])
    del net.broken
    assert net.training and net[3].training and not net[1].training and net[0].weight.requires_grad
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())


class Broken(nn.Module):
    def forward(self, x):
        raise KeyError("broken")


@pytest.mark.parametrize("name", QUICK.values())
def test_models_and_labels_that_do_not_fit(name) -> None:
    net, images, maps, y = problem()
    cases = [
        (ValueError, "logits are NaN or infinite for sample 0", lambda x: net(x) * float("nan"), y),
        (ValueError, r"labels must be in \[0, 3\), the model's classes, got 0 to 3", net, np.minimum(np.arange(9), 3)),
        (ValueError, r"labels must be in \[0, 3\), the model's classes, got -1 to", net, y - (y == y.min()) * (1 + y)),
        (TypeError, "model must return a tensor of logits", lambda x: (net(x), x), y),
        (ValueError, r"model must return logits \[\d+, classes\], got shape", lambda x: net(x)[:, 0], y),
        (ValueError, "at least 2 classes, got 1", lambda x: net(x)[:, :1], y),
        (TypeError, "labels must be integers", net, y.astype(float)),
        (TypeError, "model must be a torch.nn.Module or a function to logits, got str", "resnet18", y),
    ]
    net.eval()
    for kind, message, model, labels in cases:
        with pytest.raises(kind, match=message):
            metrics.evaluate(model, images, maps, labels=labels, metrics=[name])
    with pytest.raises(ValueError, match="images are on cpu, the model is on meta: move one of them"):
        metrics.evaluate(problem()[0].to("meta"), torch.from_numpy(images), maps, labels=y, metrics=[name])


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("kind", ["features", "series", "series per channel"])
def test_features_and_series(name, kind) -> None:
    """Every score has a value without images; those that impute refuse by name, and take another fill."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((10, 20) if kind == "features" else (10, 2, 20)) * 5
    maps = rng.random((10, 2, 20) if kind == "series per channel" else (10, 20))
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(x[0].size, 3))
    score = QUICK[name]
    if name == "road":
        with pytest.raises(ValueError, match=f"fill='linear' needs images: {kind.split()[0]} have no neighbours"):
            metrics.evaluate(net, x, maps, labels=rng.integers(0, 3, 10), metrics=["road"])
        score = "road(fill=dataset_mean)"
    options = {"labels": rng.integers(0, 3, 10), "metrics": [score], "resamples": 20}
    scores = metrics.evaluate(net, x, maps, baselines=["random", "center", "constant"], **options)
    assert list(scores[score]) == ["map", "random", "center", "constant"]
    assert np.isfinite(scores[score]["map"].value) and np.isfinite(scores[score]["random"].value)
    assert ("channels by" in str(scores)) == (kind == "series per channel")
    with pytest.raises(ValueError, match="the baseline 'sobel' needs images"):
        metrics.evaluate(net, x, maps, baselines="sobel", **options)


@pytest.mark.parametrize("name", QUICK.values())
def test_no_images(name) -> None:
    """NaN, and no warning of a division."""
    net, images, maps, y = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = metrics.evaluate(net, images[:0], maps[:0], labels=y[:0], metrics=[name])
        result = next(iter(scores.values())).only
        text = str(scores)
    assert np.isnan(result.value) and np.isnan([result.low, result.high]).all() and result.per_class.shape == (0,)
    assert all(np.isnan(curve.value).all() for curve in result.curves.values()) and "0 images" in text


def test_a_figure_is_shown_in_a_notebook_without_pyplot() -> None:
    pytest.importorskip("matplotlib")
    net, images, maps, y = problem()
    figure = metrics.evaluate(net, images, maps, labels=y, metrics=["deletion", "infidelity"], resamples=20).plot()
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_mistakes_are_found_before_the_model_is_asked() -> None:
    net, images, maps, y = problem()
    asked = []
    net.register_forward_hook(lambda *_: asked.append(1))
    for message, options in (
        ("metrics must be different from each other, got 'road' twice", {"metrics": ["road", "deletion", "road"]}),
        ("there is no score 'rod'", {"metrics": ["road", "rod"]}),
        ("baselines must be among", {"metrics": ["road"], "baselines": ["edges"]}),
        ("resamples must be an integer >= 0, got -1", {"metrics": ["road"], "resamples": -1}),
        ("resamples must be an integer >= 0, got 0.5", {"metrics": ["road"], "resamples": 0.5}),
    ):
        with pytest.raises(ValueError, match=message):
            metrics.evaluate(net, images, maps, labels=y, **options)
    assert not asked
