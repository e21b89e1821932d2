"""Datasets of torch and torchvision, read item by item."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from roarfast.data import DataError
from roarfast.data.torch_dataset import from_torch, make_torch

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(5)
WANTED = RNG.integers(0, 256, (6, 5, 7, 3), dtype=np.uint8)


def planes() -> Any:
    return torch.from_numpy(WANTED).permute(0, 3, 1, 2)


@pytest.mark.parametrize("form", ["array", "uint8 tensor", "float tensor", "pillow"])
def test_every_usual_form_gives_the_same_bytes(form: str) -> None:
    if form == "array":
        items: Any = list(WANTED)
    elif form == "pillow":
        items = [pytest.importorskip("PIL.Image").fromarray(image) for image in WANTED]
    else:
        items = planes() if form == "uint8 tensor" else planes().float() / 255
    data = from_torch([(image, i % 2) for i, image in enumerate(items)], "mine", "train")
    np.testing.assert_array_equal(data.images, WANTED)
    np.testing.assert_array_equal(data.labels, [0, 1, 0, 1, 0, 1])
    assert (data.name, data.split, data.class_names) == ("mine", "train", ("0", "1"))


def test_tensor_datasets_and_names_of_classes() -> None:
    source = torch.utils.data.TensorDataset(planes(), torch.arange(6) % 3)
    source.classes = ["a", "b", "c", "d"]
    data = from_torch(source, n=4)
    np.testing.assert_array_equal(data.images, WANTED[:4])
    assert data.class_names == ("a", "b", "c", "d")
    grey = from_torch([(WANTED[0, ..., 0], 0)])
    assert grey.image_shape == (5, 7, 1)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (iter([]), r"must have a length and items .* got list_iterator"),
        ([], r"has no items"),
        ([WANTED[0]], r"mine\[0\] must be \(image, label\), got ndarray of uint8 \(5, 7, 3\)"),
        ([("a.png", 0)], r"mine\[0\]: the image must be a Pillow image, an array or a tensor, got str"),
        ([(WANTED[0], 0), (WANTED[1], "cat")], r"mine\[1\]: the label must be a class number from 0, got 'cat'"),
        ([(WANTED[0], 0.5)], r"the label must be a class number from 0, got 0\.5"),
        ([(WANTED[0], -1)], r"the label must be a class number from 0, got -1"),
        ([(WANTED[0].astype(np.int32), 0)], r"must be uint8, or floats in \[0, 1\], got ndarray of int32"),
        ([(WANTED[0] / 127.5 - 1, 0)], r"leave out Normalize, a study normalises"),
        ([(np.full((5, 7, 3), np.nan), 0)], r"floats must lie in \[0, 1\]"),
        ([(WANTED[0].transpose(2, 0, 1), 0)], r"must be \[H, W, C\] with at most 4 channels"),
        ([(WANTED[0], 0), (WANTED[1, :3], 0)], r"image of another size: mine\[1\] is 7x3"),
    ],
)
def test_what_cannot_be_read_is_named(items: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_torch(items, "mine")


class ByTrain:
    def __init__(self, root: str, train: bool = True, transform: Any = None, download: bool = False) -> None:
        self.given = (root, train, download)


class BySplit:
    def __init__(self, split: str) -> None:
        if split not in ("train", "val"):
            raise RuntimeError("no such part")
        self.given = split


def test_classes_like_those_of_torchvision_are_made() -> None:
    assert make_torch(ByTrain, "x:ByTrain", "test", "data", True).given == ("data", False, True)
    assert make_torch(BySplit, "x:BySplit", "train", None, False).given == "train"
    with pytest.raises(DataError, match=r"x:ByTrain needs data\.root"):
        make_torch(ByTrain, "x:ByTrain", "test", None, False)
    with pytest.raises(DataError, match=r"x:BySplit\(split='test'\): RuntimeError: no such part"):
        make_torch(BySplit, "x:BySplit", "test", None, False)
    with pytest.raises(DataError, match=r"takes neither train= nor split="):
        make_torch(lambda root: None, "x:f", "test", "data", False)
