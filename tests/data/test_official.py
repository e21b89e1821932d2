"""MNIST, Fashion-MNIST and CIFAR-100: files generated in their official formats."""

import gzip
import struct

import numpy as np
import pytest

from roarfast.data import load
from roarfast.data.official import ink_boxes, read_idx


def idx(array):
    return b"\x00\x00\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def digits(n=7, seed=0):
    rng = np.random.default_rng(seed)
    images = np.zeros((n, 28, 28), np.uint8)
    for image in images:
        y, x = rng.integers(0, 20, 2)
        image[y : y + 8, x : x + 6] = rng.integers(0, 256, (8, 6))
    return images, rng.integers(0, 10, n).astype(np.uint8)


@pytest.mark.parametrize("name, folder", [("mnist", "MNIST"), ("fashion", "FashionMNIST")])
@pytest.mark.parametrize("split, prefix", [("train", "train"), ("test", "t10k")])
@pytest.mark.parametrize("packed", [False, True])
def test_idx(tmp_path, name, folder, split, prefix, packed):
    images, labels = digits()
    place = tmp_path / folder / "raw"
    place.mkdir(parents=True)
    for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
        raw = idx(array)
        file = place / f"{prefix}-{kind}-ubyte"
        if packed:
            file.with_name(file.name + ".gz").write_bytes(gzip.compress(raw))
        else:
            file.write_bytes(raw)
    data = load(name, split, tmp_path)
    np.testing.assert_array_equal(data.images[..., 0], images)
    np.testing.assert_array_equal(data.labels, labels)
    assert data.num_classes == 10 and data.boxes.shape == (7, 4)
    assert load(name, split, tmp_path, n=3).images.shape == (3, 28, 28, 1)


def test_our_idx_is_what_torchvision_reads(tmp_path):
    from roarfast._torchvision import import_torchvision

    datasets = import_torchvision("datasets")
    images, _ = digits()
    (tmp_path / "x").write_bytes(idx(images))
    np.testing.assert_array_equal(datasets.mnist.read_image_file(str(tmp_path / "x")).numpy(), images)
    np.testing.assert_array_equal(read_idx(tmp_path / "x"), images)


def test_boxes_by_search():
    images, _ = digits(40)
    images[3] = 0
    for image, (x0, y0, x1, y1) in zip(images, ink_boxes(images)):
        ys, xs = np.nonzero(image)
        expected = (xs.min(), ys.min(), xs.max() + 1, ys.max() + 1) if len(xs) else (0, 0, 0, 0)
        assert (x0, y0, x1, y1) == expected


def test_cifar100(tmp_path):
    rng = np.random.default_rng(0)
    planes = rng.integers(0, 256, (5, 3, 32, 32), np.uint8)
    coarse, fine = rng.integers(0, 20, (5, 1), np.uint8), rng.integers(0, 100, (5, 1), np.uint8)
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    (folder / "test.bin").write_bytes(np.concatenate([coarse, fine, planes.reshape(5, -1)], 1).tobytes())
    (folder / "fine_label_names.txt").write_text("\n".join(f"class{i}" for i in range(100)) + "\n")
    data = load("cifar100", "test", tmp_path)
    np.testing.assert_array_equal(data.images, planes.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(data.labels, fine[:, 0])
    assert data.class_names[42] == "class42"


@pytest.mark.parametrize("name", ["mnist", "fashion", "cifar100"])
def test_missing(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=rf"{name} not found: looked for .*download=True"):
        load(name, "train", tmp_path)
    with pytest.raises(ValueError, match="split must be 'train' or 'test', got 'all'"):
        load(name, "all", tmp_path)


@pytest.mark.parametrize(
    "raw, message",
    [
        (b"\x00\x00\x08\x01" + struct.pack(">I", 9) + b"12", r"damaged: its header says \(9,\), it holds 2 bytes"),
        (b"hello", "not an IDX file of bytes"),
        (b"", "not an IDX file of bytes"),
        (b"\x1f\x8bxx", "is damaged"),
    ],
)
def test_damaged_idx(tmp_path, raw, message):
    (tmp_path / "x").write_bytes(raw)
    with pytest.raises(ValueError, match=message):
        read_idx(tmp_path / "x")


def test_damaged_cifar100(tmp_path):
    (tmp_path / "cifar-100-binary").mkdir()
    (tmp_path / "cifar-100-binary" / "train.bin").write_bytes(b"123")
    with pytest.raises(ValueError, match="3 bytes are no whole number of records of 3074"):
        load("cifar100", "train", tmp_path)
