"""Own images: splits, layouts and bit depths are read as meant, or refused; doubtful data is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.study_helpers import TINY

from roarfast.data import DataError, Dataset, load
from roarfast.data.checks import count_common, split_warnings
from roarfast.data.decode import decode_image
from roarfast.data.load import has_splits

RNG = np.random.default_rng(3)


def images(n: int, h: int = 8, w: int = 9, c: int = 3) -> Any:
    return RNG.integers(0, 256, (n, h, w, c), dtype=np.uint8)


def labels(n: int, classes: int = 3) -> Any:
    return np.arange(n) % classes


# splits of .npz files


def test_without_split_keys_no_split_is_invented(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, images=images(6), labels=labels(6))
    assert not has_splits(path) and len(load(path, "all")) == 6
    for split in ("train", "test"):
        with pytest.raises(DataError, match=r"is_train.*train_images, train_labels, test_images, test_labels"):
            load(path, split)


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64])
def test_is_train_separates(tmp_path: Path, kind: Any) -> None:
    path, a, b = tmp_path / "a.npz", images(6), labels(6)
    chosen = np.array([1, 0, 1, 1, 0, 1])
    np.savez(path, images=a, labels=b, is_train=chosen.astype(kind))
    train, test = load(path, "train"), load(path, "test")
    assert has_splits(path)
    np.testing.assert_array_equal(train.images, a[chosen == 1])
    np.testing.assert_array_equal(test.images, a[chosen == 0])
    np.testing.assert_array_equal(test.labels, b[chosen == 0])
    assert len(load(path, "all")) == 6


@pytest.mark.parametrize("wrong", [np.array([1, 0]), np.ones(6), np.array(["train"] * 6), np.ones((6, 1), bool)])
def test_is_train_must_fit(tmp_path: Path, wrong: Any) -> None:
    np.savez(tmp_path / "a.npz", images=images(6), labels=labels(6), is_train=wrong)
    with pytest.raises(DataError, match="is_train must be one bool per image"):
        load(tmp_path / "a.npz", "train")


def test_arrays_per_split(tmp_path: Path) -> None:
    path, a, b = tmp_path / "a.npz", images(6), images(4)
    parts = {"train_images": a, "train_labels": labels(6), "test_images": b, "test_labels": labels(4, 4)}
    np.savez(path, **parts)
    train, test, both = (load(path, split) for split in ("train", "test", "all"))
    np.testing.assert_array_equal(train.images, a)
    np.testing.assert_array_equal(test.images, b)
    np.testing.assert_array_equal(both.images, np.concatenate([a, b]))
    assert train.class_names == test.class_names == ("0", "1", "2", "3"), "of both splits together"
    np.savez(path, **parts, class_names=np.array(["a", "b", "c", "d"]))
    assert load(path, "train").class_names == ("a", "b", "c", "d")
    for missing in parts:
        np.savez(path, **{key: value for key, value in parts.items() if key != missing})
        with pytest.raises(DataError, match=f"it lacks {missing}"):
            load(path, "train")
    with pytest.raises(DataError, match="not 'validation'"):
        load(path, "validation")
    np.savez(path, **parts | {"test_images": images(4, 5)})
    with pytest.raises(DataError, match=r"train_images are \(8, 9, 3\), test_images \(5, 9, 3\)"):
        load(path, "all")


def test_arrays_nobody_needs_are_not_read(tmp_path: Path) -> None:
    """A header that promises more than any memory fails only if the array is wanted, and then as bad data."""
    import io
    import zipfile

    path = tmp_path / "a.npz"
    np.savez(path, images=images(2), labels=labels(2))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": (2, 1 << 30, 1 << 20)}
    )
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("extra.npy", header.getvalue() + b"short")
    assert len(load(path, "all")) == 2
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as file:
        file.writestr("images.npy", header.getvalue() + b"short")
        file.writestr("labels.npy", zipfile.ZipFile(path).read("labels.npy"))
    with pytest.raises(DataError, match="images"):
        load(tmp_path / "b.npz", "all")


def test_labels_that_are_no_class_numbers(tmp_path: Path) -> None:
    for wrong, message in (
        (np.array(["cat", "dog"]), "names of classes go to class_names"),
        (np.array([0.5, 1.0]), "labels must be integers"),
        (np.eye(2, dtype=np.int64), "labels must be integers"),
    ):
        np.savez(tmp_path / "a.npz", images=images(2), labels=wrong)
        with pytest.raises(DataError, match=message):
            load(tmp_path / "a.npz", "all")


# layouts


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_torch_order_is_refused_with_the_fix_and_read_when_named(tmp_path: Path, channels: int) -> None:
    path, nhwc = tmp_path / "a.npz", images(4, 8, 9, channels)
    np.savez(path, images=np.ascontiguousarray(nhwc.transpose(0, 3, 1, 2)), labels=labels(4))
    with pytest.raises(DataError, match=r"look like \[N, C, H, W\].*layout='NCHW'.*transpose\(0, 2, 3, 1\)"):
        load(path, "all")
    np.testing.assert_array_equal(load(path, "all", layout="NCHW").images, nhwc)
    np.savez(path, images=nhwc, labels=labels(4))
    np.testing.assert_array_equal(load(path, "all").images, nhwc)
    with pytest.raises(DataError, match="does not fit images of shape"):
        load(path, "all", layout="NCHW")


def test_layout_can_be_insisted_on_and_must_be_known(tmp_path: Path) -> None:
    path, signals = tmp_path / "a.npz", images(4, 1, 100, 12)
    np.savez(path, images=signals, labels=labels(4))
    np.testing.assert_array_equal(load(path, "all", layout="NHWC").images, signals)
    with pytest.raises(ValueError, match="layout must be 'NHWC' or 'NCHW', got 'HWCN'"):
        load(path, "all", layout="HWCN")
    with pytest.raises(ValueError, match=r"layout='NCHW' is for \.npz files"):
        load("shapes", "train", layout="NCHW")
    with pytest.raises(ValueError, match=r"layout='NCHW' is for \.npz files"):
        load(tmp_path, "train", layout="NCHW")
    np.savez(path, images=images(4)[..., 0], labels=labels(4))
    assert load(path, "all").image_shape == (8, 9, 1)


def test_wider_values_are_refused_in_arrays(tmp_path: Path) -> None:
    for kind in (np.uint16, np.float32):
        np.savez(tmp_path / "a.npz", images=images(2).astype(kind), labels=labels(2))
        with pytest.raises(DataError, match=r"images must be uint8 .* scale them to 0\.\.255 first"):
            load(tmp_path / "a.npz", "all")


# image files


@pytest.mark.parametrize("suffix", [".png", ".tif", ".pgm"])
def test_sixteen_bits_are_scaled(tmp_path: Path, suffix: str) -> None:
    Image = pytest.importorskip("PIL.Image")
    ramp = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    path = tmp_path / f"a{suffix}"
    Image.fromarray(ramp).save(path)
    got = decode_image(path)
    want = np.rint(ramp / 257).astype(np.uint8)
    np.testing.assert_array_equal(got, np.repeat(want[..., None], 3, 2))
    assert decode_image(path, 32).shape == (32, 32, 3)


def test_values_without_a_range_are_refused(tmp_path: Path) -> None:
    Image = pytest.importorskip("PIL.Image")
    for array, word in ((np.ones((4, 4), np.float32), "floats"), (np.ones((4, 4), np.int32), "32-bit integers")):
        Image.fromarray(array).save(tmp_path / "a.tif")
        with pytest.raises(DataError, match=rf"a\.tif has {word}, whose range is not known"):
            decode_image(tmp_path / "a.tif")


def test_grey_and_alpha_as_documented(tmp_path: Path) -> None:
    Image = pytest.importorskip("PIL.Image")
    grey, rgba = images(1, c=1)[0, ..., 0], images(1, c=4)[0]
    Image.fromarray(grey).save(tmp_path / "grey.png")
    np.testing.assert_array_equal(decode_image(tmp_path / "grey.png"), np.repeat(grey[..., None], 3, 2))
    Image.fromarray(rgba).save(tmp_path / "rgba.png")
    np.testing.assert_array_equal(decode_image(tmp_path / "rgba.png"), rgba[..., :3])
    Image.fromarray(rgba[..., :2]).save(tmp_path / "la.png")
    np.testing.assert_array_equal(decode_image(tmp_path / "la.png"), np.repeat(rgba[..., :1], 3, 2))


def test_an_image_that_would_fill_the_memory_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image = pytest.importorskip("PIL.Image")
    Image.fromarray(images(1, 40, 40)[0]).save(tmp_path / "big.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(DataError, match=r"cannot decode image .*big\.png"):
        decode_image(tmp_path / "big.png")


# doubtful data


def dataset(array: Any, label: Any, names: tuple[str, ...] = ("a", "b", "c"), **more: Any) -> Dataset:
    return Dataset(array, np.asarray(label), names, **more)


def test_common_images_are_counted() -> None:
    a, b = images(50), images(20)
    assert split_warnings(dataset(a, labels(50)), dataset(b, labels(20))) == []
    b[[3, 7, 9]] = a[[49, 0, 0]]
    train, test = dataset(a, labels(50)), dataset(b, labels(20))
    assert count_common(train, test) == 3
    assert split_warnings(train, test) == [
        "3 of 20 test images (15.00 %) are also train images: accuracy on them says little"
    ]
    assert count_common(train, train) == 50
    assert count_common(train, dataset(images(5, 4, 4), labels(5))) == 0
    blank = np.zeros_like(a)
    assert count_common(dataset(blank, labels(50)), dataset(blank[:7], labels(7))) == 7


def test_equal_checksums_of_unequal_images_are_no_match() -> None:
    a, b = images(4), images(4)
    same = np.full(4, 7, np.uint32)
    assert count_common(dataset(a, labels(4), checksums=same), dataset(b, labels(4), checksums=same)) == 0
    assert count_common(dataset(a, labels(4), checksums=same), dataset(a, labels(4), checksums=same)) == 4


def test_classes_without_images_are_named() -> None:
    found = split_warnings(dataset(images(4), [0, 0, 1, 1]), dataset(images(3), [0, 2, 2]))
    assert found == [
        "1 of 3 classes has no train image: 'c'",
        "1 of 3 classes has no test image: 'b'",
        "2 test images are of classes without train images: no model can get them right",
    ]
    found = split_warnings(dataset(images(4), [1] * 4), dataset(images(3), [1] * 3))
    assert found[0] == "all train images are of one class ('b'): there is nothing to learn"
    assert found[1] == "2 of 3 classes have no train image: 'a', 'c'"


# in a study


def write_study(folder: Path, data: str) -> Path:
    begin, end = TINY.index("[data]"), TINY.index("[model]")
    text = TINY[:begin] + f'[data]\nname = "mine"\n{data}\n' + TINY[end:]
    text = text.replace('["roar", "road"]', '["road"]').replace('["grad^2", "sg-sq", "rand", "block"]', '["rand"]')
    (folder / "study.toml").write_text(text)
    return folder / "study.toml"


def command(*arguments: object) -> Any:
    from typer.testing import CliRunner

    from roarfast.commands import app

    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def own(tmp_path: Path) -> Path:
    pytest.importorskip("torch")
    pytest.importorskip("pydantic")
    a = images(30, 32, 32)
    np.savez(tmp_path / "all.npz", images=a, labels=labels(30))
    np.savez(tmp_path / "split.npz", images=a, labels=labels(30), is_train=np.arange(30) < 20)
    nchw = np.ascontiguousarray(a.transpose(0, 3, 1, 2))
    np.savez(tmp_path / "nchw.npz", images=nchw, labels=labels(30), is_train=np.arange(30) < 20)
    return tmp_path


def test_a_study_refuses_data_it_would_misread(own: Path) -> None:
    for data, message in (
        ('path = "all.npz"', "is_train"),
        ('path = "nchw.npz"', "layout='NCHW'"),
        ('train = "all.npz"\ntest = "all.npz"', "data.train and data.test are the same file, all.npz: 30 of 30"),
        ('path = "split.npz"\nlayout = "CHWN"', "must be 'NHWC' or 'NCHW', got 'CHWN'"),
    ):
        result = command("run", write_study(own, data), "--out", own / "run", "--workers", 1)
        assert result.exit_code == 2 and message in result.stderr.replace("\n", " "), result.stderr


def test_a_study_reads_every_documented_form_alike(own: Path) -> None:
    from roarfast.study import images
    from roarfast.study.config import load_config

    hashes = set()
    for data in ('path = "split.npz"', 'train = "split.npz"\ntest = "split.npz"', 'path = "nchw.npz"\nlayout = "NCHW"'):
        hashes.add(tuple(part.data_hash for part in images.load_data(load_config(write_study(own, data)).data)))
    assert len(hashes) == 1


def test_doubts_are_told_at_the_start_and_in_the_report(own: Path) -> None:
    a = images(30, 32, 32)
    a[25:] = a[:5]
    np.savez(own / "leak.npz", images=a, labels=labels(30), is_train=np.arange(30) < 20)
    result = command("run", write_study(own, 'path = "leak.npz"'), "--out", own / "run", "--workers", 1)
    assert result.exit_code == 0, result.output
    sentence = "5 of 10 test images (50.00 %) are also train images"
    assert f"warning: {sentence}" in result.output
    assert command("report", own / "run").exit_code == 0
    page = (own / "run" / "report" / "index.html").read_text()
    assert "Doubtful" in page and sentence in page
