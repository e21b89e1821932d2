"""What a reader of own images must hear: what was left out, what is too small, what cannot be done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roarfast.data import DataError, Dataset, load, write_pack
from roarfast.data.checks import split_warnings
from roarfast.data.load import has_splits

RNG = np.random.default_rng(4)


def images(n: int, h: int = 8, w: int = 8, c: int = 3) -> Any:
    return RNG.integers(0, 256, (n, h, w, c), dtype=np.uint8)


def write_images(folder: Path, n: int = 2, h: int = 8) -> Path:
    Image = pytest.importorskip("PIL.Image")
    folder.mkdir(parents=True, exist_ok=True)
    for i, image in enumerate(images(n, h)):
        Image.fromarray(image).save(folder / f"{i}.png")
    return folder


def test_a_dataset_is_shown_in_one_line() -> None:
    data = Dataset(images(3), np.array([0, 1, 1]), tuple("abcdefg"), name="mine", split="train")
    assert repr(data) == "Dataset('mine', 'train': 3 images of 8x8x3, 7 classes: a, b, c, d, e …)"
    assert repr(load("shapes", "test", n=10)).endswith("plus …, masks)")


def test_an_image_size_that_arrays_do_not_have_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=images(4), labels=np.arange(4))
    assert load(tmp_path / "a.npz", "all", size=8).image_shape == (8, 8, 3)
    with pytest.raises(
        DataError, match=r"size=64 \(data.image_size in a study\) scales image files, but .*arrays of 8x8"
    ):
        load(tmp_path / "a.npz", "all", size=64)
    with pytest.raises(DataError, match="arrays of 8x8"):
        load("digits", "train", size=28)
    write_images(tmp_path / "flat" / "cat")
    write_pack(tmp_path / "flat", tmp_path / "flat.pack", 8)
    with pytest.raises(DataError, match=r"flat\.pack has arrays of 8x8"):
        load(tmp_path / "flat.pack", "all", size=16)


def test_more_images_than_there_are_is_noted(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=images(4), labels=np.arange(4))
    data = load(tmp_path / "a.npz", "all", n=99999)
    assert data.notes == ("99999 all images were asked for, and there are 4: all of them are used",)
    assert data.notes[0] in split_warnings(data, Dataset(images(4), np.arange(4), tuple("0123")))
    assert load(tmp_path / "a.npz", "all", n=4).notes == load(tmp_path / "a.npz", "all", n=3).notes == ()


def test_a_folder_without_splits_says_where_to_put_them(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        write_images(tmp_path / "photos" / name)
    with pytest.raises(DataError) as error:
        load(tmp_path / "photos", "train")
    for words in ("its folders are classes", "photos/train", "photos/test", "data.train and data.test"):
        assert words in str(error.value)
    assert not has_splits(tmp_path / "photos") and len(load(tmp_path / "photos", "all")) == 4


def test_other_names_of_splits_can_be_given_one_by_one(tmp_path: Path) -> None:
    for split in ("train", "val"):
        for name in ("cat", "dog"):
            write_images(tmp_path / "photos" / split / name)
    assert has_splits(tmp_path / "photos") and not has_splits(tmp_path / "photos" / "val")
    with pytest.raises(DataError, match=r"it has train, val\..*data.test = \"photos/val\""):
        load(tmp_path / "photos", "test")
    pytest.importorskip("pydantic")
    from roarfast.study import images as study_images
    from roarfast.study.schema_training import DataConfig

    config = DataConfig(name="mine", root=str(tmp_path), train="photos/train", test="photos/val")
    train, test = study_images.load_data(config)
    assert len(train) == len(test) == 4 and train.class_names == ("cat", "dog")


def test_a_pack_knows_whether_it_has_splits(tmp_path: Path) -> None:
    write_images(tmp_path / "flat" / "cat")
    write_images(tmp_path / "split" / "train" / "cat")
    for name in ("flat", "split"):
        write_pack(tmp_path / name, tmp_path / f"{name}.pack", 8)
    assert [has_splits(tmp_path / f"{name}.pack") for name in ("flat", "split")] == [False, True]


def test_what_a_folder_leaves_out_is_noted(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write_images(tmp_path / split / "cat")
    (tmp_path / "train" / "empty").mkdir()
    write_images(tmp_path / "test")
    train, test = (load(tmp_path, split) for split in ("train", "test"))
    assert train.class_names == ("cat",) and len(test) == 2
    found = "\n".join(split_warnings(train, test))
    assert f"{tmp_path / 'train' / 'empty'} has no images, so it is no class" in found
    assert f"2 images lie in {tmp_path / 'test'} itself, in no folder of a class, and are left out (0.png …)" in found
    assert found.count("no class") == 1, "said once, though both splits noticed"


def test_a_class_of_one_image_is_named() -> None:
    train = Dataset(images(5), np.array([0, 0, 1, 2, 2]), ("a", "b", "c"))
    test = Dataset(images(3), np.arange(3), ("a", "b", "c"))
    assert split_warnings(train, test) == ["one train image is all there is of 'b': a class is not learnt from one"]


def test_python_objects_are_refused_without_advice_to_unpickle(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.array([{"a": 1}, None], object), labels=np.arange(2))
    with pytest.raises(DataError, match=r"images holds Python objects, which are not read") as error:
        load(tmp_path / "a.npz", "all")
    assert "allow_pickle" not in str(error.value)
