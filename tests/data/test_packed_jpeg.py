"""Encoded images in one array of an `.npz` file: decoded by split and size, and what is wrong said by image."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PIL")
from PIL import Image

from roarfast.data import load
from roarfast.data.dataset import DataError
from tests.helpers.shared_data import shared_data


def encoded(image: np.ndarray[Any, Any], kind: str = "JPEG") -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, kind, quality=95)
    return buffer.getvalue()


def flat(colour: int, wh: tuple[int, int] = (24, 16)) -> np.ndarray[Any, Any]:
    return np.full((wh[1], wh[0], 3), colour, np.uint8)


def packed(parts: list[bytes], **more: Any) -> dict[str, Any]:
    """The arrays of a file with these images, four of every five for training."""
    n = len(parts)
    arrays = {
        "jpeg": np.frombuffer(b"".join(parts), np.uint8),
        "offsets": np.cumsum([0, *map(len, parts)]).astype(np.int64),
        "labels": np.arange(n) % 2,
        "is_train": np.arange(n) % 5 != 4,
        "class_names": np.array(["finch", "gull"]),
    }
    return arrays | more


def saved(path: Path, arrays: dict[str, Any]) -> Path:
    np.savez(path / "birds.npz", **{name: value for name, value in arrays.items() if value is not None})
    return path / "birds.npz"


PARTS = [encoded(flat(20 * i)) for i in range(10)]


def test_splits_sizes_and_names(tmp_path: Path) -> None:
    path = saved(tmp_path, packed(PARTS))
    train, test, both = (load(path, split) for split in ("train", "test", "all"))
    assert train.images.shape == (8, 16, 24, 3)
    assert test.images.shape == (2, 16, 24, 3)
    assert train.class_names == ("finch", "gull")
    np.testing.assert_array_equal(test.labels, [0, 1])
    np.testing.assert_array_equal(np.rint(test.images.mean((1, 2, 3))), [80, 180])  # images 4 and 9
    np.testing.assert_array_equal(both.images[both.labels == 1], both.images[1::2])
    assert load(path, "train", size=8).images.shape == (8, 8, 8, 3)
    assert len(load(path, "train", n=3)) == 3


def test_images_are_those_of_the_files(tmp_path: Path) -> None:
    """The same bytes in a folder of files give the same pixels, scaled or not."""
    rng = np.random.default_rng(0)
    parts = [encoded(rng.integers(0, 256, (30, 40, 3), dtype=np.uint8)) for _ in range(6)]
    for i, part in enumerate(parts):
        file = tmp_path / "folder" / ("finch", "gull")[i % 2] / f"{i}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(part)
    path = saved(tmp_path, packed(parts))
    for size in (None, 20):
        ours, theirs = load(path, "all", size=size), load(tmp_path / "folder", "all", size=size)
        order = np.argsort(ours.labels, kind="stable")
        np.testing.assert_array_equal(ours.images[order], theirs.images)
        np.testing.assert_array_equal(ours.labels[order], theirs.labels)


def test_without_is_train_there_are_no_splits(tmp_path: Path) -> None:
    path = saved(tmp_path, packed(PARTS, is_train=None))
    assert len(load(path, "all")) == 10
    with pytest.raises(DataError, match="does not say which of its images are for training"):
        load(path, "train")


def test_boxes_move_with_the_images(tmp_path: Path) -> None:
    parts = [encoded(flat(90, (40, 20))), encoded(flat(90, (20, 20)))]
    boxes = np.array([[12, 2, 22, 10], [2, 4, 10, 20]])
    path = saved(tmp_path, packed(parts, bbox_xyxy=boxes))
    # 40x20 becomes 20x10, of which the middle ten columns begin at 5.
    moved = load(path, "all", size=10).boxes
    assert moved is not None
    np.testing.assert_allclose(moved, [[1, 1, 6, 5], [1, 2, 5, 10]])
    same = saved(tmp_path, packed(parts[1:], bbox_xyxy=boxes[1:]))
    np.testing.assert_array_equal(load(same, "all").boxes, boxes[1:])


def test_sizes_that_differ_are_named_and_scaled_away(tmp_path: Path) -> None:
    path = saved(tmp_path, packed([*PARTS[:3], encoded(flat(9, (25, 16)))]))
    with pytest.raises(DataError, match=r"image 3 of .*birds\.npz is 25x16, image 0 of .* is 24x16\. Pass size="):
        load(path, "all")
    assert load(path, "all", size=16).images.shape == (4, 16, 16, 3)


ENDS = packed(PARTS)["offsets"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": ENDS[[0, 2, 1, *range(3, 11)]]}, r"offsets must ascend, but image 1 would be the bytes"),
        ({"offsets": ENDS[[0, 1, 1, *range(3, 11)]].astype(np.uint64)}, r"must ascend, but image 1 .* 1 such images"),
        ({"offsets": ENDS[[0, 2, 1, *range(3, 11)]].astype(np.uint64)}, r"must ascend, but image 1 "),
        ({"offsets": ENDS[:-1]}, r"one more than the labels, 11 for 10 images, got 10"),
        ({"offsets": ENDS + 3}, r"offsets do not fit the \d+ bytes of jpeg: they go from 3 to"),
        ({"offsets": ENDS - 3}, r"offsets do not fit the \d+ bytes of jpeg: they go from -3 to"),
        ({"offsets": np.append(ENDS[:-1], 2**62)}, r"they go from 0 to 4611686018427387904"),
        ({"offsets": ENDS.astype(float)}, r"offsets must be integers \[N \+ 1\], got float64"),
        ({"offsets": np.array(5)}, r"offsets must be integers \[N \+ 1\], got int64 of shape \(\)"),
        ({"jpeg": np.zeros((4, 4), np.uint8)}, r"jpeg must be uint8 \[bytes\], got uint8 of shape \(4, 4\)"),
        ({"jpeg": np.zeros(4, np.int8)}, r"jpeg must be uint8 \[bytes\], got int8"),
        ({"offsets": None}, r"must hold labels and either images or jpeg and offsets"),
        ({"is_train": np.ones(3, bool)}, r"is_train must be one bool per image, \[10\]"),
        ({"is_train": np.zeros(10, bool)}, r"no image is in this split"),
        ({"labels": np.zeros((10, 2), int)}, r"labels must be integers \[N\]"),
        ({"labels": np.arange(10)}, r"image 2 has label 2, but there are 2 classes"),
        ({"labels": np.arange(9) % 2, "is_train": np.ones(9, bool)}, r"10 for 9 images, got 11"),
        (
            {"bbox_xyxy": np.zeros((10, 3))},
            r"bbox_xyxy must be numbers \[N, 4\], \(10, 4\), got float64 of shape \(10, 3\)",
        ),
        ({"class_names": np.array(["a", "b"], object)}, r"class_names holds Python objects, which are not read"),
        ({"jpeg": np.array([b"a"] * 10, object)}, r"jpeg holds Python objects, which are not read"),
    ],
)
def test_what_does_not_fit_is_said(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = saved(tmp_path, packed(PARTS) | change)
    with pytest.raises(DataError, match=message) as caught:
        load(path, "train")
    assert "birds.npz" in str(caught.value)


@pytest.mark.parametrize(
    "damage", [lambda part: part[: len(part) // 2], lambda part: b"\0" * len(part), lambda part: part[2:]]
)
def test_a_damaged_image_is_named(tmp_path: Path, damage: Any) -> None:
    parts = [*PARTS[:6], damage(PARTS[6]), *PARTS[7:]]
    path = saved(tmp_path, packed(parts))
    with pytest.raises(DataError, match=r"birds\.npz: image 6: cannot decode image"):
        load(path, "train")
    assert len(load(path, "test")) == 2  # images of the other split are not looked at


@pytest.mark.parametrize("member", ["jpeg", "offsets", "labels", "whole"])
@pytest.mark.filterwarnings("ignore")
def test_random_damage_is_a_data_set_or_bad_data(tmp_path: Path, member: str) -> None:
    """Bytes changed at random in one of the arrays, or in the file as a whole: images, or an error that names the file."""
    rng = np.random.default_rng(2)
    arrays = packed(PARTS)
    path = saved(tmp_path, arrays)
    whole = path.read_bytes()
    for _ in range(150):
        if member == "whole":
            content = bytearray(whole)
            for place in rng.integers(0, len(whole), 6):
                content[int(place)] = int(rng.integers(256))
            path.write_bytes(bytes(content))
        else:
            raw = bytearray(arrays[member].tobytes())
            for place in rng.integers(0, len(raw), 4):
                raw[int(place)] = int(rng.integers(256))
            saved(tmp_path, arrays | {member: np.frombuffer(bytes(raw), arrays[member].dtype)})
        try:
            data = load(path, "train", size=8)
            assert data.images.shape[1:] == (8, 8, 3)
            assert len(data.images) == len(data.labels)
        except DataError as error:
            assert "birds.npz" in str(error)


def test_real_files() -> None:
    """The birds by split, the photos of ImageNet without one."""
    train, test = (load(shared_data("cub20_224_jpeg.npz"), split, size=32) for split in ("train", "test"))
    assert (len(train), len(test), train.num_classes) == (600, 578, 20)
    assert train.boxes is not None and train.boxes.min() >= 0 and train.boxes.max() <= 32
    photos = load(shared_data("imagenet1k_224_jpeg.npz"), "all")
    assert photos.images.shape == (1000, 224, 224, 3)
    assert photos.num_classes == 1000
