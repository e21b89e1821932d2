"""Watermarked data: by hand, image by image, through files and through the command."""

import numpy as np
import pytest
from typer.testing import CliRunner

from roarfast.commands import app
from roarfast.data import Dataset, load
from roarfast.data.watermark import BLANK, number_stamps, save, stripes, watermark


@pytest.fixture(scope="module")
def pictures():
    return load("shapes", "test", n=300)


def test_stripes_by_hand(pictures):
    marked = watermark(pictures, "stripes", seed=3)
    for image, mask, label, before in zip(marked.images, marked.masks, marked.labels, pictures.images):
        for band in range(4):  # ten classes: four bands of eight rows
            rows = slice(8 * band, 8 * band + 8)
            if (label >> band) & 1:
                assert (image[rows] == 255).all() and mask[rows].all()
            else:
                np.testing.assert_array_equal(image[rows], before[rows])
                assert not mask[rows].any()


def test_class_40_of_128_is_the_papers_example():
    """0101000 in binary: the 4th and 6th regions."""
    on = stripes(np.array([40]), 224, 7)[0].reshape(7, 32)
    assert on.all(1).nonzero()[0].tolist() == [3, 5] and on.any(1).sum() == 2


def test_numbers_by_hand(pictures):
    marked = watermark(pictures, "number", seed=3)
    stamps = number_stamps(10, 32)
    assert stamps.shape == (10, 7, 5)
    assert len({s.tobytes() for s in stamps}) == 10
    for image, mask, label, before in zip(marked.images, marked.masks, marked.labels, pictures.images):
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        assert mask.sum() == 35 and mask[box].all()
        np.testing.assert_array_equal(image[box], np.where(stamps[label], 255, 0)[..., None] * np.ones(3, int))
        np.testing.assert_array_equal(image[~mask], before[~mask])


def test_digits_can_be_read():
    glyph = number_stamps(10, 32)[:, 1:6, 1:4].astype(int)
    assert glyph[1].tolist() == [[0, 1, 0], [1, 1, 0], [0, 1, 0], [0, 1, 0], [1, 1, 1]]
    assert glyph[4].tolist() == [[1, 0, 1], [1, 0, 1], [1, 1, 1], [0, 0, 1], [0, 0, 1]]
    assert number_stamps(100, 224).shape == (100, 49, 63)


@pytest.mark.parametrize("kind", ["number", "stripes"])
def test_an_image_does_not_depend_on_the_others(pictures, kind):
    whole = watermark(pictures, kind, seed=1)
    part = watermark(pictures.subset(slice(0, 17)), kind, seed=1)
    np.testing.assert_array_equal(part.images, whole.images[:17])
    np.testing.assert_array_equal(part.labels, whole.labels[:17])
    assert (watermark(pictures, kind, seed=2).labels != whole.labels).any()


def test_labels_are_dealt_evenly_and_tell_nothing_of_the_picture():
    data = Dataset(np.zeros((20_000, 8, 8, 1), np.uint8), np.arange(20_000) % 10, tuple("abcdefghij"))
    dealt = watermark(data, "stripes").labels
    table = np.zeros((10, 10))
    np.add.at(table, (data.labels, dealt), 1)
    chi = ((table - 200) ** 2 / 200).sum()
    assert chi < 160  # 99 degrees of freedom: mean 99, standard deviation 14
    np.testing.assert_array_equal(watermark(data, "stripes", labels="keep").labels, data.labels)


def test_blank_canvas(pictures):
    marked = watermark(pictures, "number", canvas="blank")
    assert (marked.images[~marked.masks] == BLANK).all()
    np.testing.assert_array_equal(marked.masks, watermark(pictures, "number").masks)


def test_file(pictures, tmp_path):
    marked = watermark(pictures, "number")
    save(marked, tmp_path / "marked.npz")
    back = load(tmp_path / "marked.npz", "test")
    for name in ("images", "labels", "masks"):
        np.testing.assert_array_equal(getattr(back, name), getattr(marked, name))
    assert back.class_names == marked.class_names


def test_command(tmp_path):
    out = tmp_path / "out.npz"
    result = CliRunner().invoke(
        app, ["data", "watermark", "shapes", str(out), "--kind", "stripes", "--n", "50", "--split", "test"]
    )
    assert result.exit_code == 0, result.output
    assert load(out, "test").masks.any()
    wrong = CliRunner().invoke(app, ["data", "watermark", "shapes", str(out), "--kind", "numbers", "--n", "5"])
    assert wrong.exit_code == 1 and "kind must be one of number, stripes, got 'numbers'" in wrong.stderr


def test_bad_inputs():
    small = Dataset(np.zeros((2, 6, 6, 1), np.uint8), np.array([0, 1]), ("a", "b"))
    with pytest.raises(ValueError, match=r"images of 6x6 are smaller than the rectangle of 7x5 .* 2 classes"):
        watermark(small, "number")
    many = Dataset(np.zeros((1, 2, 2, 1), np.uint8), np.array([0]), tuple(map(str, range(100))))
    with pytest.raises(ValueError, match="100 classes need 7 bands, images have 2 rows"):
        watermark(many, "stripes")
    with pytest.raises(ValueError, match="canvas must be one of image, blank, got 'white'"):
        watermark(small, "stripes", canvas="white")


def test_damaged_masks(tmp_path):
    np.savez(
        tmp_path / "a.npz",
        images=np.zeros((2, 4, 4, 1), np.uint8),
        labels=np.array([0, 1]),
        masks=np.zeros((2, 4, 5), bool),
    )
    with pytest.raises(ValueError, match=r"masks must be bool \[N, H, W\], \(2, 4, 4\), got bool of shape \(2, 4, 5\)"):
        load(tmp_path / "a.npz", "all")
