"""The preset `mnist-linear` at a tiny size: what is known of a linear model holds in its study."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pydantic")

from roarfast.explain import explain
from roarfast.study import Study
from roarfast.study.presets import PRESETS
from roarfast.train import build_model

CHANGES = (
    (
        'name = "mnist"        # the official files in data/MNIST/raw; or of your own: train = "a.npz", test = "b.npz"',
        'name = "bars"',
    ),
    ('root = "data"', 'root = "."\ntrain = "a.npz"\ntest = "b.npz"'),
    ("trials = 2 ", "trials = 1 "),
    ("epochs = 5 ", "epochs = 1 "),
    ('"sg-sq", "vg", "sobel^2"]', '"sobel^2"]'),
    ('["plain", "max(3)", "gaussian(1)"]', '["plain"]'),
)


def digits(path: Path, n: int) -> None:
    """Ten classes of 28x28 grey images: a bar at a height of its own, and noise."""
    rng = np.random.default_rng(n)
    images = rng.integers(0, 90, (n, 28, 28, 1), dtype=np.uint8)
    labels = np.arange(n) % 10
    for image, label in zip(images, labels):
        image[2 + 2 * label : 4 + 2 * label, 4:24] += np.uint8(120)
    np.savez(path, images=images, labels=labels)


def test_a_linear_model_explains_itself_alike(tmp_path: Path) -> None:
    """Integrated gradients are gradient x input: the same masks, the same accuracies."""
    text = PRESETS["mnist-linear"]
    for old, new in CHANGES:
        assert old in text, old
        text = text.replace(old, new)
    digits(tmp_path / "a.npz", 200)
    digits(tmp_path / "b.npz", 60)
    (tmp_path / "study.toml").write_text(text)
    study = Study.from_toml(tmp_path / "study.toml", tmp_path / "run")
    assert study.run(workers=1).failed == []
    for protocol in ("roar", "road"):
        gi, ig = (
            [r.accuracy for r in study.results.select(protocol=protocol, estimator=e, postprocess="plain")]
            for e in ("gi^2", "ig^2")
        )
        assert len(gi) == len(ig) >= 3
        assert gi == pytest.approx(
            ig, abs=1 / 60 + 1e-6
        )  # maps agree to rounding, which may order two pixels otherwise


def test_its_gradient_is_its_weights() -> None:
    model = build_model("linear", 3, 1, seed=0, size=(4, 5)).eval()
    x, labels = torch.rand(2, 1, 4, 5), torch.tensor([2, 0])
    maps = explain(model, x, ["grad"], labels=labels, target="label", aggregate="mean(raw)")["grad"]
    assert np.allclose(maps, model.fc.weight.detach().numpy()[labels].reshape(2, 4, 5))


def test_images_of_another_size_are_refused_by_name() -> None:
    model = build_model("linear", 3, 1, size=28)
    with pytest.raises(ValueError, match=r"images are 8x9, the model `linear` was made for 28x28"):
        model(torch.zeros(1, 1, 8, 9))
