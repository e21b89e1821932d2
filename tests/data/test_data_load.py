"""load, Dataset and the generated shapes."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from helpers.image_files import make_cub, write_image
from helpers.shared_data import shared_data

from roarfast.data import DataError, Dataset, default_root, load


def test_import_needs_no_torch():
    code = "import sys, roarfast, roarfast.data; roarfast.data.load('shapes', 'test', n=3); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_shapes_are_deterministic_balanced_and_masked():
    data = load("shapes", "train", n=300)
    assert data.images.shape == (300, 32, 32, 3)
    assert data.num_classes == 10
    assert np.bincount(data.labels, minlength=10).tolist() == [30] * 10
    again = load("shapes", "train", n=120)
    np.testing.assert_array_equal(again.images, data.images[:120])
    np.testing.assert_array_equal(again.masks, data.masks[:120])
    assert not np.array_equal(load("shapes", "train", n=10, seed=1).images, data.images[:10])
    assert not np.array_equal(load("shapes", "test", n=10).images, data.images[:10])
    area = data.masks.mean((1, 2))
    assert area.min() > 0.02
    assert area.max() < 0.5


def test_shapes_objects_stand_out_from_their_background():
    data = load("shapes", "test", n=200)
    inside = np.array([x[m].mean(0) for x, m in zip(data.images, data.masks)])
    outside = np.array([x[~m].mean(0) for x, m in zip(data.images, data.masks)])
    distance = np.abs(inside - outside).max(1)
    assert np.median(distance) > 40
    assert (distance > 10).mean() > 0.95


def test_digits():
    train, test = load("digits", "train"), load("digits", "test")
    assert train.image_shape == (8, 8, 1)
    assert len(train) + len(test) == 1797
    assert train.images.max() == 255


def test_npz_and_statistics(tmp_path):
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (20, 6, 5, 3), dtype=np.uint8), np.arange(20) % 3
    np.savez(tmp_path / "a.npz", images=images, labels=labels, class_names=np.array(["x", "y", "z"]))
    data = load(tmp_path / "a.npz", "all")
    assert data.class_names == ("x", "y", "z")
    np.testing.assert_allclose(data.mean, images.reshape(-1, 3).mean(0) / 255, rtol=1e-12)
    np.testing.assert_allclose(data.std, images.reshape(-1, 3).std(0) / 255, rtol=1e-12)
    assert len(load(tmp_path / "a.npz", "all", n=7)) == 7
    assert data.data_hash == Dataset(images.copy(), labels, ("p", "q", "r")).data_hash
    changed = images.copy()
    changed[3, 2, 1, 0] ^= 1
    assert data.data_hash != Dataset(changed, labels, ("x", "y", "z")).data_hash


def test_real_cifar_and_cub_files():
    cifar = load(shared_data("cifar10_test_2k.npz"), "all")
    assert cifar.images.shape == (2000, 32, 32, 3)
    assert cifar.class_names[0] == "airplane"
    train = load(shared_data("cub20_224_jpeg.npz"), "train", n=8)
    assert train.images.shape == (8, 224, 224, 3)
    assert train.boxes.shape == (8, 4)


def test_image_folder(tmp_path):
    for split, count in (("train", 3), ("test", 2)):
        for label in ("cat", "dog"):
            for i in range(count):
                write_image(tmp_path / split / label / f"{i}.png", colour=(i, 0, 200 if label == "dog" else 100))
    data = load(tmp_path, "train")
    assert data.images.shape == (6, 10, 12, 3)
    assert data.class_names == ("cat", "dog")
    assert data.images[data.labels == 1][..., 2].min() == 200
    assert len(load(tmp_path, "all")) == 10
    with pytest.raises(DataError, match="no split 'val'; it has test, train"):
        load(tmp_path, "val")
    assert load(tmp_path, "test", size=8).images.shape == (4, 8, 8, 3)


def test_images_of_different_size_need_a_size(tmp_path):
    write_image(tmp_path / "a" / "1.png", (10, 10))
    write_image(tmp_path / "a" / "2.png", (11, 10))
    with pytest.raises(DataError, match=r"another size: .*2\.png is 11x10.*Pass size="):
        load(tmp_path, "all")
    assert load(tmp_path, "all", size=6).images.shape == (2, 6, 6, 3)


def test_cub_layout(tmp_path):
    make_cub(tmp_path)
    train = load("cub200", "train", root=tmp_path, size=10)
    assert len(train) == 1
    assert train.class_names == ("001.A", "002.B")
    # 40x20 → 20x10, the centre square starts at column 5: the box 12..22 x 2..10 becomes 1..6 x 1..5.
    np.testing.assert_allclose(train.boxes, [[1, 1, 6, 5]])
    test = load("cub200", "test", root=tmp_path, size=10)
    assert test.labels.tolist() == [1, 0]
    (tmp_path / "CUB_200_2011" / "classes.txt").unlink()
    with pytest.raises(DataError, match=r"has no classes\.txt"):
        load("cub200", "train", root=tmp_path)


@pytest.mark.parametrize("name", ["cifar10", "svhn", "cub200"])
def test_missing_data_says_where_and_how(tmp_path, name):
    if name != "cub200":
        pytest.importorskip("torchvision" if name == "none" else "torch")
    with pytest.raises(FileNotFoundError, match="looked for") as caught:
        load(name, "train", root=tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "Download" in str(caught.value) or "download=True" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_missing_path(tmp_path):
    with pytest.raises(FileNotFoundError, match="no dataset at"):
        load(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match="known names: shapes"):
        load("shape")
    (tmp_path / "x.txt").write_text("hello")
    with pytest.raises(DataError, match="neither a folder"):
        load(tmp_path / "x.txt")


def test_damaged_npz(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, images=np.zeros((4, 3, 3, 3), np.uint8), labels=np.zeros(4, np.int64))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match="not a readable"):
        load(path, "all")
    np.savez(path, pictures=np.zeros(3))
    with pytest.raises(DataError, match="must hold labels"):
        load(path, "all")
    np.savez(path, jpeg=np.zeros(9, np.uint8), offsets=np.array([0, 5, 10]), labels=np.zeros(2, np.int64))
    with pytest.raises(DataError, match="offsets do not fit"):
        load(path, "all")
    np.savez(path, jpeg=np.zeros(10, np.uint8), offsets=np.array([0, 5, 10]), labels=np.zeros(2, np.int64))
    with pytest.raises(DataError, match="cannot decode image"):
        load(path, "all")


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (np.zeros((2, 4, 4, 3)), [0, 1], "images must be uint8"),
        (np.zeros((2, 4, 4), np.uint8), [0, 1], r"images must be uint8 \[N, H, W, C\]"),
        (np.zeros((2, 4, 4, 3), np.uint8), [0, 2], "label out of range: image 1 has label 2, but there are 2 classes"),
        (np.zeros((2, 4, 4, 3), np.uint8), [-1, 0], "image 0 has label -1"),
        (np.zeros((2, 4, 4, 3), np.uint8), [0], "2 images but 1 labels"),
        (np.zeros((2, 4, 4, 3), np.uint8), [0.5, 1.0], "labels must be integers"),
    ],
)
def test_bad_datasets(images, labels, message):
    with pytest.raises(DataError, match=message):
        Dataset(images, np.array(labels), ("a", "b"))


def test_default_root_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("ROARFAST_DATA", str(tmp_path))
    assert default_root() == tmp_path
    monkeypatch.delenv("ROARFAST_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_root() == tmp_path / "roarfast" / "data"
    assert os.path.isabs(default_root())
