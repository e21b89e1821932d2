"""The presets of soundness and completeness, end to end on a few small images."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

from roarfast.report.build import build
from roarfast.study import Study
from roarfast.study.presets import PRESETS

# VGG-16's layers, by their numbers too, with a sixteenth of its channels and one small classifier.
NET = """\
import torch
from roarfast._torchvision import import_torchvision
import_torchvision()
from torchvision.models.vgg import VGG, cfgs, make_layers

def make(num_classes):
    net = VGG(make_layers([v if v == "M" else v // 16 for v in cfgs["D"]]), num_classes=2, init_weights=False)
    net.avgpool, net.classifier = torch.nn.AdaptiveAvgPool2d(1), torch.nn.Linear(32, num_classes)
    return net
"""


def changed(preset: str, *changes: tuple[str, str]) -> str:
    text = PRESETS[preset]
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def check(study: Study, protocols: set[str], estimators: set[str], steps: int = 97) -> None:
    """Every cell has a result, every curve a summary."""
    assert study.run(workers=1).failed == []
    results = study.results
    assert {c.protocol for c in results.curves} == protocols and {c.estimator for c in results.curves} == estimators
    for record in results:
        assert record.status == "done" and record.accuracy is not None and 0 <= record.accuracy <= 1
    for curve in results.curves:
        if curve.protocol == "soundness":
            assert len(curve.rates) == steps and (curve.score is None or curve.score <= 1)
        else:
            assert curve.score is not None and np.isfinite(curve.score)
        if curve.protocol == "completeness":
            assert np.isfinite(curve.details["excess"])


def test_imagenet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is trained; the weights are the file's, and Grad-CAM looks at VGG's last convolution."""
    (tmp_path / "small_vgg.py").write_text(NET)
    monkeypatch.syspath_prepend(tmp_path)
    import small_vgg  # type: ignore[import-not-found]

    torch.manual_seed(0)
    torch.save(small_vgg.make(3).state_dict(), tmp_path / "vgg16.pt")
    rng = np.random.default_rng(0)
    for split, count in (("train", 1), ("test", 2)):
        for name in ("ant", "bee", "cat"):
            folder = tmp_path / "images" / split / name
            folder.mkdir(parents=True)
            for k in range(count):
                Image.fromarray(rng.integers(0, 256, (36, 40, 3), np.uint8)).save(folder / f"{k}.png")
    text = changed(
        "soco-imagenet",
        ("torchvision.models:vgg16", "small_vgg:make"),
        ("image_size = 224", "image_size = 32"),
        ("ig_steps = 20", "ig_steps = 2"),
        ("noise_samples = 20", "noise_samples = 2"),
        ("examples = 6", "examples = 1"),
        ('device = "auto"', 'device = "cpu"'),
    )
    (tmp_path / "study.toml").write_text(text)
    study = Study.from_toml(tmp_path / "study.toml", tmp_path / "run")
    check(
        study,
        {"soundness", "completeness", "deletion", "insertion", "road"},
        {"ig", "sg(ig)", "sg-sq(ig)", "vg(ig)", "gc", "rand"},
    )
    assert study.results.meta["stage_seconds"]["training"] == 0
    assert {path.parent.name for path in (tmp_path / "run" / "maps").glob("*/*/*")} == {"test"}


def test_photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The preset on small photos with a small net: every protocol, null and captum's DeepLift."""
    pytest.importorskip("captum")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "net_of_photos.py").write_text(
        "from roarfast.train import build_model\n"
        "def make(num_classes):\n    return build_model('convnet', num_classes, 3, widths=[4, 4, 4, 4])\n"
    )
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "imagenet1k_224_jpeg.npz",
        images=rng.integers(0, 256, (12, 16, 16, 3), np.uint8),
        labels=np.arange(12) // 4,
    )
    text = changed(
        "imagenet-photos",
        ("roarfast.train.lite:efficientnet_lite", "net_of_photos:make"),
        ("test_size = 100", "test_size = 5"),
        ("ig_steps = 8", "ig_steps = 2"),
        ("noise_samples = 4", "noise_samples = 2"),
        ('device = "auto"', 'device = "cpu"'),
    )
    (tmp_path / "study.toml").write_text(text)
    study = Study.from_toml(tmp_path / "study.toml", tmp_path / "run", data_root=tmp_path)
    check(
        study,
        {"soundness", "completeness", "deletion", "insertion", "flip", "road"},
        {"ig", "sg(ig)", "sg-sq(ig)", "vg(ig)", "gc", "grad", "deeplift", "rand"},
        steps=8,
    )
    assert {r.null for r in study.results} == {"own", "swap"}
    tool = Path(__file__).resolve().parents[2] / "tools" / "photo_page.py"
    command = [sys.executable, str(tool), str(study.folder), "--data-root", str(tmp_path), "--out", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([*command, "--resamples", "20"], check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "README.md").read_text()
    assert "on 5 photos" in page and "| equal damage ↑ |" in page and (tmp_path / "curves.png").exists()


@pytest.mark.slow
def test_cifar10(tmp_path: Path) -> None:
    text = changed(
        "soco-cifar10",
        ('name = "cifar10"', 'name = "shapes"\ntrain_size = 60\ntest_size = 20'),
        ('name = "convnet"', 'name = "convnet"\noptions = { widths = [4, 4, 4, 4] }'),
        ('recipe = "quick"', 'recipe = "quick"\nepochs = 1\nbatch_size = 20'),
        ("trials = 2", "trials = 1"),
        ("ig_steps = 8", "ig_steps = 2"),
        ("noise_samples = 20", "noise_samples = 2"),
        ("examples = 6", "examples = 1"),
        ('device = "auto"', 'device = "cpu"'),
    )
    (tmp_path / "study.toml").write_text(text)
    study = Study.from_toml(tmp_path / "study.toml", tmp_path / "run")
    check(
        study,
        {"soundness", "completeness", "deletion", "insertion", "flip", "road"},
        {"ig", "sg(ig)", "sg-sq(ig)", "vg(ig)", "gc", "grad", "rand"},
    )
    assert "Scores without retraining" in build(study.folder).read_text()
